import TestSupport
import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistTransport
import HexlistWire
import Testing

@testable import HexlistNode
@testable import HexlistStore

extension Node {
    /// Adds as many refused strangers as `RefusedPeersNotifier` remembers.
    fileprivate func refuseStrangers() {
        refusedPeersNotifier.refused = Set((1...64).map { PeerID(UUIDBytes(high: 0x8000, low: 0x8000_0000_0000_0000 | $0)) })
    }

    /// Ends each session as an idle one.
    fileprivate func endSessions() {
        for session in sessions.values { session.act { $0.end(.idle, &$1) } }
    }

    fileprivate func wake() { finder.discovered(.woke, self) }

    fileprivate func notifyLater(_ peers: [PeerID]) { for peer in peers { refusedPeersNotifier.notifyLater(peer, self) } }
    fileprivate var refusedTrusted: Set<PeerID> { refusedPeersNotifier.refused.filter { registry.isTrusted($0) } }
    fileprivate var refusedStrangers: Set<PeerID> { refusedPeersNotifier.refused.filter { !registry.isTrusted($0) } }
    fileprivate var pendingLater: Set<PeerID> { Set(refusedPeersNotifier.pending.filter { $0.value == .later }.keys) }

    fileprivate func change(_ change: (inout NodeConfiguration) -> Void) async {
        var changed = configuration
        change(&changed)
        await reconfigure(changed)
    }
}

@Suite("Temporarily refused peers are notified when hexes are accepted again", .serialized, .timeLimit(.minutes(5)))
struct CapacityNoticeTests {
    /// The change that ends a refusal before its `retryAfter` of at least a minute.
    enum Change: String, Sendable, CaseIterable { case trust, policy, room, roster }

    /// One node sends two hexes, of which the second node refuses one or both.
    /// - Returns: the rows of the hexes.
    private func refused(_ one: TestNode, _ two: TestNode, by change: Change) async throws -> [Int64] {
        if change == .room {
            #expect(try await one.send(to: two, description: "held").state == .held)
        }
        let rows = [try await one.send(to: two, description: "1", wait: .zero), try await one.send(to: two, description: "2", wait: .zero)]
            .map(\.outboxID)
        try await eventually {
            let first = try await one.node.store.read { try $0.outboxRows(rows) }.first
            return first?.lastError?.hasPrefix(change == .room ? "quotaExceeded" : "notAccepting") == true
        }
        try await eventually { await two.node.refusedStrangers == [one.id] }
        return rows
    }

    private func make(_ change: Change, at two: TestNode, of one: TestNode) async throws {
        switch change {
        case .trust: _ = try await two.node.peers.setTrust(one.id, .trusted)
        case .roster:
            _ = try await two.node.roster.add([RosterEntry(fingerprint: one.node.identity.fingerprint, name: "one", trust: .trusted)])
        case .policy: await two.node.change { $0.receiveFrom = .held }
        case .room:
            await two.node.change { $0.limits.heldHexesPerPeer = 3 }
        }
    }

    private func nodes(_ change: Change, on link: InMemoryLink) async throws -> (TestNode, TestNode) {
        let one = try await TestNode("one", on: link)
        let two = try await TestNode("two", on: link) {
            if change == .room { $0.limits.heldHexesPerPeer = 1 } else { $0.receiveFrom = .trusted }
        }
        try await one.untilListed(two)
        try await two.untilListed(one)
        return (one, two)
    }

    @Test("on an open session, and on a new one if there is none", arguments: Change.allCases, [true, false])
    func told(change: Change, hasSession: Bool) async throws {
        let link = InMemoryLink()
        let (one, two) = try await nodes(change, on: link)
        let rows = try await refused(one, two, by: change)
        if !hasSession {
            await two.node.endSessions()
            try await eventually { await (one.node.sessionCount, two.node.sessionCount) == (0, 0) }
        }
        try await make(change, at: two, of: one)
        let ends = try await one.ends(of: rows)
        #expect(ends == Array(repeating: change == .trust || change == .roster ? .stored : .held, count: 2))
        let location: HexLocation = change == .trust || change == .roster ? .inbox : .held
        let kept = try await two.node.store.read { try $0.hexPage(HexFilter(location: location), limit: 10, after: nil) }.items
        #expect(kept.map(\.description).reversed().suffix(2) == ["1", "2"])
        try await one.stop()
        try await two.stop()
    }

