import HexlistEnvelope

/// The envelopes that a broker sent on the current connection and that this machine has not handled yet.
struct MQTTInbox {
    struct Message: Sendable {
        /// A name that is unique across all connections to the broker.
        var name: String
        /// The packet id; `nil` for a message with QoS 0.
        var id: UInt16?
        var bytes: [UInt8]
    }

    private let byteLimit: Int
    private let countLimit: Int
    private(set) var envelopes: [Message] = []
    private var bytes = 0
    private var added = 0
    /// Whether envelopes were discarded without an acknowledgement, because there was no room.
    private var hasDiscarded = false

    /// - Parameters:
    ///   - byteLimit: maximum bytes of the envelopes.
    ///   - countLimit: maximum number of envelopes. Brokers send far fewer without an acknowledgement.
    init(byteLimit: Int = 16 << 20, countLimit: Int = 1_024) {
        (self.byteLimit, self.countLimit) = (byteLimit, countLimit)
    }

    /// Whether the longest envelope fits. If not, the connection is read only while an answer of the broker is awaited.
    var hasRoom: Bool { bytes + Envelope.sizes.upperBound <= byteLimit && envelopes.count < countLimit }

    /// Adds a received envelope.
    /// - Returns: `false` if there is no room. The broker sends a discarded envelope with a packet id again on the next connection.
    mutating func add(_ payload: [UInt8], id: UInt16?) -> Bool {
        guard bytes + payload.count <= byteLimit, envelopes.count < countLimit else {
            if id != nil { hasDiscarded = true }
            return false
        }
        added += 1
        envelopes.append(Message(name: "\(added)", id: id, bytes: payload))
        bytes += payload.count
        return true
    }

    /// Removes an envelope that was handled.
    /// - Returns: the packet id to acknowledge; `nil` if the envelope is unknown or needs no acknowledgement.
    mutating func remove(_ name: String) -> UInt16? {
        guard let index = envelopes.firstIndex(where: { $0.name == name }) else { return nil }
        let envelope = envelopes.remove(at: index)
        bytes -= envelope.bytes.count
        return envelope.id
    }

    /// Whether this machine should reconnect: envelopes were discarded, which the broker sends again only on a new connection, and there is
    /// room for them now.
    var needsConnection: Bool { hasDiscarded && bytes < byteLimit / 2 && envelopes.count < countLimit / 2 }

    /// Handles the end of the connection.
    /// - Returns: the value of `needsConnection` at the end. If it is `true`, this machine closed the connection itself.
    mutating func clear() -> Bool {
        defer {
            envelopes = []
            bytes = 0
            hasDiscarded = false
        }
        return needsConnection
    }
}
