import HexlistModel
import NIOCore
import Testing

@testable import HexlistWire

@Suite("Announcing lists") struct ListNewsTests {
    @Test("the frame has no object, and its sequence is ignored") func frame() throws {
        var buffer = ByteBuffer()
        WrapperEncoder.listNews(into: &buffer)
        let text = String(decoding: buffer.readableBytesView.dropFirst(4), as: UTF8.self)
        #expect(text == #"{"versionID":"\#(ProtocolLimits.appVersion)","operationType":"ListNews"}"#)
        let decoded = try wrapper(decode(Array(text.utf8)))
        #expect(decoded.operation == .listNews && decoded.sequence == nil && decoded.message == nil)
        let numbered = try wrapper(decode(Array(#"{"operationType":"ListNews","sequence":9,"jmObject":{"a":1}}"#.utf8)))
        #expect(numbered.operation == .listNews && numbered.sequence == nil)
    }

    @Test("sent only to peers whose Hello has the feature") func olderVersions() {
        for (features, isSent) in [([], false), (["files", "Lists"], false), (["files", "lists"], true)] as [([String], Bool)] {
            var fixture = SessionFixture()
            var hello = Hello(uuid: SessionFixture.peer, name: "ada", boot: BootNonce(3))
            hello.features = features
            fixture.receive(.hello, .hello(hello))
            fixture.actions = []
            fixture.session.announceLists(&fixture.actions)
            #expect(fixture.actions == (isSent ? [.send(.listNews)] : []))
        }
    }

    @Test("accepted only over TLS and after the Hello; not a sign of activity") func session() {
        var silent = SessionFixture()
        silent.receive(.listNews)
        #expect(!silent.actions.contains(.listNews))
        var plain = SessionFixture(security: .plain)
        plain.hello()
        plain.receive(.listNews)
        #expect(!plain.actions.contains(.listNews))
        var fixture = SessionFixture.opened()
        _ = fixture.take()
        fixture.receive(.listNews)
        #expect(fixture.actions == [.listNews])
        #expect(fixture.owed().isEmpty)
    }
}
