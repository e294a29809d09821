import CSQLite
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import HexlistStore

/// The log is written a transaction at a time, and whatever a transaction did is there for other connections at once.
@Suite struct GatheredLogTests {
    private final class Store {
        let folder: String
        let path: String
        let writer: DatabaseQueue
        let reader: DatabaseQueue

        /// - Parameters:
        ///   - synchronous: what SQLite syncs; the log's bytes are there without a sync too.
        ///   - disk: changes how the log is written, below what is tested.
        init(synchronous: String, disk: (Database) throws -> Void = { _ in }) throws {
            folder = try TestStore.makeFolder()
            path = folder + "/log.sqlite"
            var configuration = StoreConnection.plainConfiguration
            configuration.allowsUnsafeTransactions = true
            writer = try DatabaseQueue(path: path, configuration: configuration)
            try writer.inDatabase { db in
                // A cache of a few pages, so that a large transaction writes some before its end, and some of them twice.
                try db.execute(
                    sql: """
                        PRAGMA journal_mode = WAL; PRAGMA synchronous = \(synchronous); PRAGMA cache_size = 20; PRAGMA cache_spill = 20;
                        PRAGMA wal_autocheckpoint = 200;
                        CREATE TABLE row (id INTEGER PRIMARY KEY, text NOT NULL);
                        CREATE INDEX rowText ON row (text);
                        """)
                try disk(db)
                try StoreConnection.gatherLog(db)
            }
            reader = try DatabaseQueue(path: path)
        }

        deinit {
            try? writer.close()
            try? reader.close()
            try? FileManager.default.removeItem(atPath: folder)
        }

        func rows(in database: DatabaseQueue) throws -> [Int: String] {
            try database.read { db in
                let rows = try Row.fetchAll(db, sql: "SELECT id, text FROM row")
                return Dictionary(uniqueKeysWithValues: rows.map { ($0[0], $0[1]) })
            }
        }
    }

