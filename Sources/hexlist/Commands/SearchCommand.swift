import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct SearchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "search", abstract: "Find hexes or links by words in their texts, links and senders, newest first.",
        discussion: """
            All words must occur in the description, in the URL, description, tags or note of a link, or in the name or alias of the \
            sender. Upper and lower case and accents do not matter. `word*` matches words that begin with it, `'"two words"'` a phrase, \
            `one OR other` one of both, `'words -without'` excludes a word. Filters: `host:example.org` with its subdomains, \
            `tag:recipes`, `from:PEER`, `is:unread`, `is:read`, `is:dead`, `color:teal`, `service:Dropbox`. An address finds its other \
            spellings too. Words that begin with `-` go after `--`: `hexlist search lake -- -draft`. Hexes from strangers are only searched with --in held.

            With --links each result is a link. Its hex counts too: `recipes cake` finds a link about cake in the hex "Recipes".
            """)

    enum SearchLocation: String, ExpressibleByArgument, CaseIterable {
        case inbox, mine, held
    }

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Only hexes from this peer.", valueName: "peer"), completion: .peers)
    var from: String?

    @Option(name: .customLong("in"), help: ArgumentHelp("Search only here; by default the inbox and My Hexlist.", valueName: "place"))
    var location: SearchLocation?

    @Option(help: ArgumentHelp("Only hexes received since then: 7d, 12h, or a day such as 2031-04-05.", valueName: "time"))
    var since: String?

    @Option(help: ArgumentHelp("Only hexes received until then; a day includes all of that day.", valueName: "time"))
    var until: String?

    @Flag(help: "Only unread hexes.")
    var unread = false

    @Flag(help: "List links instead of hexes.")
    var links = false

    @Flag(help: "Best matches first, among the newest 10 000: words in the description, adjacent words, the sender.")
    var best = false

    @OptionGroup var page: PageOptions

    @Argument(help: "The words to search for; with --unread, none are needed.")
    var text: [String] = []

    func validate() throws {
        if text.isEmpty, !unread {
            throw ValidationError("Name words to search for, or use --unread. `hexlist inbox --since 1h` lists hexes by their time.")
        }
        if best, page.after != nil { throw ValidationError("--best has only one page: leave out --after.") }
    }

    func run() async throws {
        let output = common.output
        // Without words, all unread hexes match.
        let words = text.isEmpty ? "is:unread" : text.joined(separator: " ")
        // The arguments are parsed first, so that errors in them are reported even if no daemon runs.
        let expression = try SearchExpression(parsing: words)
        let filter = HexlistClient.SearchFilter(
            text: words, location: location?.rawValue, unread: unread, from: from,
            since: try since.map { try TimeInput.parse($0, isEnd: false) }, until: try until.map { try TimeInput.parse($0, isEnd: true) },
            best: best)
        let progress = ProgressLine()
        try await common.withClient { client in
            var cursor = page.after
            let pageLimit = page.maximum(for: output)
            var left = pageLimit
            var (listed, behind) = (0, 0)
            let header =
                links ? ["HEX", "N", "", "LINK", "DESCRIPTION", "IN", "FOUND"] : ["HEX", "", "RECEIVED", "FROM", "DESCRIPTION", "FOUND"]
            var table = Table(header)
            repeat {
                let (from, most) = (cursor, min(left, LocalAPI.pageLimit))
                (cursor, behind) = try await progress.during("searching …") {
                    guard !links else {
                        return try await client.searchLinks(filter, limit: most, after: from) { link in
                            listed += 1
                            left -= 1
                            if output.json { try output.object(link) } else { table.add(SearchText.cells(link)) }
                        }
                    }
                    return try await client.search(filter, limit: most, after: from) { hex in
                        listed += 1
                        left -= 1
                        if output.json { try output.object(hex) } else { table.add(cells(hex)) }
                    }
                }
                // If all matches are listed (--limit 0), each page is printed as soon as it arrives.
                if pageLimit == .max, !table.isEmpty {
                    try output.table(table)
                    table = Table()
                }
                // A page may have few matches although more pages follow, because most hexes of the page did not pass the filters.
            } while cursor != nil && left > 0
            if !table.isEmpty { try output.table(table) }
            try output.cut(cursor)
            try output.flush()
            if listed == 0, !output.json {
                StandardError.note(SearchText.nothing(expression.terms, isEnd: page.after != nil, isHeld: location == .held))
            }
            if let cursor { StandardError.note(NextPageHint.text(cursor)) }
            if let note = SearchText.behind(behind) { StandardError.note(note) }
        }
    }

    private func cells(_ hex: HexJSON) -> [Table.Cell] {
        [
            Table.Cell(String(hex.id)), Table.Cell(hex.unread ? "*" : "", .good), Table.Cell(HumanText.moment(hex.receivedAt), .faint),
            Table.Cell(HexText.sender(hex, columns: 44), columns: 72, minimum: 10),
            Table.Cell(SearchText.subject(hex), hex.unread ? .strong : .plain, minimum: 16),
            Table.Cell(SearchText.match(hex), columns: 100, minimum: 16),
        ]
    }
}

