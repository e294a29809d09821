import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistFormats
import HexlistModel

struct FeedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed", abstract: "Print an Atom feed of links: of a search, of a hex, or of My Hexlist.",
        discussion: """
            hexlist feed river tag:maps >feed.xml

            hexlist feed --hex 7 >folder.xml

            Words are those of `hexlist search --links`. Without words it prints the newest links of My Hexlist, or of another location with \
            --in. Links with the same address are one entry.

            --address prints an address of this feed for feed readers of this machine, such as `http://127.0.0.1:24400/feed/…`. Whoever \
            has it, and runs as your user, can read the feed until you remove it.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("The links of this hex and of the hexes inside it.", valueName: "hex"))
    var hex: HexID?

    @Option(help: ArgumentHelp("Only links from this peer.", valueName: "peer"), completion: .peers)
    var from: String?

    @Option(name: .customLong("in"), help: ArgumentHelp("Only links in this place.", valueName: "place"))
    var location: SearchCommand.SearchLocation?

    @Flag(help: "Only unread links.")
    var unread = false

    @Option(name: [.customShort("n"), .long], help: ArgumentHelp("Maximum number of links; 0 for all.", valueName: "n"))
    var limit = 100

    @Flag(help: "Print an address of this feed, for feed readers of this machine.")
    var address = false

    @Flag(help: "List the addresses.")
    var list = false

    @Option(help: ArgumentHelp("Remove the address with this number.", valueName: "n"))
    var remove: Int64?

    @Argument(help: "The words to search for.")
    var text: [String] = []

    func validate() throws {
        let isFeed = !address && !list && remove == nil
        if common.json, isFeed { throw ValidationError("A feed is XML. For JSON use `hexlist search --links --json`.") }
        if [address, list, remove != nil].count(where: \.self) > 1 { throw ValidationError("Give one of --address, --list and --remove.") }
        if list || remove != nil, !text.isEmpty || hex != nil || from != nil || location != nil || unread {
            throw ValidationError("--list and --remove go with no words and filters.")
        }
        if address, from != nil || unread {
            throw ValidationError("--address goes with words: use `from:PEER` and `is:unread` instead of --from and --unread.")
        }
        if limit < 0 { throw ValidationError("--limit needs a number of at least 0.") }
        if hex != nil, !text.isEmpty || from != nil || location != nil || unread {
            throw ValidationError("--hex prints all links of one hex: leave out words and other filters.")
        }
    }

    func run() async throws {
        let words = text.joined(separator: " ")
        if !words.isEmpty { _ = try SearchExpression(parsing: words) }
        if list { return try await listAddresses() }
        if let remove { return try await removeAddress(remove) }
        if address { return try await addAddress(words) }
        try await common.withClient { client in
            let status = try await client.status()
            let location = location.flatMap { HexLocation(rawValue: $0.rawValue) }
            var feed = AtomFeed(
                id: AtomFeed.feedID(
                    search: words, hex: hex?.value, sender: from ?? "", location: location, isUnread: unread, machine: status.uuid),
                title: AtomFeed.title(search: words, location: location), author: status.name, entries: [])
            if let hex {
                let whole = try await client.hex(hex.value)
                feed.title = HexText.subject(whole)
                feed.entries = Self.entries(of: whole, status.uuid)
                if limit > 0 { feed.entries = Array(feed.entries.prefix(limit)) }
            } else {
                feed.entries = try await entries(words, status.uuid, client)
            }
            print(feed.xml, terminator: "")
        }
    }

    private func addAddress(_ words: String) async throws {
        let output = common.output
        let request = FeedRequest(hex: hex?.value, text: words.isEmpty ? nil : words, location: location?.rawValue)
        let added = try await common.withClient { try await $0.addFeed(request) }
        if output.json {
            try output.object(added)
        } else {
            try output.line(added.url ?? "")
            StandardError.note("To remove it: `hexlist feed --remove \(added.id)`.")
        }
        try output.flush()
    }

    private func listAddresses() async throws {
        let output = common.output
        let addresses = try await common.withClient { try await $0.feeds() }
        if output.json {
            for address in addresses { try output.object(address) }
        } else if addresses.isEmpty {
            StandardError.note("There are no feed addresses. To make one: `hexlist feed --address`.")
        } else {
            var table = Table(["N", "MADE", "READ", "FEED"])
            for address in addresses {
                table.add([
                    Table.Cell(String(address.id)), Table.Cell(HumanText.moment(address.createdAt), .faint),
                    Table.Cell(address.usedAt.map { HumanText.moment($0) } ?? "never", .faint), Table.Cell(address.title, minimum: 16),
                ])
            }
            try output.table(table)
        }
        try output.flush()
    }

    private func removeAddress(_ id: Int64) async throws {
        try await common.reportCount {
            try await $0.removeFeed(id)
        } as: { _ in
            "Feed address \(id) removed."
        }
    }

    private func entries(_ words: String, _ machine: PeerID, _ client: HexlistClient) async throws -> [AtomFeed.Entry] {
        var entries: [AtomFeed.Entry] = []
        var cursor: String?
        let maximum = limit == 0 ? Int.max : limit
        repeat {
            let (after, count) = (cursor, min(maximum - entries.count, LocalAPI.pageLimit))
            func add(_ link: ListedLinkJSON) { entries.append(Self.entry(link, machine)) }
            if words.isEmpty {
                let filter = HexlistClient.HexFilter(location: location?.rawValue ?? "mine", unread: unread, from: from)
                cursor = try await client.links(filter, unique: false, limit: count, after: after, add).next
            } else {
                let filter = HexlistClient.SearchFilter(text: words, location: location?.rawValue, unread: unread, from: from)
                cursor = try await client.searchLinks(filter, limit: count, after: after, add).next
            }
        } while cursor != nil && entries.count < maximum
        return entries
    }

    private static func entry(_ link: ListedLinkJSON, _ machine: PeerID) -> AtomFeed.Entry {
        entry(link.url, link.linkDescription, link.note, link.tags, of: link.label, at: link.receivedAt, machine)
    }

    private static func entry(
        _ url: String, _ title: String, _ note: String?, _ tags: [String]?, of sender: PeerDisplayName?, at time: Timestamp,
        _ machine: PeerID
    ) -> AtomFeed.Entry {
        AtomFeed.Entry(
            id: AtomFeed.linkID(url, machine: machine), url: url, title: title, updated: "\(time)",
            author: sender?.listed(columns: 200) ?? "",
            note: note ?? "", categories: tags ?? [])
    }

    static func entries(of hex: HexJSON, _ machine: PeerID) -> [AtomFeed.Entry] {
        func entries(_ links: [LinkJSON]) -> [AtomFeed.Entry] {
            links.map { entry($0.url, $0.linkDescription, $0.note, $0.tags, of: hex.label, at: hex.receivedAt, machine) }
        }
        func inside(_ children: [InnerHexJSON]) -> [AtomFeed.Entry] {
            children.flatMap { entries($0.links) + inside($0.children ?? []) }
        }
        return entries(hex.links ?? []) + inside(hex.children ?? [])
    }
}
