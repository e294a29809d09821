/// The packets of MQTT 3.1.1 that a client for envelopes sends and receives (OASIS standard, chapter 3):
///
///     | type and flags: 1 byte | remaining length: 1…4 bytes, 7 bits each, lowest first | remaining length bytes |
package enum MQTTPacket: Equatable, Sendable {
    // Packets that the client sends.
    case connect(MQTTConnect)
    case subscribe(id: UInt16, topic: String)
    case pingRequest
    case disconnect
    // Packets that the client receives.
    case connectAcknowledgement(code: UInt8)
    case subscribeAcknowledgement(id: UInt16, codes: [UInt8])
    case pingResponse
    /// A received publish that is too long for an envelope. Its payload was discarded.
    case skippedPublish(id: UInt16?)
    // Packets that are sent in both directions.
    case publish(MQTTPublish)
    case publishAcknowledgement(id: UInt16)

    /// Maximum remaining length of a publish whose payload is read, in bytes: the longest envelope, its topic and its packet id.
    package static let maximumBytes = 984_300
    /// Maximum bytes of a topic. The topics of mailboxes have 47 bytes.
    package static let topicBytes = 256

    /// The encoded packet; `nil` for packets that only a broker sends.
    package var bytes: [UInt8]? {
        switch self {
        case .connect(let connect): Self.packet(0x10, connect.body)
        case .subscribe(let id, let topic): Self.packet(0x82, Self.number(id) + Self.text(topic) + [1])
        case .pingRequest: [0xC0, 0]
        case .disconnect: [0xE0, 0]
        case .publish(let publish): publish.head + publish.payload
        case .publishAcknowledgement(let id): [0x40, 2] + Self.number(id)
        case .connectAcknowledgement, .subscribeAcknowledgement, .pingResponse, .skippedPublish: nil
        }
    }

    static func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] { header(first, body.count) + body }

    /// The first byte and the remaining length.
    static func header(_ first: UInt8, _ length: Int) -> [UInt8] {
        var bytes = [first]
        var left = length
        repeat {
            let digit = UInt8(left & 0x7F)
            left >>= 7
            bytes.append(left > 0 ? digit | 0x80 : digit)
        } while left > 0
        return bytes
    }

    static func number(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)] }

    /// Encodes a string: its length in two bytes, then UTF-8. Strings of this client are far shorter than 64 KiB.
    static func text(_ text: String) -> [UInt8] { number(UInt16(clamping: text.utf8.count)) + text.utf8.prefix(Int(UInt16.max)) }
}

/// The login to a broker, with a persistent session, so that the broker stores envelopes while this client is away.
package struct MQTTConnect: Equatable, Sendable {
    package var clientID: String
    package var user: String?
    package var password: [UInt8]?
    /// Seconds without a packet of the client after which the broker may close the connection.
    package var keepAlive: UInt16

    package init(clientID: String, user: String? = nil, password: [UInt8]? = nil, keepAlive: UInt16 = 240) {
        self.clientID = clientID
        self.user = user
        self.password = password
        self.keepAlive = keepAlive
    }

    var body: [UInt8] {
        let flags: UInt8 = (user == nil ? 0 : 0x80) | (password == nil ? 0 : 0x40)
        var body = MQTTPacket.text("MQTT") + [4, flags] + MQTTPacket.number(keepAlive) + MQTTPacket.text(clientID)
        if let user { body += MQTTPacket.text(user) }
        if let password { body += MQTTPacket.number(UInt16(clamping: password.count)) + password.prefix(Int(UInt16.max)) }
        return body
    }
}

/// A message. Sent messages have QoS 1, received ones QoS 1 or 0.
package struct MQTTPublish: Equatable, Sendable {
    /// The packet id, 1…65535; `nil` for QoS 0.
    package var id: UInt16?
    package var topic: String
    package var payload: [UInt8]
    /// Whether the message is a retained one, which a broker stores for new subscribers.
    package var isRetained: Bool

    package init(id: UInt16?, topic: String, payload: [UInt8], isRetained: Bool = false) {
        self.id = id
        self.topic = topic
        self.payload = payload
        self.isRetained = isRetained
    }

    /// The bytes of the packet before the payload.
    var head: [UInt8] {
        let variable = MQTTPacket.text(topic) + (id.map(MQTTPacket.number) ?? [])
        let first: UInt8 = 0x30 | (id == nil ? 0 : 2) | (isRetained ? 1 : 0)
        return MQTTPacket.header(first, variable.count + payload.count) + variable
    }
}
