import HexlistModel
import Testing

@testable import HexlistStore

@Suite("Recording of delivery results")
struct SettlementTests {
    @Test(
        "of the temporary refusals only `internal` counts as an attempt",
        arguments: [RefusalCode.internal, .storageFull, .quotaExceeded, .notAccepting])
    func counting(code: RefusalCode) {
        let row = RowResult(id: 1, .refused(code, message: "m", retryAfter: 5), isFirstRefused: true)
        let note = FailedAttempt(row, nextAttemptAt: 7)
        #expect(note?.failures == (code == .internal ? 1 : 0))
        #expect(note?.attempts == 1)
        #expect(note?.nextAttemptAt == 7)
        #expect(note?.lastError == "\(code.rawValue): m")
        #expect(Settlement(row) == nil)
        let behind = RowResult(id: 2, row.result)
        #expect(FailedAttempt(behind, nextAttemptAt: 7)?.failures == 0)
    }

    @Test("consecutive rows with the same result are settled as one range")
    func settledTogether() {
        let refused = DeliveryResult.refused(.internal, message: "m")
        let rejected = DeliveryResult.refused(.tooLarge, message: "n")
        let results: [(Int64, DeliveryResult)] = [
            (1, .stored), (2, .duplicate(of: .stored)), (4, .stored), (5, .held), (6, refused), (7, refused), (8, .duplicate(of: .held)),
            (9, rejected), (10, rejected), (11, .refused(.tooLarge, message: "o")), (3, .stored),
        ]
        let rows = results.map { RowResult(id: $0, $1) }
        var settlements: [Settlement] = []
        for settlement in rows.compactMap(Settlement.init) { settlement.add(to: &settlements) }
        #expect(settlements.map(\.ids) == [1...2, 4...4, 5...5, 8...8, 9...10, 11...11, 3...3])
        #expect(settlements.map(\.state) == [.stored, .stored, .held, .held, .rejected, .rejected, .stored])
        #expect(settlements.map(\.message) == [nil, nil, nil, nil, "n", "o", nil])
        #expect(rows.filter { FailedAttempt($0, nextAttemptAt: nil) != nil }.map(\.id) == [6, 7])
    }

    @Test("moves of queued rows are merged")
    func moves() throws {
        let peer = try TestPeer(1).id
        let rows = [(1, DeliveryResult.stored), (2, .stored), (3, .held), (4, .refused(.internal)), (5, .stored)].map {
            RowResult(id: $0, $1)
        }
        #expect(
            OutboxStateChange.of(rows, peer: peer) == [
                OutboxStateChange(ids: 1...2, peer: peer, from: .queued, to: .stored),
                OutboxStateChange(id: 3, peer: peer, from: .queued, to: .held),
                OutboxStateChange(id: 5, peer: peer, from: .queued, to: .stored),
            ])
    }
}
