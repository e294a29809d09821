/// The counts that lists and `status` show, kept up to date by the transactions that change them.
public struct StoreCounts: Sendable, Equatable {
    public var inbox: Int64
    /// The number of unread hexes in the inbox.
    public var unread: Int64
    public var held: Int64
    public var heldBytes: Int64
    public var mine: Int64
    public var outbox: OutboxCounts
    /// The bytes of bodies in the outbox, each once for all its recipients.
    public var outboxBytes: Int64
    /// The number of the newest event; 0 before the first.
    public var lastEvent: Int64
    /// The most hexes that are not in the index of `search` yet.
    public var unindexed: Int64 = 0
}
