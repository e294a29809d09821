import GRDB
import HexlistModel
import Synchronization
import TestSupport
import Testing

@testable import HexlistStore

/// Hexes that are sent before their commit.
@Suite(.timeLimit(.minutes(5))) struct AheadTests {
    private final class Told: Sendable {
        let left = Mutex<[Int64]>([])
        let done = Mutex<[Int64?]>([])
    }

    private let test: TestStore
    private let peer: TestPeer
    private let told = Told()

    init() throws {
        test = try TestStore()
        peer = try TestPeer(1)
        // A row in `late` without a row in `early` makes COMMIT fail, but no earlier statement.
        try test.store.onWritingConnection { db in
            try db.execute(sql: "CREATE TABLE early (id INTEGER PRIMARY KEY)")
            try db.execute(sql: "CREATE TABLE late (id INTEGER REFERENCES early (id) DEFERRABLE INITIALLY DEFERRED)")
        }
    }

    private func terms(bounds: OutboxBounds = OutboxBounds(), warns: Bool = false) -> EnqueueOptions {
        let contact = PeerContact(peer: peer.id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start)
        return EnqueueOptions(recipients: [contact], warns: warns, now: start, lifetime: day, bounds: bounds)
    }

    private func hex(_ number: UInt64) -> PreparedHexes {
        PreparedHexes([PreparedHex(messageID: message(number), hasKey: false, body: Array("{}".utf8))])
    }

    private func enqueue(_ number: UInt64) {
        test.store.enqueue([hex(number)], terms()) { [told] result in Self.done(result, told) }
    }

    /// - Returns: whether the hex was sent before its commit.
    @discardableResult
    private func enqueueEarly(_ number: UInt64, _ terms: EnqueueOptions? = nil) -> Bool {
        test.store.enqueueEarly(hex(number), terms ?? self.terms()) { [told] report in
            told.left.withLock { $0.append(Self.id(report) ?? 0) }
        } completion: { [told] result, _ in
            Self.done(result, told)
        }
    }

    private static func done(_ result: Result<EnqueueReport, any Error>, _ told: Told) {
        told.done.withLock { $0.append((try? result.get()).flatMap(id)) }
    }

    private static func id(_ report: EnqueueReport) -> Int64? { report.results.first.flatMap { try? $0.get().first?.id } }

    /// Runs the requests that `body` submits in one transaction.
    private func together(_ body: () -> Void) throws {
        let gate = try Gate(test.store)
        body()
        gate.release()
        try? test.store.writeSync { _ in }
    }

    @Test("a hex is sent before its commit, and reported again after it")
    func order() throws {
        let store = test.store
        let seen = Mutex<[Int]>([])
        let rows: @Sendable () -> Int = { (try? store.readSync { try $0.outboxPage(limit: 9).items.count }) ?? -1 }
        let isAhead = store.enqueueEarly(hex(1), terms()) { _ in
            seen.withLock { $0.append(rows()) }
        } completion: { _, _ in
            seen.withLock { $0.append(rows()) }
        }
        try store.writeSync { _ in }
        #expect(isAhead)
        #expect(seen.withLock { $0 } == [0, 1])
    }

    @Test("the id of a sent hex is not used again, even if its transaction failed")
    func idsAreKept() throws {
        try together {
            enqueueEarly(1)
            test.store.submit({ try $0.run("INSERT INTO late VALUES (1)") }, completion: { _ in })
        }
        #expect(told.left.withLock { $0 } == [1])
        #expect(told.done.withLock { $0 } == [nil])
        #expect(try test.read { try $0.outboxPage(limit: 9).items.isEmpty })
        try together { enqueue(2) }
        #expect(told.done.withLock { $0 } == [nil, 2])
        // A late result for the missing row changes no other row.
        let late = [Settlement(id: 1, state: .stored)]
        let moves = try test.write { [id = peer.id] in try $0.settle(late, of: id, at: start) }
        #expect(moves.isEmpty)
        #expect(try test.read { try $0.outboxRow(2) }?.state == .queued)
        #expect(try test.countersAreRight())
    }

    @Test("a result that arrives before the commit of its row is recorded with it", arguments: [1, 64], [false, true])
    func earlyAnswer(others: Int, isAwaited: Bool) async throws {
        let answered = Mutex<[OutboxStateChange]>([])
        try together {
            enqueueEarly(1)
            let results = (1...Int64(others)).map { RowResult(id: $0, .stored) }
            test.store.settle(results, of: peer.id, next: nil, at: start, isAwaited: isAwaited) { result in
                if let moves = try? result.get() { answered.withLock { $0 += moves } }
            }
        }
        try await called { done in test.store.finishWriting { done(()) } }
        #expect(answered.withLock { $0 } == [OutboxStateChange(ids: 1...1, peer: peer.id, from: .queued, to: .stored)])
        #expect(try test.read { try $0.outboxRow(1) }?.state == .stored)
    }

    @Test("unused ids of a batch are used by the next one")
    func unusedIDs() throws {
        let key = PreparedHexes([PreparedHex(messageID: message(7), hasKey: true, body: Array("{}".utf8))])
        for _ in 1...2 {
            test.store.enqueue([key], terms()) { _ in }
            try test.store.writeSync { _ in }
        }
        enqueueEarly(8)
        try test.store.writeSync { _ in }
        #expect(told.left.withLock { $0 } == [2])
    }

    @Test("ids follow the order of the calls, for early sends and others")
    func idsInOrder() throws {
        try together {
            enqueue(1)
            enqueueEarly(2)
            enqueue(3)
            enqueueEarly(4)
        }
        #expect(told.left.withLock { $0 } == [2, 4])
        #expect(told.done.withLock { $0 } == [1, 2, 3, 4])
        #expect(try test.read { try $0.outboxPage(limit: 9).items.map(\.id) } == [1, 2, 3, 4])
        // A reopened store continues after these ids.
        #expect(try test.store.onWritingConnection { try StoreCounters(on: $0) }.nextOutbox == 5)
    }

    @Test("after a transaction that failed because of the disk, no hex is sent early until a new row is committed")
    func fullDisk() throws {
        try test.store.onWritingConnection { try $0.execute(sql: "PRAGMA max_page_count = 1") }  // no page can be added
        let large = outgoing(1, to: peer, body: String(repeating: "x", count: 900_000))
        #expect(throws: HexlistError.self) { try test.store.writeSync { try $0.enqueue(large) } }
        _ = try test.store.writeSync { try $0.run("DELETE FROM early") }  // succeeds, because it needs no new page
        try test.store.onWritingConnection { try $0.execute(sql: "PRAGMA max_page_count = 100000") }
        #expect(!enqueueEarly(2))
        // A refused batch commits no row, so still no hex is sent early.
        test.store.enqueue([hex(2)], terms(bounds: OutboxBounds(rows: 0))) { _ in }
        try test.store.writeSync { _ in }
        #expect(!enqueueEarly(2))
        enqueue(2)
        try test.store.writeSync { _ in }
        #expect(told.done.withLock { $0 } == [1])
        #expect(enqueueEarly(3))
        try test.store.writeSync { _ in }
        #expect(told.done.withLock { $0 } == [1, 2])
    }

    @Test("no hex is sent early if the outbox may be full, counting uncommitted rows")
    func fullOutbox() throws {
        let two = terms(bounds: OutboxBounds(rows: 2))
        try together {
            #expect(enqueueEarly(1, two))
            enqueue(2)
            #expect(!enqueueEarly(3, two))
        }
        #expect(!enqueueEarly(3, two))
        #expect(!enqueueEarly(3, terms(bounds: OutboxBounds(bytes: 3 * Int(OutboxBounds.rowBytes)))))
        #expect(enqueueEarly(3))
        try test.store.writeSync { _ in }
        #expect(told.done.withLock { $0 } == [1, 2, 3])
    }

    @Test("no hex is sent early that may be refused because of a recent failure")
    func failedLately() throws {
        enqueueEarly(1)
        let failed = [Settlement(id: 1, state: .failed)]
        try test.write { [id = peer.id] in _ = try $0.settle(failed, of: id, at: start) }
        #expect(!enqueueEarly(2, terms(warns: true)))
        #expect(enqueueEarly(2))
        try test.store.writeSync { _ in }
        #expect(told.done.withLock { $0 } == [1, 2])
    }
}
