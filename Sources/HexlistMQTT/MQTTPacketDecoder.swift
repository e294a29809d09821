/// Divides the bytes from a broker into packets. The bytes are untrusted: the length of each packet is checked before the packet is
/// buffered. Any violation ends the connection.
package struct MQTTPacketDecoder: Sendable {
    /// Maximum remaining length of a packet other than a publish.
    private static let controlBytes = 64

    private var buffer: [UInt8] = []
    /// The position of the first byte that is not consumed.
    private var start = 0
    /// Bytes of a skipped publish that have not arrived yet.
    private var skipped = 0

    package init() {}

    /// The number of buffered bytes.
    package var count: Int { buffer.count - start }

    package mutating func feed(_ bytes: some Collection<UInt8>) {
        let ignored = min(skipped, bytes.count)
        skipped -= ignored
        guard ignored < bytes.count else { return }
        if start > 0, start >= buffer.count / 2 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer += bytes.dropFirst(ignored)
    }

    /// Removes the next packet from the buffer.
    /// - Returns: the packet; `nil` if more bytes are needed.
    /// - Throws: `MQTTFault.malformed`. The stream cannot be resynchronised.
    package mutating func next() throws(MQTTFault) -> MQTTPacket? {
        guard let header = try header() else { return nil }
        if header.kind == 3, header.length > MQTTPacket.maximumBytes { return try skippedPublish(header) }
        guard header.kind == 3 || header.length <= Self.controlBytes else { throw .malformed }
        guard count >= header.bytes + header.length else { return nil }
        let body = buffer[(start + header.bytes)..<(start + header.bytes + header.length)]
        start += header.bytes + header.length
        return try packet(header, body)
    }

    private struct Header {
        var first: UInt8
        /// The remaining length.
        var length: Int
        /// Bytes of the header itself.
        var bytes: Int
        var kind: UInt8 { first >> 4 }
    }

    private func header() throws(MQTTFault) -> Header? {
        guard count >= 2 else { return nil }
        var length = 0
        for digit in 0..<4 {
            guard count > 1 + digit else { return nil }
            let byte = buffer[start + 1 + digit]
            length |= Int(byte & 0x7F) << (7 * digit)
            if byte & 0x80 == 0 { return Header(first: buffer[start], length: length, bytes: 2 + digit) }
        }
        throw .malformed
    }

    private func packet(_ header: Header, _ body: ArraySlice<UInt8>) throws(MQTTFault) -> MQTTPacket {
        if header.kind == 3 {
            guard let (topic, id, rest) = try Self.head(of: body, header.first) else { throw .malformed }
            return .publish(MQTTPublish(id: id, topic: topic, payload: Array(rest), isRetained: header.first & 1 != 0))
        }
        let bytes = Array(body)
        switch (header.first, bytes.count) {
        case (0x20, 2) where bytes[0] <= 1: return .connectAcknowledgement(code: bytes[1])
        case (0x40, 2): return .publishAcknowledgement(id: try Self.id(bytes[...]))
        case (0x90, 3...): return .subscribeAcknowledgement(id: try Self.id(bytes[...]), codes: Array(bytes[2...]))
        case (0xD0, 0): return .pingResponse
        default: throw .malformed
        }
    }

    /// Discards the payload of a publish that is too long: the bytes that have arrived, and later the rest.
    /// - Returns: `skippedPublish`; `nil` if the topic and the id have not arrived completely.
    private mutating func skippedPublish(_ header: Header) throws(MQTTFault) -> MQTTPacket? {
        let available = min(count - header.bytes, MQTTPacket.topicBytes + 4)
        guard let (_, id, _) = try Self.head(of: buffer[(start + header.bytes)...].prefix(available), header.first) else { return nil }
        let total = header.bytes + header.length
        skipped = max(0, total - count)
        start += min(count, total)
        return .skippedPublish(id: id)
    }

    /// Parses the topic and the id of a publish.
    /// - Returns: `nil` if bytes are missing.
    private static func head(of body: ArraySlice<UInt8>, _ first: UInt8) throws(MQTTFault) -> (
        topic: String, id: UInt16?, rest: ArraySlice<UInt8>
    )? {
        let hasID: Bool
        switch first & 0x06 {
        case 0: hasID = false
        case 2: hasID = true
        default: throw .malformed  // the subscription excludes QoS 2, and QoS 3 does not exist
        }
        guard body.count >= 2 else { return nil }
        let length = Int(body[body.startIndex]) << 8 | Int(body[body.startIndex + 1])
        guard length <= MQTTPacket.topicBytes else { throw .malformed }
        let rest = body.dropFirst(2)
        guard rest.count >= length + (hasID ? 2 : 0) else { return nil }
        guard let topic = String(validating: rest.prefix(length), as: UTF8.self) else { throw .malformed }
        return (topic, hasID ? try id(rest.dropFirst(length)) : nil, rest.dropFirst(length + (hasID ? 2 : 0)))
    }

    /// Parses a packet id.
    /// - Throws: `MQTTFault.malformed` for 0, which is not a valid id.
    private static func id(_ bytes: ArraySlice<UInt8>) throws(MQTTFault) -> UInt16 {
        let id = UInt16(bytes[bytes.startIndex]) << 8 | UInt16(bytes[bytes.startIndex + 1])
        guard id != 0 else { throw .malformed }
        return id
    }
}
