import HexlistModel
import HexlistWire
import NIOCore
import Testing

struct FrameDecoderTests {
    private static func frame(_ body: [UInt8]) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: body.count >> (24 - 8 * $0)) } + body
    }

    private static func drain(_ decoder: inout FrameDecoder, _ buffer: inout ByteBuffer) throws -> [[UInt8]] {
        var frames: [[UInt8]] = []
        while let frame = try decoder.next(from: &buffer) { frames.append(frame) }
        return frames
    }

    @Test("a stream split at any offset gives the same frames") func cutAnywhere() throws {
        let bodies: [[UInt8]] = [[1], Array(repeating: 2, count: 300), [0, 0, 0, 1], Array(repeating: 3, count: 65)]
        let stream = bodies.flatMap { Self.frame($0) }
        for cut in 0...stream.count {
            var decoder = FrameDecoder(limit: 300)
            var buffer = ByteBuffer(bytes: stream[..<cut])
            var frames = try Self.drain(&decoder, &buffer)
            buffer.writeBytes(stream[cut...])
            frames += try Self.drain(&decoder, &buffer)
            #expect(frames == bodies && buffer.readableBytes == 0)
        }
    }

    @Test("a stream byte by byte, and all at once") func byteByByte() throws {
        let bodies = (1...100).map { Array(repeating: UInt8($0), count: $0) }
        let stream = bodies.flatMap { Self.frame($0) }
        var decoder = FrameDecoder(limit: 100)
        var buffer = ByteBuffer()
        var frames: [[UInt8]] = []
        for byte in stream {
            buffer.writeInteger(byte)
            frames += try Self.drain(&decoder, &buffer)
        }
        #expect(frames == bodies)
        var whole = ByteBuffer(bytes: stream)
        #expect(try Self.drain(&decoder, &whole) == bodies)
    }

    @Test(
        "a bad length is refused from the header alone",
        arguments: [
            (0, false), (1, true), (8_192, true), (8_193, false), (1 << 24, false), (0x7FFF_FFFF, false), (0x8000_0000, false),
            (0xFFFF_FFFF, false), (0x1603_0100, false),
        ] as [(UInt32, Bool)]) func header(_ length: UInt32, _ isAccepted: Bool) throws
    {
        var decoder = FrameDecoder(limit: 8_192)
        var buffer = ByteBuffer()
        for shift in [24, 16, 8] as [UInt32] {
            buffer.writeInteger(UInt8(truncatingIfNeeded: length >> shift))
            #expect(try decoder.next(from: &buffer) == nil)
        }
        buffer.writeInteger(UInt8(truncatingIfNeeded: length))
        let before = buffer.storageCapacity
        if isAccepted {
            #expect(try decoder.next(from: &buffer) == nil)
        } else {
            #expect(throws: FrameFault.length(length)) { try decoder.next(from: &buffer) }
            // A stream cannot be resynchronised.
            decoder.limit = .max
            #expect(throws: FrameFault.length(length)) { try decoder.next(from: &buffer) }
        }
        #expect(buffer.storageCapacity == before)
    }

    @Test("a new limit applies from the next frame, and never exceeds 16 MiB - 1") func limits() throws {
        var decoder = FrameDecoder(limit: 2)
        var buffer = ByteBuffer(bytes: Self.frame([1, 2]) + Self.frame([1, 2, 3]))
        #expect(try decoder.next(from: &buffer) == [1, 2])
        decoder.limit = 3
        #expect(try decoder.next(from: &buffer) == [1, 2, 3])
        for (length, isAccepted) in [((1 << 24) - 1, true), (1 << 24, false)] as [(UInt32, Bool)] {
            var unlimited = FrameDecoder(limit: .max)
            var header = ByteBuffer(integer: length)
            if isAccepted {
                #expect(try unlimited.next(from: &header) == nil)
            } else {
                #expect(throws: FrameFault.length(length)) { try unlimited.next(from: &header) }
            }
        }
        var nothing = FrameDecoder(limit: 0)
        var one = ByteBuffer(bytes: Self.frame([1]))
        #expect(throws: FrameFault.length(1)) { try nothing.next(from: &one) }
        var negative = FrameDecoder(limit: -1)
        #expect(throws: FrameFault.length(1)) { try negative.next(from: &one) }
    }
}
