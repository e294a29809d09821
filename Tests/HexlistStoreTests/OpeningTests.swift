import Foundation
import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite struct OpeningTests {
    @Test func aNewStoreIsPrivateDurableAndEmpty() throws {
        let test = try TestStore()
        _ = try test.write { try $0.setMeta("a", "b") }
        for file in ["", "-wal", "-shm"] {
            let mode = try FileManager.default.attributesOfItem(atPath: test.path + file)[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(file)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: test.folder).allSatisfy { !$0.hasSuffix(".new") })
        let pragmas = ["synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "trusted_schema": "0"]
        for (pragma, value) in pragmas {
            #expect(try test.store.onWritingConnection { try String.fetchOne($0, sql: "PRAGMA \(pragma)") } == value, "\(pragma)")
        }
        #expect(try test.read { try String.fetchOne($0.db, sql: "PRAGMA trusted_schema") } == "0")
        #expect(throws: (any Error).self) { try test.read { try $0.db.execute(sql: "DELETE FROM meta") } }
        #expect(try test.read { try $0.meta("a") } == "b")
        #expect(try test.read { $0.storeBytes() } > 4_096)
        #expect(try test.read { try $0.counts() }.inbox == 0)
        #expect(try test.read { try $0.peers() }.isEmpty)
    }

    @Test func whatWasWrittenIsThereAgain() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        try test.receive([hex(1)], from: peer)
        try test.store.close()
        try test.store.close()  // a second call does nothing
        #expect(throws: HexlistError.self) { try test.write { try $0.setMeta("a", "b") } }
        #expect(throws: HexlistError.self) { try test.read { try $0.counts() } }
        let again = try HexStore(path: test.path)
        #expect(try again.readSync { try $0.counts() }.held == 1)
        #expect(try again.readSync { try $0.peer(peer.id) }?.held == 1)
        try again.close()
    }

    @Test func anOpenFileIsClosedToOthers() throws {
        let test = try TestStore()
        try test.store.close()
        chmod(test.path, 0o644)
        let again = try HexStore(path: test.path)
        let mode = try FileManager.default.attributesOfItem(atPath: test.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        try again.close()
    }

    @Test func aLeftoverOfACrashWhileMakingIsNoHindrance() throws {
        let folder = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data("half".utf8).write(to: URL(fileURLWithPath: folder + "/s.sqlite.new"))
        try HexStore(path: folder + "/s.sqlite").close()
        #expect(!FileManager.default.fileExists(atPath: folder + "/s.sqlite.new"))
    }

    enum Strange: String, CaseIterable, CustomTestStringConvertible {
        case text, garbage, empty, otherProgram, newer, newerInLog, folder, missingFolder, pipe, truncated, damaged
        case deadLink, deadRelativeLink, onlyLog, onlyIndexOfLog, onlyJournal
        var testDescription: String { rawValue }

        /// Text of the error message.
        var says: String {
            switch self {
            case .text, .garbage: "not a SQLite database"
            case .empty: "empty"
            case .otherProgram: "another program"
            case .newer, .newerInLog: "newer Hexlist"
            case .folder: "is a folder"
            case .missingFolder: "is missing"
            case .pipe: "not a regular file"
            case .truncated, .damaged: "damaged"
            case .deadLink, .deadRelativeLink: "is a link to"
            case .onlyLog: "-wal exists"
            case .onlyIndexOfLog: "-shm exists"
            case .onlyJournal: "-journal exists"
            }
        }

        func make(at path: String) throws {
            switch self {
            case .text: try Data(String(repeating: "not a database\n", count: 100).utf8).write(to: URL(fileURLWithPath: path))
            case .garbage:
                try Data((0..<8_192).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 3) }).write(to: URL(fileURLWithPath: path))
            case .empty: try Data().write(to: URL(fileURLWithPath: path))
            case .otherProgram:
                let queue = try DatabaseQueue(path: path)
                try queue.write { try $0.execute(sql: "CREATE TABLE bookmarks (a); PRAGMA application_id = 17") }
                try queue.close()
            case .newer:
                try HexStore(path: path).close()
                let queue = try DatabaseQueue(path: path)
                try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)") }
                try queue.close()
            case .newerInLog:  // the header in the file is still the old one, as after a crash
                try HexStore(path: path).close()
                let queue = try DatabaseQueue(path: path)
                try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 99") }
                let log = try Data(contentsOf: URL(fileURLWithPath: path + "-wal"))
                let file = try Data(contentsOf: URL(fileURLWithPath: path))
                try queue.close()
                try file.write(to: URL(fileURLWithPath: path))
                try log.write(to: URL(fileURLWithPath: path + "-wal"))
            case .folder: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            case .missingFolder: break
            case .pipe: mkfifo(path, 0o600)
            case .truncated:
                try HexStore(path: path).close()
                truncate(path, 4_096 + 100)
            case .damaged:
                try HexStore(path: path).close()
                var file = try Data(contentsOf: URL(fileURLWithPath: path))
                for offset in 100..<file.count { file[offset] = UInt8(truncatingIfNeeded: offset &* 31) }
                try file.write(to: URL(fileURLWithPath: path))
            case .deadLink: symlink(path + ".unmounted/s.sqlite", path)
            case .deadRelativeLink: symlink("unmounted", path)
            case .onlyLog: try Data("log".utf8).write(to: URL(fileURLWithPath: path + "-wal"))
            case .onlyIndexOfLog: try Data("log".utf8).write(to: URL(fileURLWithPath: path + "-shm"))
            case .onlyJournal: try Data("log".utf8).write(to: URL(fileURLWithPath: path + "-journal"))
            }
        }
    }

    @Test(arguments: Strange.allCases) func somethingElseIsLeftAlone(_ strange: Strange) throws {
        let folder = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + (strange == .missingFolder ? "/none/s.sqlite" : "/s.sqlite")
        try strange.make(at: path)
        let before = strange == .pipe ? nil : FileManager.default.contents(atPath: path)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        let error = #expect(throws: HexlistError.self) { try HexStore(path: path).close() }
        #expect(error?.code == .storeUnusable)
        #expect(error?.message.contains(path) == true && error?.message.contains(strange.says) == true, "\(error?.message ?? "")")
        #expect(error?.hint?.isEmpty == false)
        // SQLite may checkpoint a WAL it recovers. Nothing else may change.
        if strange != .pipe, strange != .newerInLog { #expect(FileManager.default.contents(atPath: path) == before) }
        if ![.newerInLog, .damaged, .truncated].contains(strange) {
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == names.sorted())
        }
    }

    @Test func aStoreThatALinkLeadsToIsUsedWhereItIs() throws {
        let test = try TestStore()
        try test.write { try $0.setMeta("a", "b") }
        try test.store.close()
        let (disk, link) = (test.folder + "/disk.sqlite", test.path)
        try FileManager.default.moveItem(atPath: test.path, toPath: disk)
        symlink(disk, link)
        let store = try HexStore(path: link)
        #expect(try store.readSync { try $0.meta("a") } == "b")
        try store.writeSync { try $0.setMeta("a", "c") }
        try store.close()
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == disk)
        let again = try HexStore(path: disk)
        #expect(try again.readSync { try $0.meta("a") } == "c")
        try again.close()
    }

    @Test(
        "causes with the same error code are distinguished",
        arguments: [
            (StoreFault(code: 15 << 8 | 10, message: "disk I/O error", systemError: ENOLCK), "has no locks (No locks available)"),
            (StoreFault(code: 20 << 8 | 10, message: "disk I/O error", systemError: EOPNOTSUPP), "has no locks"),
            (StoreFault(code: 21 << 8 | 10, message: "disk I/O error", systemError: ENODEV), "does not support shared memory"),
            (StoreFault(code: 5, message: "database is locked"), "locked by another program"),
            (StoreFault(code: 15, message: "locking protocol"), "locked by another program"),
            (StoreFault(code: 8, message: "attempt to write a readonly database"), "can only be read"),
            (StoreFault(code: 14, message: "unable to open database file", systemError: EMFILE), "too many files"),
            (StoreFault(code: 14, message: "unable to open database file", systemError: EACCES), "Permission denied"),
            (StoreFault(code: 10, message: "disk I/O error", systemError: ENOSPC), "No space"),
            (StoreFault(code: 10, message: "disk I/O error", systemError: EDQUOT), "No space"),
            (StoreFault(code: 10, message: "disk I/O error", systemError: EIO), "Input/output error"),
        ])
    func causes(_ fault: StoreFault, says: String) throws {
        let folder = try TestStore.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let error = HexlistError.of(fault, path: folder + "/s.sqlite") as? HexlistError
        #expect(error?.message.contains(says) == true && error?.hint?.isEmpty == false, "\(error?.message ?? "")")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }

    @Test(arguments: ["nextHex", "nextInbox", "nextOutbox", "nextEvent"], [Int64.max - 4, 1 << 50, 0, .min])
    func aStoreWithoutANextNumberIsDamaged(_ column: String, _ number: Int64) throws {
        let test = try TestStore()
        try test.store.close()
        try DatabaseQueue(path: test.path).write { try $0.execute(sql: "UPDATE tally SET \(column) = ?", arguments: [number]) }
        let error = #expect(throws: HexlistError.self) { try HexStore(path: test.path).close() }
        #expect(error?.code == .storeUnusable && error?.hint?.isEmpty == false, "\(error?.message ?? "")")
    }

    @Test(.enabled(if: geteuid() != 0, "root writes everywhere"), arguments: [0o500, 0o000])
    func aFolderThatCannotBeWrittenIsSaid(_ mode: Int) throws {
        let folder = try TestStore.makeFolder()
        defer {
            chmod(folder, 0o700)
            try? FileManager.default.removeItem(atPath: folder)
        }
        chmod(folder, mode_t(mode))
        let error = #expect(throws: HexlistError.self) { try HexStore(path: folder + "/s.sqlite").close() }
        #expect(error?.code == .storeUnusable)
    }

    @Test(.enabled(if: geteuid() != 0, "root reads everything")) func aFileThatCannotBeReadIsSaid() throws {
        let test = try TestStore()
        try test.store.close()
        chmod(test.path, 0)
        let error = #expect(throws: HexlistError.self) { try HexStore(path: test.path).close() }
        #expect(error?.code == .storeUnusable)
        #expect(error?.message.contains("cannot be read") == true)
    }
}
