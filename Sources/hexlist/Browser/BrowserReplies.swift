import HexlistAPI
import HexlistJSON
import HexlistModel

/// A message to the extension: the reply to a request, an error, or an event.
enum BrowserMessage {
    case reply(id: Int64, any JSONEncodable)
    /// An error. The id is `nil` if the id of the request could not be read.
    case error(id: Int64?, HexlistError)
    /// An event of type `unread`, `row`, `recipients` or `daemon`. Its value is in a member of that name.
    case event(String, any JSONEncodable)

    /// The message as JSON. At most `NativeMessageDecoder.replyBytes` long.
    var bytes: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            switch self {
            case .reply(let id, let value):
                json.member("id", id)
                json.named("reply") { value.write(to: &$0) }
            case .error(let id, let error):
                json.member("id", id)
                json.member("error", BrowserErrorJSON(error: error))
            case .event(let name, let value):
                json.member("event", name)
                json.named(name) { value.write(to: &$0) }
            }
        }
        guard json.bytes.count > NativeMessageDecoder.replyBytes, case .reply(let id, _) = self else { return json.bytes }
        return Self.error(id: id, HexlistError(.tooLarge, "The answer is too long.", hint: "Ask for less at once.")).bytes
    }
}

/// An error in the form `{"code","message","hint"?}`, as in the local API. Texts are cleaned and cut.
struct BrowserErrorJSON: JSONEncodable {
    let error: HexlistError

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("code", error.code.rawValue)
            $0.member("message", TerminalText.clean(error.message, columns: 2_000))
            $0.member("hint", error.hint.map { TerminalText.clean($0, columns: 2_000) })
        }
    }
}

/// A page of a list in the form `{"items":[…],"next":…}`, preceded by the members of `head`.
struct BrowserListReply: JSONEncodable {
    /// Maximum bytes of all items. A single item may be larger.
    static let bytes = 384 << 10

    var head: [(String, any JSONEncodable)] = []
    private(set) var items: [JSONValue] = []
    var next: String?
    private var size = 0

    init() {}

    /// Adds an item unless it would exceed the size of a page.
    /// - Returns: whether it was added.
    mutating func add(_ item: some JSONEncodable) -> Bool {
        let value = JSONValue(item)
        guard items.isEmpty || size + value.bytes.count < Self.bytes else { return false }
        items.append(value)
        size += value.bytes.count + 1
        return true
    }

    func write(to json: inout JSONWriter) {
        json.object {
            for (name, value) in head { $0.named(name) { value.write(to: &$0) } }
            $0.member("items", items)
            $0.member("next", next)
        }
    }

    /// Creates a page with the items of a complete list, from an index on.
    static func of(_ list: some RandomAccessCollection<some JSONEncodable>, after index: Int) -> BrowserListReply {
        var page = BrowserListReply()
        for (number, item) in list.dropFirst(index).enumerated() {
            guard page.add(item) else {
                page.next = String(index + number)
                break
            }
        }
        return page
    }
}

/// A recipient that the user can choose: a peer or a group. Texts are cleaned and cut.
struct BrowserRecipient: JSONEncodable {
    /// The recipient in the form that `send` accepts: a UUID, or `@` and the name of a group.
    var to: String
    var label: String
    var isTrusted: Bool
    var isHere: Bool
    /// The number of members of a group; `nil` for a peer.
    var members: Int?

    /// Returns the groups, then online trusted peers, then all others, each sorted by label. Excludes ghosts, blocked peers, and offline
    /// peers that are not trusted.
    static func all(_ peers: [PeerView], _ groups: [GroupView]) -> [BrowserRecipient] {
        let here = Set(peers.filter { $0.state == .verified }.compactMap(\.uuid))
        let groups = groups.map { group in
            BrowserRecipient(
                to: "@" + group.name, label: "@" + TerminalText.clean(group.name, columns: 64), isTrusted: true,
                isHere: group.peers.contains { here.contains($0.uuid) }, members: group.peers.count)
        }
        let known = peers.compactMap { peer -> BrowserRecipient? in
            let isTrusted = peer.trust == .trusted
            guard let uuid = peer.uuid, peer.trust != .blocked, peer.state == .verified || peer.state == .away && isTrusted else {
                return nil
            }
            return BrowserRecipient(
                to: uuid.description, label: peer.label.text(), isTrusted: isTrusted, isHere: peer.state == .verified, members: nil)
        }
        return groups.filter { $0.members != 0 } + known.sorted { $0.order.lexicographicallyPrecedes($1.order) }
    }

