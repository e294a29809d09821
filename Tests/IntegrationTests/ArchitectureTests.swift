import Foundation
import Testing

/// Compares Docs/Architecture.md, "Targets", with Package.swift and with the imports of the sources, and checks rules for all sources. The
/// compiler alone does not guard imports: any target can import a package's module that another target uses.
@Suite("Docs/Architecture.md, \"Targets\"") struct ArchitectureTests {
    private struct Target {
        var name: String
        /// Targets of this package.
        var own: Set<String> = []
        /// Modules of other packages.
        var foreign: Set<String> = []
    }

    /// Modules of the system, which need no declaration.
    private static let system: Set = ["Darwin", "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "Musl", "Synchronization"]
    /// Modules whose types another module's API uses, so that the dependency on the other one is sufficient.
    private static let through = ["HTTPTypes": "Hummingbird"]

    @Test("the table has each target once, lowest first, with exactly its dependencies in Package.swift") func table() throws {
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

    @Test("a target imports exactly its dependencies in Package.swift") func imports() throws {
        for target in try Self.targets() {
            let imported = try Self.imports(of: target.name)
            guard !imported.isEmpty || !target.own.isEmpty else { continue }  // a C module
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

    /// Names of members that contain text of peers. The names in `own` have no other use; those in `common` also name other texts, so they
    /// count only after a dot.
    private static let peerTexts = (
        own: "displayName|senderName|peerName|shownName|alias|peerAlias|senderAlias|hexDescription|linkDescription|url|subject"
            + "|instance|instanceName|versionID|hexColor|senderUUID|features",
        common: "name|message|description|step|version|token|service|why"
    )

    /// Comparisons of members with such names that do not contain peer text, each with the reason: a part of "file: line of code".
    private static let otherTexts = [
        "HexlistDaemon/Configuration/": "the user's configuration",
        "items.contains(where: { $0.name == name })": "names in requests of the local API",
        "items.filter { $0.name == name }": "names in requests of the local API",
        "!names.contains(item.name)": "names in requests of the local API",
        "$0.rawValue == name || $0.rawValue.hasPrefix(name": "types of events in requests of the local API",
        "HexlistNode/Routes/MQTTInbox.swift: guard let index": "numbers that this program made",
        "HexlistNode/Routes/RouteCoordinator.swift": "names of routes in the user's configuration",
        "HexlistDNS/": "DNSName compares bytes",
        "HexlistFormats/QR": "the version of a QR code is a number",
        "guard answer.name == services": "DNSName compares bytes",
        "HexlistStore/Inbox/HexInserter.swift": "slices of a frame",
        "HexlistStore/Inbox/LinkRows.swift": "slices of a frame",
        "WHERE link.url >= 'hexlist://'": "SQL, which compares bytes",
        "HexlistStore/Lists/Links.swift": "URLs as bytes",
        "HexlistStore/Lists/ImportMerge.swift": "URLs as bytes",
        "HexlistLists/": "UTF8Text compares bytes, and versions are numbers",
        "HexlistStore/MyHexlist/": "UTF8Text compares bytes, and versions are numbers",
        "HexlistModel/NormalizedLinkAddress.swift": "names of parameters as bytes",
        "HexlistModel/SearchTerm.swift: if name == \"is\"": "the user's search",
        "firstIndex(where: { $0.token == token })": "a BootNonce, which is a number",
        "HexlistDaemon/Page/PageKeys.swift": "tokens that this daemon made",
        "HexlistDaemon/Guest/GuestInvitations.swift": "hashes of tokens, as bytes",
        "chain.name == \"INPUT\"": "the kernel's name of a chain",
        "($0.step)": "steps of the own report",
        "step.step": "steps of the own report",
        "seen.contains($0.name)": "names of the machine's interfaces",
        "EventType.all.first(where: { $0.rawValue == name })": "names of the user's hooks",
        "self.announcement?.instanceName != announcement?.instanceName": "the own announcement",
        "published.instanceName == wanted.instanceName": "the own announcement",
        "before?.instanceName == announcement.instanceName": "the own announcement",
        "configuration.name != old.name": "the own name",
        "guard version == String(LocalAPI.version)": "the version of the local API, told by the daemon",
        "version <= StoreSchema.version": "a number",
        "contains(ProtocolLimits.version)": "a number",
        "$0.identifier == version": "an ASN.1 tag",
        "checks.ping?.message == ": "both made by this machine",
        "dialBack?.token == ": "numbers",
        "HexlistDaemon/Metrics/": "names of metrics",
        "name != \".\"": "a name of at most 253 bytes, of which bytes were checked",
        "if name == Identity.fileName": "names of the state folder's files",
        "!link.url.hasPrefix(\"#\")": "a link the user typed",
        "links.first?.url.hasPrefix(\"#\")": "a link the user typed",
    ]

    @Test("SQLite is configured in one place, which disables its statistics before its first use") func configuration() throws {
        for (file, line) in try Self.lines(of: "HexlistStore", containing: "Configuration()") {
            #expect(!line.contains(/\bConfiguration\(\)/) || file == "Engine/StoreConnection.swift", "\(file): \(line)")
        }
    }

    @Test("no closure is taken out of a mutex alone: each time adds another wrapper to call through") func closures()
        throws
    {
        let closure = try NSRegularExpression(pattern: #"\b(?:let|var) (\w+) = Mutex<\(.*->.*>\("#)
        for file in try Self.files(in: "Sources") {
            let source = try Self.text("Sources/\(file)") as NSString
            for match in closure.matches(in: source as String, range: NSRange(location: 0, length: source.length)) {
                let name = source.substring(with: match.range(at: 1))
                #expect(!source.contains("\(name).withLock { $0 }") && !source.contains("\(name).withLock(\\.self)"), "\(file): \(name)")
            }
        }
    }

    @Test("peer text is never compared with String's operators, which take quadratic time on hostile text") func peerTexts() throws {
        let (own, common) = Self.peerTexts
        let comparison = "(?:==|!=|<=|>=|<|>)"
        let receiver = #"(?:[\w$)\]]+[?!]?\.)"#
        let text = #"(?:\#(receiver)+(?:\#(own)|\#(common))|\b(?:\#(own)))\b[?!]?"#
        let patterns = [
            #"\b(?:\#(own)|\#(common))\b[?!]? \#(comparison) (?!nil\b)"#,
            #" \#(comparison) \#(receiver)*(?:\#(own)|\#(common))\b[?!]?(?![.(\w])"#,
            #"\.(?:contains|insert|remove|firstIndex|lastIndex|removeValue|hasPrefix|hasSuffix)\((?:\w+: )?\#(text)\)"#,
            #"\#(text)\.(?:hasPrefix|hasSuffix|contains|split|replacing)\("#,
            #"[\w\])]\[\#(text)[\],]"#,
            #"\(rawValue: \#(text)\)"#,
            #"\bswitch (?:\([^{\n]*)?\#(text)\)? \{"#,
            #"(?:by: |Set\([^()\n]*\()\\\.(?:\w+\.)*(?:\#(own)|\#(common))\b(?!\.)"#,
        ]
        // Foundation's regular expressions, because Swift's own take minutes for all sources.
        let offence = try NSRegularExpression(pattern: patterns.joined(separator: "|"))
        for file in try Self.files(in: "Sources") {
            let source = try Self.text("Sources/\(file)") as NSString
            for match in offence.matches(in: source as String, range: NSRange(location: 0, length: source.length)) {
                let line = source.substring(with: source.lineRange(for: match.range)).trimmingCharacters(in: .whitespacesAndNewlines)
                guard !line.hasPrefix("//") else { continue }
                let place = "\(file): \(line)"
                #expect(
                    Self.otherTexts.keys.contains { place.contains($0) },
                    "\(place)\nCompare bytes (PeerTextComparison, NormalizedName), or name it in `otherTexts` with the reason if no peer wrote it."
                )
            }
        }
    }

    @Test("pages cited in comments exist, and so do documented parameters") func comments() throws {
        let page = try NSRegularExpression(pattern: #"Docs/[\w/]+\.\w+"#)
        let parameter = try NSRegularExpression(  // matches the name, and the lines after the comment
            pattern: #"/// (?:- Parameter|  -) (\w+):.*\n(?=(?: *///.*\n)*((?:.*\n){1,12}))"#)
        for file in try ["Sources", "Tests"].flatMap({ folder in try Self.files(in: folder).map { "\(folder)/\($0)" } }) {
            let source = try Self.text(file) as NSString
            let whole = NSRange(location: 0, length: source.length)
            for match in page.matches(in: source as String, range: whole) {
                let path = source.substring(with: match.range)
                #expect(FileManager.default.fileExists(atPath: "\(Checkout.root)/\(path)"), "\(file) cites \(path)")
            }
            for match in parameter.matches(in: source as String, range: whole) {
                let (name, declaration) = (source.substring(with: match.range(at: 1)), source.substring(with: match.range(at: 2)))
                #expect(declaration.contains("\(name): "), "\(file): no parameter \(name) in \(declaration)")
            }
        }
    }

    @Test("Examples/embedded-peer depends on products of this package only, and imports nothing else") func example() throws {
        let folder = "Examples/embedded-peer"
        let manifest = try Self.text("\(folder)/Package.swift")
        let used = Set(manifest.matches(of: /\.product\(name: "(\w+)", package: "hexlist"\)/).map { String($0.output.1) })
        let others = Set(manifest.matches(of: /\.product\(name: "(\w+)", package: "swift-nio"\)/).map { String($0.output.1) })
        var products: [String: Set<String>] = [:]
        for product in try Self.text("Package.swift").matches(of: /\.library\(name: "(\w+)", targets: \[([^\]]*)\]\)/) {
            products[String(product.output.1)] = Set(product.output.2.matches(of: /\w+/).map { String($0.output) })
        }
        #expect(used.subtracting(products.keys).isEmpty)
        let usable = used.reduce(into: others) { $0.formUnion(products[$1] ?? []) }
        for file in try Self.files(in: "\(folder)/Sources") {
            let source = try Self.text("\(folder)/Sources/\(file)")
            let imported = Set(source.matches(of: /(?m)^import (\w+)$/).map { String($0.output.1) }).subtracting(Self.system)
            #expect(imported.subtracting(usable).isEmpty, "\(file) imports what its manifest does not name")
            #expect(usable.subtracting(imported).isEmpty, "\(file) does not import all that its manifest names")
        }
    }

    /// The products of Package.swift, except those of tests and examples.
    private static func targets() throws -> [Target] {
        let manifest = try text("Package.swift")
        var targets: [Target] = []
        for head in manifest.matches(of: /\.(?:target|executableTarget|systemLibrary)\(/) {
            let declaration = balanced(manifest[head.range.upperBound...])
            guard !declaration.contains(/path: "(?:Tests|Examples)\//) else { continue }
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

    /// The text before the closing bracket.
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
        let pattern =
            /\s*(?:@\w+ +)*(?:public +|package +|internal +)?import +(?:(?:struct|class|enum|protocol|func|var|typealias) +)?(\w+).*/
        return Set(try lines(of: target, containing: "import ").compactMap { $0.line.wholeMatch(of: pattern).map { String($0.output.1) } })
    }

    /// Lines of a target's sources that contain one of some words. Regular expressions are slow, so they get only these lines.
    private static func lines(of target: String, containing words: String...) throws -> [(file: String, line: Substring)] {
        try files(in: "Sources/\(target)").flatMap { file in
            try text("Sources/\(target)/\(file)").split(separator: "\n").filter { line in words.contains { line.contains($0) } }.map {
                (file, $0)
            }
        }
    }

    /// Paths of the Swift files below a folder, relative to it.
    private static func files(in folder: String) throws -> [String] {
        let paths = try #require(FileManager.default.enumerator(atPath: "\(Checkout.root)/\(folder)"))
        return paths.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.sorted()
    }

    private static func text(_ path: String) throws -> String { try String(contentsOfFile: "\(Checkout.root)/\(path)", encoding: .utf8) }
}
