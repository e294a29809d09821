/// The result of delivering one hex to a peer. Produced by the transaction that stores it, sent in a receipt, returned to the sender.
public enum DeliveryResult: Sendable, Equatable {
    /// The hex is durable in the peer's inbox.
    case stored
    /// The hex is durable at the peer, but outside its inbox until its user accepts it.
    case held
    /// The peer already had the hex, as `.stored` or `.held`.
    case duplicate(of: ReceiptStatus)
    /// The peer did not store the hex. If the code is temporary, it may be sent again after `retryAfter` seconds.
    case refused(RefusalCode, message: String = "", retryAfter: Int? = nil)

    /// Converts the status of a receipt.
    /// - Parameter of: for `.duplicate`, how the peer stores the hex; `nil` from earlier versions.
    public init(_ status: ReceiptStatus, of: ReceiptStatus?) {
        switch status {
        case .stored: self = .stored
        case .held: self = .held
        case .duplicate: self = .duplicate(of: of ?? .stored)
        }
    }

    /// Whether the peer has the hex.
    public var isDelivered: Bool { if case .refused = self { false } else { true } }

    /// Whether the refusal is temporary, so that the hex is sent again later.
    public var isTemporary: Bool { if case .refused(let code, _, _) = self { code.isTemporary } else { false } }

    /// The new state of the outbox row; `nil` if it stays queued.
    public var state: OutboxState? {
        switch self {
        case .stored: .stored
        case .held: .held
        case .duplicate(let of): of == .held ? .held : .stored
        case .refused(let code, _, _): code.isTemporary ? nil : .rejected
        }
    }
}
