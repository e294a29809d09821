import HexlistModel
import Testing

@testable import HexlistDelivery

@Suite("Turns of transfers")
struct SendSlotsTests {
    static let peers = (1...8).map { PeerID(UUIDBytes(high: $0, low: 0)) }

    static let start = ContinuousClock.Instant.now

    /// Four have a turn, the others ask in vain, in order.
    static func full() -> SendSlots {
        var turns = SendSlots(limit: 4)
        for peer in peers { _ = turns.request(peer, now: Self.start) }
        return turns
    }

    @Test("who has had its share goes to the end of the line, and turns go round")
    func round() {
        var turns = Self.full()
        var served: [PeerID] = []
        // Each gives its turn back and asks again at once, as after 8 MiB.
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

    @Test("nobody passes the first in line, also where a turn is free")
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

    @Test("who leaves the line is no longer next; who asks twice stands in it once")
    func leaving() {
        var turns = Self.full()
        _ = turns.request(Self.peers[4], now: Self.start)
        #expect(turns.release(Self.peers[4]) == nil)  // all four are busy
        #expect(turns.release(Self.peers[1]) == Self.peers[5])
        #expect(!turns.isWaiting(Self.peers[4]))
        for peer in Self.peers { _ = turns.release(peer) }
        #expect(turns.active.isEmpty && !turns.othersWait)
    }

    @Test("alone, one keeps its turn however often it asks")
    func alone() {
        var turns = SendSlots(limit: 1)
        for _ in 0..<3 {
            let granted = turns.request(Self.peers[0], now: Self.start)
            #expect(granted)
        }
        #expect(!turns.othersWait)
    }

    @Test("two turns that come free at once go to the first two in line")
    func twoAtOnce() {
        var turns = Self.full()
        #expect(turns.release(Self.peers[0]) == Self.peers[4])
        #expect(turns.release(Self.peers[1]) == Self.peers[4])
        let first = turns.request(Self.peers[4], now: Self.start)
        #expect(first && turns.next == Self.peers[5])
        let second = turns.request(Self.peers[5], now: Self.start)
        #expect(second && turns.next == nil)
    }

    @Test("who has not come forward for 30 s while others wait is overdue, and nobody else")
    func overdue() {
        var turns = SendSlots(limit: 2)
        for peer in Self.peers.prefix(2) { _ = turns.request(peer, now: Self.start) }
        #expect(turns.deadline == nil)
        #expect(turns.overdue(now: Self.start + .seconds(100)).isEmpty)  // nobody waits
        _ = turns.request(Self.peers[2], now: Self.start + .seconds(1))
        #expect(turns.deadline == Self.start + .seconds(30))
        turns.progressed(Self.peers[1], now: Self.start + .seconds(20))
        turns.progressed(Self.peers[2], now: Self.start + .seconds(20))  // it has no turn to lose
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

    @Test("a turn ends after 60 s however its peer answers, while others wait, and no earlier")
    func answeringForEver() {
        var turns = Self.full()
        var now = Self.start
        // Each of the four answers for something every 25 s.
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
        // Where nobody waits a turn may last.
        #expect(turns.overdue(now: now + .seconds(600)).isEmpty && turns.deadline == nil)
    }

    @Test("a limit of none is one")
    func atLeastOne() {
        var turns = SendSlots(limit: 0)
        let granted = turns.request(Self.peers[0], now: Self.start)
        #expect(granted)
    }
}
