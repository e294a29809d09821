public import HexlistModel

/// The criteria of a search.
public struct SearchFilter: Sendable, Equatable {
    public var terms: [SearchTerm]
    /// The location; `nil` for the inbox and My Hexlist, without held hexes.
    public var location: HexLocation?
    public var unread: Bool
    /// The proven sender; `nil` for all.
    public var peer: PeerID?
    /// Earliest time of arrival, in milliseconds since 1970.
    public var since: Int64?
    /// End of the times of arrival, exclusive.
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

/// A hex that matches a search.
public struct SearchHit: Sendable, Equatable {
    public var summary: HexSummary
    /// The text with the words; `nil` if the hex matches only by sender, colour, service or host.
    public var match: SearchMatch?
    /// The topmost hex that contains it; `nil` for a hex of a list.
    public var top: HexSummary?
}

/// An excerpt of the text of a hex that matches.
public struct SearchMatch: Sendable, Equatable {
    public enum Field: String, Sendable, CaseIterable {
        case description, linkDescription, url, sender
    }

    public var field: Field
    /// The position of the link, from 0.
    public var link: Int?
    /// The shortened text before the match. Peer text, like `found` and `after`.
    public var before: String
    public var found: String
    public var after: String
}

/// A page of search results, newest first.
public struct SearchPage: Sendable {
    public var hits: [SearchHit]
    /// The value of `after` for the next page; `nil` at the end. A page with few hits may not be the last one.
    public var next: Int64?
    /// Maximum number of hexes that are not indexed yet, and so not found.
    public var behind: Int64
}
