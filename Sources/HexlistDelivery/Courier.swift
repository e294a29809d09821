public import HexlistModel

/// A transport of hexes to one peer, such as a live session.
///
/// A courier is used on the event loop of its `DeliveryScheduler` only. It calls the scheduler's methods: `connected` once it can send
/// hexes, `settled` with the results of hexes, and `ended` at its end. A hex without a result at the end of its courier stays in the outbox
/// and is sent again, so the peer has to recognise duplicates.
public protocol Courier: AnyObject {
    /// The meaning of the result `.stored` of this courier.
    var guarantee: DeliveryGuarantee { get }
    /// Whether the courier accepts hexes. `false` once it is being closed.
    var isOpen: Bool { get }
    /// Maximum bytes of a hex that the peer accepts, including `ProtocolLimits.wrapperBytes`.
    var frameLimit: Int { get }
    /// The ids of the rows that were sent and have no result yet.
    var inFlight: Set<Int64> { get }
    /// Whether a peer needs a slot (`SendSlots`) while this courier sends to it. `true` by default.
    var takesSlot: Bool { get }
    /// The reason why the courier does not send its rows in flight now; `nil` if it sends them, as it does by default.
    var wait: CourierWait? { get }
    /// The number and bytes of hexes that the courier accepts now.
    /// - Parameter window: this machine's limit on hexes in flight.
    func capacity(of window: CourierWindow) -> CourierCapacity
    /// Sends hexes. The caller keeps to `capacity`. The results may follow days later.
    func send(_ batch: [OutgoingHex])
    /// Flushes buffered writes immediately, instead of at the end of the event loop's tick.
    func flush()
    /// Closes the courier. Called if the peer waits for the repetition of a hex that it refused temporarily, but that hex is no longer
    /// queued.
    func close()
    /// Stops sending rows that the user cancelled, if that is still possible. Reports a result for each row that was stopped. Does nothing
    /// by default.
    func withdraw(_ rows: Set<Int64>)
    /// Ends the courier's own pause, because the user wants the rows to be sent now. Does nothing by default.
    func retryNow()
}

extension Courier {
    public var takesSlot: Bool { true }
    public var wait: CourierWait? { nil }
    public func withdraw(_ rows: Set<Int64>) {}
    public func retryNow() {}
}

/// The reason why a courier with rows in flight sends nothing.
public struct CourierWait: Sendable, Equatable {
    public var reason: OutboxWaitReason
    /// The instant of the next attempt, if it is known.
    public var until: ContinuousClock.Instant?

    public init(_ reason: OutboxWaitReason, until: ContinuousClock.Instant? = nil) {
        self.reason = reason
        self.until = until
    }
}

/// The meaning of a courier's result `.stored`.
public enum DeliveryGuarantee: Sendable {
    /// The peer itself confirmed that the hex is durable.
    case stored
    /// An intermediary, such as a broker, has the hex. Whether the hex reaches the peer is unknown.
    case delivered
}

/// Maximum number and bytes of hexes in flight to one peer.
public struct CourierWindow: Sendable, Equatable {
    public var hexes: Int
    public var bytes: Int

    public init(hexes: Int, bytes: Int) {
        self.hexes = hexes
        self.bytes = bytes
    }
}

/// The number and bytes of hexes that a courier accepts now. Decreases with each hex that is chosen for sending.
public struct CourierCapacity: Sendable, Equatable {
    public private(set) var hexes: Int
    /// Sum of the bodies' bytes, with `ProtocolLimits.wrapperBytes` for each body.
    public private(set) var bytes: Int
    /// Whether no hex is in flight. If so, one hex of any size is accepted.
    private var isIdle: Bool

    public init(hexes: Int, bytes: Int, isIdle: Bool) {
        self.hexes = hexes
        self.bytes = bytes
        self.isIdle = isIdle
    }

    public static let none = CourierCapacity(hexes: 0, bytes: 0, isIdle: false)

    /// Whether a hex of this size is accepted.
    /// - Parameter bytes: the body's bytes and `ProtocolLimits.wrapperBytes`.
    public func takes(bytes: Int) -> Bool { hexes > 0 && (isIdle || bytes <= self.bytes) }

    /// Subtracts a hex of this size.
    mutating func use(bytes: Int) {
        hexes -= 1
        self.bytes -= bytes
        isIdle = false
    }
}

/// The reason why a courier ended or could not be created.
public struct CourierEnd: Sendable, Equatable {
    public enum Cause: Sendable, Equatable {
        /// The courier ended for a reason that concerns no particular hex.
        case lost
        /// The peer closed the courier, perhaps because of a hex. If hexes were in flight, this counts as a failed attempt of the first
        /// one.
        case failedOnHex
        /// The peer has blocked this machine.
        case blocked
        /// The peer reports that another machine has this machine's identity.
        case conflict
    }

    /// The cause, on which the scheduler's reaction depends.
    public var cause: Cause
    /// The reason as a sentence for users. May contain untrusted text of the peer.
    public var text: String

    public init(_ cause: Cause, _ text: String) {
        self.cause = cause
        self.text = text
    }
}
