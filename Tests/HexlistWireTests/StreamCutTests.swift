import HexlistModel
import HexlistWire
import NIOCore
import TestSupport
import Testing

/// However TCP cuts a stream of frames, the same wrappers come out.
@Suite("A stream in pieces")
struct StreamCutTests {
    /// Frames of every kind, good and bad, as one stream and as what each says.
    private static let bodies: [[UInt8]] = VectorTests.vectors.map { Array($0.input.utf8) }.filter { (1..<600).contains($0.count) }
    private static let stream = bodies.flatMap { framed($0) }
    private static let expected = bodies.map { FrameDescription.json(decode($0)) }

    private static func framed(_ body: [UInt8]) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: body.count >> (24 - 8 * $0)) } + body
    }

    /// The frames decoded from the pieces, each passed in as it arrives.
    private func read(_ pieces: [ArraySlice<UInt8>]) throws -> [[UInt8]] {
        var codec = FrameDecoder(limit: 600)
        var decoder = WrapperDecoder()
        var buffer = ByteBuffer()
        var found: [[UInt8]] = []
        for piece in pieces {
            buffer.writeBytes(piece)
            while let frame = try codec.next(from: &buffer) { found.append(FrameDescription.json(decoder.decode(frame))) }
        }
        #expect(buffer.readableBytes == 0)
        return found
    }

    @Test("a byte at a time, and all at once") func ends() throws {
        #expect(Self.expected.count > 50)
        #expect(try read([Self.stream[...]]) == Self.expected)
        #expect(try read(Self.stream.indices.map { Self.stream[$0...$0] }) == Self.expected)
    }

    @Test("cut once, at every offset") func everyOffset() throws {
        // All offsets of a part of the stream; the frames before and behind stand whole.
        let part = Self.bodies.prefix(12)
        let stream = part.flatMap { Self.framed($0) }
        for offset in 0...stream.count {
            #expect(try read([stream[..<offset], stream[offset...]]) == Array(Self.expected.prefix(part.count)), "\(offset)")
        }
    }

    @Test("cut at random, the same at every run", arguments: 1...20) func random(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        var pieces: [ArraySlice<UInt8>] = []
        var position = 0
        while position < Self.stream.count {
            let end = min(Self.stream.count, position + Int.random(in: 1...(seed * 40), using: &generator))
            pieces.append(Self.stream[position..<end])
            position = end
        }
        #expect(try read(pieces) == Self.expected)
    }

    @Test("a hundred frames in one write") func hundred() throws {
        let bodies = (0..<100).map { Self.bodies[$0 % Self.bodies.count] }
        #expect(try read([bodies.flatMap { Self.framed($0) }[...]]) == bodies.map { FrameDescription.json(decode($0)) })
    }
}
