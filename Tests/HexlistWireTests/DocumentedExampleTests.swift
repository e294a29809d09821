import HexlistModel
import HexlistWire
import NIOCore
import Testing

@Suite struct DocumentedExampleTests {
    @Test("the example in HexlistWire's page opens a session") func session() throws {
        let now = ContinuousClock.Instant.now
        let peer = PeerID(UUIDBytes(high: 1, low: 2).with(version: 8))
        let hello = Hello(uuid: peer, name: "peer", boot: BootNonce(7))
        var session = Session(
            Session.Configuration(
                own: PeerID(.nil), role: .acceptor, security: .plain, expected: nil, hello: Hello(uuid: nil, name: "", boot: nil),
                strangerFrameBytes: ProtocolLimits.strangerFrameBytes, isTrusted: false,
                strangerFramesPerSecond: ProtocolLimits.strangerFramesPerSecond, connectedAt: now), now: now)
        var frames = FrameDecoder(limit: ProtocolLimits.strangerFrameBytes)
        var wrappers = WrapperDecoder()
        var buffer = ByteBuffer()
        WrapperEncoder.hello(hello, into: &buffer)
        var actions: [Session.Action] = []
        while let frame = try frames.next(from: &buffer) {
            session.received(wrappers.decode(frame), bytes: frame.count, now: now, &actions)
        }
        #expect(session.isOpen)
        #expect(actions.contains { if case .opened(hello, versionID: _) = $0 { true } else { false } })
    }
}
