import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

@Suite struct CounterTests {
    /// After any sequence of operations the counters equal the number of rows, and the event log has no gap.
    @Test(arguments: 1...6) func countersAreWhatCountingGives(_ seed: Int) throws {
        let test = try TestStore()
        var random = SeededGenerator(seed: UInt64(seed))
        let peers = try (1...5).map { try TestPeer(UInt8($0)) }
        let addresses = ["10.0.0.1", "10.0.0.2", "fe80::1%eth0", "2001:db8::1"]
        let quotas = HeldQuotas(hexesPerPeer: 8, bytesPerPeer: 6_000, hexes: 15, bytes: 9_000, inboxHexes: 120)
        var now = start
        for _ in 0..<150 {
            now += Int64.random(in: 0...day, using: &random)
            let time = now
            let peer = try #require(peers.randomElement(using: &random))
            let hexIDs = (0..<5).map { _ in Int64.random(in: 1...200, using: &random) }
            let rowIDs = (0..<5).map { _ in Int64.random(in: 1...200, using: &random) }
            switch Int.random(in: 0..<12, using: &random) {
            case 0...3:
                let batch = (0..<Int.random(in: 1...10, using: &random)).map { _ in
                    hex(
                        UInt64.random(in: 0..<400, using: &random), bytes: Int.random(in: 1...1_500, using: &random))
                }
                try test.receive(
                    batch, from: peer, at: now, address: addresses.randomElement(using: &random) ?? "",
                    policy: StrangerHexPolicy.allCases.randomElement(using: &random) ?? .held, quotas: quotas,
                    isProven: Int.random(in: 0..<5, using: &random) > 0)
            case 4: _ = try test.trust(peer, Trust.allCases.randomElement(using: &random) ?? .stranger, at: now)
            case 5: _ = try test.write { try $0.delete(hexIDs, at: start) }
            case 6:
                let read = Bool.random(using: &random)
                _ = try test.write { try $0.setRead(hexIDs, read) }
            case 7: _ = try test.write { try $0.accept(hexIDs, at: time) }
            case 8:
                let batch = (0..<10).map { _ in outgoing(UInt64.random(in: 0..<300, using: &random), to: peer, createdAt: now) }
                _ = try test.write { try $0.enqueue(batch, bounds: OutboxBounds(rows: 60, bytes: 100_000)) }
            case 9:
                let ends = rowIDs.map { id in
                    Settlement(id: id, state: [.stored, .held, .rejected, .failed].randomElement(using: &random) ?? .stored)
                }
                _ = try test.write { try $0.settle(ends, of: peer.id, at: time) }
            case 10:
                _ = try test.write { try $0.cancel(Array(rowIDs.prefix(2)), at: time) }
                _ = try test.write { try $0.retry(rowIDs, lifetime: 30 * day) }
            default:
                _ = try test.write { try $0.maintain(at: time, limits: RetentionLimits(heldDays: 7, eventDays: 20), chunk: 20) }
                if Bool.random(using: &random) { _ = try test.write { try $0.forgetPeer(peer.id) } }
            }
        }
        #expect(try test.countersAreRight())
        let events = try test.read { try $0.eventPage(since: 0, limit: 100_000).items }
        let (oldest, last) = (try test.read { try $0.oldestEvent() }, try test.read { try $0.counts() }.lastEvent)
        #expect(events.map(\.number) == (oldest..<last + 1).map { $0 })
        // Inbox order is the order of arrival in the inbox.
        let numbers = try test.read { try $0.hexPage(limit: 1_000) }.items.compactMap(\.inboxNumber)
        #expect(numbers == numbers.sorted(by: >) && Set(numbers).count == numbers.count)
    }
}
