/// A received hex before it is stored.
public struct IncomingHex: Sendable {
    public var content: HexContent
    /// `nil` if the frame has none or came over plain TCP; then duplicates are not detected.
    public var messageID: MessageID?
    /// Upper bound of the memory and storage the hex takes (`HexContent.weight`): a frame of 15 kB may hold 5 000 links. Used for quotas,
    /// back-pressure and the free-space reserve.
    public var weight: Int
    /// The frame's number in its session; `nil` if no receipt is expected.
    public var sequence: Int64?

    public init(content: HexContent, messageID: MessageID?, weight: Int, sequence: Int64? = nil) {
        self.content = content
        self.messageID = messageID
        self.weight = weight
        self.sequence = sequence
    }

    /// The number of database rows: one per hex and one per link.
    public var rows: Int { content.hexCount + content.allLinkCount }
}
