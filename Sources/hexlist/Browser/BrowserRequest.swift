import HexlistAPI
import HexlistJSON
import HexlistModel

/// The operations that the extension may request: reading, marking and sending. It cannot change trust, pairings, files or settings.
enum BrowserOperation: Equatable {
    /// Lists the possible recipients, from an index on.
    case recipients(after: Int)
    case send(BrowserSend)
    /// Returns the states of outbox rows.
    case rows([Int64])
    case inbox(unread: Bool, after: String?, limit: Int)
    /// Lists the entries of one hex of the inbox, from an index on.
    case hex(Int64, after: Int)
    case mark([Int64], unread: Bool)
    case unread

    /// Maximum number of ids in one request.
    static let ids = 1_000
    /// Maximum number of hexes in a page of the inbox. Each takes at most 4 KiB.
    static let page = 100
}

/// A request of the extension: `{"id":1,"operation":"inbox",…}`.
struct BrowserRequest: Equatable {
    var id: Int64
    var operation: BrowserOperation

    /// Reads the `id` of a message that is otherwise invalid, for the error reply; `nil` if it has none.
    static func id(of message: [UInt8]) -> Int64? {
        guard let value = try? JSONValue(parsing: message), let object = try? JSONObject(value) else { return nil }
        return object["id"]?.integer
    }

    /// Parses a request.
    /// - Throws: `JSONFault` if it is invalid or has unknown members.
    init(_ message: [UInt8]) throws(JSONFault) {
        let value = try JSONValue(parsing: message)
        let object = try JSONObject(value)
        id = try object.value("id")
        guard id > 0, id < 1 << 53 else { throw JSONFault("`id`: a positive number is expected") }
        func only(_ members: String...) throws(JSONFault) { _ = try JSONObject(value, allowing: ["id", "operation"] + members) }
        let name: String = try object.value("operation")
        switch name {
        case "recipients":
            try only("after")
            operation = .recipients(after: try Self.index(object))
        case "send":
            try only("to", "hex", "key")
            operation = .send(try BrowserSend(object))
        case "rows":
            try only("ids")
            operation = .rows(try Self.ids(object))
        case "inbox":
            try only("unread", "after", "limit")
            let limit: Int = try object.optional("limit") ?? LocalAPI.defaultPageLimit
            guard (1...BrowserOperation.page).contains(limit) else {
                throw JSONFault("`limit`: a number from 1 to \(BrowserOperation.page) is expected")
            }
            operation = .inbox(unread: try object.optional("unread") ?? false, after: try object.optional("after"), limit: limit)
        case "hex":
            try only("hex", "after")
            operation = .hex(try object.value("hex"), after: try Self.index(object))
        case "mark":
            try only("ids", "unread")
            operation = .mark(try Self.ids(object), unread: try object.value("unread"))
        case "unread":
            try only()
            operation = .unread
        default: throw JSONFault("`operation`: unknown")
        }
    }

    private static func index(_ object: JSONObject) throws(JSONFault) -> Int {
        let text: String? = try object.optional("after")
        guard let text else { return 0 }
        guard let index = Int(text), index >= 0 else { throw JSONFault("`after`: the `next` of a page is expected") }
        return index
    }

    private static func ids(_ object: JSONObject) throws(JSONFault) -> [Int64] {
        let ids: [Int64] = try object.value("ids")
        guard (1...BrowserOperation.ids).contains(ids.count), ids.allSatisfy({ $0 > 0 }) else {
            throw JSONFault("`ids`: 1 to \(BrowserOperation.ids) ids are expected")
        }
        return ids
    }
}

/// The parameters of the operation `send`.
struct BrowserSend: Equatable {
    /// The recipients, each as a PEER or `@GROUP` argument.
    var to: [String]
    var hex: BrowserHex
    /// The idempotency key. If a restarted service worker repeats the request, the hex is not sent again.
    var key: String

    /// Maximum number of recipients in one request.
    private static let recipients = 100

    init(_ object: JSONObject) throws(JSONFault) {
        to = try object.value("to")
        guard (1...Self.recipients).contains(to.count) else { throw JSONFault("`to`: 1 to \(Self.recipients) recipients are expected") }
        let text: String = try object.value("key")
        guard (1...100).contains(text.utf8.count) else { throw JSONFault("`key`: 1 to 100 bytes are expected") }
        key = text
        let hex: JSONValue = try object.value("hex")
        self.hex = try BrowserHex(hex, level: 1)
        guard self.hex.linkCount > 0 else { throw JSONFault("`hex`: there is no link in it") }
    }
}

/// A hex created by the extension. It has only a description, links, and hexes inside it.
struct BrowserHex: Equatable {
    struct Link: JSONDecodable, Equatable {
        var url: String
        var title: String

        init(json: JSONValue) throws(JSONFault) {
            let object = try JSONObject(json, allowing: ["url", "title"])
            url = try object.value("url")
            title = try object.optional("title") ?? ""
            guard LinkTextKind(url) == .link else { throw JSONFault("`url`: a link with a scheme is expected") }
        }
    }

    var description: String
    var links: [Link]
    var hexes: [BrowserHex]

    /// Parses a hex and the hexes inside it.
    /// - Parameter level: the level of this hex, beginning with 1.
    init(_ json: JSONValue, level: Int) throws(JSONFault) {
        guard level <= ProtocolLimits.levels else { throw JSONFault("`hexes`: \(ProtocolLimits.levels) levels at most are taken") }
        let object = try JSONObject(json, allowing: ["description", "links", "hexes"])
        description = try object.optional("description") ?? ""
        links = try object.optional("links") ?? []
        hexes = []
        let inside: [JSONValue] = try object.optional("hexes") ?? []
        for hex in inside { hexes.append(try BrowserHex(hex, level: level + 1)) }
    }

    /// The number of links in this hex and in all hexes inside it.
    var linkCount: Int { hexes.reduce(links.count) { $0 + $1.linkCount } }
}

extension BrowserHex: JSONEncodable {
    /// Writes the hex as a HexJM.
    func write(to json: inout JSONWriter) {
        json.object {
            if !description.isEmpty { $0.member("hexDescription", description) }
            $0.member("links", links.map { HexLinkJSON(link: $0) })
            if !hexes.isEmpty { $0.member("children", hexes) }
        }
    }

    private struct HexLinkJSON: JSONEncodable {
        let link: Link

        func write(to json: inout JSONWriter) {
            json.object {
                $0.member("url", link.url)
                if !link.title.isEmpty { $0.member("linkDescription", link.title) }
            }
        }
    }
}
