import HexlistModel
import Testing

@testable import HexlistDelivery

@Suite("Fair sharing of send slots")
struct SendSlotsTests {
    static let peers = (1...8).map { PeerID(UUIDBytes(high: $0, low: 0)) }

    static let start = ContinuousClock.Instant.now

    /// Returns slots of which four peers have one each. The other peers are queued in order.
    static func full() -> SendSlots {
        var turns = SendSlots(limit: 4)
        for peer in peers { _ = turns.request(peer, now: Self.start) }
        return turns
    }

    @Test("a peer that has used its share goes to the end of the queue, so slots rotate")
    func round() {
        var turns = Self.full()
        var served: [PeerID] = []
        // Each peer releases its slot and requests again at once, as after 8 MiB.
        for step in 0..<16 {
            let peer = Self.peers[step % 8]
            guard let next = turns.release(peer) else { return #expect(Bool(false), "nobody is next") }
            let again = turns.request(peer, now: Self.start)
            #expect(!again, "it goes before those who wait")
            let isServed = turns.request(next, now: Self.start)
            #expect(isServed)
            served.append(next)
        }
        #expect(served == (4..<20).map { Self.peers[$0 % 8] })
        #expect(turns.active.count == 4)
    }

    @Test("no peer overtakes the first in the queue, even if a slot is free")
    func noPassing() {
        var turns = Self.full()
        #expect(turns.release(Self.peers[0]) == Self.peers[4])
        for late in [Self.peers[5], Self.peers[0], Self.peers[7]] {
            let passed = turns.request(late, now: Self.start)
            #expect(!passed)
        }
        let first = turns.request(Self.peers[4], now: Self.start)
        #expect(first)
    }

    @Test("a peer that leaves the queue is not granted a slot; repeated requests are queued once")
    func leaving() {
        var turns = Self.full()
        _ = turns.request(Self.peers[4], now: Self.start)
        #expect(turns.release(Self.peers[4]) == nil)  // all four slots are in use
        #expect(turns.release(Self.peers[1]) == Self.peers[5])
        #expect(!turns.isWaiting(Self.peers[4]))
        for peer in Self.peers { _ = turns.release(peer) }
        #expect(turns.active.isEmpty && !turns.othersWait)
    }

    @Test("a lone peer keeps its slot however often it asks")
    func alone() {
        var turns = SendSlots(limit: 1)
        for _ in 0..<3 {
            let granted = turns.request(Self.peers[0], now: Self.start)
            #expect(granted)
        }
        #expect(!turns.othersWait)
    }

    @Test("two slots released at once go to the first two in the queue")
    func twoAtOnce() {
        var turns = Self.full()
        #expect(turns.release(Self.peers[0]) == Self.peers[4])
        #expect(turns.release(Self.peers[1]) == Self.peers[4])
        let first = turns.request(Self.peers[4], now: Self.start)
        #expect(first && turns.next == Self.peers[5])
        let second = turns.request(Self.peers[5], now: Self.start)
        #expect(second && turns.next == nil)
    }

    @Test("a peer without progress for 30 s while others wait is overdue, and only then")
    func overdue() {
        var turns = SendSlots(limit: 2)
        for peer in Self.peers.prefix(2) { _ = turns.request(peer, now: Self.start) }
        #expect(turns.deadline == nil)
        #expect(turns.overdue(now: Self.start + .seconds(100)).isEmpty)  // no peer waits
        _ = turns.request(Self.peers[2], now: Self.start + .seconds(1))
        #expect(turns.deadline == Self.start + .seconds(30))
        turns.progressed(Self.peers[1], now: Self.start + .seconds(20))
        turns.progressed(Self.peers[2], now: Self.start + .seconds(20))  // a peer without a slot has no deadline
        #expect(turns.overdue(now: Self.start + .seconds(29)).isEmpty)
        #expect(turns.overdue(now: Self.start + .seconds(30)) == [Self.peers[0]])
        _ = turns.release(Self.peers[0])
        let granted = turns.request(Self.peers[2], now: Self.start + .seconds(30))
        #expect(granted)
        let again = turns.request(Self.peers[0], now: Self.start + .seconds(30))
        #expect(!again)
        #expect(turns.deadline == Self.start + .seconds(50))
        #expect(Set(turns.overdue(now: Self.start + .seconds(60))) == [Self.peers[1], Self.peers[2]])
    }

    @Test("while others wait a slot ends after 60 s, regardless of progress, and no earlier")
    func answeringForEver() {
        var turns = Self.full()
        var now = Self.start
        // Each peer with a slot makes progress every 25 s.
        while turns.overdue(now: now).isEmpty, now < Self.start + .seconds(600) {
            let deadline = turns.deadline ?? now
            let answer = now + .seconds(25)
            now = min(answer, deadline)
            if now == answer { for peer in Self.peers { turns.progressed(peer, now: now) } }
        }
        #expect(now == Self.start + .seconds(60))
        #expect(Set(turns.overdue(now: now)) == Set(Self.peers.prefix(4)))
        for peer in turns.overdue(now: now) { _ = turns.release(peer) }
        for peer in Self.peers.suffix(4) {
            let granted = turns.request(peer, now: now)
            #expect(granted)
        }
        // A slot is held indefinitely if no peer waits.
        #expect(turns.overdue(now: now + .seconds(600)).isEmpty && turns.deadline == nil)
    }

    @Test("a limit of 0 counts as 1")
    func atLeastOne() {
        var turns = SendSlots(limit: 0)
        let granted = turns.request(Self.peers[0], now: Self.start)
        #expect(granted)
    }
}
