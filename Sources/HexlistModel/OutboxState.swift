/// The delivery state of one hex for one peer.
public enum OutboxState: String, Sendable, CaseIterable {
    /// Durable in the outbox, not sent yet.
    case queued
    /// In flight. Exists only in a running node and is never stored.
    case sending
    /// In the peer's inbox.
    case stored
    /// At the peer, outside its inbox until the sender is trusted.
    case held
    /// Refused permanently.
    case rejected
    /// Not delivered within the retention time of the outbox.
    case expired
    /// Cancelled by the sender.
    case cancelled
    /// Given up after too many failures of the peer.
    case failed

    /// Whether the peer has the hex. Bodies of delivered hexes are deleted.
    public var isDelivered: Bool {
        switch self {
        case .stored, .held: true
        case .queued, .sending, .rejected, .expired, .cancelled, .failed: false
        }
    }

    /// Whether the body is kept, because the hex is queued or can be resent manually.
    public var keepsBody: Bool {
        switch self {
        case .queued, .sending, .rejected, .failed: true
        case .stored, .held, .expired, .cancelled: false
        }
    }
}

extension [OutboxState: Int] {
    /// The total number of rows in these states.
    public func rows(_ states: OutboxState...) -> Int { states.reduce(0) { $0 + (self[$1] ?? 0) } }
}
