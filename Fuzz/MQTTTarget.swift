// libFuzzer target: bytes from an MQTT broker. Must never trap. How the bytes are divided into pieces changes nothing, no more than one packet
// is buffered, and decoded publishes are unchanged by writing and reading.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMQTT(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(data, count)
    let step = Int(input.byte() % 32) + 1
    let bytes = input.all()
    let whole = packets(of: bytes, in: [bytes[...]])
    let pieces = stride(from: 0, to: bytes.count, by: step).map { bytes[$0..<min($0 + step, bytes.count)] }
    let divided = packets(of: bytes, in: pieces)
    // A fault may be seen earlier in the pieces, but not other packets.
    guard whole == divided else { fatalError("the pieces change the packets") }
    for case .publish(let publish) in whole {
        guard let written = MQTTPacket.publish(publish).bytes, packets(of: written, in: [written[...]]) == [.publish(publish)] else {
            fatalError("a publish is not read as it was written")
        }
    }
    return 0
}

private func packets(of bytes: [UInt8], in pieces: [ArraySlice<UInt8>]) -> [MQTTPacket] {
    var decoder = MQTTPacketDecoder()
    var packets: [MQTTPacket] = []
    for piece in pieces {
        decoder.feed(piece)
        do throws(MQTTFault) {
            while let packet = try decoder.next() { packets.append(packet) }
        } catch {
            return packets
        }
        guard decoder.count <= MQTTPacket.maximumBytes + 5 else { fatalError("\(decoder.count) bytes are buffered") }
    }
    return packets
}
