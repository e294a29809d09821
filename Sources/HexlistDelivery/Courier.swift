public import HexlistModel

/// One way to hand hexes to one peer, such as a live session. The delivery knows couriers only.
///
/// A courier belongs to the event loop of its `DeliveryScheduler`, which it reports to: `connected` once it can carry hexes, `settled` with
/// the result of each hex, `ended` when it is gone. A hex without a result at that time stays in the outbox and goes out again, so its peer
/// has to recognise it.
public protocol Courier: AnyObject {
    /// The meaning of `.stored` as a result of this courier.
    var promise: DeliveryGuarantee { get }
    /// Whether the courier carries hexes; `false` from the moment at which it is ending.
    var isOpen: Bool { get }
    /// Bytes of the longest hex, with `ProtocolLimits.wrapperBytes`, that the peer takes.
    var frameLimit: Int { get }
    /// Rows that were handed over and have no result yet.
    var inFlight: Set<Int64> { get }
    /// The hexes that the courier takes now.
    /// - Parameter window: the bound on hexes in flight that this machine sets.
    func capacity(of window: CourierWindow) -> CourierCapacity
    /// Takes hexes, within the capacity. The results may come days later.
    func send(_ batch: [OutgoingHex])
    /// Sends what `send` has buffered, without waiting for the end of this tick of the event loop.
    func flush()
    /// Closes the courier, because a hex that the peer refused for now can no longer be the next one to be sent.
    func close()
}

/// The meaning of the result `.stored`.
public enum DeliveryGuarantee: Sendable {
    /// The peer itself confirmed that the hex is durable.
    case stored
    /// A carrier has the hex; whether it reaches the peer is not known.
    case delivered
}

/// The bound on the hexes in flight to one peer.
public struct CourierWindow: Sendable, Equatable {
    public var hexes: Int
    public var bytes: Int

    public init(hexes: Int, bytes: Int) {
        self.hexes = hexes
        self.bytes = bytes
    }
}

/// The hexes that a courier takes before it is asked again.
public struct CourierCapacity: Sendable, Equatable {
    public private(set) var hexes: Int
    /// Bytes of hexes, with `ProtocolLimits.wrapperBytes` for each.
    public private(set) var bytes: Int
    /// Whether nothing is in flight, so that one hex of more than `bytes` is taken.
    private var isIdle: Bool

    public init(hexes: Int, bytes: Int, isIdle: Bool) {
        self.hexes = hexes
        self.bytes = bytes
        self.isIdle = isIdle
    }

    public static let none = CourierCapacity(hexes: 0, bytes: 0, isIdle: false)

    /// Whether a hex of so many bytes is taken.
    public func takes(bytes: Int) -> Bool { hexes > 0 && (isIdle || bytes <= self.bytes) }

    mutating func use(bytes: Int) {
        hexes -= 1
        self.bytes -= bytes
        isIdle = false
    }
}

/// The reason why a courier ended, or why none came to be.
public struct CourierEnd: Sendable, Equatable {
    public enum Cause: Sendable, Equatable {
        /// No hex is to blame.
        case lost
        /// The peer ended it while the first hex without a result was in flight, which counts against that hex.
        case failedOnHex
        /// The peer has blocked this machine.
        case blocked
        /// The peer says that another machine has this one's identity.
        case conflict
    }

    public var cause: Cause
    /// One sentence for people. May contain peer text.
    public var text: String

    public init(_ cause: Cause, _ text: String) {
        self.cause = cause
        self.text = text
    }
}
