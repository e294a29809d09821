import Dispatch
import TestSupport
import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistTransport
import HexlistWire
import Logging
import NIOPosix
import Testing

@testable import HexlistDelivery
@testable import HexlistNode
@testable import HexlistStore

@Suite("Two machines with one identity", .serialized, .timeLimit(.minutes(5)))
struct ConflictTests {
    @Test("a third machine detects it, reports it, and delivers to neither; both copies detect it too")
    func clone() async throws {
        let link = InMemoryLink()
        let identity = try Identity.ephemeral()
        let third = try await TestNode("third", on: link)
        let one = try await TestNode("one", on: link, identity: identity)
        try await third.untilListed(one)
        _ = try await third.node.peers.setTrust(one.id, .trusted)
        _ = try await one.node.peers.setTrust(third.id, .trusted)
        let before = try await third.send(to: one, description: "before")
        #expect(before.state == .stored)

        let two = try await TestNode("two", on: link, identity: identity)
        for node in [third, one, two] {
            try await eventually { try await node.node.conflicts().contains(identity.peerID.description) }
        }
        #expect(try await third.verified().isEmpty)
        let row = try #require(try await third.node.peers.all().first { $0.uuid == identity.peerID })
        #expect(row.state == .ghost && row.reason == "conflict")
        for node in [one, two] {
            let conflict = try #require(await node.node.status().conflict)
            #expect(conflict.contains("hexlist id rotate"))
        }
        #expect(await third.node.status().conflict == nil)

        // Neither machine gets hexes. The sender gets the reason at once, because waiting cannot help.
        let counts = try await (one.inbox(), two.inbox())
        let after = try await third.send(to: one, description: "after")
        #expect(after.state == .queued)
        #expect(try await third.node.outbox.row(after.outboxID).waitingFor?.known == .conflict)
        // Neither machine sends hexes.
        for node in [one, two] {
            let outcome = try await node.send(to: third, description: "mine")
            #expect(outcome.state == .queued)
            #expect(try await node.node.outbox.row(outcome.outboxID).waitingFor?.known == .conflict)
        }
        #expect(try await third.inbox() == 0)
        let now = try await (one.inbox(), two.inbox())
        #expect(now == counts)
        for node in [third, one, two] { try await node.stop() }
    }

    /// A copy started while the original has a session.
    struct Copy: CustomTestStringConvertible {
        /// The number of addresses at which the copy dials the sender; 0 if the sender dials the copy.
        var dials: Int
        /// Whether the original dials the sender, or the reverse.
        var originalDials = true
        var isTrusted = true
        /// The sender's limit of stranger sessions.
        var strangerSessions: Int?
        var testDescription: String {
            "\(dials) dials, \(originalDials ? "" : "original dialled, ")\(isTrusted ? "trusted" : "stranger") \(strangerSessions ?? 0)"
        }
    }

    @Test(
        "a hex for a machine with a session never reaches a copy, however often the copy dials",
        arguments: [
            Copy(dials: 1), Copy(dials: 2), Copy(dials: 2, originalDials: false), Copy(dials: 0), Copy(dials: 0, originalDials: false),
            Copy(dials: 2, isTrusted: false), Copy(dials: 1, isTrusted: false, strangerSessions: 1),
            Copy(dials: 2, isTrusted: false, strangerSessions: 1), Copy(dials: 2, isTrusted: false, strangerSessions: 2),
        ])
    func copyDials(_ test: Copy) async throws {
        let identity = try Identity.ephemeral()
        let sender = try await TestNode("sender", on: nil) { configuration in
            if let sessions = test.strangerSessions { configuration.limits.strangerSessions = sessions }
        }
        let port = await sender.node.port
        let here = ["127.0.0.1", "::1"].map { StaticPeer(host: $0, port: port) }
        let original = try await TestNode("original", on: nil, identity: identity) { $0.peers = test.originalDials ? [here[0]] : [] }
        if !test.originalDials { try await sender.dial(original) }
        try await sender.untilListed(original)
        try await original.untilListed(sender)
        _ = try await original.node.peers.setTrust(sender.id, .trusted)
        if test.isTrusted { _ = try await sender.node.peers.setTrust(original.id, .trusted) }
        #expect(try await sender.send(to: original, description: "before").state == .stored)

        async let outcomes = sender.sendUntilConflict(with: original)
        let copy = try await TestNode("copy", on: nil, identity: identity) { $0.peers = Array(here.prefix(test.dials)) }
        if test.dials == 0 { try await sender.dial(copy) }
        let stored = try await outcomes.count { $0.state.isDelivered }
        #expect(try await sender.send(to: original, description: "after", wait: .zero).state == .queued)
        let hexes = try await (original: original.inbox(), copy: copy.inboxAndHeld())
        #expect(hexes.copy == 0)
        #expect(hexes.original >= 1 + stored)
        for node in [sender, original, copy] { try await node.stop() }
    }

    @Test("a restart before the old session ended is not a conflict, and queued hexes arrive")
    func restart() async throws {
        let identity = try Identity.ephemeral()
        let sender = try await TestNode("sender", on: nil)
        let port = await sender.node.port
        let here = StaticPeer(host: "127.0.0.1", port: port)
        let first = try await TestNode("first", on: nil, identity: identity) { $0.peers = [here] }
        try await sender.untilListed(first)
        try await first.untilListed(sender)
        _ = try await sender.node.peers.setTrust(first.id, .trusted)
        // The event loop of the first start is blocked, so its session gets no answer.
        let gate = DispatchSemaphore(value: 0)
        first.node.eventLoop.execute { try? gate.take() }
        let second = try await TestNode("second", on: nil, identity: identity) { $0.peers = [here] }
        try await second.untilListed(sender)
        _ = try await second.node.peers.setTrust(sender.id, .trusted)
        #expect(try await sender.send(to: second).state == .stored)
        #expect(await sender.node.isInConflict(identity.peerID) == false)
        #expect(try await second.inbox() == 1)
        gate.signal()
        for node in [sender, second, first] { try await node.stop() }
    }

