import HexlistMQTT
import Testing

@Suite("MQTT packets") struct MQTTPacketTests {
    @Test(
        "packets for a broker, byte by byte",
        arguments: [
            (
                MQTTPacket.connect(MQTTConnect(clientID: "AB")), [0x10, 14, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 0, 0, 240, 0, 2, 0x41, 0x42]
            ),
            (
                .connect(MQTTConnect(clientID: "A", user: "u", password: [1, 2], keepAlive: 258)),
                [0x10, 20, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 0xC0, 1, 2, 0, 1, 0x41, 0, 1, 0x75, 0, 2, 1, 2]
            ),
            (.subscribe(id: 0x0102, topic: "t"), [0x82, 6, 1, 2, 0, 1, 0x74, 1]), (.pingRequest, [0xC0, 0]), (.disconnect, [0xE0, 0]),
            (.publish(MQTTPublish(id: 7, topic: "t", payload: [9, 8])), [0x32, 7, 0, 1, 0x74, 0, 7, 9, 8]),
            (.publishAcknowledgement(id: 0xFFFE), [0x40, 2, 0xFF, 0xFE]),
        ] as [(MQTTPacket, [UInt8])])
    func encoding(_ packet: MQTTPacket, _ bytes: [UInt8]) {
        #expect(packet.bytes == bytes)
    }

    @Test(
        "packets of a broker, whole and byte by byte",
        arguments: [
            ([0x20, 2, 0, 0], .connectAcknowledgement(code: 0)), ([0x20, 2, 1, 5], .connectAcknowledgement(code: 5)),
            ([0x40, 2, 0, 7], .publishAcknowledgement(id: 7)), ([0x90, 3, 0, 7, 1], .subscribeAcknowledgement(id: 7, codes: [1])),
            ([0xD0, 0], .pingResponse), ([0x32, 7, 0, 1, 0x74, 0, 7, 9, 8], .publish(MQTTPublish(id: 7, topic: "t", payload: [9, 8]))),
            ([0x3A, 5, 0, 1, 0x74, 0, 7], .publish(MQTTPublish(id: 7, topic: "t", payload: []))),
            ([0x30, 4, 0, 1, 0x74, 9], .publish(MQTTPublish(id: nil, topic: "t", payload: [9]))),
            ([0x31, 0x83, 0, 0, 1, 0x74], .publish(MQTTPublish(id: nil, topic: "t", payload: [], isRetained: true))),
        ] as [([UInt8], MQTTPacket)])
    func decoding(_ bytes: [UInt8], _ packet: MQTTPacket) throws {
        var decoder = MQTTPacketDecoder()
        decoder.feed(bytes + bytes)
        #expect(try decoder.next() == packet)
        #expect(try decoder.next() == packet)
        #expect(try decoder.next() == nil && decoder.count == 0)
        for byte in bytes.dropLast() {
            decoder.feed([byte])
            #expect(try decoder.next() == nil)
        }
        decoder.feed([try #require(bytes.last)])
        #expect(try decoder.next() == packet)
    }

    @Test(
        "bytes that are no packets end the connection",
        arguments: [
            [0x20, 3, 0, 0, 0], [0x20, 2, 2, 0], [0x40, 2, 0, 0], [0x40, 1, 0], [0x40, 3, 0, 1, 0], [0x41, 2, 0, 1], [0x90, 2, 0, 1],
            [0x90, 3, 0, 0, 1], [0xD0, 1, 0], [0x34, 7, 0, 1, 0x74, 0, 7, 9, 8], [0x36, 7, 0, 1, 0x74, 0, 7, 9, 8],
            [0x32, 4, 0, 9, 0x74, 0], [0x32, 5, 0, 1, 0x74, 0, 0], [0x32, 5, 0, 1, 0xFF, 0, 7], [0x32, 1, 0], [0x10, 0], [0x00, 0],
            [0xF0, 0], [0x82, 3, 0, 1, 0], [0x40, 0x80, 0x80, 0x80, 0x80], [0x20, 0xFF, 0x7F], [0x40, 65],
            [0x32, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF],
        ] as [[UInt8]])
    func malformed(_ bytes: [UInt8]) {
        var decoder = MQTTPacketDecoder()
        decoder.feed(bytes)
        #expect(throws: MQTTFault.malformed) { try decoder.next() }
    }

    private static func publish(payload count: Int, id: UInt16) -> [UInt8] {
        MQTTPacket.publish(MQTTPublish(id: id, topic: "t", payload: [UInt8](repeating: 5, count: count))).bytes ?? []
    }

    @Test("the longest envelope is kept; a longer publish is skipped without being buffered", arguments: [1, 1_000, 1 << 20])
    func lengths(_ step: Int) throws {
        let longest = MQTTPacket.maximumBytes - 5
        let long = Self.publish(payload: longest + 1, id: 300)
        var decoder = MQTTPacketDecoder()
        var packets: [MQTTPacket] = []
        var most = 0
        for start in stride(from: 0, to: long.count, by: step) {
            decoder.feed(long[start..<min(start + step, long.count)])
            while let packet = try decoder.next() { packets.append(packet) }
            most = max(most, decoder.count)
        }
        #expect(packets == [.skippedPublish(id: 300)] && most <= 16)
        decoder.feed(Self.publish(payload: longest, id: 301))
        guard case .publish(let publish)? = try decoder.next() else { return #expect(Bool(false)) }
        #expect(publish.id == 301 && publish.payload.count == longest && decoder.count == 0)
    }

    @Test("a skipped publish of the greatest length leaves the next packet whole") func skipping() throws {
        var decoder = MQTTPacketDecoder()
        let length = 0x0FFF_FFFF
        decoder.feed([0x32, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 0x74, 0, 9])
        #expect(try decoder.next() == .skippedPublish(id: 9))
        var left = length - 5
        let piece = [UInt8](repeating: 0xFF, count: 1 << 20)
        while left > 0 {
            decoder.feed(piece.prefix(left))
            left -= piece.count
            #expect(try decoder.next() == nil && decoder.count == 0)
        }
        decoder.feed([0xD0, 0])
        #expect(try decoder.next() == .pingResponse)
    }
}
