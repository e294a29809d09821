public import HexlistModel

/// What `search` looks for.
public struct SearchFilter: Sendable, Equatable {
    public var terms: [SearchTerm]
    /// The place; `nil` for the inbox and My Hexlist, never for what is held.
    public var location: HexLocation?
    public var unread: Bool
    /// The proven sender; `nil` for all.
    public var peer: PeerID?
    /// The time of arrival, milliseconds since 1970: from `since` on, before `until`.
    public var since: Int64?
    public var until: Int64?

    public init(
        _ terms: [SearchTerm], location: HexLocation? = nil, unread: Bool = false, peer: PeerID? = nil, since: Int64? = nil,
        until: Int64? = nil
    ) {
        self.terms = terms
        self.location = location
        self.unread = unread
        self.peer = peer
        self.since = since
        self.until = until
    }
}

/// A hex that was found.
public struct SearchHit: Sendable, Equatable {
    public var summary: HexSummary
    /// The text that has the words; `nil` if only the sender, a colour, a service or a host was looked for and found.
    public var match: SearchMatch?
    /// The topmost hex that it is in; `nil` for a hex of a list.
    public var top: HexSummary?
}

/// The place where a hex has what was looked for.
public struct SearchMatch: Sendable, Equatable {
    public enum Field: String, Sendable, CaseIterable {
        case description, linkDescription, url, sender
    }

    public var field: Field
    /// The position of the link, from 0.
    public var link: Int?
    /// The text around the first place, cut, and the place itself. Texts of a peer.
    public var before: String
    public var found: String
    public var after: String
}

/// A page of what was found, newest first.
public struct SearchPage: Sendable {
    public var hits: [SearchHit]
    /// The value of `after` for the next page; `nil` at the end. A page may have few hits and not be the last.
    public var next: Int64?
    /// The most hexes that are not in the index yet, and so not found.
    public var behind: Int64
}
