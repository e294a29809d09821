public import HexlistJSON
public import HexlistModel

/// The body of `POST /v1/drafts`: files and folders of this machine that the user wants to send from the page.
public struct DraftRequest: JSONShape, Sendable, Equatable {
    /// The absolute paths of the files and folders.
    public var paths: [String]

    private enum CodingKeys: String, RequestKey {
        case paths
    }

    public init(paths: [String]) { self.paths = paths }
}

/// A draft of the page: chosen files and folders, for which the user has not chosen recipients yet.
public struct Draft: JSONShape, Sendable, Equatable {
    /// The id of the draft: 32 random hexadecimal digits.
    public var id: String
    /// The last path component of each file and folder.
    public var names: [String]
    /// The time at which the draft is deleted, 10 minutes after it was made.
    public var until: Timestamp

    public init(id: String, names: [String], until: Timestamp) {
        self.id = id
        self.names = names
        self.until = until
    }
}

/// The body of `POST /v1/drafts/ID/offer`: the recipients of a draft.
public struct DraftOfferRequest: JSONShape, Sendable, Equatable {
    /// The recipients, as PEER and `@GROUP` arguments.
    public var to: [String]

    private enum CodingKeys: String, RequestKey {
        case to
    }

    public init(to: [String]) { self.to = to }
}
