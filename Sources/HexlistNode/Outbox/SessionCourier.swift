public import HexlistDelivery
public import HexlistModel
public import HexlistSession
import HexlistTransport
import HexlistWire

// A live session as a courier: the peer itself confirms each hex once it is durable.
extension PeerSession: Courier {
    public var guarantee: DeliveryGuarantee { .stored }

    public var isOpen: Bool { connection.isOpen && !machine.isClosed }

    public var frameLimit: Int { machine.peerHello?.maxFrameBytes ?? 0 }

    public var inFlight: Set<Int64> { machine.unacknowledgedTags }

    /// Maximum bytes of a batch, after which the writability of the connection is checked again.
    private static let batchBytes = 64 << 10

    public func capacity(of window: CourierWindow) -> CourierCapacity {
        guard connection.isWritable, let room = machine.room(windowFrames: window.hexes, windowBytes: window.bytes) else { return .none }
        return CourierCapacity(hexes: room.frames, bytes: min(room.bytes, Self.batchBytes), isIdle: room.isIdle)
    }

    public func send(_ batch: [OutgoingHex]) {
        for hex in batch { send(id: hex.id, messageID: hex.messageID, body: hex.body) }
        updateState()
    }

    public func flush() { connection.flush() }

    public func close() { act { $0.end(.idle, &$1) } }
}

extension CourierEnd {
    /// - Parameter closedByPeer: whether the other side closed the connection without a Bye.
    init(_ end: Session.EndReason, closedByPeer: Bool) {
        let cause: Cause =
            switch end {
            case .lost: closedByPeer ? .failedOnHex : .lost
            case .own: .lost
            case .peer(let code, _):
                switch code {
                case .blocked: .blocked
                case .conflict: .conflict
                case .shutdown, .idle, .duplicateSession, .limit: .lost
                default: .failedOnHex
                }
            }
        self.init(cause, end.text)
    }
}
