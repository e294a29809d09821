import HexlistModel
import NIOCore
import Testing

@testable import HexlistTransport

@Suite(.timeLimit(.minutes(5))) struct PlainTests {
    @Test("with plain TCP enabled, a connection is a session without proved key")
    func plain() async throws {
        let peer = try await Endpoint(acceptsPlain: true)
        let (raw, channel) = try await RawPeer.connect(to: peer.port, greeting: [0, 0, 0, 2, 0x7B, 0x7D, 0, 0])
        let accepted = try await peer.accepted.next()
        #expect(!accepted.isTLS)
        #expect(accepted.peerFingerprint == nil)
        #expect(accepted.frameLimit == 64 << 10)
        let recorder = try await accepted.record()
        #expect(try await recorder.frames(1) == [[0x7B, 0x7D]])
        try await channel.writeAndFlush(ByteBuffer(bytes: [0, 1, 5])).get()
        #expect(try await recorder.frames(1) == [[5]])
        try await accepted.send([[1, 2]])
        try await accepted.on { $0.close() }
        #expect(try await recorder.events.next() == .closed(nil))
        #expect(try await raw.bytes() == [0, 0, 0, 2, 1, 2])
        try await peer.reaches([0, 0])
        await peer.transport.shutdown()
    }

    @Test("TLS on the same port is TLS")
    func both() async throws {
        let peer = try await Endpoint(acceptsPlain: true)
        let other = try await Endpoint()
        let connection = try await other.dial(peer)
        #expect(connection.isTLS)
        #expect(try await peer.accepted.next().peerFingerprint == other.identity.fingerprint)
        await other.transport.shutdown()
        await peer.transport.shutdown()
    }

    @Test("the bytes of a sender that disconnects are read completely", arguments: [1, 1_000])
    func hangUp(frames: Int) async throws {
        let peer = try await Endpoint(acceptsPlain: true)
        let body = [UInt8](repeating: 7, count: 1_000)
        var stream = ByteBuffer()
        for _ in 0..<frames { stream.writeFrame(body) }
        let (_, channel) = try await RawPeer.connect(to: peer.port)
        async let sent: Void = {
            try await channel.writeAndFlush(stream).get()
            try await channel.close()
        }()
        let recorder = try await peer.accepted.next().record()
        #expect(try await recorder.frames(frames).count == frames)
        #expect(try await recorder.end() == .closed(nil))
        try await sent
        await peer.transport.shutdown()
    }

    @Test("a client that stays connected is closed after a timeout")
    func lingering() async throws {
        let peer = try await Endpoint(acceptsPlain: true)
        let (raw, channel) = try await RawPeer.connect(to: peer.port, greeting: [0, 0, 0, 1, 9])
        try await channel.setOption(.allowRemoteHalfClosure, value: true).get()
        let accepted = try await peer.accepted.next()
        let recorder = try await accepted.record()
        try await accepted.on { $0.close() }
        #expect(try await recorder.end() == .closed(nil))
        try await channel.close()
        _ = try await raw.all()
        await peer.transport.shutdown()
    }

    @Test("a connection that is neither TLS nor a frame is closed", arguments: ["{\"jmObject\":{}}", "GET /", "\u{1}"])
    func neither(greeting: String) async throws {
        let peer = try await Endpoint(acceptsPlain: true)
        let (raw, _) = try await RawPeer.connect(to: peer.port, greeting: Array(greeting.utf8))
        #expect(try await raw.bytes() == [])
        #expect(peer.accepted.now.isEmpty)
        await peer.transport.shutdown()
    }
}
