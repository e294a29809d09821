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
            hexlist export --mine -o bookmarks.html

            hexlist export --search "river host:example.org" --format markdown

            json, ndjson and html lose nothing of a hex; opml neither, but other programs show less of it; csv and markdown leave out what \
            they have no place for. Nothing is marked as read.

            --search finds as `hexlist search` does, in the inbox and My Hexlist, or in the one that is named beside it. What is found inside \
            a hex is exported by itself, unless a hex it is in is found too.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Export the inbox.")
    var inbox = false

    @Flag(help: "Export My Hexlist.")
    var mine = false

    @Option(help: ArgumentHelp("Export what is found, as `hexlist search` takes it.", valueName: "text"))
    var search: String?

    @Option(help: ArgumentHelp("Only hexes of this peer, of the inbox or of what is found.", valueName: "peer"), completion: .peers)
    var from: String?

    @Option(
        name: .customLong("format"),
        help: ArgumentHelp("json, ndjson, csv, markdown, html or opml; by itself what the file's name ends in.", valueName: "format"))
    var named: WrittenFormat?

    @Option(name: [.customShort("o"), .long], help: ArgumentHelp("The file to write, instead of standard output.", valueName: "file"))
    var output: String?

    @Flag(help: "Replace a file that is there.")
    var force = false

    @Argument(help: ArgumentHelp("Hexes to export.", valueName: "hex"))
    var hexes: [HexID] = []

    /// The format that is asked for: by its name, or by the end of the file's.
    private var asked: FileFormat? { (named ?? output.flatMap(WrittenFormat.init(path:)))?.format }

    func validate() throws {
        guard asked != nil else {
            throw ValidationError(
                "Say in which format: --format json, ndjson, csv, markdown, html or opml; or -o with a name that ends so.")
        }
        if search != nil {
            guard hexes.isEmpty else { throw ValidationError("--search and named hexes do not go together.") }
            guard !inbox || !mine else { throw ValidationError("--search looks into both by itself: leave out --inbox and --mine.") }
            return
        }
        let named = (hexes.isEmpty ? 0 : 1) + (inbox || from != nil ? 1 : 0) + (mine ? 1 : 0)
        guard named == 1 else {
            throw ValidationError("Say what to export: some HEX, --inbox (with --from PEER), --mine, or --search TEXT.")
        }
    }

    private func selection() throws -> ExportSelection {
        let place: HexLocation? = mine ? .mine : inbox ? .inbox : nil
        if let search {
            _ = try SearchTerm.parse(search)  // mistakes are told before a file is made
            return .search(search, from: from, location: place?.rawValue)
        }
        guard hexes.isEmpty else { return .hexes(.ids(hexes.map(\.value))) }
        return .hexes(mine ? .list(location: HexLocation.mine.rawValue) : .list(from: from, location: HexLocation.inbox.rawValue))
    }

    func run() async throws {
        if let output, !force, access(output, F_OK) == 0 {
            throw HexlistError(.badRequest, "\(output) is there already.", hint: "Name another file, or replace it with --force.")
        }
        guard let format = asked else { return }  // `validate` saw it
        let selection = try selection()
        let file = try output.map { try NewFile(path: $0) }
        do {
            let count = try await write(selection, as: format, to: file)
            try file?.finish()
            if let output { StandardError.note("\(HumanText.count(count, "hex", "hexes")) written to \(output).") }
            if count == 0, output == nil { StandardError.note("There was nothing to export.") }
        } catch {
            file?.discard()
            throw error
        }
    }

    /// - Returns: the number of hexes.
    private func write(_ selection: ExportSelection, as format: FileFormat, to file: NewFile?) async throws -> Int {
        let stdout = common.output
        func put(_ bytes: [UInt8]) throws {
            if let file { try bytes.withUnsafeBytes { try file.write($0) } } else { try stdout.bytes(bytes) }
        }
        let progress = ProgressLine()
        defer { progress.end() }
        var count = 0
        var lines: [JSONValue] = []
        // What is written to a terminal shows by itself how far it is.
        let isShown = file == nil && format == .ndjson && stdout.terminal.isInteractive
        try await common.withClient { client in
            try await progress.during("hexlistd reads …") {
                try await client.export(selection) { line in
                    count += 1
                    // Most formats are written as a whole, as they end what they begin.
                    if format == .ndjson { try put(line + [0x0A]) } else { lines.append(try JSONValue(parsing: line)) }
                    if !isShown { progress.update("\(HumanText.count(count, "hex", "hexes")) …") }
                }
            }
            if case .search = selection, let note = SearchText.behind(try await client.status().search?.behind ?? 0) {
                progress.end()
                StandardError.note(note)
            }
        }
        if format != .ndjson {
            // What a search finds inside a hex comes without the hex, and so without its sender.
            let isMine = mine && search == nil
            let whole = await progress.during("writing \(HumanText.count(count, "hex", "hexes")) …") {
                format.write(lines, isMine: isMine)
            }
            try put(whole)
        }
        try stdout.flush()
        return count
    }
}

