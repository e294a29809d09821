import Foundation
import Testing

/// Types that hold many things are counted in the text of the sources: 15 stored properties, and whoever needs more says why.
@Suite("Stored properties") struct StoredPropertiesTests {
    private struct TypeInSource {
        var name: String
        var comment: String
        var properties = 0
        /// Braces around its members.
        var depth: Int
        /// Whether its own brace, which may stand on a later line, has come.
        var isEntered = false
        /// Whether it can have stored properties.
        var stores: Bool
    }

    private static let most = 15
    private static let reason = "more than \(most) properties"

    @Test("a type with more than 15 says in its comment why") func reasons() throws {
        let folder = "\(Checkout.root)/Sources"
        let files = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") } ?? []
        #expect(files.count > 100)
        for file in files {
            for type in Self.types(in: try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)) {
                let isFine = type.properties <= Self.most || type.comment.lowercased().contains(Self.reason)
                #expect(isFine, "\(file): \(type.name) has \(type.properties); its comment says nothing of \"\(Self.reason)\"")
            }
        }
    }

    @Test("stored ones are counted, computed and static ones are not") func counting() {
        let source = """
            /// A type.
            @frozen public struct One: Sendable {
                static let shared = 1
                public private(set) var a = "{", b: Int
                let closure: () -> Void = { print("}") }
                var computed: Int { a }
                weak var c: Two? // { {
                enum Inner { case x }
                func f() { let local = 1 }
            }
            final class Two {
                var d: Int {
                    didSet { f() }
                }
                struct Three:
                    Sendable
                {
                    var e = (1, 2)
                }
            }
            """
        let counts = Self.types(in: source).map { "\($0.name) \($0.properties)" }
        #expect(counts.sorted() == ["Inner 0", "One 4", "Three 1", "Two 1"])
        #expect(Self.types(in: source).first { $0.name == "One" }?.comment.contains("A type.") == true)
    }

    private static func types(in source: String) -> [TypeInSource] {
        var (done, open): ([TypeInSource], [TypeInSource]) = ([], [])
        var (depth, comment, isInText) = (0, "", false)
        let lines = source.split(separator: "\n").map { $0.drop { $0 == " " } }
        for (number, line) in lines.enumerated() {
            if line.contains(#"""""#) {
                isInText.toggle()
                continue
            }
            if isInText { continue }
            if line.hasPrefix("///") {
                comment += line.dropFirst(3)
                continue
            }
            let code = code(of: line)
            var words = code.split { " (:<,{".contains($0) }
            while let word = words.first, word.hasPrefix("@") || modifiers.contains(String(word)) { words.removeFirst() }
            if let word = words.first, words.count > 1, kinds.contains(String(word)) {
                let stores = ["struct", "class", "actor"].contains(word)
                open.append(TypeInSource(name: String(words[1]), comment: comment, depth: depth + 1, stores: stores))
            } else if let word = words.first, word == "let" || word == "var", let type = open.last, type.stores, type.depth == depth,
                isStored(code, before: lines[(number + 1)...].first ?? "")
            {
                open[open.count - 1].properties += 1 + commas(in: code)
            }
            if !line.hasPrefix("@") || words.count > 0 { comment = "" }
            depth += code.count { $0 == "{" } - code.count { $0 == "}" }
            if let type = open.last, depth >= type.depth { open[open.count - 1].isEntered = true }
            while let type = open.last, depth < type.depth, type.isEntered || code.contains("}") { done.append(open.removeLast()) }
        }
        return done + open
    }

    private static let kinds: Set = ["struct", "class", "actor", "enum", "protocol", "extension"]
    private static let modifiers: Set = [
        "public", "package", "internal", "private", "fileprivate", "open", "final", "indirect", "nonisolated", "unowned", "weak", "lazy",
        "set)", "unsafe)", "private(set)", "set",
    ]

    private static func isStored(_ code: String, before next: Substring) -> Bool {
        guard let brace = code.firstIndex(of: "{") else { return true }
        return code[..<brace].contains("=") || next.hasPrefix("didSet") || next.hasPrefix("willSet")
    }

    /// Commas outside all brackets: `var a = 1, b: Int` are two properties, `var c: (Int, Int)` is one.
    private static func commas(in code: String) -> Int {
        var (depth, count) = (0, 0)
        for byte in code.utf8 {
            switch byte {
            case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "<"), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: ">"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: ",") where depth == 0: count += 1
            default: break
            }
        }
        return count
    }

    /// A line without its texts and its comment.
    private static func code(of line: Substring) -> String {
        var (code, isText, isEscaped): ([UInt8], Bool, Bool) = ([], false, false)
        for byte in line.utf8 {
            if isEscaped {
                isEscaped = false
            } else if isText, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isText.toggle()
            } else if !isText {
                code.append(byte)
                if code.suffix(2) == [UInt8(ascii: "/"), UInt8(ascii: "/")] { return String(decoding: code.dropLast(2), as: UTF8.self) }
            }
        }
        return String(decoding: code, as: UTF8.self)
    }
}
