import HexlistDiscovery
import HexlistModel
import HexlistSession
import HexlistTransport
import HexlistWire
import TestSupport
import Testing

@testable import HexlistNode

@Suite("Dial-back, long frames, single addresses", .serialized, .timeLimit(.minutes(5)))
struct DialBackTests {
    @Test("a trusted peer dials back to the requesting port, a stranger does not; an immediate repeat is ignored")
    func trust() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            #expect(await two.node.dialBacks.pause == .seconds(10))
            for node in [one.node, two.node] { await node.pauseDialBacks(.seconds(1)) }
            // A longer timeout than the default of 8 s, because replies take longer beside other tests.
            #expect(await two.node.diagnostics.requestDialBack(from: one.id, timeout: .seconds(60)) == .result(.notTrusted))
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            #expect(await one.node.diagnostics.requestDialBack(from: two.id, timeout: .seconds(60)) == .result(.reached))
            // A repeated request within the pause gets the last result, without another dial.
            for node in [one.node, two.node] { await node.pauseDialBacks(.seconds(3_600)) }
            #expect(await one.node.diagnostics.requestDialBack(from: two.id) == .result(.reached))
            // The peer limits requests as well: without the stored result, a request within the pause gets no reply.
            await one.node.forgetAsking(two.id)
            #expect(await one.node.diagnostics.requestDialBack(from: two.id, timeout: .milliseconds(300)) == .noReply)
            // The dial left no session behind and ended none.
            #expect(try await one.verified() == [two.id])
            #expect(try await one.send(to: two).state == .stored)
        }
    }

    @Test("a request is repeated on the session that replaces the asked one")
    func replacedSession() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            for node in [one.node, two.node] { await node.pauseDialBacks(.zero) }
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            let port = await two.node.diagnostics.facts().status.port
            // The second node is busy with other dials, so it leaves the first request without an answer.
            await two.node.occupyDialBacks()
            async let outcome = one.node.diagnostics.requestDialBack(from: two.id, timeout: .seconds(600))
            let asked = try await eventualValue { await one.node.askedSession(two.id) }
            await two.node.freeDialBacks()
            try await one.node.replace(asked, with: two.id, port: port)
            #expect(await outcome == .result(.reached))
        }
    }

    @Test("a peer without the capability is not asked")
    func feature() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            #expect(await one.node.diagnostics.session(with: two.id)?.dialsBack == true)
            #expect(await one.node.diagnostics.requestDialBack(from: one.id) == .cannotAsk)
        }
    }

    @Test("a frame at the smaller of both limits is delivered and answered, for strangers and trusted peers")
    func longFrame() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            for _ in 0..<2 {
                guard case .answered(let bytes, _) = await one.node.diagnostics.testSession(with: two.id)?.ping else {
                    Issue.record("not answered")
                    return
                }
                #expect(bytes > ProtocolLimits.strangerFrameBytes - 1_024)
                _ = try await two.node.peers.setTrust(one.id, .trusted)
                _ = try await one.node.peers.setTrust(two.id, .trusted)
            }
            #expect(await one.node.diagnostics.testSession(with: one.id) == nil)
        }
    }

    @Test("a test of an address reports TCP, TLS and identity separately")
    func reach() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            let port = await two.node.diagnostics.facts().status.port
            let right = await one.node.diagnostics.probe("127.0.0.1", port: port, interface: nil, expecting: two.id)
            #expect((try? right.tcp.get()) != nil && (try? right.tls?.get()) != nil)
            let other = await one.node.diagnostics.probe("127.0.0.1", port: port, interface: nil, expecting: one.id)
            #expect((try? other.tcp.get()) != nil)
            guard case .failure(let why)? = other.tls else {
                Issue.record("another identity passed")
                return
            }
            #expect(why.isOther && why.text.contains(two.id.description))
            await two.node.stop()
            let refusing = try #require(RefusingPort(UInt16(port)))
            defer { refusing.close() }
            let gone = await one.node.diagnostics.probe("127.0.0.1", port: port, interface: nil, expecting: two.id)
            guard case .failure(let refused) = gone.tcp else {
                Issue.record("nothing listens there")
                return
            }
            #expect(refused.isRefused && gone.tls == nil)
        }
    }
}

extension Node {
    fileprivate func pauseDialBacks(_ pause: Duration) { dialBacks.pause = pause }
    fileprivate func occupyDialBacks() { while dialBacks.begin() {} }
    fileprivate func freeDialBacks() { for _ in 0..<DialBackLimits.atOnce { dialBacks.ended() } }
    /// Returns the session on which the peer has been asked to dial back; `nil` before the request.
    fileprivate func askedSession(_ peer: PeerID) -> PeerSession? { links[peer]?.sessions.first { $0.checks.dialBack != nil } }
    /// Opens another session, and ends `old` before the two are compared.
    fileprivate func replace(_ old: PeerSession, with peer: PeerID, port: Int) async throws {
        let endpoint = Endpoint(host: "127.0.0.1", port: UInt16(port), via: .lastKnown)
        let report = try await transport.dial([DialTarget(endpoint)], expecting: peer).report.get()
        let session = begin(try #require(report.connection), SessionDial(endpoint: endpoint, probe: nil, expected: peer))
        let isOpen = await eventLoop.within(.seconds(60), otherwise: false) { done in
            session.checks.opened = { isOpen in
                old.act { $0.end(.idle, &$1) }
                done(isOpen)
            }
        }
        #expect(isOpen)
    }
    fileprivate func forgetAsking(_ peer: PeerID) { links[peer]?.lastDialBackRequest = nil }
}
