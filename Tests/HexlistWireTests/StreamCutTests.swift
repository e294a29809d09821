import HexlistModel
import HexlistWire
import NIOCore
import TestSupport
import Testing

/// The decoded wrappers do not depend on how TCP splits the stream.
@Suite("A stream in pieces")
struct StreamCutTests {
    /// Frames of each kind, valid and invalid, as one stream, with their expected results.
    private static let bodies: [[UInt8]] = VectorTests.vectors.map { Array($0.input.utf8) }.filter { (1..<600).contains($0.count) }
    private static let stream = bodies.flatMap { framed($0) }
    private static let expected = bodies.map { FrameJSON.json(decode($0)) }

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
            while let frame = try codec.next(from: &buffer) { found.append(FrameJSON.json(decoder.decode(frame))) }
        }
        #expect(buffer.readableBytes == 0)
        return found
    }

    @Test("a byte at a time, and all at once") func ends() throws {
        #expect(Self.expected.count > 50)
        #expect(try read([Self.stream[...]]) == Self.expected)
        #expect(try read(Self.stream.indices.map { Self.stream[$0...$0] }) == Self.expected)
    }

    @Test("split once, at each offset") func everyOffset() throws {
        // Splits at all offsets of a part of the stream. The frames before and after it are complete.
        let part = Self.bodies.prefix(12)
        let stream = part.flatMap { Self.framed($0) }
        for offset in 0...stream.count {
            #expect(try read([stream[..<offset], stream[offset...]]) == Array(Self.expected.prefix(part.count)), "\(offset)")
        }
    }

    @Test("split at random with a fixed seed", arguments: 1...20) func random(seed: Int) throws {
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
        #expect(try read([bodies.flatMap { Self.framed($0) }[...]]) == bodies.map { FrameJSON.json(decode($0)) })
    }
}
