/// A received hex on its way into the store.
public struct IncomingHex: Sendable {
    public var content: HexContent
    /// The message id; `nil` if there was none, or on plain TCP. Without it duplicates are not recognised.
    public var messageID: MessageID?
    /// The most bytes the hex takes while it waits and in the store (`HexContent.weight`): a frame of 15 kB may hold 5 000 links. Quotas, reading
    /// and the disk's reserve count with it.
    public var weight: Int
    /// The number of its frame, for the session it came on; `nil` if no receipt is owed.
    public var sequence: Int64?

    public init(content: HexContent, messageID: MessageID?, weight: Int, sequence: Int64? = nil) {
        self.content = content
        self.messageID = messageID
        self.weight = weight
        self.sequence = sequence
    }

    /// The rows of the hex: one for itself and for each hex inside, and one per link.
    public var rows: Int { content.hexCount + content.allLinkCount }
}
