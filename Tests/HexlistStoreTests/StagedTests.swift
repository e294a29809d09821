import Dispatch
import GRDB
import HexlistModel
import Synchronization
import TestSupport
import Testing

@testable import HexlistStore

/// Rows that are told of before they are durable.
@Suite(.timeLimit(.minutes(2))) struct StagedTests {
    private final class Told: Sendable {
        let staged = Mutex<[Int64]>([])
        let done = Mutex<[Int64?]>([])
    }

    private let test: TestStore
    private let peer: TestPeer
    private let told = Told()

    init() throws {
        test = try TestStore()
        peer = try TestPeer(1)
        // A row in `late` makes the commit fail, and nothing before it.
        try test.store.onWritingConnection { db in
            try db.execute(sql: "CREATE TABLE early (id INTEGER PRIMARY KEY)")
            try db.execute(sql: "CREATE TABLE late (id INTEGER REFERENCES early (id) DEFERRABLE INITIALLY DEFERRED)")
        }
    }

    private func enqueue(_ number: UInt64, staged: Bool = true) {
        let hex = PreparedHex(messageID: message(number), hasKey: false, body: Array("{}".utf8))
        let sighting = PeerSighting(peer: peer.id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start)
        let terms = OutboxTerms(recipients: [sighting], now: start, expiresAt: start + day)
        let note: @Sendable (EnqueueReport) -> Void = { [told] report in told.staged.withLock { $0.append(Self.id(report) ?? 0) } }
        test.store.enqueue([PreparedHexes([hex])], terms, tellStaged: staged ? note : nil) { [told] result in
            told.done.withLock { $0.append((try? result.get()).flatMap(Self.id)) }
        }
    }

    private static func id(_ report: EnqueueReport) -> Int64? { report.results.first.flatMap { try? $0.get().first?.id } }

    /// Runs what `body` submits as one transaction.
    private func together(_ body: () -> Void) {
        let (entered, open) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        test.store.submit(
            { _ in
                entered.signal()
                open.wait()
            }, completion: { _ in })
        entered.wait()
        body()
        open.signal()
        try? test.store.writeSync { _ in }
    }

    @Test("a row is told of before its commit, and once more after it")
    func order() throws {
        let seen = Mutex<[Int]>([])
        let hex = PreparedHex(messageID: message(1), hasKey: false, body: Array("{}".utf8))
        let sighting = PeerSighting(peer: peer.id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start)
        let store = test.store
        let rows: @Sendable () -> Int = { (try? store.readSync { try $0.outboxPage(limit: 9).items.count }) ?? -1 }
        store.enqueue([PreparedHexes([hex])], OutboxTerms(recipients: [sighting], now: start, expiresAt: start + day)) { _ in
            seen.withLock { $0.append(rows()) }
        } completion: { _ in
            seen.withLock { $0.append(rows()) }
        }
        try store.writeSync { _ in }
        #expect(seen.withLock { $0 } == [0, 1])
    }

    @Test("an id that was told of is not given again, though its transaction failed")
    func idsAreKept() throws {
        together {
            enqueue(1)
            test.store.submit({ try $0.run("INSERT INTO late VALUES (1)") }, completion: { _ in })
        }
        #expect(told.staged.withLock { $0 } == [1])
        #expect(told.done.withLock { $0 } == [nil])
        #expect(try test.read { try $0.outboxPage(limit: 9).items.isEmpty })
        together { enqueue(2) }
        #expect(told.done.withLock { $0 } == [nil, 2])
        // What comes late for the row that never was changes no other.
        let late = [Settlement(id: 1, state: .stored)]
        let moves = try test.write { [id = peer.id] in try $0.settle(late, of: id, at: start) }
        #expect(moves.isEmpty)
        #expect(try test.read { try $0.outboxRow(2) }?.state == .queued)
        #expect(try test.countersAreRight())
    }

    @Test("rows that are told of have lower ids than all others of their transaction")
    func first() {
        together {
            enqueue(1, staged: false)
            enqueue(2)
            enqueue(3, staged: false)
            enqueue(4)
        }
        #expect(told.staged.withLock { $0 } == [1, 2])
        #expect(told.done.withLock { $0 } == [1, 2, 3, 4])
    }

    @Test("after a transaction that failed for the disk nothing is told of early until rows like it were committed")
    func fullDisk() throws {
        try test.store.onWritingConnection { try $0.execute(sql: "PRAGMA max_page_count = 1") }  // as many pages as there are
        let large = outgoing(1, to: peer, body: String(repeating: "x", count: 900_000))
        #expect(throws: HexlistError.self) { try test.store.writeSync { try $0.enqueue(large) } }
        try test.store.writeSync { try $0.run("DELETE FROM early") }  // for this there is room
        try test.store.onWritingConnection { try $0.execute(sql: "PRAGMA max_page_count = 100000") }
        enqueue(2)
        try test.store.writeSync { _ in }
        #expect(told.done.withLock { $0 } == [1])
        #expect(told.staged.withLock { $0 }.isEmpty)
        enqueue(3)
        try test.store.writeSync { _ in }
        #expect(told.done.withLock { $0 } == [1, 2])
        #expect(told.staged.withLock { $0 } == [2])
    }
}
