import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Turns of transfers")
struct TransferTurnsTests {
    static let peers = (1...8).map { PeerID(UUIDBytes(high: $0, low: 0)) }

    /// Four have a turn, the others ask in vain, in order.
    static func full() -> TransferTurns {
        var turns = TransferTurns(limit: 4)
        for peer in peers { _ = turns.request(peer) }
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
            let again = turns.request(peer)
            #expect(!again, "it goes before those who wait")
            let isServed = turns.request(next)
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
            let passed = turns.request(late)
            #expect(!passed)
        }
        let first = turns.request(Self.peers[4])
        #expect(first)
    }

    @Test("who leaves the line is no longer next; who asks twice stands in it once")
    func leaving() {
        var turns = Self.full()
        _ = turns.request(Self.peers[4])
        #expect(turns.release(Self.peers[4]) == nil)  // all four are busy
        #expect(turns.release(Self.peers[1]) == Self.peers[5])
        #expect(!turns.isWaiting(Self.peers[4]))
        for peer in Self.peers { _ = turns.release(peer) }
        #expect(turns.active.isEmpty && !turns.othersWait)
    }

    @Test("alone, one keeps its turn however often it asks")
    func alone() {
        var turns = TransferTurns(limit: 1)
        for _ in 0..<3 {
            let granted = turns.request(Self.peers[0])
            #expect(granted)
        }
        #expect(!turns.othersWait)
    }

    @Test("a limit of none is one")
    func atLeastOne() {
        var turns = TransferTurns(limit: 0)
        let granted = turns.request(Self.peers[0])
        #expect(granted)
    }
}
