import Foundation
import GRDB
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// Another program writes to the store, or checkpoints it, between two transactions. No data of either is lost.
@Suite(.timeLimit(.minutes(5))) struct ForeignWriterTests {
    private let test: TestStore
    /// The other program's connection, with SQLite's defaults except for the busy timeout: the store may be indexing in a transaction.
    private let foreign: DatabaseQueue

    init() throws {
        test = try TestStore()
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        configuration.busyMode = .timeout(60)
        foreign = try DatabaseQueue(path: test.path, configuration: configuration)
        try foreign.write { try $0.execute(sql: "CREATE TABLE foreignNote (number INTEGER PRIMARY KEY)") }
    }

    private func note(_ number: Int) throws {
        try foreign.write { try $0.execute(sql: "INSERT INTO foreignNote VALUES (?)", arguments: [number]) }
    }

    private func seen<Value>(_ body: (Database) throws -> Value) throws -> Value { try foreign.read(body) }

    private func addMine(_ number: Int) throws { _ = try test.write { try $0.insertMine(content("mine \(number)"), at: start) } }

    /// The store after a kill at this moment.
    private func afterKill<Value>(_ body: (Database) throws -> Value) throws -> Value {
        let copy = test.folder + "/killed.sqlite"
        for end in ["", "-wal"] {
            try? FileManager.default.removeItem(atPath: copy + end)
            try FileManager.default.copyItem(atPath: test.path + end, toPath: copy + end)
        }
        return try DatabaseQueue(path: copy).inDatabase { db in
            #expect(try String.fetchAll(db, sql: "PRAGMA integrity_check") == ["ok"])
            return try body(db)
        }
    }

    private static func mine(_ db: Database) throws -> [String] {
        try String.fetchAll(db, sql: "SELECT description FROM hex WHERE location = 'mine' ORDER BY id")
    }

    private static func notes(_ db: Database) throws -> [Int] {
        try Int.fetchAll(db, sql: "SELECT number FROM foreignNote ORDER BY number")
    }

    @Test("a rolled-back transaction leaves no pages that overwrite another program's commit", arguments: [1, 3, 40])
    func rolledBack(hexes: Int) async throws {
        // A small page cache, so that many pages are in the WAL before the rollback.
        try test.store.onWritingConnection { try $0.execute(sql: "PRAGMA cache_size = 20; PRAGMA cache_spill = 20") }
        try addMine(0)
        let parent = try #require(try test.read { try $0.hexPage(HexFilter(location: .mine), limit: 1).items.first?.id })
        for round in 0..<4 {
            // More links than a hex may have, so the whole import is rolled back.
            let many =
                (0..<hexes).map { content("\(round) \($0)", links: max(1, 10_500 / hexes / 3)) } + [content("too many", links: 4_999)]
            await #expect(throws: HexlistError.self) {
                try await test.store.importMine(HexArray(many), into: parent, at: start, diskReserve: 0, digest: { _ in [] })
            }
            try note(round)
            for number in 1...3 { try addMine(round * 3 + number) }
            #expect(try afterKill(Self.notes) == Array(0...round))
            #expect(try afterKill(Self.mine) == (0...round * 3 + 3).map { "mine \($0)" })
        }
    }

    enum Work: String, CaseIterable, CustomTestStringConvertible {
        case write = "INSERT INTO foreignNote SELECT 1000 + coalesce(max(number), 0) FROM foreignNote"
        case passive = "PRAGMA wal_checkpoint(PASSIVE)"
        case restart = "PRAGMA wal_checkpoint(RESTART)"
        case truncate = "PRAGMA wal_checkpoint(TRUNCATE)"
        case vacuum = "VACUUM"
        case table = "CREATE TABLE IF NOT EXISTS foreignOther (a); DROP TABLE foreignOther"
        case index = "CREATE INDEX foreignIndex ON hex (color); DROP INDEX foreignIndex"
        case analyze = "ANALYZE"
        var testDescription: String { rawValue }
    }

    @Test("no data is lost, whatever another program does between two transactions", arguments: Work.allCases)
    func between(_ work: Work) throws {
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        for number in 0..<20 {
            try addMine(number)
            try test.receive([hex(UInt64(number))], from: peer)
            try note(number)
            try foreign.writeWithoutTransaction { try $0.execute(sql: work.rawValue) }
        }
        #expect(try afterKill(Self.mine) == (0..<20).map { "mine \($0)" })
        #expect(try afterKill(Self.notes).filter { $0 < 1_000 } == Array(0..<20))
        #expect(try test.countersAreRight())
        try test.store.close()
        #expect(try foreign.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") } == ["ok"])
        #expect(try foreign.read(Self.mine).count == 20)
    }

    @Test("outbox ids used by another program are not reused")
    func outboxIDs() throws {
        let peer = try TestPeer(1)
        _ = try test.write { try $0.enqueue(outgoing(1, to: peer)) }
        try foreign.write { try $0.execute(sql: "UPDATE tally SET nextOutbox = 50") }
        try test.store.writeSync { _ in }
        let contact = PeerContact(peer: peer.id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start)
        let terms = EnqueueOptions(recipients: [contact], warns: false, now: start, lifetime: day, bounds: OutboxBounds())
        test.store.enqueue([PreparedHexes([PreparedHex(messageID: message(2), hasKey: false, body: Array("{}".utf8))])], terms) { _ in }
        try test.store.writeSync { _ in }
        #expect(try test.read { try $0.outboxPage(limit: 9).items.map(\.id) } == [1, 50])
    }

    @Test("a long WAL is checkpointed after a transaction, and restarted by the next one")
    func checkpoint() throws {
        func size(_ end: String) -> Int64 { StoreFile.fileBytes(test.path + end) }
        for text in ["x", "y"] { try test.write { try $0.setMeta("a", String(repeating: text, count: 9 << 20)) } }
        try test.store.writeSync { _ in }  // the checkpoint has ended when this returns
        let length = size("-wal")
        #expect(length > 16 << 20 && size("") > 9 << 20)
        try test.write { try $0.setMeta("a", String(repeating: "z", count: 9 << 20)) }
        #expect(size("-wal") == length)
        try test.store.close()
        #expect(size("-wal") == 0)
    }

    @Test("a start while another program holds the write lock reads existing data, and continues once the lock is released")
    func lockedAtTheStart() async throws {
        try addMine(0)
        try test.store.close()
        try foreign.inDatabase { db in
            try db.execute(sql: "BEGIN IMMEDIATE; INSERT INTO foreignNote VALUES (1)")
        }
        let store = try HexStore(path: test.path)
        #expect(store.fault?.message.contains("locked by another program") == true)
        #expect(try store.readSync { try $0.counts() }.mine == 1)
        try foreign.inDatabase { try $0.execute(sql: "COMMIT") }
        try await eventually { store.fault == nil }
        _ = try store.writeSync { try $0.insertMine(content("after"), at: start) }
        #expect(try seen(Self.notes) == [1])
        #expect(try seen(Self.mine).count == 2)
        try store.close()
    }

    @Test("a program with a long read keeps the WAL from being reset, and no data is lost")
    func reader() throws {
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try foreign.inDatabase { db in
            try db.execute(sql: "BEGIN")
            _ = try Self.notes(db)
        }
        for text in ["x", "y"] { try test.write { try $0.setMeta("a", String(repeating: text, count: 9 << 20)) } }
        for number in 0..<20 { try addMine(number) }
        #expect(try afterKill(Self.mine).count == 20)
        try foreign.inDatabase { try $0.execute(sql: "COMMIT") }
        #expect(try foreign.read(Self.mine).count == 20)
    }
}
