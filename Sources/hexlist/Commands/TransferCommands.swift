import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistFormats
import HexlistJSON
import HexlistModel

struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Export hexes to a file for other programs, or for `hexlist import`.",
        discussion: """
            hexlist export --mine -o bookmarks.html

            hexlist export --search "river host:example.org" --format markdown

            json, ndjson and html keep everything. opml does too, but other programs show less of it. csv and markdown drop what they \
            have no place for. Exporting does not mark hexes as read.

            --search works like `hexlist search`, in the inbox and My Hexlist, or only in one with --inbox or --mine. A match inside a \
            hex is exported alone, unless an enclosing hex matches too.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Export the inbox.")
    var inbox = false

    @Flag(help: "Export My Hexlist.")
    var mine = false

    @Option(help: ArgumentHelp("Export the matches of a search (see `hexlist search`).", valueName: "text"))
    var search: String?

    @Option(help: ArgumentHelp("Only hexes from this peer; with --inbox or --search.", valueName: "peer"), completion: .peers)
    var from: String?

    @Option(
        name: .customLong("format"),
        help: ArgumentHelp("json, ndjson, csv, markdown, html or opml; by default from the file name.", valueName: "format"))
    var named: ExportFormatArgument?

    @Option(
        name: [.customShort("o"), .long], help: ArgumentHelp("The file to write instead of standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    @Flag(help: "Overwrite an existing file.")
    var force = false

    @Argument(help: ArgumentHelp("Hexes to export.", valueName: "hex"))
    var hexes: [HexID] = []

    /// The format given by the option, or else by the suffix of the file name; `nil` if unknown.
    private var chosenFormat: FileFormat? { (named ?? output.flatMap(ExportFormatArgument.init(path:)))?.format }

    func validate() throws {
        guard chosenFormat != nil else {
            throw ValidationError(
                "Which format? --format json, ndjson, csv, markdown, html or opml; or -o with a file name that ends in one.")
        }
        if search != nil {
            guard hexes.isEmpty else { throw ValidationError("Give --search or hexes, not both.") }
            guard !inbox || !mine else {
                throw ValidationError("--search covers both the inbox and My Hexlist: leave out --inbox and --mine.")
            }
            return
        }
        let named = (hexes.isEmpty ? 0 : 1) + (inbox || from != nil ? 1 : 0) + (mine ? 1 : 0)
        guard named == 1 else {
            throw ValidationError("What should be exported? Give hexes, --inbox, --from PEER, --mine, or --search TEXT.")
        }
    }

    private func selection() throws -> ExportSelection {
        let place: HexLocation? = mine ? .mine : inbox ? .inbox : nil
        if let search {
            _ = try SearchExpression(parsing: search)  // reports a syntax error before the file is created
            return .search(search, from: from, location: place?.rawValue)
        }
        guard hexes.isEmpty else { return .hexes(.ids(hexes.map(\.value))) }
        return .hexes(mine ? .list(location: HexLocation.mine.rawValue) : .list(from: from, location: HexLocation.inbox.rawValue))
    }

    func run() async throws {
        if let output, !force, access(output, F_OK) == 0 {
            throw HexlistError(.badRequest, "\(output) already exists.", hint: "Choose another name, or overwrite it with --force.")
        }
        guard let format = chosenFormat else { return }  // `validate` has already checked this
        let selection = try selection()
        let file = try output.map { try AtomicFile(path: $0) }
        do {
            let count = try await write(selection, as: format, to: file)
            try file?.finish()
            if let output { StandardError.note("\(HumanText.count(count, "hex", "hexes")) written to \(output).") }
            if count == 0, output == nil { StandardError.note("Nothing to export.") }
        } catch {
            file?.discard()
            throw error
        }
    }

    /// Exports hexes to a file or to standard output.
    /// - Returns: the number of hexes.
    private func write(_ selection: ExportSelection, as format: FileFormat, to file: AtomicFile?) async throws -> Int {
        let stdout = common.output
        func put(_ bytes: [UInt8]) throws {
            if let file { try bytes.withUnsafeBytes { try file.write($0) } } else { try stdout.bytes(bytes) }
        }
        let progress = ProgressLine()
        defer { progress.end() }
        var count = 0
        var lines: [JSONValue] = []
        // If hexes are printed on the terminal, a progress line would only disturb.
        let isShown = file == nil && format == .ndjson && stdout.terminal.isInteractive
        try await common.withClient { client in
            try await progress.during("reading …") {
                try await client.export(selection) { line in
                    count += 1
                    // All formats except NDJSON are written as a whole at the end.
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
            // Search results may include hexes inside received ones, which come without their sender. Their origin is therefore unknown.
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
struct ImportFormatArgument: ExpressibleByArgument {
    var format: FileFormat

    static var allValueStrings: [String] { FileFormat.allCases.map(\.rawValue) }
    static var defaultCompletionKind: CompletionKind { .list(allValueStrings) }

    init?(argument: String) {
        guard let format = FileFormat(rawValue: argument) else { return nil }
        self.format = format
    }
}

/// The values of `export --format`.
struct ExportFormatArgument: ExpressibleByArgument {
    var format: FileFormat

    static var allValueStrings: [String] { FileFormat.written.map(\.rawValue) }
    static var defaultCompletionKind: CompletionKind { .list(allValueStrings) }

    init?(argument: String) {
        guard let format = FileFormat(rawValue: argument), FileFormat.written.contains(format) else { return nil }
        self.format = format
    }

    /// Returns the format for the suffix of a file name; `nil` if unknown.
    init?(path: String) {
        guard let dot = path.lastIndex(of: ".") else { return nil }
        let end = path[path.index(after: dot)...].lowercased()
        self.init(argument: ["md": "markdown", "htm": "html"][end] ?? end)
    }
}

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Import bookmarks and other lists of links into My Hexlist.",
        discussion: """
            Reads files written by `hexlist export` (also after `jq .`), bookmarks that browsers export as HTML, JSON of Firefox and \
            Chromium, exports of Pinboard, Pocket, Raindrop, Instapaper, wallabag, Linkwarden, Karakeep, linkding, Readability, \
            Delicious, Shaarli and Session Buddy, OPML, XBEL, Markdown, and lists of links, one per line. Other JSON is refused. \
            A folder becomes a hex, a subfolder a hex inside it. A hex that would be too large to send, with more than \
            \(ProtocolLimits.links) links or too many levels, is split.

            With --in everything goes into one hex of My Hexlist, which must stay small enough to be sent. Either everything is imported \
            or nothing. Hexes you already have are not added again, so importing a file twice changes nothing; a folder of the same name \
            only gets its new links, and nothing is removed. Skipped entries are counted on standard error, with the first five lines \
            for each reason. Exit code 2 if a hex is refused.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        help: ArgumentHelp("json, ndjson, csv, markdown, html, opml, xbel or list; by default detected from the file.", valueName: "format")
    )
    var format: ImportFormatArgument?

    @Option(
        name: .customLong("in"), help: ArgumentHelp("Import into this hex of My Hexlist.", valueName: "hex"),
        completion: .mine)
    var parent: HexID?

    @Argument(help: ArgumentHelp("The file; - reads standard input.", valueName: "file"), completion: .file())
    var file: String

    /// Maximum bytes of an imported file.
    private static let fileBytes = 128 << 20

    private struct ResultJSON: Encodable, JSONEncodable {
        var hexes: Int
        var links: Int
        var added: Int
        var addedInside: Int
        var unchanged: Int
        var extended: Int
        var newHexes: Int
        var newLinks: Int
        var respelled: Int
        var respellings: [EquivalentLinkJSON]
        /// Number of links in the file that have the address of an earlier link in the file.
        var repeated: Int
        var refused: [BulkRefusal]
        var skipped: [SkippedJSON]
    }

    private struct SkippedJSON: Encodable, JSONEncodable {
        var reason: String
        var count: Int
        var first: String
        /// The first entries that were skipped, at most five.
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
            report(read.skipped)
            throw HexlistError(
                .badRequest, "\(InputFile.name(file)) contains no links.",
                hint: "If the format was not recognised, name it with --format.")
        }
        let what = "\(HumanText.count(read.lines.count, "hex", "hexes")) with \(HumanText.count(read.links, "link", "links"))"
        let result = try await progress.during("storing \(what) …") {
            try await stored(read) { progress.update("\($0.done) of \(what) stored, \($0.done * 100 / max(1, $0.total)) %") }
        }
        let output = common.output
        if output.json {
            try output.object(
                ResultJSON(
                    hexes: read.lines.count, links: read.links, added: result.added, addedInside: result.addedInside,
                    unchanged: result.unchanged, extended: result.extended, newHexes: result.newHexes, newLinks: result.newLinks,
                    respelled: result.respelled, respellings: result.respellings, repeated: read.repeated.count, refused: result.refused,
                    skipped: read.skipped.map(SkippedJSON.init)))
        } else {
            report(read.skipped)
            for refusal in result.refused {
                StandardError.note(TerminalText.clean("hex \(refusal.line): \(refusal.code): \(refusal.message)", columns: 300))
            }
            if result.untold > 0 { StandardError.note("… and \(result.untold) more.") }
            for note in [ImportText.respelled(result), ImportText.repeated(read.repeated)].compactMap(\.self) { StandardError.note(note) }
            try output.wrapped(ImportText.summary(result, links: read.links, into: parent?.value))
        }
        try output.flush()
        if !result.refused.isEmpty { throw SilentExit(status: .usage) }
    }

    private func stored(_ read: ImportedFile, _ progress: (ImportProgress) -> Void) async throws -> ImportResult {
        let lines = read.lines.flatMap { $0.bytes + [0x0A] }
        do {
            return try await common.withClient {
                try await $0.importHexes(lines, into: parent?.value, merging: read.hasFolders, progress: progress)
            }
        } catch var error as HexlistError where error.code == .badRequest && parent != nil && error.hint == nil {
            error.hint = "Nothing was imported. Without --in it becomes separate hexes."
            throw error
        }
    }

    private func report(_ skipped: [FileReading.Skip]) {
        guard !common.json else { return }
        for skip in skipped { StandardError.note(ImportText.skipped(skip)) }
    }
}

