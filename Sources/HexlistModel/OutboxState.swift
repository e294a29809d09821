/// What became of one hex for one peer.
public enum OutboxState: String, Sendable, CaseIterable {
    /// Durable, and waiting for its peer.
    case queued
    /// On its way: known to a running node only, never stored.
    case sending
    /// In the peer's inbox.
    case stored
    /// With the peer, out of its inbox until it trusts the sender.
    case held
    /// Refused for good.
    case rejected
    /// Not delivered within the time an outbox keeps a hex.
    case expired
    /// Taken back by its sender.
    case cancelled
    /// Given up after the peer failed on it too often.
    case failed

    /// The peer has it; its body is not kept.
    public var isDelivered: Bool {
        switch self {
        case .stored, .held: true
        case .queued, .sending, .rejected, .expired, .cancelled, .failed: false
        }
    }

    /// It keeps its body: it waits, or can be sent again by hand.
    public var keepsBody: Bool {
        switch self {
        case .queued, .sending, .rejected, .failed: true
        case .stored, .held, .expired, .cancelled: false
        }
    }
}

extension [OutboxState: Int] {
    /// Rows in any of these states, of counts by state.
    public func rows(_ states: OutboxState...) -> Int { states.reduce(0) { $0 + (self[$1] ?? 0) } }
}
