/// The result of delivering one hex to a peer. The receiver's store produces it in the transaction that stores the hex, and the receiver
/// sends it to the sender in a receipt.
public enum DeliveryResult: Sendable, Equatable {
    /// The hex is stored durably in the peer's inbox.
    case stored
    /// The hex is stored durably at the peer, but outside its inbox until its user accepts it.
    case held
    /// The peer already had the hex. `of` states whether it is in the inbox (`.stored`) or outside it (`.held`).
    case duplicate(of: ReceiptStatus)
    /// The peer did not store the hex. If the code is temporary, the sender may try again after `retryAfter` seconds.
    case refused(RefusalCode, message: String = "", retryAfter: Int? = nil)
    /// The app of a LocalSend device confirmed the hex. It is unknown whether the device stored it durably. Only for sent hexes.
    case delivered(note: String?)
    /// A LocalSend device did not get the hex, which is not sent again unless the user asks for it. The new state of the row is `.rejected`
    /// or `.failed`. Only for sent hexes.
    case undelivered(OutboxState, code: String, message: String)

    /// Creates the result from the status in a receipt.
    /// - Parameter of: if `status` is `.duplicate`, the status with which the peer stored the hex earlier; `nil` if the peer runs an older
    ///   version.
    public init(_ status: ReceiptStatus, of: ReceiptStatus?) {
        switch status {
        case .stored: self = .stored
        case .held: self = .held
        case .duplicate: self = .duplicate(of: of ?? .stored)
        }
    }

    /// Whether the peer has the hex.
    public var isDelivered: Bool { state?.isDelivered ?? false }

    /// Whether the peer itself confirmed that it has the hex (`.stored`, `.held`, `.duplicate`), in contrast to the app of a device
    /// (`.delivered`).
    public var isReceipt: Bool { if case .delivered = self { false } else { isDelivered } }

    /// Whether the refusal is temporary, so that the sender tries again later.
    public var isTemporary: Bool { if case .refused(let code, _, _) = self { code.isTemporary } else { false } }

    /// The new delivery state of the outbox row; `nil` if the row stays queued.
    public var state: OutboxState? {
        switch self {
        case .stored: .stored
        case .held: .held
        case .duplicate(let of): of == .held ? .held : .stored
        case .refused(let code, _, _): code.isTemporary ? nil : .rejected
        case .delivered: .stored
        case .undelivered(let state, _, _): state
        }
    }
}
