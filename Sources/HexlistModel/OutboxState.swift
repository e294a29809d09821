/// The delivery state of an outbox row, which is one hex for one peer.
public enum OutboxState: String, Sendable, CaseIterable {
    /// The hex is stored durably in the outbox and not sent yet.
    case queued
    /// The hex is being sent. This state exists only in a running node and is never stored.
    case sending
    /// The peer stored the hex in its inbox.
    case stored
    /// The peer stored the hex outside its inbox until its user accepts it.
    case held
    /// The peer refused the hex permanently.
    case rejected
    /// The hex was not delivered within the retention time of the outbox.
    case expired
    /// The user of this machine cancelled the delivery.
    case cancelled
    /// Delivery was given up after too many failures.
    case failed

    /// Whether the peer has the hex. The body of a delivered hex is deleted from the outbox.
    public var isDelivered: Bool {
        switch self {
        case .stored, .held: true
        case .queued, .sending, .rejected, .expired, .cancelled, .failed: false
        }
    }

    /// Whether the outbox keeps the hex's body, because the hex is not sent yet or the user can send it again.
    public var keepsBody: Bool {
        switch self {
        case .queued, .sending, .rejected, .failed: true
        case .stored, .held, .expired, .cancelled: false
        }
    }
}

extension [OutboxState: Int] {
    /// Returns the total number of rows in these states.
    public func rows(_ states: OutboxState...) -> Int { states.reduce(0) { $0 + (self[$1] ?? 0) } }
}