/// The values of `import --format`.
struct ReadFormat: ExpressibleByArgument {
    var format: FileFormat

    static var allValueStrings: [String] { FileFormat.allCases.map(\.rawValue) }

    init?(argument: String) {
        guard let format = FileFormat(rawValue: argument) else { return nil }
        self.format = format
    }
}

/// The values of `export --format`.
struct WrittenFormat: ExpressibleByArgument {
    var format: FileFormat

    static var allValueStrings: [String] { FileFormat.written.map(\.rawValue) }

    init?(argument: String) {
        guard let format = FileFormat(rawValue: argument), FileFormat.written.contains(format) else { return nil }
        self.format = format
    }

    /// The format that the end of a file's name stands for; `nil` for any other.
    init?(path: String) {
        guard let dot = path.lastIndex(of: ".") else { return nil }
        let end = path[path.index(after: dot)...].lowercased()
        self.init(argument: ["md": "markdown", "htm": "html"][end] ?? end)
    }
}

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Take bookmarks and other files of links into My Hexlist.",
        discussion: """
            Reads what `hexlist export` wrote (also after `jq .`), the bookmarks that browsers export as HTML, the JSON of Firefox, \
            Chromium and Pinboard, CSV of Pocket, Raindrop and Instapaper, OPML, Markdown, and lists of links, one a line. JSON of other \
            programs is refused. A folder becomes a hex, a folder in it a hex inside. A hex that could not be sent, with more than \
            \(ProtocolLimits.links) links or too many levels, becomes several.

            With --in it all comes to be inside a hex of My Hexlist, which stays one that can be sent. All is imported or nothing. What is \
            there already is not added, so importing a file again changes nothing. A folder of bookmarks, OPML, CSV, Markdown or a list that \
            is there under its name gets what is new in it; nothing is taken away. Entries that are left out are counted on standard \
            error, with the lines of the first five of each reason; exit code 2 if a hex is refused.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        help: ArgumentHelp("json, ndjson, csv, markdown, html, opml or list, where the file does not show it.", valueName: "format"))
    var format: ReadFormat?

    @Option(
        name: .customLong("in"), help: ArgumentHelp("Put what is imported into this hex of My Hexlist.", valueName: "hex"),
        completion: .mine)
    var parent: HexID?

    @Argument(help: ArgumentHelp("The file; - for standard input.", valueName: "file"), completion: .file())
    var file: String

    /// The most bytes of a file.
    private static let fileBytes = 128 << 20

    private struct Done: Encodable, JSONEncodable {
        var hexes: Int
        var links: Int
        var added: Int
        var addedInside: Int
        var unchanged: Int
        var extended: Int
        var newHexes: Int
        var newLinks: Int
        var refused: [BulkRefusal]
        var skipped: [SkippedJSON]
    }

    private struct SkippedJSON: Encodable, JSONEncodable {
        var reason: String
        var count: Int
        var first: String
        /// The first five entries.
        var items: [ItemJSON]

        init(_ skip: FileReading.Skip) {
            reason = skip.reason.rawValue
            count = skip.count
            first = skip.items.first?.text ?? ""
            items = skip.items.map { ItemJSON(line: $0.line, text: $0.text) }
        }
    }

    private struct ItemJSON: Encodable, JSONEncodable {
        var line: Int
        var text: String
    }

    func run() async throws {
        let progress = ProgressLine()
        let read = try await progress.during("reading \(InputFile.name(file)) …") {
            try ImportedFile(InputFile.read(file, limit: Self.fileBytes), path: file, format: format?.format)
        }
        if let encoding = read.encoding, !common.json { StandardError.note("\(InputFile.name(file)) was read as \(encoding).") }
        guard !read.lines.isEmpty else {
            tell(read.skipped)
            throw HexlistError(
                .badRequest, "There is no hex and no link in \(InputFile.name(file)).",
                hint: "Is it the format you think? --format names it.")
        }
        let what = "\(HumanText.count(read.lines.count, "hex", "hexes")) with \(HumanText.count(read.links, "link", "links"))"
        let result = try await progress.during("storing \(what) …") {
            try await stored(read) { progress.update("\($0.done) of \(what) stored, \($0.done * 100 / max(1, $0.total)) %") }
        }
        let output = common.output
        if output.json {
            try output.object(
                Done(
                    hexes: read.lines.count, links: read.links, added: result.added, addedInside: result.addedInside,
                    unchanged: result.unchanged, extended: result.extended, newHexes: result.newHexes, newLinks: result.newLinks,
                    refused: result.refused, skipped: read.skipped.map(SkippedJSON.init)))
        } else {
            tell(read.skipped)
            for refusal in result.refused {
                StandardError.note(TerminalText.clean("hex \(refusal.line): \(refusal.code): \(refusal.message)", columns: 300))
            }
            if result.untold > 0 { StandardError.note("… and \(result.untold) more.") }
            try output.wrapped(ImportText.summary(result, links: read.links, into: parent?.value))
        }
        try output.flush()
        if !result.refused.isEmpty { throw Ending(status: .usage) }
    }

    private func stored(_ read: ImportedFile, _ progress: (ImportProgress) -> Void) async throws -> ImportResult {
        let lines = read.lines.flatMap { $0.bytes + [0x0A] }
        do {
            return try await common.withClient {
                try await $0.importHexes(lines, into: parent?.value, merging: read.hasFolders, progress: progress)
            }
        } catch var error as HexlistError where error.code == .badRequest && parent != nil && error.hint == nil {
            error.hint = "Nothing was imported. Without --in it becomes hexes of My Hexlist by themselves."
            throw error
        }
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
    /// Whether a hex is a folder of the file, not a hex of Hexlist.
    var hasFolders = false
    /// The encoding of the file; `nil` for UTF-8.
    var encoding: String?

    /// - Parameter format: `nil` for the one that the file shows.
    init(_ file: [UInt8], path: String, format: FileFormat?) throws(HexlistError) {
        let (text, encoding) = try Self.text(file, path)
        let name = Self.name(path)
        guard text.contains(where: { $0 != 0x20 && !(0x09...0x0D).contains($0) }) else {
            throw HexlistError(
                .badRequest,
                "\(InputFile.name(path)) is empty\(text.isEmpty ? "" : " but for blank lines"): there is no hex and no link in it.",
                hint: "Nothing was imported. Give a file with links in it.")
        }
        guard let format = format ?? FileFormat.of(text, name: path) else {
            throw HexlistError(
                .badRequest, "\(InputFile.name(path)) is XML or HTML, but neither OPML nor a page of bookmarks.",
                hint: "Bookmarks are read as HTML, OPML, CSV, Markdown, JSON, or a list of links; --format names the format.")
        }
        if format == .json || format == .ndjson {
            try self.init(json: text, path, name)
        } else {
            guard let reading = format.read(text, name: name) else {
                throw ImportText.noColumn(BookmarkCSV.firstCells(text), path)
            }
            self.init(reading)
        }
        self.encoding = encoding
    }

    private init(_ reading: FileReading) { take(reading) }

    private mutating func take(_ reading: FileReading) {
        links = reading.forest.linkCount
        lines = links == 0 ? [] : reading.forest.divided()
        skipped = reading.skipped
        hasFolders = true
    }

    private init(json text: [UInt8], _ path: String, _ name: String) throws(HexlistError) {
        let file: JSONFile
        do throws(JSONFile.Fault) {
            file = try JSONFile(text, name: name)
        } catch {
            throw ImportText.error(error, path)
        }
        if let bookmarks = file.bookmarks {
            take(bookmarks)
            return
        }
        var forest = HexTree()
        for hex in file.hexes { forest.append(hex) }
        (lines, links, skipped) = (file.hexes, forest.linkCount, file.skipped)
    }

    /// The file in UTF-8, and its encoding if that is another.
    static func text(_ file: [UInt8], _ path: String) throws(HexlistError) -> (bytes: [UInt8], encoding: String?) {
        do throws(DecodedText.Fault) {
            let text = try DecodedText(file)
            return (text.bytes, text.encoding)
        } catch {
            throw ImportText.error(error, path)
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
    /// - Parameter parent: the hex that was imported into.
    static func summary(_ result: ImportResult, links: Int, into parent: Int64? = nil) -> String {
        let inside = result.addedInside == 0 ? "" : " with \(result.addedInside) inside \(result.added == 1 ? "it" : "them")"
        let added = HumanText.count(result.added, "hex", "hexes") + inside
        var parts = ["\(added) added to \(parent.map { "hex \($0)" } ?? "My Hexlist")"]
        if result.extended > 0 {
            let new = [
                result.newHexes == 0 ? nil : HumanText.count(result.newHexes, "new hex", "new hexes"),
                result.newLinks == 0 ? nil : HumanText.count(result.newLinks, "new link", "new links"),
            ].compactMap(\.self)
            let what = new.isEmpty ? "what is new" : new.joined(separator: " and ")
            parts.append("\(what) added to \(HumanText.count(result.extended, "hex that was", "hexes that were")) there")
        }
        if result.unchanged > 0 { parts.append("\(result.unchanged) there already") }
        let refused = result.refused.count + result.untold
        if refused > 0 { parts.append("\(refused) refused") }
        return parts.joined(separator: ", ") + "; the file has \(HumanText.count(links, "link", "links"))."
    }

    /// The entries that were left out for one reason: how many, and the first of them.
    static func skipped(_ skip: FileReading.Skip) -> String {
        let items = skip.items.map(item).joined(separator: ", ")
        guard skip.count > 1 else { return "Left out: \(items) \(skip.reason.rawValue)." }
        let more = skip.count > skip.items.count ? ", and \(skip.count - skip.items.count) more" : ""
        return "Left out: \(skip.count) entries, of which each \(skip.reason.rawValue): \(items)\(more)."
    }

    private static func item(_ item: FileReading.Item) -> String {
        "line \(item.line)\(item.text.isEmpty ? "" : " `\(TerminalText.clean(item.text, columns: 60))`")"
    }

    /// The error for CSV of which no column has the addresses.
    /// - Parameter columns: the names that stand in its first line.
    static func noColumn(_ columns: [String], _ path: String) -> HexlistError {
        let names = columns.prefix(8).map { "`\(TerminalText.clean($0, columns: 40))`" }.joined(separator: ", ")
        let more = columns.count > 8 ? ", and \(columns.count - 8) more" : ""
        let known = BookmarkCSV.urlNames.map { "`\($0)`" }.joined(separator: ", ")
        return HexlistError(
            .badRequest, "\(InputFile.name(path)) has no column of addresses. The column names in its first line are \(names)\(more).",
            hint: "Call the column of addresses one of \(known), or name another format with --format.")
    }

    static func error(_ fault: DecodedText.Fault, _ path: String) -> HexlistError {
        let name = InputFile.name(path)
        switch fault {
        case .binary:
            return HexlistError(.badRequest, "\(name) is not a text file.", hint: "`hexlist send` takes files of any kind.")
        case .encoding(let encoding):
            let encoding = encoding.uppercased()
            return HexlistError(
                .badRequest, "\(name) is \(encoding), or says so, and cannot be read as that.",
                hint: "Make it UTF-8: `iconv -f \(encoding) -t UTF-8`.")
        case .lines(let broken, let hasUTF8):
            let items = broken.items.map(item).joined(separator: ", ")
            let more = broken.count > broken.items.count ? ", and \(broken.count - broken.items.count) more" : ""
            return HexlistError(
                .badRequest, "\(name) has \(HumanText.count(broken.count, "line that is", "lines that are")) not UTF-8: \(items)\(more).",
                hint: hasUTF8
                    ? "Its other lines are UTF-8: mend \(broken.count == 1 ? "this one" : "these") in an editor."
                    : "If it is from an old program on Windows: `iconv -f WINDOWS-1252 -t UTF-8`.")
        }
    }

    static func error(_ fault: JSONFile.Fault, _ path: String) -> HexlistError {
        let name = InputFile.name(path)
        switch fault {
        case .grammar(let message, let line):
            return HexlistError(
                .badRequest, "\(name), line \(line), is not valid JSON: \(TerminalText.clean(message, columns: 200)).",
                hint: "Nothing was imported. --format names another format.")
        case .program(let program):
            return HexlistError(
                .badRequest, "\(name) is JSON of \(program), which is not read.",
                hint: "Nothing was imported. Export there as HTML (bookmarks) or CSV.")
        case .unknown:
            return HexlistError(
                .badRequest, "\(name) is JSON, but not of Hexlist, Firefox, Chromium or Pinboard: nothing in it is a hex.",
                hint: "Nothing was imported. A hex is {\"hexDescription\":\"…\",\"links\":[…]}.")
        }
    }
}
