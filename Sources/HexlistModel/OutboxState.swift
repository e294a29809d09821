/// The state of one hex on its way to one peer.
public enum OutboxState: String, Sendable, CaseIterable {
    /// Durable in the outbox, waiting for its peer.
    case queued
    /// On its way. Only a running node knows this state; it is never stored.
    case sending
    /// In the peer's inbox.
    case stored
    /// With the peer, outside its inbox until the peer trusts the sender.
    case held
    /// Refused for good.
    case rejected
    /// Not delivered within the time the outbox keeps a hex.
    case expired
    /// Taken back by the sender.
    case cancelled
    /// Given up after too many failures of the peer.
    case failed

    /// Whether the peer has the hex. The body of a delivered hex is not kept.
    public var isDelivered: Bool {
        switch self {
        case .stored, .held: true
        case .queued, .sending, .rejected, .expired, .cancelled, .failed: false
        }
    }

    /// Whether the outbox keeps the body: the hex waits, or can be sent again by hand.
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