/// The hexes read from a file.
struct ImportedFile {
    /// The hexes, one HexJM each.
    var lines: [JSONValue] = []
    var links = 0
    var repeated = HexTree.RepeatedAddresses()
    var skipped: [FileReading.Skip] = []
    /// Whether the hexes represent bookmark folders, instead of hexes exported by Hexlist.
    var hasFolders = false
    /// The encoding of the file if it is not UTF-8; otherwise `nil`.
    var encoding: String?

    /// Reads the hexes in a file.
    /// - Parameter format: the format of the file; `nil` to detect it.
    init(_ file: [UInt8], path: String, format: FileFormat?) throws(HexlistError) {
        let (text, encoding) = try Self.text(file, path)
        let name = Self.name(path)
        guard text.contains(where: { $0 != 0x20 && !(0x09...0x0D).contains($0) }) else {
            throw HexlistError(
                .badRequest,
                "\(InputFile.name(path)) is empty\(text.isEmpty ? "" : " (only blank lines)").",
                hint: "Nothing was imported.")
        }
        guard let format = format ?? FileFormat.of(text, name: path) else {
            throw HexlistError(
                .badRequest, "\(InputFile.name(path)) is XML or HTML, but neither OPML, XBEL nor bookmarks.",
                hint: "Supported are HTML bookmarks, OPML, XBEL, CSV, Markdown, JSON and lists of links; name the format with --format.")
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
        repeated = reading.forest.repeatedAddresses
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
        repeated = forest.repeatedAddresses
    }

    /// Converts a file to UTF-8.
    /// - Returns: the text, and the original encoding if it was not UTF-8.
    static func text(_ file: [UInt8], _ path: String) throws(HexlistError) -> (bytes: [UInt8], encoding: String?) {
        do throws(DecodedText.Fault) {
            let text = try DecodedText(file)
            return (text.bytes, text.encoding)
        } catch {
            throw ImportText.error(error, path)
        }
    }

    /// Returns the file name without folders and suffix.
    static func name(_ path: String) -> String {
        guard path != "-" else { return "imported" }
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) } ?? path
        guard let dot = last.utf8.lastIndex(of: UInt8(ascii: ".")), dot > last.startIndex else { return last }
        return String(last[..<dot])
    }
}