    private var order: [UInt8] {
        [isHere && isTrusted ? 0 : isTrusted ? 1 : 2] + Array(label.utf8).map(ASCII.lowercased) + Array(to.utf8)
    }

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("to", to)
            $0.member("label", label)
            $0.member("trusted", isTrusted)
            $0.member("here", isHere)
            $0.member("members", members)
        }
    }
}

/// The state of one outbox row, for the extension.
struct BrowserOutboxRow: JSONEncodable, Equatable {
    var row: Int64
    var peer: String
    var label: String
    var state: OutboxState
    /// The reason for the state, cleaned and cut.
    var why: String

    init(_ send: SendOutcome) {
        self.init(send.outboxID, send.peer, PeerDisplayName(send.peer, send.tag), send.state, OutboxRowExplanation(send).why)
    }

    init(_ row: OutboxView) {
        self.init(row.outboxID, row.peer, PeerDisplayName(row.peer, row.tag), row.state, OutboxRowExplanation(row).why)
    }

    private init(_ row: Int64, _ peer: PeerID, _ label: PeerDisplayName, _ state: OutboxState, _ why: String) {
        self.row = row
        self.peer = peer.description
        self.label = label.text()
        self.state = state
        // Cleaning limits a character to 16 bytes, which bounds the size of the text, so that a reply has room for 100 rows.
        self.why = TerminalText.clean(why, columns: 200)
    }

    /// Whether the state can still change without action of the user.
    var waits: Bool { state == .queued || state == .sending }

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("row", row)
            $0.member("peer", peer)
            $0.member("label", label)
            $0.member("state", state.rawValue)
            if !why.isEmpty { $0.member("why", why) }
        }
    }
}

/// A hex in a list, without its content.
struct BrowserHexRow: JSONEncodable {
    let hex: HexJSON

    func write(to json: inout JSONWriter) {
        json.object { writeMembers(to: &$0) }
    }

    func writeMembers(to json: inout JSONWriter) {
        json.member("hex", hex.id)
        json.member("from", hex.label?.text() ?? "")
        json.member("subject", TerminalText.clean(hex.subject ?? hex.description, columns: 120))
        json.member("color", TerminalText.clean(hex.color, columns: 16))
        json.member("links", hex.linkCount + (hex.linksInside ?? 0))
        json.member("hexes", hex.hexesInside)
        json.member("unread", hex.unread)
        json.member("receivedAt", hex.receivedAt)
    }
}

/// An entry in the listed content of a hex. The list has the links of the hex, then each hex inside it with its content, recursively. Texts
/// are cleaned and cut, except URLs that can be opened.
enum BrowserItem: JSONEncodable {
    /// The title of an inner hex. Level 1 is directly inside the listed hex.
    case hex(level: Int, title: String)
    /// A link of the hex at this level.
    case link(level: Int, LinkJSON)

    private static let titleColumns = 300

    static func all(_ hex: HexJSON) -> [BrowserItem] {
        var items = (hex.links ?? []).map { link(level: 0, $0) }
        add(hex.children ?? [], level: 1, to: &items)
        return items
    }

    /// Appends the entries of hexes. Recursive, at most `ProtocolLimits.levels` deep.
    private static func add(_ hexes: [InnerHexJSON], level: Int, to items: inout [BrowserItem]) {
        for hex in hexes {
            items.append(.hex(level: level, title: hex.description.isEmpty ? hex.subject ?? "" : hex.description))
            items += hex.links.map { link(level: level, $0) }
            add(hex.children ?? [], level: level + 1, to: &items)
        }
    }

    func write(to json: inout JSONWriter) {
        json.object {
            switch self {
            case .hex(let level, let title):
                $0.member("level", level)
                $0.member("hex", TerminalText.clean(title, columns: Self.titleColumns))
            case .link(let level, let link):
                $0.member("level", level)
                $0.member("url", link.opens == nil ? TerminalText.clean(link.url, columns: Self.titleColumns) : link.url)
                if !link.linkDescription.isEmpty {
                    $0.member("title", TerminalText.clean(link.linkDescription, columns: Self.titleColumns))
                }
                $0.member("opens", link.opens)
                if link.opens == nil { $0.member("notOpened", link.notOpened ?? "the daemon does not know where it leads") }
            }
        }
    }
}

struct BrowserRows: JSONEncodable {
    var rows: [BrowserOutboxRow]

    func write(to json: inout JSONWriter) { json.object { $0.member("rows", rows) } }
}

struct BrowserStatusReply: JSONEncodable {
    var unread: Int
    var name: String

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("unread", unread)
            $0.member("name", name)
            $0.member("version", ProtocolLimits.appVersion)
        }
    }
}
