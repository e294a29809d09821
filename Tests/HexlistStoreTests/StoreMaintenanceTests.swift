import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite struct MaintenanceTests {
    @Test func undeliveredRowsExpireAndSettledOnesAreForgotten() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        _ = try test.write { try $0.enqueue((1...5).map { outgoing($0, to: one) } + [outgoing(1, to: two), outgoing(6, to: one)]) }
        _ = try test.write { try $0.enqueue([outgoing(7, to: one, createdAt: start + day)]) }
        _ = try test.write { writer in
            try writer.settle([Settlement(id: 1, state: .stored), Settlement(id: 2, state: .failed)], of: one.id, at: start)
        }
        #expect(try test.write { try $0.maintain(at: start + 7 * day - 1) } == MaintenanceReport())
        #expect(try test.write { try $0.maintain(at: start + 7 * day) }.forgotten == 1)
        let report = try test.write { try $0.maintain(at: start + 30 * day) }
        #expect(report.expired == 5 && report.forgotten == 1 && !report.isPartial)
        #expect(try test.read { try $0.outboxPage() }.items.map(\.state) == [.expired, .expired, .expired, .expired, .expired, .queued])
        let events = try test.read { try $0.eventPage(since: 2, limit: 100).items }
        #expect(events.map(\.outboxID) == [3, 4, 5, 7, 6] && events.allSatisfy { $0.type == .hexExpired })
        #expect(events.map(\.peer) == [one.id, one.id, one.id, one.id, two.id])
        #expect(try test.countersAreRight())
        #expect(try test.write { try $0.maintain(at: start + 37 * day) }.forgotten == 5)
        #expect(try test.countersAreRight())
    }

    @Test func heldHexesGoAfterTheirDays() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        try test.receive([hex(1)], from: peer)
        try test.receive([hex(2)], from: peer, at: start + day)
        #expect(try test.write { try $0.maintain(at: start + 7 * day) }.heldDropped == 1)
        #expect(try test.receive([hex(1), hex(2)], from: peer, at: start + 7 * day) == [.held, .duplicate(of: .held)])
        #expect(try test.write { try $0.maintain(at: start + 9 * day, limits: RetentionLimits(heldDays: 1)) }.heldDropped == 2)
        #expect(try test.countersAreRight())
    }

    @Test func eventsAreKeptByAgeWithoutGaps() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        for number in 1...10 {
            try test.receive((0..<10).map { hex(UInt64(number * 10 + $0)) }, from: peer, at: start + Int64(number) * day)
        }
        #expect(try test.read { try $0.oldestEvent() } == 1)
        #expect(try test.write { try $0.maintain(at: start + 34 * day) }.eventsDropped == 4)
        #expect(try test.read { try $0.oldestEvent() } == 41)
        #expect(try test.read { try $0.eventPage(since: 0, limit: 1_000).items }.map(\.number) == Array(41...100))
        #expect(try test.read { try $0.eventPage(since: 44, limit: 3).items }.map(\.number) == [45, 46, 47])
        #expect(try test.write { try $0.maintain(at: start + 38 * day) }.eventsDropped == 4)
        #expect(try test.read { try $0.oldestEvent() } == 81)
        #expect(try test.write { try $0.maintain(at: start + 400 * day) }.eventsDropped == 2)
        #expect(try test.read { try $0.oldestEvent() } == 101)
        #expect(try test.write { try $0.appendEvent(.peerUp, at: start, peer: peer.id, data: "{}") } == 101)
        #expect(
            try test.read { try $0.eventPage(since: 100, limit: 1).items } == [
                EventRow(number: 101, at: start, type: .peerUp, peer: peer.id, data: "{}")
            ])
        #expect(try test.read { try $0.eventPage(since: 101, limit: 1).items }.isEmpty)
        #expect(try test.read { try $0.eventPage(since: -5, limit: 0).items }.isEmpty)
        #expect(try test.read { try $0.eventPage(since: .max, limit: 5).items }.isEmpty)
        #expect(try test.read { try $0.eventPage(since: .min, limit: 5).items }.map(\.number) == [101])
        #expect(try test.countersAreRight())
    }

    /// The log is pruned when it is written, not only by the hourly maintenance, so rows caused by peers are bounded in between.
    @Test func theEventLogIsPrunedAsItIsWritten() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try test.write { writer in
            writer.eventLogBytes = 10_000
            for number in 0..<500 {
                try writer.appendEvent(.alertReceived, at: start, data: String(repeating: "ü", count: number % 50 * 4))
            }
        }
        let rows = try test.read { try Int64.fetchOne($0.db, sql: "SELECT sum(64 + length(CAST(data AS BLOB))) FROM event") } ?? 0
        #expect((9_000...10_000).contains(rows))
        #expect(try test.countersAreRight())
        let oldest = try test.read { try $0.oldestEvent() }
        #expect(try test.read { try $0.eventPage(since: 0, limit: 1_000).items }.map(\.number) == Array(oldest...500))
        // A range of hexes is one row, however many it stands for. The newest row stays even if it exceeds the bound alone.
        try test.write { $0.eventLogBytes = 10_000 }
        try test.receive((1...900).map { hex($0) }, from: peer)
        #expect(try test.read { try $0.counts() }.lastEvent == 1_400)
        #expect(try test.read { try $0.oldestEvent() } < 500)
        try test.write { writer in
            writer.eventLogBytes = 10_000
            try writer.appendEvent(.hookFailed, at: start, data: String(repeating: "x", count: 20_000))
        }
        #expect(try test.read { try $0.oldestEvent() } == 1_401)
        #expect(try test.countersAreRight())
        #expect(try test.write { try $0.maintain(at: start + 40 * day) }.eventsDropped == 1)
        #expect(try test.read { try StoreCounters(on: $0.db).eventBytes } == 0)
    }

    @Test func aRoundIsBounded() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.write { try $0.enqueue((1...25).map { outgoing($0, to: peer) }) }
        let rounds = try test.write { writer in try (0..<3).map { _ in try writer.maintain(at: start + 31 * day, chunk: 10) } }
        #expect(rounds.map(\.expired) == [10, 10, 5] && rounds.map(\.isPartial) == [true, true, false])
        #expect(try test.countersAreRight())
    }
}
