import Foundation
import GRDB
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// Hexes queued together are stored in one pack, and their rows are settled independently.
@Suite struct OutboxRowRangeTests {
    private func terms(_ peers: [TestPeer], now: Int64 = start, bounds: OutboxBounds = OutboxBounds()) -> EnqueueOptions {
        EnqueueOptions(
            recipients: peers.map { PeerContact(peer: $0.id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: now) }, now: now,
            lifetime: 30 * day, bounds: bounds)
    }

    private func hex(_ number: UInt64, bytes: Int = 20, hasKey: Bool = false, subject: String? = nil) -> PreparedHex {
        let body = Array("{\(number)}".utf8)
        return PreparedHex(
            messageID: message(number), hasKey: hasKey, body: body + [UInt8](repeating: 0x20, count: max(0, bytes - body.count)),
            digest: (0..<32).map { UInt8(truncatingIfNeeded: number &+ $0) }, subject: subject ?? "Subject \(number)")
    }

    private func ids(_ report: EnqueueReport) throws -> [[Int64?]] { try report.results.map { try $0.get().map(\.id) } }

    private func count(_ test: TestStore, _ table: String) throws -> Int? {
        try test.read { try Int.fetchOne($0.db, sql: "SELECT count(*) FROM \(table)") }
    }

    @Test func oneBatchIsOneRunAPeerAndItsBodiesLieOnce() throws {
        let test = try TestStore()
        let peers = try (1...3).map { try TestPeer($0) }
        let hexes = (1...5).map { hex($0) }
        let report = try test.write { [terms = terms(peers)] in try $0.enqueue([PreparedHexes(hexes)], terms) }
        #expect(try ids(report) == (1...5).map { [$0, $0 + 5, $0 + 10] })
        #expect(try count(test, "outbox") == 3)
        #expect(try count(test, "outboxPack") == 1)
        #expect(try count(test, "outboxKey") == 0)
        #expect(try test.read { try $0.counts() }.outboxBytes == 100)
        for (index, peer) in peers.enumerated() {
            let items = try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 9, maxBytes: 9_999) }.items
            #expect(items.map(\.id) == (1...5).map { Int64(index * 5 + $0) })
            #expect(items.map(\.messageID) == (1...5).map(message) && items.map { Array($0.body) } == hexes.map(\.body))
        }
        let row = try #require(try test.read { try $0.outboxRow(9) })
        #expect((row.peer, row.messageID, row.subject, row.bytes) == (peers[1].id, message(4), "Subject 4", 20))
        #expect(row.digest == [UInt8](repeating: 0, count: 32))  // only hexes with a key have a digest
        // The pack is deleted with the last row that needs its bodies.
        for (index, peer) in peers.enumerated() {
            #expect(try test.read { try $0.counts() }.outboxBytes == 100)
            let settlements = (1...5).map { Settlement(id: Int64(index * 5 + $0), state: .stored) }
            let moves = try test.write { try $0.settle(settlements, of: peer.id, at: start) }
            #expect(
                moves == [OutboxStateChange(ids: Int64(index * 5 + 1)...Int64(index * 5 + 5), peer: peer.id, from: .queued, to: .stored)])
            #expect(try test.countersAreRight())
        }
        #expect(try test.read { try $0.counts() }.outboxBytes == 0)
        #expect(try test.read { try $0.outboxPage() }.items.map(\.state) == [OutboxState](repeating: .stored, count: 15))
    }

    @Test func packsAreBounded() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let many = (1...UInt64(OutboxPack.maxHexes) * 2 + 1).map { hex($0) }
        _ = try test.write { [terms = terms([peer])] in try $0.enqueue([PreparedHexes(many)], terms) }
        #expect(try count(test, "outboxPack") == 3)
        let long = (5_001...5_003).map { hex($0, bytes: OutboxPack.maxBytes / 2 + 1) } + [hex(5_004, bytes: OutboxPack.maxBytes * 2)]
        _ = try test.write { [terms = terms([peer])] in try $0.enqueue([PreparedHexes(long)], terms) }
        #expect(try count(test, "outboxPack") == 7)
        let read = try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 9_999, maxBytes: .max) }.items
        let all: [PreparedHex] = many + long
        #expect(read.map(\.messageID) == all.map(\.messageID))
        #expect(read.map { Array($0.body) } == all.map(\.body))
        #expect(try test.countersAreRight())
    }

    @Test func aFullOutboxTakesTheFirstHexesOfABatch() throws {
        let test = try TestStore()
        let peers = [try TestPeer(1), try TestPeer(2)]
        let report = try test.write {
            [terms = terms(peers, bounds: OutboxBounds(rows: 7, bytes: 1 << 20)), hexes = (1...9).map { hex($0) }] in
            try $0.enqueue([PreparedHexes(hexes)], terms)
        }
        #expect(try ids(report) == [[1, 4], [2, 5], [3, 6]])
        #expect(report.full?.code == .outboxFull)
        #expect(try test.countersAreRight())
    }

    @Test func whatComesInPiecesGoesOnWhereTheOutboxWasFull() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let batch = [1...3, 4...4, 5...9].map { numbers in PreparedHexes(numbers.map { hex(UInt64($0)) }) }
        var next = 0
        for bound in [2, 3, 4, 8, 9] {
            let report = try test.write { [terms = terms([peer], bounds: OutboxBounds(rows: bound, bytes: 1 << 20)), next] in
                try $0.enqueue(batch, from: next, terms, ids: $0.counters.nextOutbox)
            }
            #expect(try ids(report) == (next..<bound).map { [Int64($0 + 1)] })
            #expect((report.full == nil) == (bound == 9))
            next += report.hexes
        }
        let items = try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 20, maxBytes: 9_999) }.items
        #expect(items.map(\.messageID) == (1...9).map(message) && items.map { Array($0.body) } == (1...9).map { hex($0).body })
        #expect(try test.countersAreRight())
    }

    /// A slice keeps its whole pack in memory, so slices are used only if most of the pack is needed.
    @Test func shortRowsDoNotKeepTheLongOnesOfTheirPacks() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let batch = (1...40).map { hex($0, bytes: $0 % 2 == 0 ? 20 : 150_000) }
        _ = try test.write { [terms = terms([peer])] in try $0.enqueue([PreparedHexes(batch)], terms) }
        func kept(_ longest: Int) throws -> [Int] {
            try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 512, maxBytes: 4 << 20, longest: longest) }.items.map {
                $0.body.startIndex == 0 ? $0.body.count : $0.body.endIndex
            }
        }
        #expect(try kept(65_536) == [Int](repeating: 20, count: 20))
        #expect(try kept(.max).count > 20)
        // After these rows are settled, only a small part of the pack is needed.
        let settlements = (1...40).filter { $0 % 2 == 1 }.map { Settlement(id: $0, state: .stored) }
        try test.write { _ = try $0.settle(settlements, of: peer.id, at: start) }
        #expect(try kept(.max) == [Int](repeating: 20, count: 20))
    }

    @Test func theSameHexIsRefusedForAWhileAfterItFailed() throws {
        let test = try TestStore()
        let (peer, other) = (try TestPeer(1), try TestPeer(2))
        let send = { (numbers: [UInt64], peer: TestPeer, now: Int64, warns: Bool) in
            try test.write { [hexes = [PreparedHexes(numbers.map { self.hex($0) })], terms = self.terms([peer], now: now)] writer in
                var terms = terms
                terms.warns = warns
                return try writer.enqueue(hexes, terms)
            }.results.map { try? $0.get().map(\.id) }
        }
        #expect(try send([1, 2, 3], peer, start, true) == [[1], [2], [3]])
        try test.write { _ = try $0.settle([Settlement(id: 2, state: .failed, code: "retryLimit")], of: peer.id, at: start) }
        #expect(try send([1, 2, 3], peer, start + 1_000, true) == [[4], nil, [5]])
        #expect(try send([2], peer, start + 1_000, false) == [[6]])
        #expect(try send([2], other, start + 1_000, true) == [[7]])
        #expect(try send([2], peer, start + 180_001, true) == [[8]])
        #expect(try test.countersAreRight())
    }

    @Test func theSameKeyTwiceInABatchIsOneRow() throws {
        let test = try TestStore()
        let peers = [try TestPeer(1), try TestPeer(2)]
        let batch = [hex(1, hasKey: true), hex(2, hasKey: true), hex(1, hasKey: true), hex(3), hex(4, hasKey: true)]
        let report = try test.write { [terms = terms(peers)] in try $0.enqueue([PreparedHexes(batch)], terms) }
        #expect(try ids(report) == [[1, 3], [2, 4], [1, 3], [5, 6], [7, 8]])
        // The first two hexes are enqueued again, for one more peer.
        let more = try test.write { [terms = terms(peers + [try TestPeer(3)])] in try $0.enqueue([PreparedHexes(batch[..<2])], terms) }
        #expect(try ids(more) == [[1, 3, 9], [2, 4, 10]])
        #expect(try test.countersAreRight())
    }

    @Test func aRefusedHexDoesNotHoldTheBodiesOfTheOthers() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.write { [terms = terms([peer]), hexes = (1...100).map { hex($0, hasKey: true) }] in
            try $0.enqueue([PreparedHexes(hexes)], terms)
        }
        let settlements = (1...100).map { id in
            id == 40 || id == 41 ? Settlement(id: id, state: .rejected, code: "tooLarge") : Settlement(id: id, state: .stored)
        }
        try test.write { _ = try $0.settle(settlements, of: peer.id, at: start) }
        #expect(try test.read { try $0.counts() }.outboxBytes == 40)
        #expect(try test.countersAreRight())
        #expect(try test.write { try $0.retry([40, 41], lifetime: day) } == [40, 41])
        let items = try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 9, maxBytes: 999) }.items
        #expect(items.map(\.messageID) == [message(40), message(41)] && items.map { Array($0.body) } == [hex(40).body, hex(41).body])
        // The hexes are still known by their keys.
        let again = try test.write { [terms = terms([peer]), hexes = [hex(41, hasKey: true), hex(42, hasKey: true)]] in
            try $0.enqueue([PreparedHexes(hexes)], terms)
        }
        #expect(try ids(again) == [[41], [42]])
        // After maintenance a year later, nothing of the rows is left.
        try test.write { _ = try $0.cancel([40, 41], at: start) }
        while try test.write({ try $0.maintain(at: start + 400 * day) }).isPartial {}
        for table in ["outbox", "outboxPack", "outboxKey"] { #expect(try count(test, table) == 0) }
        #expect(try test.countersAreRight())
    }

    @Test func recipientsWhoRefuseTheSameHaveItOnce() throws {
        let test = try TestStore()
        let peers = try (1...3).map { try TestPeer($0) }
        _ = try test.write { [terms = terms(peers), hexes = (1...2).map { hex($0) }] in try $0.enqueue([PreparedHexes(hexes)], terms) }
        for (index, peer) in peers.enumerated() {
            let settlements = (1...2).map { Settlement(id: Int64(index * 2 + $0), state: .rejected, code: "tooLarge") }
            try test.write { _ = try $0.settle(settlements, of: peer.id, at: start) }
            #expect(try test.read { try $0.counts() }.outboxBytes == 40)
            #expect(try test.countersAreRight())
        }
        try test.write { _ = try $0.cancel(Array(1...6), at: start) }
        #expect(try test.read { try $0.counts() }.outboxBytes == 0)
        #expect(try test.countersAreRight())
    }

    /// Rows 1 … 5 are for one peer, 6 … 10 for the other, all in one pack.
    @Test(
        "made-up ranges and packs cause no trap",
        arguments: [
            "UPDATE outbox SET last = 9223372036854775807", "UPDATE outbox SET last = last + 3", "UPDATE outbox SET last = last + 1000",
            "UPDATE outbox SET id = -9223372036854775807 WHERE id = 1", "UPDATE outbox SET id = 3 WHERE id = 1",
            "UPDATE outbox SET id = 9223372036854775807, last = 9223372036854775807 WHERE id = 6", "UPDATE outbox SET pack = 77",
            "UPDATE outboxPack SET first = 3", "UPDATE outboxPack SET first = 100", "UPDATE outboxPack SET first = -1",
            "UPDATE outboxPack SET first = 9223372036854775807", "UPDATE outboxPack SET count = 4", "UPDATE outboxPack SET copies = 1",
            "UPDATE outboxPack SET copies = 9223372036854775807", "UPDATE outboxPack SET copies = 2147483647",
            "UPDATE outboxPack SET hexes = x'00'", "UPDATE outboxPack SET bodies = x'00'", "UPDATE outboxPack SET bodies = NULL",
            "UPDATE tally SET nextOutbox = 9223372036854775807", "UPDATE tally SET nextOutbox = -5", "UPDATE tally SET nextOutbox = 3",
        ]) func madeUp(sql: String) throws
    {
        let test = try TestStore()
        let peers = [try TestPeer(1), try TestPeer(2)]
        let hexes = (1...5).map { hex($0, hasKey: true) }
        let more = (4...8).map { hex($0, hasKey: true) }
        _ = try test.write { [terms = terms(peers)] in try $0.enqueue([PreparedHexes(hexes)], terms) }
        try test.write { try $0.db.execute(sql: sql) }
        func look() throws {
            try test.read { reader in
                _ = try (reader.outboxPage(), reader.outboxPage(limit: 2, after: 2), reader.outboxPage(after: .max))
                _ = try (reader.outboxRows([1, 3, 5, 6, 10, 13, .max]), reader.outboxCounts(of: [0...20, 7...Int64.max]))
                for peer in peers { _ = try reader.outboxBatch(peer.id, after: 1, limit: 9, maxBytes: 999) }
            }
        }
        try look()
        // Each operation may be refused, because such a file is not repaired.
        _ = try? test.write { [terms = terms(peers)] in try $0.enqueue([PreparedHexes(more)], terms) }
        for peer in peers.map(\.id) {
            let settlements = [2, 4, 7, 9].map { Settlement(id: $0, state: .rejected, code: "tooLarge") }
            _ = try? test.write { try $0.settle(settlements, of: peer, at: start) }
            try look()
            _ = try? test.write { try $0.rejectQueued(peer, code: "blocked", message: nil, limit: 9, at: start) }
        }
        _ = try? test.write { try $0.retry([2, 7], lifetime: day) }
        _ = try? test.write { try $0.cancel([2, 3, 8, 9], at: start) }
        try look()
        for _ in 0..<4 { _ = try? test.write { try $0.maintain(at: start + 400 * day) } }
        try look()
    }

    /// The expected outbox: one row per hex and peer.
    private struct Model {
        struct Row: Equatable {
            var number: UInt64
            var peer: Int
            var state = OutboxState.queued
            var failures = 0
        }

        var rows: [Int64: Row] = [:]

        mutating func move(_ ids: some Sequence<Int64>, of peer: Int? = nil, from states: Set<OutboxState>, to state: OutboxState) {
            for id in ids {
                guard let row = rows[id], states.contains(row.state), peer == nil || row.peer == peer else { continue }
                rows[id]?.state = state
                if state == .queued { rows[id]?.failures = 0 }
            }
        }
    }

    @Test(arguments: 1...(LongTests.areWanted ? 400 : 12)) func rowsOfRunsGoTheirOwnWays(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let test = try TestStore()
        let peers = try (1...3).map { try TestPeer($0) }
        var model = Model()
        var number: UInt64 = 0
        for step in 0..<40 {
            let lowest = model.rows.keys.min() ?? 1
            let highest = model.rows.keys.max() ?? 1
            let from = Int64.random(in: lowest...highest, using: &random)
            let range = from...min(highest, from + Int64.random(in: 0...30, using: &random))
            let peer = Int.random(in: 0..<3, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2:
                let chosen = (0..<3).filter { _ in Bool.random(using: &random) }
                guard !chosen.isEmpty else { continue }
                let hexes = (0..<UInt64.random(in: 1...40, using: &random)).map { index in
                    hex(
                        number + index, bytes: Int.random(in: 10...60, using: &random),
                        hasKey: Bool.random(using: &random) && index % 7 != 0)
                }
                number += UInt64(hexes.count)
                let report = try test.write { [terms = terms(chosen.map { peers[$0] })] in try $0.enqueue([PreparedHexes(hexes)], terms) }
                for (hex, rows) in zip(hexes, try ids(report)) {
                    for (id, peer) in zip(rows, chosen) {
                        model.rows[try #require(id)] = Model.Row(number: hex.messageID.uuid.low & 0xFFFF_FFFF, peer: peer)
                    }
                }
            case 3, 4:
                let state = try #require([OutboxState.stored, .held].randomElement(using: &random))
                try test.write { [id = peers[peer].id] in
                    _ = try $0.settle(range.map { Settlement(id: $0, state: state) }, of: id, at: start)
                }
                model.move(range, of: peer, from: [.queued, .rejected, .failed, .cancelled, .expired], to: state)
                for (id, row) in model.rows where row.peer == peer && row.state == .queued { model.rows[id]?.failures = 0 }
            case 5:
                let state = try #require([OutboxState.rejected, .failed].randomElement(using: &random))
                try test.write { [id = peers[peer].id] in
                    _ = try $0.settle(range.map { Settlement(id: $0, state: state) }, of: id, at: start)
                }
                model.move(range, of: peer, from: [.queued], to: state)
            case 6:
                try test.write { _ = try $0.cancel(Array(range), at: start) }
                model.move(range, from: OutboxFilter.undelivered, to: .cancelled)
            case 7:
                try test.write { _ = try $0.retry(Array(range), lifetime: 30 * day) }
                model.move(range, from: [.failed, .rejected], to: .queued)
            case 8:
                try test.write { try $0.note(range.map { FailedAttempt(id: $0, attempts: 1, failures: 1) }) }
                for id in range where model.rows[id]?.state == .queued { model.rows[id]?.failures += 1 }
            default:
                // Delivered and cancelled rows are forgotten; the others stay.
                try test.write { writer in while try writer.maintain(at: start + 8 * day).isPartial {} }
                model.rows = model.rows.filter { OutboxFilter.undelivered.contains($0.value.state) }
            }
            let kept = try test.read { reader in
                var rows: [OutboxRow] = []
                var after: Int64? = 0
                while let from = after {
                    let page = try reader.outboxPage(limit: 37, after: from)
                    rows += page.items
                    after = page.next
                }
                return rows
            }
            let found = kept.map { row in
                (
                    row.id,
                    Model.Row(
                        number: row.messageID.uuid.low & 0xFFFF_FFFF, peer: peers.firstIndex { $0.id == row.peer } ?? -1, state: row.state,
                        failures: row.state == .queued ? row.failures : 0)
                )
            }
            let wanted = model.rows.mapValues { row in
                var row = row
                if row.state != .queued { row.failures = 0 }
                return row
            }
            #expect(Dictionary(found) { first, _ in first } == wanted, "seed \(seed), step \(step)")
            #expect(kept.map(\.id) == wanted.keys.sorted(), "seed \(seed), step \(step)")
            #expect(kept.allSatisfy { $0.subject == "Subject \($0.messageID.uuid.low & 0xFFFF_FFFF)" })
            for (index, peer) in peers.enumerated() {
                let waiting = wanted.filter { $0.value.peer == index && $0.value.state == .queued }.keys.sorted()
                let batch = try test.read { try $0.outboxBatch(peer.id, after: 0, limit: .max, maxBytes: .max) }.items
                #expect(batch.map(\.id) == waiting, "seed \(seed), step \(step)")
                #expect(batch.allSatisfy { $0.body.starts(with: Array("{\($0.messageID.uuid.low & 0xFFFF_FFFF)}".utf8)) })
                let page = try test.read { try $0.outboxPage(OutboxFilter(peer: peer.id, states: [.queued, .failed]), limit: 10_000) }.items
                #expect(
                    page.map(\.id) == wanted.filter { $0.value.peer == index && [.queued, .failed].contains($0.value.state) }.keys.sorted())
            }
            #expect(
                try test.read { try $0.outboxPage(OutboxFilter(states: OutboxFilter.undelivered), limit: 10_000) }.items.map(\.id)
                    == wanted.filter { OutboxFilter.undelivered.contains($0.value.state) }.keys.sorted())
            let counts = try test.read { try $0.outboxCounts(of: [range]) }
            for state in OutboxState.allCases where state != .sending {
                #expect(counts[state] == Int64(wanted.count { range.contains($0.key) && $0.value.state == state }))
            }
            #expect(try test.countersAreRight(), "seed \(seed), step \(step)")
        }
    }

    /// Outbox ranges that do not match their packs, as a forged backup can have them.
    @Test(arguments: ["pack = 3 - pack", "last = last + 3 WHERE id = 6", "last = 9223372036854775807"])
    func aRunThatDoesNotFitItsPackEndsNobody(_ change: String) throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        for first: UInt64 in [1, 6] {
            let hexes = (first..<first + 5).map { hex($0) }
            _ = try test.write { [terms = terms([peer])] in try $0.enqueue([PreparedHexes(hexes)], terms) }
        }
        _ = try test.write { try $0.run("UPDATE outbox SET \(change)") }
        let rows = try test.read { try $0.outboxPage() }.items
        #expect(rows.count <= 13)
        let items = try test.read { try $0.outboxBatch(peer.id, after: 0, limit: 100, maxBytes: .max) }.items
        #expect(items.count <= 13)
        let ids: [Int64] = [3, 9, 10, 11, 12]
        let refused = ids.map { Settlement(id: $0, state: .rejected) }
        #expect(try test.write { try $0.settle(refused, of: peer.id, at: start) }.count <= 5)
    }

    @Test(arguments: 1...(LongTests.areWanted ? 400 : 20)) func aDamagedPackIsNotRead(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var hexes = PackedHexes()
        for number in 0..<UInt64.random(in: 1...9, using: &random) {
            hexes.append(
                messageID: message(number).uuid, digest: [UInt8](repeating: 7, count: 32),
                bodyBytes: Int.random(in: 0...70_000, using: &random),
                subject: number % 3 == 0 ? nil : String(repeating: "é", count: Int.random(in: 0...40, using: &random)))
        }
        let whole = try #require(PackedHexes(hexes.bytes))
        #expect(whole.entries.map(\.body) == hexes.entries.map(\.body))
        for position in whole.entries.indices {
            #expect(whole.messageID(at: position) == message(UInt64(position)).uuid)
            #expect(whole.subject(at: position) == hexes.subject(at: position))
            #expect((whole.subject(at: position) == nil) == (position % 3 == 0))
        }
        // Nothing is read beyond a damaged pack's end.
        var damaged = hexes.bytes
        for _ in 0..<4 { damaged[Int.random(in: damaged.indices, using: &random)] = .random(in: 0...255, using: &random) }
        damaged.removeLast(Int.random(in: 0...min(60, damaged.count), using: &random))
        guard let read = PackedHexes(damaged) else { return }
        for position in read.entries.indices { _ = (read.messageID(at: position), read.digest(at: position), read.subject(at: position)) }
    }
}
