/// A received hex on its way into the store.
public struct IncomingHex: Sendable {
    public var content: HexContent
    /// The message id; `nil` if there was none.
    public var messageID: MessageID?
    /// The most bytes the hex takes while it waits and in the store (`HexContent.weight`): a frame of 15 kB may hold 5 000 links. Quotas, reading
    /// and the disk's reserve count with it.
    public var byteCount: Int
    /// Whether `messageID` identifies duplicates. False on plain TCP, where nobody has proved to be the sender; such a hex is also not
    /// taken in when the peer becomes trusted.
    public var deduplicates: Bool
    /// The number of its frame, for the session it came on; `nil` if no receipt is owed.
    public var sequence: Int64?

    public init(content: HexContent, messageID: MessageID?, byteCount: Int, deduplicates: Bool = true, sequence: Int64? = nil) {
        self.content = content
        self.messageID = messageID
        self.byteCount = byteCount
        self.deduplicates = deduplicates
        self.sequence = sequence
    }

    /// The rows of the hex: one for itself and for each hex inside, and one per link.
    public var rows: Int { content.hexCount + content.allLinkCount }
}
