/// The result of handing one hex to a peer: from the transaction that stores it, over the receipt, to the caller that waits for it.
public enum DeliveryResult: Sendable, Equatable {
    /// The hex is durably in the peer's inbox.
    case stored
    /// The peer keeps the hex durably, apart from its inbox, until its user accepts it.
    case held
    /// The peer had the hex before, as `.stored` or `.held`.
    case duplicate(of: ReceiptStatus)
    /// The peer did not keep the hex. If the code is temporary, another attempt may succeed after `retryAfter` seconds.
    case refused(RefusalCode, message: String = "", retryAfter: Int? = nil)

    /// The result in a receipt.
    /// - Parameter of: for `.duplicate` how the peer keeps the hex; an earlier version does not say it.
    public init(_ status: ReceiptStatus, of: ReceiptStatus?) {
        switch status {
        case .stored: self = .stored
        case .held: self = .held
        case .duplicate: self = .duplicate(of: of ?? .stored)
        }
    }

    /// Whether the peer has the hex.
    public var isDelivered: Bool { if case .refused = self { false } else { true } }

    /// Whether the peer refused the hex for now, so that it is sent again later.
    public var isTemporary: Bool { if case .refused(let code, _, _) = self { code.isTemporary } else { false } }

    /// The state that the result gives a row of the outbox; `nil` if the row goes on waiting.
    public var state: OutboxState? {
        switch self {
        case .stored: .stored
        case .held: .held
        case .duplicate(let of): of == .held ? .held : .stored
        case .refused(let code, _, _): code.isTemporary ? nil : .rejected
        }
    }
}
