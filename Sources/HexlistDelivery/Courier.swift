public import HexlistModel

/// A transport for hexes to one peer, such as a live session.
///
/// A courier is confined to the event loop of its `DeliveryScheduler`. The scheduler is notified with `connected` once the courier can send
/// hexes, with `settled` for the result of each hex, and with `ended` at its end. A hex that has no result when its courier ends stays in
/// the outbox and is sent again, so the peer has to recognise duplicates.
public protocol Courier: AnyObject {
    /// The guarantee that the result `.stored` of this courier gives.
    var guarantee: DeliveryGuarantee { get }
    /// Whether the courier accepts hexes; `false` once it is closing.
    var isOpen: Bool { get }
    /// Maximum bytes of a hex that the peer accepts, including `ProtocolLimits.wrapperBytes`.
    var frameLimit: Int { get }
    /// The rows that were sent and have no result yet.
    var inFlight: Set<Int64> { get }
    /// Whether sending requires a slot (`SendSlots`).
    var takesSlot: Bool { get }
    /// The reason why the rows in flight wait; `nil` if they are being sent.
    var wait: CourierWait? { get }
    /// The number and bytes of hexes that the courier accepts now.
    /// - Parameter window: this machine's limit on hexes in flight.
    func capacity(of window: CourierWindow) -> CourierCapacity
    /// Sends hexes within the capacity. The results may come days later.
    func send(_ batch: [OutgoingHex])
    /// Flushes buffered writes immediately instead of at the end of the event loop's tick.
    func flush()
    /// Closes the courier. Called when the peer waits for a hex that it refused temporarily, but that hex is no longer queued.
    func close()
    /// Stops sending rows that the user cancelled, if that is still possible. Reports a result for each stopped row.
    func withdraw(_ rows: Set<Int64>)
    /// Ends the pause in which the courier waits, because the user wants the rows sent now.
    func retryNow()
}

extension Courier {
    public var takesSlot: Bool { true }
    public var wait: CourierWait? { nil }
    public func withdraw(_ rows: Set<Int64>) {}
    public func retryNow() {}
}

/// The reason why a courier has rows in flight but sends nothing.
public struct CourierWait: Sendable, Equatable {
    public var reason: OutboxWait
    /// The instant of the next attempt, if it is known.
    public var until: ContinuousClock.Instant?

    public init(_ reason: OutboxWait, until: ContinuousClock.Instant? = nil) {
        self.reason = reason
        self.until = until
    }
}

/// The guarantee that a courier's result `.stored` gives.
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
    /// Whether no hex is in flight, so that one hex of any size is accepted.
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
        /// The courier ended, but not because of a hex.
        case lost
        /// The peer closed the courier. If hexes were in flight, the end counts as a failed attempt of the first one.
        case failedOnHex
        /// The peer has blocked this machine.
        case blocked
        /// The peer reports that another machine has this machine's identity.
        case conflict
    }

    public var cause: Cause
    /// A sentence for users. May contain text of the peer.
    public var text: String

    public init(_ cause: Cause, _ text: String) {
        self.cause = cause
        self.text = text
    }
}
