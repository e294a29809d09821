import Foundation
import Testing

/// What Docs/Architecture.md says of the targets, held against Package.swift and against what the sources import. The compiler alone does
/// not guard it: a module of a package that some other target uses can be imported by any.
@Suite("Docs/Architecture.md, \"Targets\"") struct ArchitectureTests {
    private struct Target {
        var name: String
        /// Targets of this package.
        var own: Set<String> = []
        /// Modules of other packages.
        var foreign: Set<String> = []
    }

    /// Of the system; nobody has to declare them.
    private static let system: Set = ["Darwin", "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "Musl", "Synchronization"]
    /// Used through another module, whose own types are made of its types.
    private static let through = ["HTTPTypes": "Hummingbird"]

    @Test("the table has every target once, lowest first, with exactly what Package.swift lets it use") func table() throws {
        let targets = try Self.targets()
        let rows = try Self.rows()
        #expect(rows.map(\.name).sorted() == targets.map(\.name).sorted())
        var above: Set<String> = []
        for row in rows {
            let target = try #require(targets.first { $0.name == row.name }, "\(row.name) is no target")
            #expect(row.own.sorted() == target.own.sorted(), "own targets of \(row.name), in the table and in Package.swift")
            #expect(row.foreign.sorted() == target.foreign.sorted(), "modules of others of \(row.name), in the table and in Package.swift")
            #expect(target.own.subtracting(above).isEmpty, "\(row.name) uses what does not stand above it")
            above.insert(row.name)
        }
    }

    @Test("a target imports what Package.swift lets it use, all of it and nothing else") func imports() throws {
        for target in try Self.targets() {
            let imported = try Self.imports(of: target.name)
            guard !imported.isEmpty || !target.own.isEmpty else { continue }  // a module of C
            let usable = target.own.union(target.foreign)
            let strange = imported.subtracting(usable).subtracting(Self.system).filter { !usable.contains(Self.through[$0] ?? "") }
            #expect(strange.isEmpty, "\(target.name) imports \(strange.sorted()), which Package.swift does not give it")
            let unused = usable.subtracting(imported)
            #expect(unused.isEmpty, "\(target.name) imports no \(unused.sorted()), which Package.swift gives it")
        }
    }

    @Test("only the store names SQL") func store() throws {
        for target in try Self.targets() where target.name != "HexlistStore" {
            for (file, line) in try Self.lines(of: target.name, containing: "SELECT ", "INSERT ", "UPDATE ", "DELETE ", "PRAGMA ") {
                let isSQL =
                    !line.contains(/^\s*\/\//)
                    && line.contains(/(?:SELECT .+ FROM |INSERT (?:OR \w+ )?INTO |UPDATE \w+ SET |DELETE FROM |PRAGMA )/)
                #expect(!isSQL, "\(file): \(line)")
            }
        }
    }

    /// Those of Package.swift, but for the tests' own.
    private static func targets() throws -> [Target] {
        let manifest = try text("Package.swift")
        var targets: [Target] = []
        for head in manifest.matches(of: /\.(?:target|executableTarget|systemLibrary)\(/) {
            let declaration = balanced(manifest[head.range.upperBound...])
            guard !declaration.contains(#"path: "Tests/"#) else { continue }
            let name = try #require(declaration.firstMatch(of: /name: "(\w+)"/)?.output.1)
            var target = Target(name: String(name))
            if let list = declaration.firstRange(of: "dependencies: [") {
                let dependencies = balanced(declaration[list.upperBound...])
                let products = dependencies.matches(of: /\.product\(name: "(\w+)", package: "[^"]+"\)/)
                target.foreign = Set(products.map { String($0.output.1) })
                let rest = dependencies.replacing(/\.product\([^)]*\)/, with: "")
                target.own = Set(rest.matches(of: /"(\w+)"/).map { String($0.output.1) })
            }
            targets.append(target)
        }
        return targets
    }

    /// What stands before the bracket that ends it.
    private static func balanced(_ text: Substring) -> Substring {
        var depth = 1
        for index in text.indices {
            switch text[index] {
            case "(", "[": depth += 1
            case ")", "]": depth -= 1
            default: break
            }
            if depth == 0 { return text[..<index] }
        }
        return text
    }

    /// `| name | what it is | Model, Wire; NIOCore, Crypto |`: own targets without `Hexlist`, then modules of others.
    private static func rows() throws -> [Target] {
        let chapter = try #require(
            try text("Docs/Architecture.md").split(separator: "\n## Targets\n").last?.split(separator: "\n## ").first)
        return try chapter.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { line in
            let cells = line.dropFirst().split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            try #require(cells.count == 3, "\(line)")
            var target = Target(name: cells[0].trimmingCharacters(in: ["`"]))
            let parts = cells[2].split(separator: ";", omittingEmptySubsequences: false)
            let names = parts.map { $0.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } }
            target.own = Set((names.first ?? []).filter { $0 != "nothing" }.map { $0.first == "C" && $0 != "Client" ? $0 : "Hexlist\($0)" })
            target.foreign = Set(names.dropFirst().joined())
            return target
        }
    }

    private static func imports(of target: String) throws -> Set<String> {
        let pattern = /\s*(?:@\w+ +)*(?:public +|internal +)?import +(?:(?:struct|class|enum|protocol|func|var|typealias) +)?(\w+).*/
        return Set(try lines(of: target, containing: "import ").compactMap { $0.line.wholeMatch(of: pattern).map { String($0.output.1) } })
    }

    /// Lines of a target's sources with one of some words: expressions are tried on few lines, for they are slow.
    private static func lines(of target: String, containing words: String...) throws -> [(file: String, line: Substring)] {
        let folder = "Sources/\(target)"
        let files = FileManager.default.enumerator(atPath: "\(Checkout.root)/\(folder)")?.compactMap { $0 as? String } ?? []
        return try files.filter { $0.hasSuffix(".swift") }.flatMap { file in
            try text("\(folder)/\(file)").split(separator: "\n").filter { line in words.contains { line.contains($0) } }.map { (file, $0) }
        }
    }

    private static func text(_ path: String) throws -> String { try String(contentsOfFile: "\(Checkout.root)/\(path)", encoding: .utf8) }
}