    @Test("a machine whose own identity is used elsewhere neither sends nor accepts, even if only it knows")
    func own() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await one.node.peers.setTrust(two.id, .trusted)
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            #expect(try await one.send(to: two).state == .stored)
            await one.node.apply(.ownIdentityElsewhere(BootNonce(9)))
            let sent = try await one.send(to: two, description: "mine")
            #expect(sent.state == .queued)
            #expect(try await one.node.outbox.row(sent.outboxID).waitingFor?.known == .conflict)
            let taken = try await two.send(to: one, description: "theirs")
            #expect(taken.state == .queued)
            try await eventually { try await two.node.outbox.row(taken.outboxID).lastError?.contains("identity") == true }
            #expect(try await one.inbox() == 0)
            #expect(try await two.inbox() == 1)
        }
    }

    @Test("a sender treated as one of two machines retries, and fails no hex")
    func quarantined() async throws {
        for code in [ByeCode.conflict, .idle, .blocked] {
            #expect(CourierEnd(.peer(code, text: ""), closedByPeer: true).cause != .failedOnHex)
        }
        #expect(CourierEnd(.peer(.silent, text: ""), closedByPeer: true).cause == .failedOnHex)
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await one.node.peers.setTrust(two.id, .trusted)
            _ = try await two.node.peers.setTrust(one.id, .trusted)
            await two.node.apply(.identityConflict(one.id, BootNonce(7), BootNonce(9)))
            await two.node.endSessions(with: .conflict)
            let sent = try await one.send(to: two, description: "mine")
            #expect(sent.state == .queued)
            try await eventually { try await one.node.outbox.row(sent.outboxID).lastError?.contains("identity") == true }
            #expect(await one.node.transferFailures(to: two.id) == 0)
            #expect(try await two.inbox() == 0)
        }
    }

    @Test("a trusted peer's conflict alert is reported, a stranger's is not")
    func toldByOthers() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            for trust in [Trust.stranger, .trusted] {
                _ = try await one.node.peers.setTrust(two.id, trust)
                // If a surplus session ends for another reason, the report of the conflict is withdrawn. A peer that sees a conflict ends
                // every session.
                try await eventually {
                    guard let session = await one.node.sessionID(with: two.id) else { return false }
                    await two.node.endSessions(with: .conflict)
                    try await eventually { await one.node.sessionID(with: two.id) != session }
                    let isReported = await one.node.status().conflict?.contains("two reports") == true
                    return isReported || trust == .stranger
                }
                if trust == .stranger { #expect(await one.node.status().conflict == nil) }
                // Writes submitted earlier are committed before this one.
                try await one.node.store.write { _ in }
                #expect(try await Set(one.node.conflicts()) == (trust == .trusted ? [one.id.description] : []))
                // The peer that reports the conflict is not in conflict itself.
                #expect(await one.node.isInConflict(two.id) == false)
                try await one.untilSession(with: two)
            }
        }
    }

    @Test("a dialled peer that reports a conflict must have this identity's key")
    func toldByAnyone() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let stranger = try PeerTransport(identity: try Identity.ephemeral(), eventLoop: group.next(), logger: Logger(label: "stranger"))
        let port = try await stranger.listen(addresses: ["127.0.0.1"], port: 0) { connection in
            connection.write { WrapperEncoder.bye(.conflict, text: "", into: &$0) }
        }
        let one = try await TestNode("one", on: nil) { $0.peers = [StaticPeer(host: "127.0.0.1", port: port)] }
        try await eventually { try await one.node.peers.all().contains { $0.why?.contains("ends the session (conflict)") == true } }
        #expect(await one.node.status().conflict == nil)
        #expect(await one.node.isQuarantined(one.id) == false)
        await stranger.shutdown()
        try await one.stop()
        try await group.shutdownGracefully()
    }

    @Test("a subscriber to a stopped node gets the end of the stream")
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

    fileprivate func transferFailures(to peer: PeerID) -> Int? { deliver { deliveries, _ in deliveries.links[peer]?.transferFailures } }

    func sessionID(with peer: PeerID) -> UInt64? { links[peer]?.sending?.connection.id }
}

extension TestNode {
    fileprivate func inboxAndHeld() async throws -> Int {
        try await node.store.read { try Int($0.counts().inbox + $0.counts().held) }
    }

    /// Dials another node by address until a session opens.
    fileprivate func dial(_ other: TestNode) async throws {
        var configuration = await node.configuration
        configuration.peers.append(StaticPeer(host: "127.0.0.1", port: await other.node.port))
        await node.reconfigure(configuration)
    }

    /// Sends hexes one at a time, waiting for each, until the peer's conflict is known.
    fileprivate func sendUntilConflict(with other: TestNode) async throws -> [SendOutcome] {
        var outcomes: [SendOutcome] = []
        let id = other.id
        try await eventually {
            outcomes.append(try await send(to: other, description: "hex \(outcomes.count)", wait: .milliseconds(200)))
            return await node.isInConflict(id)
        }
        return outcomes
    }

    func inbox() async throws -> Int { Int(try await node.store.read { try $0.counts() }.inbox) }

    func untilSession(with other: TestNode) async throws {
        let id = other.id
        await node.apply(.discovery(.woke))
        try await eventually { await node.sessionID(with: id) != nil }
    }
}
