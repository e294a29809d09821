public import HexlistModel

/// The criteria of a search.
public struct SearchFilter: Sendable, Equatable {
    public var clauses: [SearchExpression.Clause]
    /// The location; `nil` for the inbox and My Hexlist, without held hexes.
    public var location: HexLocation?
    /// Whether hexes must be unread or read; `nil` for both.
    public var unread: Bool?
    /// The peers of the terms `SearchTerm.from`, by the text of the term. A term that has no peer in this dictionary matches nothing.
    public var senders: [String: PeerID] = [:]
    /// The required proven sender; `nil` for all senders.
    public var peer: PeerID?
    /// The earliest time of arrival, in milliseconds since 1970; `nil` for no limit.
    public var since: Int64?
    /// The time before which hexes arrived, in milliseconds since 1970; `nil` for no limit.
    public var until: Int64?

    /// - Parameter terms: the terms that must all be true.
    public init(
        _ terms: [SearchTerm], location: HexLocation? = nil, unread: Bool? = nil, peer: PeerID? = nil, since: Int64? = nil,
        until: Int64? = nil
    ) {
        clauses = terms.map { SearchExpression.Clause([$0]) }
        self.location = location
        self.unread = unread
        self.peer = peer
        self.since = since
        self.until = until
    }

    public init(_ expression: SearchExpression) {
        self.init([], unread: expression.unread)
        clauses = expression.clauses
    }
}

/// A hex that matches a search.
public struct SearchHit: Sendable, Equatable {
    public var summary: HexSummary
    /// An excerpt of the matching text; `nil` if no text has the words, because the hex matches by sender, colour or service.
    public var match: SearchExcerpt?
    /// The topmost hex that contains the hit; `nil` if the hit is not an inner hex.
    public var top: HexSummary?
}

/// An excerpt of a text of a hex, around the words that match.
public struct SearchExcerpt: Sendable, Equatable {
    public enum Field: String, Sendable, CaseIterable {
        case description, linkDescription, url, sender, note, tags
    }

    public var field: Field
    /// The position of the link that has the text, from 0; `nil` if it is not a text of a link.
    public var link: Int?
    /// The end of the text before the match. Untrusted text of a peer, like `found` and `after`.
    public var before: String
    public var found: String
    public var after: String
}

/// A link that matches a search.
public struct LinkHit: Sendable {
    public var link: ListedLink
    /// The descriptions of the hexes that contain the link, from the topmost to the one that has the link itself.
    public var folders: [String]
    /// An excerpt of the matching text of the link or of its hex; `nil` if no text has the words.
    public var match: SearchExcerpt?
}

/// A page of links that match a search. `next` and `behind` are as in `SearchPage`.
public struct LinkSearchPage: Sendable {
    public var hits: [LinkHit]
    public var next: Int64?
    public var behind: Int64
}

/// A page of search results.
public struct SearchPage: Sendable {
    public var hits: [SearchHit]
    /// The value of `after` for the next page; `nil` on the last page. A page may have fewer hits than requested although it is not the
    /// last one.
    public var next: Int64?
    /// Upper bound of the number of hexes that were not searched, because they are not indexed yet.
    public var behind: Int64
}