enum ImportText {
    /// Returns the text about a completed import.
    /// - Parameter parent: the hex that received the imported hexes; `nil` for the top level of My Hexlist.
    static func summary(_ result: ImportResult, links: Int, into parent: Int64? = nil) -> String {
        let inside = result.addedInside == 0 ? "" : " with \(result.addedInside) inside \(result.added == 1 ? "it" : "them")"
        let added = HumanText.count(result.added, "hex", "hexes") + inside
        var parts = ["\(added) added to \(parent.map { "hex \($0)" } ?? "My Hexlist")"]
        if result.extended > 0 {
            let new = [
                result.newHexes == 0 ? nil : HumanText.count(result.newHexes, "new hex", "new hexes"),
                result.newLinks == 0 ? nil : HumanText.count(result.newLinks, "new link", "new links"),
            ].compactMap(\.self)
            let what = new.isEmpty ? "new entries" : new.joined(separator: " and ")
            parts.append("\(what) added to \(HumanText.count(result.extended, "existing hex", "existing hexes"))")
        }
        if result.unchanged > 0 { parts.append("\(result.unchanged) unchanged") }
        if result.respelled > 0 {
            parts.append(
                "\(HumanText.count(result.respelled, "link", "links")) left out because the hex has the address in another spelling")
        }
        let refused = result.refused.count + result.untold
        if refused > 0 { parts.append("\(refused) refused") }
        return parts.joined(separator: ", ") + "; the file has \(HumanText.count(links, "link", "links"))."
    }

