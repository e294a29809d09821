import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistFormats
import HexlistJSON
import HexlistModel

struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write hexes into a file that other programs read, or that `hexlist import` takes.",
        discussion: """
            hexlist export --mine --format html -o bookmarks.html

            json, ndjson and html lose nothing of a hex; opml neither, but other programs show less of it; csv and markdown leave out what \
            they have no place for. Nothing is marked as read.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Export the inbox.")
    var inbox = false

    @Flag(help: "Export My Hexlist.")
    var mine = false

    @Option(help: ArgumentHelp("Only hexes of this peer, of the inbox.", valueName: "peer"))
    var from: String?

    @Option(help: ArgumentHelp("json, ndjson, csv, markdown, html or opml.", valueName: "format"))
    var format: WrittenFormat

    @Option(name: [.customShort("o"), .long], help: ArgumentHelp("The file to write, instead of standard output.", valueName: "file"))
    var output: String?

    @Flag(help: "Replace a file that is there.")
    var force = false

    @Argument(help: ArgumentHelp("Hexes to export.", valueName: "hex"))
    var hexes: [HexID] = []

    func validate() throws {
        let named = (hexes.isEmpty ? 0 : 1) + (inbox || from != nil ? 1 : 0) + (mine ? 1 : 0)
        guard named == 1 else { throw ValidationError("Say what to export: some HEX, --inbox (with --from PEER), or --mine.") }
    }

    private var selection: HexSelection {
        if !hexes.isEmpty { return .ids(hexes.map(\.value)) }
        return mine ? .list(location: HexLocation.mine.rawValue) : .list(from: from, location: HexLocation.inbox.rawValue)
    }

    func run() async throws {
        if let output, !force, access(output, F_OK) == 0 {
            throw HexlistError(.badRequest, "\(output) is there already.", hint: "Name another file, or replace it with --force.")
        }
        let file = try output.map { try NewFile(path: $0) }
        do {
            let count = try await write(to: file)
            try file?.finish()
            if let output { StandardError.note("\(HumanText.count(count, "hex", "hexes")) written to \(output).") }
        } catch {
            file?.discard()
            throw error
        }
    }

    /// - Returns: the number of hexes.
    private func write(to file: NewFile?) async throws -> Int {
        let stdout = common.output
        func put(_ bytes: [UInt8]) throws {
            if let file { try bytes.withUnsafeBytes { try file.write($0) } } else { try stdout.bytes(bytes) }
        }
        let progress = ProgressLine()
        defer { progress.end() }
        var count = 0
        var lines: [JSONValue] = []
        try await common.withClient { client in
            try await client.export(selection) { line in
                count += 1
                // Most formats are written as a whole, as they end what they begin.
                if format == .ndjson { try put(line + [0x0A]) } else { lines.append(try JSONValue(parsing: line)) }
                if file != nil { progress.update("\(HumanText.count(count, "hex", "hexes")) …") }
            }
        }
        if format != .ndjson { try put(format.format.write(lines)) }
        try stdout.flush()
        return count
    }
}

/// The values of `export --format`.
enum WrittenFormat: String, ExpressibleByArgument, CaseIterable {
    case json, ndjson, csv, markdown, html, opml

    var format: FileFormat {
        switch self {
        case .json: .json
        case .ndjson: .ndjson
        case .csv: .csv
        case .markdown: .markdown
        case .html: .html
        case .opml: .opml
        }
    }
}

/// The values of `import --format`.
enum ReadFormat: String, ExpressibleByArgument, CaseIterable {
    case json, ndjson, csv, markdown, html, opml, list

    var format: FileFormat {
        switch self {
        case .json: .json
        case .ndjson: .ndjson
        case .csv: .csv
        case .markdown: .markdown
        case .html: .html
        case .opml: .opml
        case .list: .list
        }
    }
}

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Take bookmarks and other files of links into My Hexlist.",
        discussion: """
            Reads what `hexlist export` wrote, the bookmarks that browsers export as HTML, CSV of Pocket and Raindrop, OPML, Markdown, \
            and lists of links, one a line. A folder becomes a hex, a folder in it a hex inside. A hex that could not be sent, with more \
            than \(ProtocolLimits.links) links or too many levels, becomes several.

            All is imported or nothing. What is there already is not added, so importing a file again changes nothing. What of a file \
            cannot be taken is said on standard error; exit code 2 where a hex is refused.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        help: ArgumentHelp("json, ndjson, csv, markdown, html, opml or list, where the file does not show it.", valueName: "format"))
    var format: ReadFormat?

    @Argument(help: ArgumentHelp("The file; - for standard input.", valueName: "file"))
    var file: String

    /// The most bytes of a file.
    private static let fileBytes = 128 << 20

    private struct Done: Encodable, JSONEncodable {
        var hexes: Int
        var links: Int
        var added: Int
        var unchanged: Int
        var refused: [BulkRefusal]
        var skipped: [SkippedShape]
    }

    fileprivate struct SkippedShape: Encodable, JSONEncodable {
        var reason: String
        var count: Int
        var first: String
    }

    func run() async throws {
        let progress = ProgressLine()
        defer { progress.end() }
        progress.update("reading \(InputFile.name(file)) …")
        let bytes = try InputFile.read(file, limit: Self.fileBytes)
        let read = try ImportedFile.read(bytes, path: file, format: format?.format)
        guard !read.lines.isEmpty else {
            tell(read.skipped)
            throw HexlistError(
                .badRequest, "There is no hex and no link in \(InputFile.name(file)).",
                hint: "Is it the format you think? --format names it.")
        }
        progress.end()
        let waiting = ProgressLine()
        waiting.update(
            "\(HumanText.count(read.lines.count, "hex", "hexes")) with \(HumanText.count(read.links, "link", "links")): storing …")
        let result = try await common.withClient { try await $0.importHexes(read.lines.flatMap { $0.bytes + [0x0A] }) }
        waiting.end()
        let output = common.output
        if output.json {
            try output.object(
                Done(
                    hexes: read.lines.count, links: read.links, added: result.added, unchanged: result.unchanged, refused: result.refused,
                    skipped: read.skipped.map { SkippedShape(reason: $0.reason.rawValue, count: $0.count, first: $0.first) }))
        } else {
            tell(read.skipped)
            for refusal in result.refused {
                StandardError.note(TerminalText.clean("hex \(refusal.line): \(refusal.code): \(refusal.message)", columns: 300))
            }
            if result.untold > 0 { StandardError.note("… and \(result.untold) more.") }
            try output.wrapped(ImportText.summary(result, links: read.links))
        }
        try output.flush()
        if !result.refused.isEmpty { throw Ending(status: .usage) }
    }

    private func tell(_ skipped: [FileReading.Skip]) {
        guard !common.json else { return }
        for skip in skipped { StandardError.note(ImportText.skipped(skip)) }
    }
}

