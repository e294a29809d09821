public import HexlistJSON

/// A hex inside a stored hex, with its links and those inside it.
public struct ChildJSON: JSONShape, Sendable, Equatable {
    /// Local, as the id of any hex.
    public var id: Int64
    /// The claim of a sender, as of any hex. Texts of a peer: clean them where they are shown.
    public var senderUUID: String
    public var senderName: String
    public var description: String
    /// The text that lists show for it.
    public var subject: String?
    public var color: String
    public var links: [LinkJSON]
    /// The hexes inside it in their order; `nil` for none.
    public var children: [ChildJSON]?

    public init(
        id: Int64, senderUUID: String, senderName: String, description: String, subject: String? = nil, color: String, links: [LinkJSON],
        children: [ChildJSON]? = nil
    ) {
        self.id = id
        self.senderUUID = senderUUID
        self.senderName = senderName
        self.description = description
        self.subject = subject
        self.color = color
        self.links = links
        self.children = children
    }
}
