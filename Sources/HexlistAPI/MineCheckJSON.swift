public import HexlistJSON

/// The body of `POST /v1/mine/check`: the links to check. Without hexes and links, all links of My Hexlist are checked.
public struct MineCheckRequest: JSONShape, Sendable, Equatable {
    /// The ids of hexes of My Hexlist, whose links and those of the hexes inside them are checked.
    public var hexes: [Int64]?
    /// Single links as pairs: the id of a hex, and the number of the link in it, from 1. `[[7,2]]` is the second link of hex 7.
    public var links: [[Int64]]?

    private enum CodingKeys: String, RequestKey {
        case hexes, links
    }

    public init(hexes: [Int64]? = nil, links: [[Int64]]? = nil) {
        self.hexes = hexes
        self.links = links
    }
}

/// The reason why a check of a link had no clear result, or was not made.
public enum LinkCheckReason: String, Sendable, CaseIterable {
    /// The server refused the request: a status from 400 to 499, except 404 and 410. Servers often refuse requests of programs.
    case refused
    /// The server asked for a pause of more than 30 s, or for a second pause.
    case busy
    /// The server failed: a status of 500 or above.
    case serverFault
    /// No address of the host was found. The name may not exist, or there may be no connection to the Internet.
    case noAddress
    /// No connection to the host was possible, or it sent no response.
    case unreachable
    case timeout
    /// The certificate is not valid, or the TLS handshake failed.
    case tls
    case notHTTP
    /// The server redirected too often, or to an address that is not a web page.
    case redirects
    /// The link is not an `http` or `https` URL, or its URL is ambiguous, so that programs parse it in different ways.
    case notWeb
    /// The host of the link or of a redirect has a private address, or an address in a network of this machine.
    case ownNetwork
}

/// The result of the check of one link. A link whose page exists is reported only if it was marked as dead before.
public struct CheckedLinkJSON: JSONShape, Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        case reachable, dead, unclear, skipped
    }

    public var hex: Int64
    /// The number of the link in the hex, from 1.
    public var number: Int
    public var url: String
    public var state: ForwardCompatibleEnum<State>
    /// The HTTP status of the last response; `nil` if there was none.
    public var status: Int?
    /// The reason for the states `unclear` and `skipped`; `nil` if the link is reachable or dead.
    public var reason: ForwardCompatibleEnum<LinkCheckReason>?

    public init(hex: Int64, number: Int, url: String, state: State, status: Int? = nil, reason: LinkCheckReason? = nil) {
        self.hex = hex
        self.number = number
        self.url = url
        self.state = ForwardCompatibleEnum(state)
        self.status = status
        self.reason = reason.map { ForwardCompatibleEnum($0) }
    }
}

/// The progress of a check of links.
public struct MineCheckProgress: JSONShape, Sendable, Equatable {
    /// Number of checked links, and number of all links of the check.
    public var done: Int
    public var total: Int
    /// The results since the previous progress, without those of reachable links that were not marked as dead.
    public var links: [CheckedLinkJSON]

    private enum CodingKeys: String, CodingKey {
        case done
        case total = "of"
        case links
    }

    public init(done: Int, total: Int, links: [CheckedLinkJSON] = []) {
        self.done = done
        self.total = total
        self.links = links
    }
}

/// The result of `POST /v1/mine/check`.
public struct MineCheckResult: JSONShape, Sendable, Equatable {
    /// Numbers of links by state. The links counted in `dead` are marked as dead.
    public var reachable: Int
    public var dead: Int
    public var unclear: Int
    public var skipped: Int
    /// Number of links that this check marked as dead for the first time, and number of links from which it removed the mark.
    public var marked: Int
    public var unmarked: Int

    public init(reachable: Int = 0, dead: Int = 0, unclear: Int = 0, skipped: Int = 0, marked: Int = 0, unmarked: Int = 0) {
        self.reachable = reachable
        self.dead = dead
        self.unclear = unclear
        self.skipped = skipped
        self.marked = marked
        self.unmarked = unmarked
    }

    /// Number of all links of the check.
    public var links: Int { reachable + dead + unclear + skipped }
}

extension MineCheckResult: ProgressResult {
    public typealias Progress = MineCheckProgress

    public static var member: String { "result" }
}

/// The mark of a dead link: its page no longer exists.
public struct DeadLinkJSON: JSONShape, Sendable, Equatable {
    /// The HTTP status of the last check: 404 or 410.
    public var status: Int
    /// The time of the first check that found the page missing.
    public var since: Timestamp

    public init(status: Int, since: Timestamp) {
        self.status = status
        self.since = since
    }
}