enum SearchText {
    /// Returns the row of a link in the results.
    static func cells(_ link: ListedLinkJSON) -> [Table.Cell] {
        let folder = (link.folders ?? []).filter { !HexSubject.isBlank($0) }.joined(separator: " / ")
        return [
            Table.Cell(String(link.hex)), Table.Cell(count: link.number), Table.Cell(link.unread ? "*" : "", .good),
            Table.Cell(link.url, link.unread ? .strong : .plain, columns: 200, minimum: 24), Table.Cell(link.linkDescription, minimum: 10),
            Table.Cell(folder, columns: 72, minimum: 8), Table.Cell(match(link), columns: 100, minimum: 8),
        ]
    }

    /// Returns the mark of a dead link, or else the text around the match in a note or in tags, which no other column shows.
    private static func match(_ link: ListedLinkJSON) -> String {
        if let dead = link.dead { return MineText.dead(dead) }
        guard let match = link.match, ["note", "tags"].contains(match.field) else { return "" }
        return match.before + match.found + match.after
    }

    /// Returns the subject of a hex. For a hex inside others, adds the subject of the top-level hex.
    static func subject(_ hex: HexJSON) -> String {
        let subject = HexText.subject(hex)
        guard let top = hex.top else { return subject }
        return "\(subject) (in \(top.id)\(top.subject.isEmpty ? "" : " \(top.subject)"))"
    }

    /// Returns the text around the match; empty if another column already shows it.
    static func match(_ hex: HexJSON) -> String {
        guard let match = hex.match else { return "" }
        let text = match.before + match.found + match.after
        switch match.field {
        case "description": return match.before.hasPrefix("…") ? text : ""
        case "sender": return ""  // the sender has its own column
        default: return match.link.map { "\($0) \(text)" } ?? text
        }
    }

    static func nothing(_ terms: [SearchTerm], isEnd: Bool, isHeld: Bool) -> String {
        var text = isEnd ? "No more matches." : "No match."
        guard !isEnd else { return text }
        if case .words(let words, isPrefix: false)? = terms.last, !words.contains(" ") {
            let word = TerminalText.clean(words, columns: 40)
            text += " Try `\(word)*` for words starting with \"\(word)\"."
        }
        let fields = terms.compactMap { term -> Substring? in
            guard case .words(let words, _) = term, let colon = words.firstIndex(of: ":"), !words.contains(" ") else { return nil }
            let field = words[...colon]
            return field.count > 1 && field.dropLast().allSatisfy(\.isLetter) ? field : nil
        }
        if let field = fields.first {
            let filters = "`host:`, `tag:`, `from:`, `is:unread`, `is:dead`, `color:` and `service:`"
            text += " Unknown filter `\(TerminalText.clean(field, columns: 20))`; the filters are \(filters)."
        }
        return isHeld ? text : text + " Use --in held to search hexes from strangers."
    }

    /// Returns a note about hexes that are not in the search index yet; `nil` if there are none.
    static func behind(_ count: Int) -> String? {
        guard count > 0 else { return nil }
        return "\(HumanText.count(count, "hex is", "hexes are")) not searched yet: the index is still being built."
    }
}