    /// Returns a sentence that names links that were left out because their hex has the same address; `nil` if there are none.
    static func respelled(_ result: ImportResult) -> String? {
        guard result.respelled > 0 else { return nil }
        let items = result.respellings.map { "\(address($0.url)) (has \(address($0.stored)))" }.joined(separator: ", ")
        let more = result.respelled - result.respellings.count
        return "Left out, same address: \(items)\(more > 0 ? ", and \(more) more" : "")."
    }

    /// Returns a sentence about links of the file that lead to the same address as an earlier one; `nil` if there are none.
    static func repeated(_ repeated: HexTree.RepeatedAddresses) -> String? {
        guard repeated.count > 0 else { return nil }
        let items = repeated.first.map(address).joined(separator: ", ")
        let more = repeated.count - repeated.first.count
        let what = HumanText.count(repeated.count, "link has", "links have")
        return "\(what) the address of an earlier link in the file: \(items)\(more > 0 ? ", and \(more) more" : "")."
    }

    private static func address(_ url: String) -> String { "`\(TerminalText.clean(url, columns: 80))`" }

    /// Returns a sentence about the entries skipped for one reason: their number, and the first of them.
    static func skipped(_ skip: FileReading.Skip) -> String {
        let items = skip.items.map(item).joined(separator: ", ")
        guard skip.count > 1 else { return "Skipped: \(items) \(skip.reason.rawValue)." }
        let more = skip.count > skip.items.count ? ", and \(skip.count - skip.items.count) more" : ""
        return "Skipped \(skip.count) entries, each \(skip.reason.rawValue): \(items)\(more)."
    }

    private static func item(_ item: FileReading.Item) -> String {
        "line \(item.line)\(item.text.isEmpty ? "" : " `\(TerminalText.clean(item.text, columns: 60))`")"
    }

    /// Returns the error for a CSV file that has no column with URLs.
    /// - Parameter columns: the names of the columns in the file.
    static func noColumn(_ columns: [String], _ path: String) -> HexlistError {
        let names = columns.prefix(8).map { "`\(TerminalText.clean($0, columns: 40))`" }.joined(separator: ", ")
        let more = columns.count > 8 ? ", and \(columns.count - 8) more" : ""
        let known = BookmarkCSV.urlNames.map { "`\($0)`" }.joined(separator: ", ")
        return HexlistError(
            .badRequest, "\(InputFile.name(path)) has no column of addresses. Its columns are \(names)\(more).",
            hint: "Rename the column of addresses to one of \(known), or name another format with --format.")
    }

    static func error(_ fault: DecodedText.Fault, _ path: String) -> HexlistError {
        let name = InputFile.name(path)
        switch fault {
        case .binary:
            return HexlistError(.badRequest, "\(name) is not a text file.", hint: "To send the file itself: `hexlist send`.")
        case .encoding(let encoding):
            let encoding = encoding.uppercased()
            return HexlistError(
                .badRequest, "\(name) is not valid \(encoding).",
                hint: "Convert it: `iconv -f \(encoding) -t UTF-8`.")
        case .lines(let broken, let hasUTF8):
            let items = broken.items.map(item).joined(separator: ", ")
            let more = broken.count > broken.items.count ? ", and \(broken.count - broken.items.count) more" : ""
            return HexlistError(
                .badRequest, "\(name) has \(HumanText.count(broken.count, "line that is", "lines that are")) not UTF-8: \(items)\(more).",
                hint: hasUTF8
                    ? "The other lines are UTF-8: fix \(broken.count == 1 ? "this one" : "these") in an editor."
                    : "If it comes from an old Windows program: `iconv -f WINDOWS-1252 -t UTF-8`.")
        }
    }

    static func error(_ fault: JSONFile.Fault, _ path: String) -> HexlistError {
        let name = InputFile.name(path)
        switch fault {
        case .grammar(let message, let line):
            return HexlistError(
                .badRequest, "\(name), line \(line), is not valid JSON: \(TerminalText.clean(message, columns: 200)).",
                hint: "Nothing was imported. If it is another format, name it with --format.")
        case .unknown:
            return HexlistError(
                .badRequest, "\(name) is JSON, but not of Hexlist or a known browser or service.",
                hint:
                    "Nothing was imported. Export it as HTML (bookmarks) or CSV. A hex looks like {\"hexDescription\":\"…\",\"links\":[…]}."
            )
        }
    }
}
