import HexlistModel
import HexlistWire
import NIOCore
import Testing

@Suite("Dialling back")
struct DialBackTests {
    @Test("a request and its reply are unchanged by encoding and decoding")
    func frames() throws {
        let request = DialBack(token: BootNonce(0xAB), port: 24_391)
        var buffer = ByteBuffer()
        WrapperEncoder.dialBack(request, into: &buffer)
        let frame = Array(buffer.readableBytesView.dropFirst(4))
        let decoded = try wrapper(decode(frame))
        #expect(decoded.operation == .dialBack && decoded.sequence == nil)
        #expect(decoded.message.flatMap(DialBack.init(message:)) == request)
        var files = ByteBuffer()
        WrapperEncoder.fileDial(request, into: &files)
        let asked = try wrapper(decode(Array(files.readableBytesView.dropFirst(4))))
        #expect(asked.operation == .fileDial && asked.message.flatMap(DialBack.init(message:)) == request)
        for result in DialBack.Result.allCases {
            let answer = DialBack.Response(token: request.token, result: result)
            var buffer = ByteBuffer()
            WrapperEncoder.dialedBack(answer, into: &buffer)
            let decoded = try wrapper(decode(Array(buffer.readableBytesView.dropFirst(4))))
            #expect(decoded.operation == .dialedBack && decoded.message.flatMap(DialBack.Response.init(message:)) == answer)
        }
    }

    @Test(
        "invalid requests",
        arguments: [
            "", " ", "00000000000000ab", "00000000000000ab ", "00000000000000ab 80", "00000000000000ab 1023", "00000000000000ab 65536",
            "00000000000000ab -1", "00000000000000ab 24391 ", "00000000000000ab  24391", "ab 24391", "00000000000000ag 24391",
            "00000000000000ab 24391 10.0.0.1", "00000000000000ab 000000000000000000000000000000000000000024391",
        ])
    func noRequest(message: String) { #expect(DialBack(message: message) == nil) }

    @Test("an unknown reply of a later version is a reply, but not an understood one")
    func laterAnswer() {
        #expect(DialBack.Response(message: "00000000000000ab sideways")?.result == .some(nil))
        #expect(DialBack.Response(message: "00000000000000ab") == nil)
    }

    @Test("accepted only on a session after both Hellos, and without a sequence")
    func session() {
        var fixture = SessionFixture.opened()
        _ = fixture.take()
        fixture.receive(.dialBack, message: "00000000000000ab 24391")
        #expect(fixture.actions == [.dialBack(DialBack(token: BootNonce(0xAB), port: 24_391))])
        fixture.actions = []
        fixture.receive(.dialBack, message: "dial 10.0.0.1")
        fixture.receive(.dialedBack, message: "00000000000000ab reached")
        #expect(fixture.actions == [.dialedBack(DialBack.Response(token: BootNonce(0xAB), result: .reached))])
        #expect(fixture.owed().isEmpty)
        // Before a Hello, and on plain TCP even after it, the address may belong to anyone.
        var silent = SessionFixture()
        silent.receive(.dialBack, message: "00000000000000ab 24391")
        var plain = SessionFixture(security: .plain)
        plain.hello()
        plain.receive(.dialBack, message: "00000000000000ab 24391")
        for actions in [silent.take(), plain.take()] {
            #expect(!actions.contains { if case .dialBack = $0 { true } else { false } })
        }
    }
}
