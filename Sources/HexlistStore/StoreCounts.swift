/// Counts that are shown, kept by the transactions that change them.
public struct StoreCounts: Sendable, Equatable {
    public var inbox: Int64
    /// In the inbox.
    public var unread: Int64
    public var held: Int64
    public var heldBytes: Int64
    public var mine: Int64
    public var outbox: OutboxCounts
    /// Of bodies in the outbox.
    public var outboxBytes: Int64
    /// The newest event; 0 before the first.
    public var lastEvent: Int64
}