/// A file as what is imported of it.
struct ImportedFile {
    /// A HexJM each.
    var lines: [JSONValue] = []
    var links = 0
    var skipped: [FileReading.Skip] = []

    /// - Parameter format: `nil` for the one that the file shows.
    static func read(_ bytes: [UInt8], path: String, format: FileFormat?) throws -> ImportedFile {
        let name = Self.name(path)
        let format = format ?? FileFormat.of(bytes, name: path)
        switch format {
        case .json, .ndjson:
            // As they are: the daemon reads them as it reads what comes from the network.
            return try ImportedFile(lines: format == .json ? Self.array(bytes, path) : Self.ndjson(bytes, path))
        case .csv, .markdown, .html, .opml, .list:
            guard let reading = format.read(bytes, name: name) else {
                throw HexlistError(
                    .badRequest, "\(InputFile.name(path)) has no line of column names with `url` among them.",
                    hint: "Is it the format you think? --format names it.")
            }
            guard String(validating: bytes, as: UTF8.self) != nil else {
                throw HexlistError(.badRequest, "\(InputFile.name(path)) is not UTF-8 text.", hint: "`iconv -f LATIN1 -t UTF-8` makes it.")
            }
            let links = reading.forest.linkCount
            return ImportedFile(lines: links == 0 ? [] : reading.forest.divided(), links: links, skipped: reading.skipped)
        }
    }

    private init(lines: [JSONValue] = [], links: Int = 0, skipped: [FileReading.Skip] = []) {
        self.lines = lines
        self.links = links
        self.skipped = skipped
    }

    private init(lines: [JSONValue]) throws {
        self.lines = lines
        var forest = HexForest()
        for line in lines { forest.append(line) }
        links = forest.linkCount
    }

    private static func array(_ bytes: [UInt8], _ path: String) throws -> [JSONValue] {
        let value = try json(bytes, path, "")
        return value.elements ?? [value]
    }

    /// One a line; or one alone that has several lines.
    private static func ndjson(_ bytes: [UInt8], _ path: String) throws -> [JSONValue] {
        if let value = try? JSONValue(parsing: bytes) { return [value] }
        var values: [JSONValue] = []
        for (number, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            guard !line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) else { continue }
            values.append(try json(Array(line), path, ", line \(number + 1)"))
        }
        return values
    }

    private static func json(_ bytes: [UInt8], _ path: String, _ place: String) throws -> JSONValue {
        do {
            return try JSONValue(parsing: bytes)
        } catch {
            throw HexlistError(
                .badRequest, "\(InputFile.name(path))\(place) is no JSON: \(TerminalText.clean(error.description, columns: 200)).",
                hint: "Nothing was imported. --format names another format.")
        }
    }

    /// The name of the file without folders and suffix.
    static func name(_ path: String) -> String {
        guard path != "-" else { return "imported" }
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) } ?? path
        guard let dot = last.utf8.lastIndex(of: UInt8(ascii: ".")), dot > last.startIndex else { return last }
        return String(last[..<dot])
    }
}

/// Texts about imports.
enum ImportText {
    static func summary(_ result: ImportResult, links: Int) -> String {
        var parts = ["\(HumanText.count(result.added, "hex", "hexes")) added to My Hexlist"]
        if result.unchanged > 0 { parts.append("\(result.unchanged) there already") }
        let refused = result.refused.count + result.untold
        if refused > 0 { parts.append("\(refused) refused") }
        return parts.joined(separator: ", ") + "; the file has \(HumanText.count(links, "link", "links"))."
    }

    static func skipped(_ skip: FileReading.Skip) -> String {
        let first = skip.first.isEmpty ? "" : " `\(TerminalText.clean(skip.first, columns: 60))`"
        guard skip.count > 1 else { return "Left out: an entry\(first) \(skip.reason.rawValue)." }
        return "Left out: \(skip.count) entries; the first,\(first.isEmpty ? " without a title," : first) \(skip.reason.rawValue)."
    }
}
