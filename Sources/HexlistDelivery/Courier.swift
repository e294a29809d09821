public import HexlistModel

/// A transport for hexes to one peer, such as a live session.
///
/// A courier is confined to the event loop of its `DeliveryScheduler`. It reports `connected` once it can send hexes, `settled` with the
/// result of each hex, and `ended`. A hex without a result at that time stays in the outbox and is sent again, so the peer has to recognise
/// duplicates.
public protocol Courier: AnyObject {
    /// The meaning of `.stored` as a result of this courier.
    var promise: DeliveryGuarantee { get }
    /// Whether the courier accepts hexes; `false` once it is closing.
    var isOpen: Bool { get }
    /// Maximum bytes of a hex that the peer accepts, including `ProtocolLimits.wrapperBytes`.
    var frameLimit: Int { get }
    /// The rows that were sent and have no result yet.
    var inFlight: Set<Int64> { get }
    /// The number and bytes of hexes that the courier accepts now.
    /// - Parameter window: this machine's limit on hexes in flight.
    func capacity(of window: CourierWindow) -> CourierCapacity
    /// Sends hexes within the capacity. The results may come days later.
    func send(_ batch: [OutgoingHex])
    /// Flushes buffered writes immediately instead of at the end of the event loop's tick.
    func flush()
    /// Closes the courier, because the hex that the peer refused temporarily can no longer be sent next.
    func close()
}

/// The meaning of the result `.stored`.
public enum DeliveryGuarantee: Sendable {
    /// The peer itself confirmed that the hex is durable.
    case stored
    /// An intermediary has the hex; it is unknown whether the hex reaches the peer.
    case delivered
}

/// The limit on hexes in flight to one peer.
public struct CourierWindow: Sendable, Equatable {
    public var hexes: Int
    public var bytes: Int

    public init(hexes: Int, bytes: Int) {
        self.hexes = hexes
        self.bytes = bytes
    }
}

/// The number and bytes of hexes that a courier accepts before `capacity` is read again.
public struct CourierCapacity: Sendable, Equatable {
    public private(set) var hexes: Int
    /// Bytes of hexes, with `ProtocolLimits.wrapperBytes` for each.
    public private(set) var bytes: Int
    /// Whether nothing is in flight, so that one hex of any size is accepted.
    private var isIdle: Bool

    public init(hexes: Int, bytes: Int, isIdle: Bool) {
        self.hexes = hexes
        self.bytes = bytes
        self.isIdle = isIdle
    }

    public static let none = CourierCapacity(hexes: 0, bytes: 0, isIdle: false)

    /// Whether a hex of that size is accepted.
    public func takes(bytes: Int) -> Bool { hexes > 0 && (isIdle || bytes <= self.bytes) }

    mutating func use(bytes: Int) {
        hexes -= 1
        self.bytes -= bytes
        isIdle = false
    }
}

/// The reason why a courier ended or could not be created.
public struct CourierEnd: Sendable, Equatable {
    public enum Cause: Sendable, Equatable {
        /// No hex is to blame.
        case lost
        /// The peer closed it while hexes were in flight, which counts as a failure of the first one.
        case failedOnHex
        /// The peer has blocked this machine.
        case blocked
        /// The peer reports that another machine has this one's identity.
        case conflict
    }

    public var cause: Cause
    /// A sentence for users. May contain peer text.
    public var text: String

    public init(_ cause: Cause, _ text: String) {
        self.cause = cause
        self.text = text
    }
}
