import HexlistModel
import HexlistTransport
import HexlistWire
import TestSupport
import Testing

@testable import HexlistNode

@Suite("Dialling back, long frames, single addresses", .serialized, .timeLimit(.minutes(5)))
struct DialBackTests {
    @Test("a trusted peer dials the port of who asks; a stranger does not; who asks again at once is not answered")
    func trust() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            #expect(await two.node.dialBacks.pause == .seconds(10))
            for node in [one.node, two.node] { await node.pauseDialBacks(.seconds(1)) }
            // Not 8 s: beside other tests an answer may take longer.
            #expect(await two.node.askToDialBack(one.id, patience: .seconds(60)) == .result(.notTrusted))
            _ = try await two.node.setTrust(one.id, .trusted)
            #expect(await one.node.askToDialBack(two.id, patience: .seconds(60)) == .result(.reached))
            // Nor does this side ask too soon, so that who looks twice sees what is there; at once where it was well.
            for node in [one.node, two.node] { await node.pauseDialBacks(.seconds(3_600)) }
            #expect(await one.node.askToDialBack(two.id) == .result(.reached))
            // At once again: it would be a way to make it dial without end.
            await one.node.forgetAsking(two.id)
            #expect(await one.node.askToDialBack(two.id, patience: .milliseconds(300)) == .noReply)
            // Its dial left no session behind, and took none away.
            #expect(try await one.verified() == [two.id])
            #expect(try await one.send(to: two).state == .stored)
        }
    }

    @Test("a peer that has not said that it can is not asked")
    func feature() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            #expect(await one.node.sessionFacts(of: two.id)?.dialsBack == true)
            #expect(await one.node.askToDialBack(one.id) == .cannotAsk)
        }
    }

    @Test("a frame about as long as both take gets there and is answered, for strangers and for trusted peers")
    func longFrame() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            for _ in 0..<2 {
                guard case .answered(let bytes, _) = await one.node.meet(two.id)?.ping else {
                    Issue.record("not answered")
                    return
                }
                #expect(bytes > ProtocolLimits.strangerFrameBytes - 1_024)
                _ = try await two.node.setTrust(one.id, .trusted)
                _ = try await one.node.setTrust(two.id, .trusted)
            }
            #expect(await one.node.meet(one.id) == nil)
        }
    }

    @Test("an address is tried as far as TCP, TLS and identity, each told apart")
    func reach() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            let port = await two.node.facts().status.port
            let right = await one.node.reach("127.0.0.1", port: port, interface: nil, expecting: two.id)
            #expect((try? right.tcp.get()) != nil && (try? right.tls?.get()) != nil)
            let other = await one.node.reach("127.0.0.1", port: port, interface: nil, expecting: one.id)
            #expect((try? other.tcp.get()) != nil)
            guard case .failure(let why)? = other.tls else {
                Issue.record("another identity passed")
                return
            }
            #expect(why.isOther && why.text.contains(two.id.description))
            await two.node.stop()
            let refusing = try #require(RefusingPort(UInt16(port)))
            defer { refusing.close() }
            let gone = await one.node.reach("127.0.0.1", port: port, interface: nil, expecting: two.id)
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
    fileprivate func forgetAsking(_ peer: PeerID) { links[peer]?.askedBackAt = nil }
}
