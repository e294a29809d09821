/// A received hex that is not stored yet.
public struct IncomingHex: Sendable {
    public var content: HexContent
    /// The ID from the frame; `nil` if the frame has none or was received over plain TCP. Without it, duplicates are not detected.
    public var messageID: MessageID?
    /// Upper bound of the memory and storage for the hex in bytes (`HexContent.weight`), which can be much more than its frame: 15 kB may
    /// contain 5 000 links. Used for quotas, back-pressure and the free-space reserve.
    public var weight: Int
    /// The frame's sequence number in its session; `nil` if the sender expects no receipt.
    public var sequence: Int64?

    public init(content: HexContent, messageID: MessageID?, weight: Int, sequence: Int64? = nil) {
        self.content = content
        self.messageID = messageID
        self.weight = weight
        self.sequence = sequence
    }

    /// The number of database rows for this hex: one per hex and one per link.
    public var rows: Int { content.hexCount + content.allLinkCount }
}
