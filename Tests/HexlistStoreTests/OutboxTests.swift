import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite struct OutboxTests {
    @discardableResult
    private func enqueue(_ test: TestStore, _ numbers: ClosedRange<UInt64>, to peer: TestPeer) throws -> [Int64] {
        try test.write { try $0.enqueue(numbers.map { outgoing($0, to: peer, body: "{\"hexDescription\":\"\($0)\"}") }) }.compactMap(\.id)
    }

    private func settle(_ test: TestStore, _ ids: [Int64], _ state: OutboxState, of peer: TestPeer, at now: Int64 = start) throws -> Int {
        try test.write { try $0.settle(ids.map { Settlement(id: $0, state: state, code: nil) }, of: peer.id, at: now).count }
    }

    @Test func whatIsQueuedIsReadInOrder() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        #expect(try enqueue(test, 1...3, to: one) == [1, 2, 3])
        #expect(try enqueue(test, 1...2, to: two) == [4, 5])
        #expect(try enqueue(test, 4...6, to: one) == [6, 7, 8])
        #expect(try test.read { reader in try [one.id, two.id].map { try reader.peer($0)?.queued } } == [6, 2])
        let all = try test.read { try $0.outboxBatch(one.id, after: 0, limit: 100, maxBytes: 1_000) }.items
        #expect(all.map(\.id) == [1, 2, 3, 6, 7, 8] && all.map(\.messageID) == [1, 2, 3, 4, 5, 6].map(message))
        #expect(String(decoding: all[1].body, as: UTF8.self) == "{\"hexDescription\":\"2\"}")
        #expect(try test.read { try $0.outboxBatch(one.id, after: 2, limit: 2, maxBytes: 1_000) }.items.map(\.id) == [3, 6])
        #expect(try test.read { try $0.outboxBatch(one.id, after: 0, limit: 100, maxBytes: 45) }.items.map(\.id) == [1, 2])
        #expect(try test.read { try $0.outboxBatch(one.id, after: 0, limit: 100, maxBytes: 1) }.items.map(\.id) == [1])
        #expect(try test.read { try $0.outboxBatch(one.id, after: 0, limit: 0, maxBytes: 1) }.items.isEmpty)
        #expect(try test.read { try $0.outboxBatch(try TestPeer(3).id, after: 0, limit: 9, maxBytes: 1) }.items.isEmpty)
        #expect(try test.countersAreRight())
    }

    @Test func aRowKeepsWhatItIsAboutAndWhyItWasRefused() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        var insert = outgoing(1, to: peer)
        insert.hex.subject = "to read"
        _ = try test.write { [insert] in try $0.enqueue(insert) }
        let refusal = Settlement(id: 1, state: .rejected, code: "blocked", message: "This peer blocked you.")
        try test.write { _ = try $0.settle([refusal], of: peer.id, at: start) }
        let refused = try #require(try test.read { try $0.outboxPage() }.items.first)
        #expect((refused.subject, refused.code, refused.message) == ("to read", "blocked", "This peer blocked you."))
        // The subject stays when the body is gone.
        try test.write { _ = try $0.cancel([1], at: start) }
        #expect(try test.read { try $0.outboxRow(1) }?.subject == "to read")
    }

    @Test func rowsSettledTogetherKeepTheirOwnBytes() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        for number in 1...2 as ClosedRange<UInt64> { _ = try test.write { try $0.enqueue(outgoing(number, to: peer)) } }
        let messages = ["\u{E9}", "e\u{301}"]  // equal as `String`
        let refusals = messages.enumerated().map { Settlement(id: Int64($0 + 1), state: .rejected, code: "blocked", message: $1) }
        try test.write { _ = try $0.settle(refusals, of: peer.id, at: start) }
        let kept = try test.read { try $0.outboxRows([1, 2]) }.map { Array(($0.message ?? "").utf8) }
        #expect(kept == messages.map { Array($0.utf8) })
    }

    @Test func aRowTooLongForNowIsPassedOver() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        for (number, count) in [10, 5_000, 10].enumerated() {
            _ = try test.write { try $0.enqueue(outgoing(UInt64(number), to: peer, body: String(repeating: "x", count: count))) }
        }
        #expect(try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 9, maxBytes: 9_000, longest: 100) }.items.map(\.id) == [1, 3])
        #expect(try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 9, maxBytes: 9_000) }.items.map(\.id) == [1, 2, 3])
    }

    @Test func aKeyMeansOneContent() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        #expect(try test.write { try $0.enqueue(outgoing(1, to: one, body: "{a}")) } == .new(1))
        #expect(try test.write { try $0.enqueue(outgoing(1, to: two, body: "{a}")) } == .new(2))
        let row = try #require(try test.read { try $0.outboxRow(1) })
        #expect(try test.write { try $0.enqueue(outgoing(1, to: one, body: "{a}")) } == .existing(row))
        for peer in [one, two, try TestPeer(3)] {
            let error = #expect(throws: HexlistError.self) { try test.write { try $0.enqueue(outgoing(1, to: peer, body: "{b}")) } }
            #expect(error?.code == .keyConflict)
        }
        // If one hex of a batch is refused because of its key, the other hexes are queued.
        let batch = try test.write {
            try $0.enqueue([outgoing(5, to: one), outgoing(1, to: one, body: "{b}"), outgoing(5, to: one), outgoing(6, to: one)])
        }
        #expect(batch.map(\.id) == [3, nil, 3, 4])
        // The digest stays when the body is gone.
        #expect(try settle(test, [1], .stored, of: one) == 1)
        guard case .existing(let delivered) = try test.write({ try $0.enqueue(outgoing(1, to: one, body: "{a}")) }) else {
            Issue.record("sent twice")
            return
        }
        #expect(delivered.state == .stored)
        #expect(throws: HexlistError.self) { try test.write { try $0.enqueue(outgoing(1, to: one, body: "{b}")) } }
        #expect(try test.countersAreRight())
    }

    @Test(arguments: [OutboxBounds(rows: 3, bytes: 100_000), OutboxBounds(rows: 100, bytes: 3 * (10 + 1_664))])
    func theOutboxIsBounded(_ bounds: OutboxBounds) throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let body = "0123456789"
        let batch = try test.write { try $0.enqueue((1...5).map { outgoing($0, to: peer, body: body) }, bounds: bounds) }
        #expect(batch.map(\.id) == [1, 2, 3, nil, nil])
        guard case .failure(let error) = batch[4] else { return }
        #expect(error.code == .outboxFull)
        #expect(throws: HexlistError.self) { try test.write { try $0.enqueue(outgoing(4, to: peer, body: body), bounds: bounds) } }
        #expect(try test.write { try $0.enqueue(outgoing(1, to: peer, body: body), bounds: bounds) }.id == 1)
        #expect(try settle(test, [2], .held, of: peer) == 1)
        #expect(try test.write { try $0.enqueue(outgoing(4, to: peer, body: body), bounds: bounds) } == .new(4))
        #expect(try test.countersAreRight())
    }

    @Test func settlingIsSaidOnceAndBodiesGo() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        try enqueue(test, 1...6, to: one)
        try enqueue(test, 1...1, to: two)
        #expect(try settle(test, [1, 2, 3, 7, 99], .stored, of: one, at: start + 1) == 3)  // row 7 is of another peer, row 99 is missing
        #expect(try settle(test, [1, 2, 3], .stored, of: one, at: start + 2) == 0)
        #expect(try settle(test, [1], .rejected, of: one) == 0)
        let mixed = [
            Settlement(id: 4, state: .held), Settlement(id: 5, state: .rejected, code: "tooLarge", message: "too \"large\"\n"),
            Settlement(id: 6, state: .failed, code: "internal"),
        ]
        #expect(try test.write { try $0.settle(mixed, of: one.id, at: start + 3) }.count == 3)
        let rows = try test.read { try $0.outboxRows(Array(1...7)) }
        #expect(rows.map(\.state) == [.stored, .stored, .stored, .held, .rejected, .failed, .queued])
        #expect(rows[4].code == "tooLarge" && rows[4].message == "too \"large\"\n" && rows[4].settledAt == start + 3)
        #expect(
            try test.read { reader in
                try (1...7).map { id in
                    try reader.first(
                        "SELECT 1 FROM outbox JOIN outboxPack ON outboxPack.id = pack WHERE outbox.id = ? AND bodies IS NOT NULL", id
                    ) {
                        _ in true
                    } ?? false
                }
            } == [
                false, false, false, false, true, true, true,
            ])
        let events = try test.read { try $0.eventPage(since: 0, limit: 100).items }
        #expect(events.map(\.type) == [.hexDelivered, .hexDelivered, .hexDelivered, .hexDelivered, .hexRejected, .hexFailed])
        #expect(events.map(\.outboxID) == [1, 2, 3, 4, 5, 6] && events.allSatisfy { $0.peer == one.id })
        #expect(
            events.map(\.data) == [
                "{\"state\":\"stored\"}", "{\"state\":\"stored\"}", "{\"state\":\"stored\"}", "{\"state\":\"held\"}",
                "{\"code\":\"tooLarge\",\"message\":\"too \\\"large\\\"\\n\"}", "{\"code\":\"internal\"}",
            ])
        #expect(try test.read { try Int.fetchOne($0.db, sql: "SELECT count(*) FROM event") } == 4)
        // The peer has stored the hex after all.
        #expect(try settle(test, [6, 5], .stored, of: one) == 2)
        #expect(try test.read { try $0.outboxRow(6) }?.code == nil)
        #expect(try settle(test, [.max, .min, 0], .stored, of: one) == 0)
        #expect(try settle(test, [7], .queued, of: two) == 0)
        #expect(try test.countersAreRight())
    }

    @Test func aDeliveryClearsWhatCountedAgainstTheOthers() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        try enqueue(test, 1...3, to: one)
        try enqueue(test, 1...1, to: two)
        try test.write { writer in
            try writer.note([
                FailedAttempt(id: 1, attempts: 1, failures: 1, nextAttemptAt: start + 9, waitingFor: "backoff", lastError: "internal"),
                FailedAttempt(id: 1, attempts: 1, failures: 1), FailedAttempt(id: 4, failures: 3), FailedAttempt(id: 99, failures: 1),
            ])
        }
        var row = try #require(try test.read { try $0.outboxRow(1) })
        #expect(row.attempts == 2 && row.failures == 2 && row.nextAttemptAt == nil && row.lastError == "internal")
        #expect(try settle(test, [2], .rejected, of: one) == 1)
        #expect(try test.read { try $0.outboxRow(1) }?.failures == 2)
        #expect(try settle(test, [3], .held, of: one) == 1)
        row = try #require(try test.read { try $0.outboxRow(1) })
        #expect(row.failures == 0 && row.attempts == 2)
        #expect(try test.read { try $0.outboxRow(4) }?.failures == 3)
        try test.write { try $0.note([FailedAttempt(id: 3, attempts: 5)]) }  // already settled, so nothing is recorded
        #expect(try test.read { try $0.outboxRow(3) }?.attempts == 0)
    }

    @Test func rowsCanBeTakenBackAndSentAgain() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        try enqueue(test, 1...5, to: peer)
        #expect(try settle(test, [1], .stored, of: peer) == 1)
        #expect(try settle(test, [2], .failed, of: peer, at: start + 7) == 1)
        #expect(try settle(test, [3], .rejected, of: peer) == 1)
        let failed = try test.read { try $0.failed(of: peer.id, in: (start + 7)...(start + 8)) }
        #expect(failed.map(\.row.id) == [2])
        #expect(failed.map { Array($0.body) } == [Array("{\"hexDescription\":\"2\"}".utf8)])
        #expect(try test.read { try $0.failed(of: peer.id, in: (start + 8)...(start + 9)) }.isEmpty)

        #expect(try test.write { try $0.cancel([1, 3, 4, 99], at: start) } == [3, 4])
        #expect(try test.write { try $0.cancel([4], at: start) } == [])
        #expect(try test.write { try $0.retry([1, 2, 3, 4, 5, 99], lifetime: day) } == [2])
        let row = try #require(try test.read { try $0.outboxRow(2) })
        #expect(row.state == .queued && row.failures == 0 && row.settledAt == nil && row.dueAt == start + day)
        #expect(try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 9, maxBytes: 999) }.items.map(\.id) == [2, 5])

        // The key's reuse restores a cancelled row with its body, at its old position.
        let again = outgoing(4, to: peer, body: "{\"hexDescription\":\"4\"}", createdAt: start + 5)
        #expect(try test.write { try $0.enqueue(again) } == .requeued(4, from: .cancelled))
        for (number, state) in [(4, OutboxState.queued), (1, .stored)] {
            let row = try #require(try test.read { try $0.outboxRow(Int64(number)) })
            let same = outgoing(UInt64(number), to: peer, body: "{\"hexDescription\":\"\(number)\"}")
            #expect(row.state == state)
            #expect(try test.write { try $0.enqueue(same) } == .existing(row))
        }
        let other = outgoing(3, to: peer, body: "{\"hexDescription\":\"4\"}")
        #expect(throws: HexlistError.self) { try test.write { try $0.enqueue(other) } }
        #expect(try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 9, maxBytes: 999) }.items.map(\.id) == [2, 4, 5])
        #expect(try test.countersAreRight())
        // A row that was cancelled in flight has arrived, and its state shows that.
        #expect(try settle(test, [3], .stored, of: peer) == 1)
        #expect(try test.read { try $0.outboxRow(3) }?.state == .stored)
        #expect(try test.countersAreRight())
    }

    @Test func everyRowOfAPeerThatBlockedIsRejected() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        try enqueue(test, 1...10, to: one)
        try enqueue(test, 1...2, to: two)
        var rounds: [Int] = []
        repeat {
            let moves = try test.write { try $0.rejectQueued(one.id, code: "blocked", message: nil, limit: 4, at: start) }
            rounds.append(moves.reduce(0) { $0 + $1.ids.count })
        } while rounds.last == 4
        #expect(rounds == [4, 4, 2])
        #expect(try test.read { reader in try [one.id, two.id].map { try reader.peer($0)?.queued } } == [0, 2])
        #expect(try test.read { try $0.counts() }.outbox.rejected == 10)
        #expect(try test.countersAreRight())
    }

    @Test(arguments: [1, 3, 100, .max]) func pagesShowWhatIsAskedFor(_ limit: Int) throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        for number in 0..<6 {
            try enqueue(test, UInt64(number)...UInt64(number), to: one)
            try enqueue(test, UInt64(number)...UInt64(number), to: two)
        }
        _ = try settle(test, [1, 3], .stored, of: one)
        _ = try settle(test, [2], .failed, of: two)
        _ = try test.write { try $0.cancel([5], at: start) }
        func all(_ filter: OutboxFilter) throws -> [Int64] {
            var ids: [Int64] = []
            var after: Int64? = 0
            while let from = after {
                let page = try test.read { try $0.outboxPage(filter, limit: limit, after: from) }
                ids += page.items.map(\.id)
                after = page.next
            }
            after = 0
            var newest: [Int64] = []
            while let from = after {
                let page = try test.read { try $0.outboxPage(filter, newestFirst: true, limit: limit, after: from) }
                newest += page.items.map(\.id)
                after = page.next
            }
            #expect(newest == ids.reversed())
            return ids
        }
        #expect(try all(OutboxFilter()) == Array(1...12))
        #expect(try all(OutboxFilter(peer: one.id)) == [1, 3, 5, 7, 9, 11])
        #expect(try all(OutboxFilter(peer: two.id, states: [.queued])) == [4, 6, 8, 10, 12])
        #expect(try all(OutboxFilter(states: OutboxFilter.undelivered)) == [2, 4, 6, 7, 8, 9, 10, 11, 12])
        #expect(try all(OutboxFilter(states: [.failed])) == [2])
        #expect(try all(OutboxFilter(states: [.stored, .cancelled])) == [1, 3, 5])
        #expect(try all(OutboxFilter(states: [])).isEmpty)
        #expect(try all(OutboxFilter(peer: try TestPeer(3).id)).isEmpty)
    }
}