    @Test("freed space counts too: deleting a held hex lets the next one in")
    func roomInTheTray() async throws {
        let link = InMemoryLink()
        let (one, two) = try await nodes(.room, on: link)
        let rows = try await refused(one, two, by: .room)
        let held = try await two.node.store.read { try $0.hexPage(HexFilter(location: .held), limit: 10, after: nil) }.items
        try await two.node.store.write { _ = try $0.delete(held.map(\.id), at: 0) }
        try await eventually { try await one.node.store.read { try $0.outboxRows(rows) }.first?.state == .held }
        #expect(try await one.node.store.read { try $0.outboxRows(rows) }.last?.state == .queued)
        try await one.stop()
        try await two.stop()
    }

    @Test("a peer that is away is notified when it returns", arguments: [Change.policy, .room])
    func toldLater(change: Change) async throws {
        let link = InMemoryLink()
        let (one, two) = try await nodes(change, on: link)
        let rows = try await refused(one, two, by: change)
        // The first node hides: it ends sessions of strangers and answers none.
        await one.node.change { $0.announce = false }
        try await eventually { try await !two.verified().contains(one.id) }
        try await make(change, at: two, of: one)
        #expect(await two.node.pendingLater == [one.id])
        await one.node.change { $0.announce = true }
        // The back-off between probes of a peer grows to minutes, but after sleep all peers are probed at once.
        try await eventually("one is announced again") { try await two.node.peers.all().contains { $0.uuid == one.id } }
        for node in [one, two] { await node.node.wake() }
        #expect(try await one.ends(of: rows) == [.held, .held])
        #expect(await two.node.pendingLater.isEmpty)
        try await one.stop()
        try await two.stop()
    }

    @Test("of absent strangers as many are remembered as of refused ones, and each trusted peer")
    func laterBound() async throws {
        let one = try await TestNode("one", on: nil)
        let peers = (1...100).map { PeerID(UUIDBytes(high: 0x8000, low: 0x8000_0000_0000_0000 | $0)) }
        await one.node.notifyLater(peers)
        #expect(await one.node.pendingLater.count == 64)
        #expect(await one.node.pendingLater.contains(peers[99]))
        try await one.stop()
    }

    @Test("a trusted peer is remembered however many strangers are")
    func trustedAmongStrangers() async throws {
        let link = InMemoryLink()
        let one = try await TestNode("one", on: link)
        let two = try await TestNode("two", on: link) { $0.limits.inboxHexes = 1 }
        try await one.untilListed(two)
        try await two.untilListed(one)
        _ = try await two.node.peers.setTrust(one.id, .trusted)
        await two.node.refuseStrangers()
        #expect(try await one.send(to: two).state == .stored)
        let row = try await one.send(to: two, wait: .zero).outboxID
        try await eventually { await two.node.refusedTrusted == [one.id] }
        #expect(await two.node.refusedStrangers.count == 64)
        await two.node.change { $0.limits.inboxHexes = 2 }
        #expect(try await one.ends(of: [row]) == [.stored])
        try await one.stop()
        try await two.stop()
    }

    @Test("eight are dialled at a time, trusted peers first")
    func turns() {
        let peers = (1...20).map { PeerID(UUIDBytes(high: 0x8000, low: 0x8000_0000_0000_0000 | $0)) }
        var turns = CapacityNoticeDialSlots()
        for (number, peer) in peers.enumerated() { turns.request(peer, isTrusted: number >= 15) }
        var order: [PeerID] = []
        while let peer = turns.next() { order.append(peer) }
        #expect(order == Array(peers[15...] + peers[..<3]))
        turns.ended()
        #expect(turns.next() == peers[3] && turns.next() == nil)
    }

    @Test("the sender's new trust triggers a retry, whatever its result")
    func sendersTrust() async throws {
        let link = InMemoryLink()
        let (one, two) = try await nodes(.trust, on: link)
        let rows = try await refused(one, two, by: .trust)
        func attempts() async throws -> Int { try await one.node.store.read { try $0.outboxRows(rows) }.first?.attempts ?? 0 }
        let before = try await attempts()
        _ = try await one.node.peers.setTrust(two.id, .trusted)
        try await eventually { try await attempts() > before }
        try await one.stop()
        try await two.stop()
    }

    @Test("an unresponsive older session ends with Bye silent")
    func unansweredSession() async throws {
        let one = try await TestNode("one", on: nil)
        let guest = try Guest(one)
        let older = try await guest.visit(one)
        try await older.hello()
        try await eventually { older.operations.contains(.hello) }
        let newer = try await guest.visit(one)
        try await newer.hello()
        try await eventually { older.isOver }
        #expect(older.operations == [.hello, .ping, .bye])
        #expect(older.bye == "silent")
        #expect(!newer.isOver)
        await guest.transport.shutdown()
        try await one.stop()
    }
}