    @Test(arguments: ["FULL", "NORMAL", "OFF"])
    func otherConnectionsSeeEachTransaction(_ synchronous: String) throws {
        let store = try Store(synchronous: synchronous)
        var random = SeededGenerator(seed: 7)
        var model: [Int: String] = [:]
        for round in 0..<50 {
            // Most are small; some have more pages than are held and than the cache has.
            let count = round % 10 == 0 ? 400 : Int.random(in: 1...8, using: &random)
            let ends = Int.random(in: 0..<4, using: &random) > 0
            var changed = model
            try store.writer.inDatabase { db in
                try db.execute(sql: "BEGIN IMMEDIATE")
                for _ in 0..<count {
                    let id = Int.random(in: 1...600, using: &random)
                    let text = String(repeating: "\(random.next())", count: Int.random(in: 1...60, using: &random))
                    try db.execute(sql: "INSERT OR REPLACE INTO row VALUES (?, ?)", arguments: [id, text])
                    changed[id] = text
                }
                try db.execute(sql: ends ? "COMMIT" : "ROLLBACK")
            }
            if ends { model = changed }
            #expect(try store.rows(in: store.reader) == model)
            if round % 10 == 9 { _ = try store.writer.writeWithoutTransaction { try $0.checkpoint(.restart) } }
        }
        #expect(try store.rows(in: store.writer) == model)
        #expect(try store.reader.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    }

    @Test func aTransactionIsOneSystemCall() throws {
        let store = try Store(synchronous: "NORMAL")
        let calls = try store.writer.inDatabase { db in
            try db.execute(sql: "INSERT INTO row VALUES (1, 'the log has its header')")
            let before = try writes()
            try db.execute(sql: "BEGIN; INSERT INTO row VALUES (2, 'a page of the table'); CREATE TABLE other (id); COMMIT")
            return try writes() - before
        }
        #expect(calls == 1)
    }

    @Test func zerosBehindTheLogAreNoneOfIt() throws {
        let store = try Store(synchronous: "FULL")
        func length() throws -> Int64 {
            try #require(try FileManager.default.attributesOfItem(atPath: store.path + "-wal")[.size] as? Int64)
        }
        func size() throws -> LogSize { try store.writer.writeWithoutTransaction { LogSize(of: $0) } }
        func add(_ id: Int) throws {
            try store.writer.inDatabase { try $0.execute(sql: "INSERT INTO row VALUES (?, zeroblob(100000))", arguments: [id]) }
        }
        try store.writer.inDatabase { try $0.execute(sql: "PRAGMA wal_autocheckpoint = 0") }
        try add(1)
        let written = try length()
        #expect(try size() == LogSize(written: written, length: written))
        try store.writer.writeWithoutTransaction { LogUpkeep.lengthening(by: 256 << 10).perform(on: $0) }
        #expect(try length() == written + 256 << 10)
        #expect(try size() == LogSize(written: written, length: written + 256 << 10))
        try add(2)
        #expect(try length() == written + 256 << 10)
        for id in 3...8 { try add(id) }
        #expect(try size() == LogSize(written: length(), length: length()))
        _ = try store.writer.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        #expect(try length() == 0)
        try add(9)
        try store.writer.writeWithoutTransaction { LogUpkeep.lengthening(by: 256 << 10).perform(on: $0) }
        // What a crash leaves.
        let copy = store.folder + "/copy.sqlite"
        for end in ["", "-wal"] { try FileManager.default.copyItem(atPath: store.path + end, toPath: copy + end) }
        #expect(try DatabaseQueue(path: copy).read { try Int.fetchOne($0, sql: "SELECT count(*) FROM row") } == 9)
    }

    @Test func theLogIsKeptShortAndItsFileLongEnough() throws {
        func due(_ before: Int64, _ now: Int64, of length: Int64) -> LogUpkeep? {
            LogUpkeep.due(since: LogSize(written: before, length: length), LogSize(written: now, length: length))
        }
        let page: Int64 = 4_120
        #expect(due(0, 9 * page, of: 9 * page) == .lengthening(by: 256 << 10))
        #expect(due(9 * page, 18 * page, of: 18 * page + 131_071) == .lengthening(by: 256 << 10))
        #expect(due(9 * page, 18 * page, of: 18 * page + 131_072) == nil)
        #expect(due(9 * page, 9 * page, of: 9 * page) == nil)  // nothing was written
        #expect(due(0, 100 * page, of: 100 * page) == nil)  // the more is written at once, the less it is worth
        #expect(due(900 * page, 9 * page, of: 900 * page) == nil)  // it began anew
        #expect(due(3_990 * page, 3_999 * page, of: 4_100 * page) == nil)
        #expect(due(3_999 * page, 4_000 * page, of: 4_100 * page) == .checkpoint)
    }

    @Test func inQuietItsFileGetsItsLengthAndItIsMovedAtAQuarter() {
        func due(_ written: Int64, of length: Int64, hasRoom: Bool = true) -> LogUpkeep? {
            .dueInQuiet(LogSize(written: written, length: length), hasRoom: hasRoom)
        }
        let page: Int64 = 4_120
        #expect(due(0, of: 0) == .lengthening(by: 1 << 20))
        #expect(due(3_999 * page, of: 3_999 * page) == .lengthening(by: 1 << 20))
        #expect(due(999 * page, of: 4_000 * page) == nil)
        #expect(due(1_000 * page, of: 4_000 * page) == .checkpoint)
        #expect(due(999 * page, of: 999 * page, hasRoom: false) == nil)
        #expect(due(1_000 * page, of: 1_000 * page, hasRoom: false) == .checkpoint)
        let folder = FileManager.default.temporaryDirectory.path
        #expect(!LogUpkeep.Quiet.hasRoom(folder, reserve: 1 << 50) && !LogUpkeep.Quiet.hasRoom(folder, reserve: .max))
    }

    @Test(.enabled("1 GiB has to be free", { LogUpkeep.Quiet.hasRoom(FileManager.default.temporaryDirectory.path, reserve: 0) }))
    func theLogIsTendedWhileNothingIsWritten() async throws {
        let test = try TestStore()
        func size() throws -> LogSize { try test.store.onWritingConnection { LogSize(of: $0) } }
        try test.store.writeSync { try $0.setMeta("a", "small one") }
        try await eventually { try size().length >= 4_000 * 4_120 }
        let written = try size().written
        try test.store.writeSync { try $0.setMeta("a", String(repeating: "x", count: 5 << 20)) }
        #expect(try size().written > written + 5 << 20)
        try await eventually { StoreFile.fileBytes(test.path) > 5 << 20 }
        try test.store.writeSync { try $0.setMeta("a", "small one") }
        #expect(try size().written < 1 << 20)
    }

    @Test func theLogIsTendedOnceATransactionIsDone() throws {
        let test = try TestStore()
        func size() throws -> LogSize { try test.store.onWritingConnection { LogSize(of: $0) } }
        try test.store.writeSync { try $0.setMeta("a", "small one") }
        try test.store.writeSync { _ in }
        let small = try size()
        #expect(small.length >= small.written + 256 << 10)
        for text in ["x", "y"] { try test.store.writeSync { try $0.setMeta("a", String(repeating: text, count: 9 << 20)) } }
        try test.store.writeSync { _ in }
        #expect(try size().written > 16 << 20)
        // What was moved is not moved again: the next transaction begins the log anew.
        try test.store.writeSync { try $0.setMeta("a", "small one") }
        #expect(try size().written < 4 << 20)
    }

    @Test func aFullDiskMetInReadingLosesNothingOfWhatIsCommitted() throws {
        let store = try Store(synchronous: "FULL", disk: Disk.limit)
        var failed = 0
        for pages in stride(from: 20, through: 80, by: 3) {
            let before = try store.rows(in: store.reader)
            let isCommitted = try store.writer.inDatabase { db in
                try db.execute(sql: "BEGIN IMMEDIATE; SAVEPOINT piece")
                for id in 1...pages {
                    let text = "\(pages)" + String(repeating: "x", count: 2_000)
                    try db.execute(sql: "INSERT OR REPLACE INTO row VALUES (?, ?)", arguments: [id, text])
                }
                Disk.isFull.withLock { $0 = true }
                // Reads what was spilled, and can be undone by itself.
                let update = Result { try db.execute(sql: "UPDATE row SET text = text || 'y' WHERE id <= 10") }
                Disk.isFull.withLock { $0 = false }
                if case .failure = update { failed += 1 }
                return (try? db.execute(sql: "COMMIT")) != nil
            }
            let after = try store.rows(in: store.reader)
            if isCommitted { #expect(after[pages]?.hasPrefix("\(pages)x") == true) } else { #expect(after == before) }
            #expect(try store.reader.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
        }
        #expect(failed > 3)
    }

    /// A disk that is full whenever a test says so: the methods of a log, below those that gather.
    private enum Disk {
        static let isFull = Mutex(false)
        nonisolated(unsafe) private static var real: UnsafePointer<sqlite3_io_methods>?
        nonisolated(unsafe) private static let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)

        static func limit(_ db: Database) throws {
            var log: UnsafeMutablePointer<sqlite3_file>?
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema")
            #expect(sqlite3_file_control(db.sqliteConnection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK)
            let file = try #require(log)
            real = file.pointee.pMethods
            methods.initialize(to: file.pointee.pMethods.pointee)
            methods.pointee.xWrite = { file, bytes, count, position in
                Disk.isFull.withLock { $0 } ? SQLITE_FULL : Disk.real?.pointee.xWrite(file, bytes, count, position) ?? SQLITE_MISUSE
            }
            file.pointee.pMethods = UnsafePointer(methods)
        }
    }

    /// The number of writing system calls of this thread.
    private func writes() throws -> Int {
        let counters = try String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8)
        let line = try #require(counters.split(separator: "\n").first { $0.hasPrefix("syscw:") })
        return try #require(Int(line.split(separator: " ")[1]))
    }
}
