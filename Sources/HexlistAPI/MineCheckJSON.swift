public import HexlistJSON

/// The body of `POST /v1/mine/check`. Without hexes and links, all links of My Hexlist are checked.
public struct MineCheckRequest: JSONShape, Sendable, Equatable {
    /// Hexes of My Hexlist, with the hexes inside them.
    public var hexes: [Int64]?
    /// Single links: the id of a hex, and the number of the link in it, from 1.
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
    /// The server refused the request, as servers often refuse those of programs: a status from 400 to 499, except 404 and 410.
    case refused
    /// The server asked for a long pause.
    case busy
    /// The server failed: a status from 500.
    case serverFault
    /// No address of the host was found. The name may not exist, or there may be no connection to the Internet.
    case noAddress
    /// No connection, or no response.
    case unreachable
    case timeout
    /// The certificate is not valid, or the TLS handshake failed.
    case tls
    case notHTTP
    /// Too many redirects, or one that leads to no web page.
    case redirects
    /// A link that is not `http` or `https`, or that programs read in different ways.
    case notWeb
    /// The host, or that of a redirect, is in a network of this machine or has a private address.
    case ownNetwork
}

/// The result of the check of a link. Links whose pages exist are not reported one by one, unless they lose a mark.
public struct CheckedLinkJSON: JSONShape, Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        case reachable, dead, unclear, skipped
    }

    public var hex: Int64
    /// From 1.
    public var number: Int
    public var url: String
    public var state: ForwardCompatibleEnum<State>
    /// The HTTP status of the last response; `nil` if there was none.
    public var status: Int?
    /// `nil` if the link is reachable or dead.
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

/// Progress of a check.
public struct MineCheckProgress: JSONShape, Sendable, Equatable {
    /// Number of checked links, and number of all links of the check.
    public var done: Int
    public var total: Int
    /// The results since the previous progress, except of links that are reachable and were not marked.
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
    /// Numbers of links by state. All are marked that are in `dead`.
    public var reachable: Int
    public var dead: Int
    public var unclear: Int
    public var skipped: Int
    /// Number of links that got the mark in this check, and of those that lost it.
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

    /// Number of links of the check.
    public var links: Int { reachable + dead + unclear + skipped }
}

extension MineCheckResult: ProgressResult {
    public typealias Progress = MineCheckProgress

    public static var member: String { "result" }
}

/// The mark of a link whose page no longer exists.
public struct DeadLinkJSON: JSONShape, Sendable, Equatable {
    /// The HTTP status of the last check: 404 or 410.
    public var status: Int
    /// The time of the check that found it dead first.
    public var since: Timestamp

    public init(status: Int, since: Timestamp) {
        self.status = status
        self.since = since
    }
}
