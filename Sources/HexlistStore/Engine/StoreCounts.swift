/// Counts for lists and `status`. Each transaction keeps them up to date.
public struct StoreCounts: Sendable, Equatable {
    public var inbox: Int64
    /// The number of unread hexes in the inbox.
    public var unread: Int64
    public var held: Int64
    public var heldBytes: Int64
    public var mine: Int64
    public var outbox: OutboxCounts
    /// Bytes of bodies in the outbox, counted once for all recipients.
    public var outboxBytes: Int64
    /// The number of the newest event; 0 before the first.
    public var lastEvent: Int64
    /// Maximum number of hexes that `search` does not find yet.
    public var unindexed: Int64 = 0
}
