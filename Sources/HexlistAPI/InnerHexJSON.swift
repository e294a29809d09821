public import HexlistJSON

/// An inner hex: a hex inside a stored hex, with its links and its own inner hexes.
public struct InnerHexJSON: JSONShape, Sendable, Equatable {
    /// The id of the hex on this machine; other machines have their own ids.
    public var id: Int64
    /// The UUID and name of the sender, as the hex claims them without proof. Text of a peer: clean it before display.
    public var senderUUID: String
    public var senderName: String
    public var description: String
    /// The text that represents the hex in lists (`HexSubject`).
    public var subject: String?
    public var color: String
    /// The tags and the note of the hex itself; `nil` if there are none.
    public var tags: [String]?
    public var note: String?
    public var links: [LinkJSON]
    /// The hexes inside this one, in order; `nil` if there are none.
    public var children: [InnerHexJSON]?

    public init(
        id: Int64, senderUUID: String, senderName: String, description: String, subject: String? = nil, color: String,
        tags: [String]? = nil,
        note: String? = nil, links: [LinkJSON], children: [InnerHexJSON]? = nil
    ) {
        self.id = id
        self.senderUUID = senderUUID
        self.senderName = senderName
        self.description = description
        self.subject = subject
        self.color = color
        self.tags = tags
        self.note = note
        self.links = links
        self.children = children
    }
}
