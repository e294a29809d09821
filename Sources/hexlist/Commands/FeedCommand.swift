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

            Words are those of `hexlist search --links`. Without words it prints the newest links of My Hexlist, or of another place with \
            --in. Run it from a timer to keep a file for a feed reader up to date. Links with the same address are one entry.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("The links of this hex and of the hexes inside it.", valueName: "hex"))
    var hex: HexID?

    @Option(help: ArgumentHelp("Only links from this peer.", valueName: "peer"), completion: .peers)
    var from: String?

    @Option(name: .customLong("in"), help: ArgumentHelp("Only links in this place.", valueName: "place"))
    var place: SearchCommand.SearchLocation?

    @Flag(help: "Only unread links.")
    var unread = false

    @Option(name: [.customShort("n"), .long], help: ArgumentHelp("Maximum number of links; 0 for all.", valueName: "n"))
    var limit = 100

    @Argument(help: "The words to search for.")
    var text: [String] = []

    func validate() throws {
        if common.json { throw ValidationError("A feed is XML. For JSON use `hexlist search --links --json`.") }
        if limit < 0 { throw ValidationError("--limit needs a number of at least 0.") }
        if hex != nil, !text.isEmpty || from != nil || place != nil || unread {
            throw ValidationError("--hex prints all links of one hex: leave out words and other filters.")
        }
    }

    func run() async throws {
        let words = text.joined(separator: " ")
        if !words.isEmpty { _ = try SearchExpression(parsing: words) }
        try await common.withClient { client in
            let status = try await client.status()
            var feed = AtomFeed(
                id: Self.id(
                    "feed", [words, hex.map { "\($0.value)" } ?? "", from ?? "", place?.rawValue ?? "", unread ? "unread" : ""], status.uuid
                ),
                title: words.isEmpty
                    ? place == nil || place == .mine ? "My Hexlist" : "Hexlist: \(place?.rawValue ?? "")" : "Hexlist: \(words)",
                author: status.name, entries: [])
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

    private func entries(_ words: String, _ machine: PeerID, _ client: HexlistClient) async throws -> [AtomFeed.Entry] {
        var entries: [AtomFeed.Entry] = []
        var cursor: String?
        let maximum = limit == 0 ? Int.max : limit
        repeat {
            let (after, count) = (cursor, min(maximum - entries.count, LocalAPI.pageLimit))
            func add(_ link: ListedLinkJSON) { entries.append(Self.entry(link, machine)) }
            if words.isEmpty {
                let filter = HexlistClient.HexFilter(location: place?.rawValue ?? "mine", unread: unread, from: from)
                cursor = try await client.links(filter, unique: false, limit: count, after: after, add).next
            } else {
                let filter = HexlistClient.SearchFilter(text: words, location: place?.rawValue, unread: unread, from: from)
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
            id: id(url, machine), url: url, title: title, updated: "\(time)", author: sender?.listed(columns: 200) ?? "",
            note: note ?? "", categories: tags ?? [])
    }

    static func entries(of hex: HexJSON, _ machine: PeerID) -> [AtomFeed.Entry] {
        func entries(_ links: [LinkJSON]) -> [AtomFeed.Entry] {
            links.map { entry($0.url, $0.linkDescription, $0.note, $0.tags, of: hex.label, at: hex.receivedAt, machine) }
        }
        func inside(_ children: [ChildJSON]) -> [AtomFeed.Entry] {
            children.flatMap { entries($0.links) + inside($0.children ?? []) }
        }
        return entries(hex.links ?? []) + inside(hex.children ?? [])
    }

    /// Returns the id of the entry of a link. Other spellings of the address and other feeds of this machine have the same id.
    static func id(_ url: String, _ machine: PeerID) -> String {
        id("link", [String(decoding: AddressIdentity.of(Array(url.utf8)), as: UTF8.self)], machine)
    }

    /// Returns a tag URI (RFC 4151).
    private static func id(_ kind: String, _ parts: [String], _ machine: PeerID) -> String {
        let path = parts.map { PercentEncoding.encode($0) }.joined(separator: "/")
        return "tag:\(machine.description.lowercased()).hexlist.invalid,2026:\(kind)/\(path)"
    }
}
