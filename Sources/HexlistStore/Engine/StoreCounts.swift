/// Counts of records, for lists and `hexlist status`. Read from the counters row, which every transaction updates, without counting rows.
public struct StoreCounts: Sendable, Equatable {
    public var inbox: Int64
    /// The number of unread hexes in the inbox.
    public var unread: Int64
    public var held: Int64
    public var heldBytes: Int64
    public var mine: Int64
    public var outbox: OutboxCounts
    /// Total bytes of the bodies in the outbox. A body is counted once, even if it has several recipients.
    public var outboxBytes: Int64
    /// The number of the newest event; 0 if none was recorded yet.
    public var lastEvent: Int64
    /// Upper bound of the number of hexes that `search` does not find yet.
    public var unindexed: Int64 = 0
}
