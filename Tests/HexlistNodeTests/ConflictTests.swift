import TestSupport
import HexlistDiscovery
import HexlistModel
import HexlistTransport
import HexlistWire
import Logging
import NIOPosix
import Testing

@testable import HexlistNode
@testable import HexlistStore

@Suite("Two machines with one identity", .serialized, .timeLimit(.minutes(5)))
struct ConflictTests {
    @Test("a third one notices, tells, and delivers to neither; both of them notice too")
    func clone() async throws {
        let link = InMemoryLink()
        let identity = try Identity.ephemeral()
        let third = try await TestNode("third", on: link)
        let one = try await TestNode("one", on: link, identity: identity)
        try await third.untilListed(one)
        _ = try await third.node.setTrust(one.id, .trusted)
        _ = try await one.node.setTrust(third.id, .trusted)
        let before = try await third.send(to: one, description: "before")
        #expect(before.state == .stored)

        let two = try await TestNode("two", on: link, identity: identity)
        for node in [third, one, two] {
            try await eventually { try await node.node.conflicts().contains(identity.peerID.description) }
        }
        #expect(try await third.verified().isEmpty)
        let row = try #require(try await third.node.peers().first { $0.uuid == identity.peerID })
        #expect(row.state == .ghost && row.reason == "conflict")
        for node in [one, two] {
            let conflict = try #require(await node.node.status().conflict)
            #expect(conflict.contains("hexlist id rotate"))
        }
        #expect(await third.node.status().conflict == nil)

        // Neither is sent to, and the sender is told why; at once, for there is nothing to wait for.
        let counts = try await (one.inbox(), two.inbox())
        let after = try await third.send(to: one, description: "after")
        #expect(after.state == .queued)
        #expect(try await third.node.outboxRow(after.outboxID).waitingFor?.known == .conflict)
        // Nor does either of them send.
        for node in [one, two] {
            let outcome = try await node.send(to: third, description: "mine")
            #expect(outcome.state == .queued)
            #expect(try await node.node.outboxRow(outcome.outboxID).waitingFor?.known == .conflict)
        }
        #expect(try await third.inbox() == 0)
        let now = try await (one.inbox(), two.inbox())
        #expect(now == counts)
        for node in [third, one, two] { try await node.stop() }
    }

    @Test("whose own identity is used elsewhere sends nothing and takes nothing, though nobody else knows")
    func own() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await one.node.setTrust(two.id, .trusted)
            _ = try await two.node.setTrust(one.id, .trusted)
            #expect(try await one.send(to: two).state == .stored)
            await one.node.apply(.ownIdentityElsewhere(BootNonce(9)))
            let sent = try await one.send(to: two, description: "mine")
            #expect(sent.state == .queued)
            #expect(try await one.node.outboxRow(sent.outboxID).waitingFor?.known == .conflict)
            let taken = try await two.send(to: one, description: "theirs")
            #expect(taken.state == .queued)
            try await eventually { try await two.node.outboxRow(taken.outboxID).lastError?.contains("identity") == true }
            #expect(try await one.inbox() == 0)
            #expect(try await two.inbox() == 1)
        }
    }

    @Test("who is taken for one of two machines goes on trying, and no hex is given up for it")
    func quarantined() async throws {
        for code in [ByeCode.conflict, .idle, .blocked] { #expect(!Session.End.peer(code, text: "").countsAgainstHex(closedByPeer: true)) }
        #expect(Session.End.peer(.silent, text: "").countsAgainstHex(closedByPeer: true))
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await one.node.setTrust(two.id, .trusted)
            _ = try await two.node.setTrust(one.id, .trusted)
            await two.node.apply(.identityConflict(one.id, BootNonce(7), BootNonce(9)))
            await two.node.endSessions(with: .conflict)
            let sent = try await one.send(to: two, description: "mine")
            #expect(sent.state == .queued)
            try await eventually { try await one.node.outboxRow(sent.outboxID).lastError?.contains("identity") == true }
            #expect(await one.node.transferFailures(to: two.id) == 0)
            #expect(try await two.inbox() == 0)
        }
    }

    @Test("a stranger's word that this identity is used twice is not told, a trusted peer's is")
    func toldByOthers() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            for trust in [Trust.stranger, .trusted] {
                _ = try await one.node.setTrust(two.id, trust)
                // It may be back before anybody looks.
                let session = try #require(await one.node.sessionID(with: two.id))
                await two.node.endSessions(with: .conflict)
                try await eventually { await one.node.sessionID(with: two.id) != session }
                let conflict = await one.node.status().conflict
                #expect((conflict?.contains("two says") == true) == (trust == .trusted))
                let expected = trust == .trusted ? [one.id.description] : []
                if trust == .trusted { try await eventually { try await one.node.conflicts() == expected } }
                // What was on its way into the store before is there behind this.
                try await one.node.store.write { _ in }
                #expect(try await one.node.conflicts() == expected)
                // It is no conflict of the one who says so.
                #expect(await one.node.isInConflict(two.id) == false)
                try await one.untilSession(with: two)
            }
        }
    }

    @Test("whoever is dialled and says that this identity is used twice has to have it")
    func toldByAnyone() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let stranger = try PeerTransport(identity: try Identity.ephemeral(), eventLoop: group.next(), logger: Logger(label: "stranger"))
        let port = try await stranger.listen(addresses: ["127.0.0.1"], port: 0) { connection in
            connection.write { WrapperEncoder.bye(.conflict, text: "", into: &$0) }
        }
        let one = try await TestNode("one", on: nil) { $0.peers = [StaticPeer(host: "127.0.0.1", port: port)] }
        try await eventually { try await one.node.peers().contains { $0.why?.contains("ends the session (conflict)") == true } }
        #expect(await one.node.status().conflict == nil)
        #expect(await one.node.isQuarantined(one.id) == false)
        await stranger.shutdown()
        try await one.stop()
        try await group.shutdownGracefully()
    }

    @Test("who begins to watch a node that has stopped is told so")
    func watchedTooLate() async throws {
        let one = try await TestNode("one", on: nil)
        let before = one.node.changes()
        try await one.stop()
        for await _ in before {}
        for await _ in one.node.changes() { Issue.record("it has stopped") }
    }
}

extension Node {
    fileprivate func apply(_ input: PeerDirectory.Input) { finder.apply(input, self) }
    fileprivate func isInConflict(_ peer: PeerID) -> Bool { finder.directory.isInConflict(peer) }

    func conflicts() async throws -> [String] {
        try await store.read { try $0.eventPage(since: 0, limit: 1_000).items }.filter { $0.type == .conflictIdentity }.compactMap {
            $0.peer?.description
        }
    }

    func endSessions(with code: ByeCode) {
        for session in sessions.values { session.act { $0.end(code, &$1) } }
    }

    fileprivate func transferFailures(to peer: PeerID) -> Int? { links[peer]?.transferFailures }

    func sessionID(with peer: PeerID) -> UInt64? { links[peer]?.sending?.connection.id }
}

extension TestNode {
    func inbox() async throws -> Int { Int(try await node.store.read { try $0.counts() }.inbox) }

    func untilSession(with other: TestNode) async throws {
        let id = other.id
        await node.apply(.discovery(.woke))
        try await eventually { await node.sessionID(with: id) != nil }
    }
}
