import Foundation
import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite(.timeLimit(.minutes(5))) struct BackupTests {
    private func backUp(_ test: TestStore, _ name: String = "copy", reserve: Int64 = 0) async throws -> String {
        let path = "\(test.folder)/\(name)"
        try await test.store.backUp(to: path, files: ["identity.pem": [1, 0, 255]], diskReserve: reserve)
        return path
    }

    @Test func everythingComesBackAndTheStoreGoesOnMeanwhile() async throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try test.receive((0..<2_000).map { hex(UInt64($0), "Grüße \($0)") }, from: peer)
        let writing = Task { [store = test.store] in
            for number in 0..<200 {
                _ = try await store.write { writer in
                    let sender = Sender(peer: peer.id, fingerprint: peer.fingerprint, name: "", address: "192.168.1.7")
                    return try writer.receive(
                        [hex(UInt64(10_000 + number))], from: sender, at: start, policy: .held, quotas: HeldQuotas(), diskReserve: 0)
                }
            }
        }
        let path = try await backUp(test)
        try await writing.value
        #expect(try test.read { try $0.counts().inbox } == 2_200)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)

        let restored = "\(test.folder)/restored.sqlite"
        #expect(try StoreBackup.restore(path, to: restored) == ["identity.pem": [1, 0, 255]])
        let store = try HexStore(path: restored)
        defer { try? store.close() }
        try store.readSync { reader in
            let count = Int(try reader.counts().inbox)
            #expect(count >= 2_000 && count <= 2_200)
            // A consistent snapshot: the counters match the rows.
            #expect(try Int.fetchOne(reader.db, sql: "SELECT count(*) FROM hex") == count)
            let texts = try test.read { try $0.hex(7)?.content.texts }
            #expect(try reader.hex(7)?.content.texts == texts)
            #expect(try Int.fetchOne(reader.db, sql: "SELECT count(*) FROM sqlite_schema WHERE name = 'backupFile'") == 0)
            #expect(try reader.peer(peer.id)?.alias == peer.name)
        }
    }

    @Test func aBackupIsNoStoreAndAStoreNoBackup() async throws {
        let test = try TestStore()
        let path = try await backUp(test)
        let asStore = #expect(throws: HexlistError.self) { try HexStore(path: path) }
        #expect(asStore?.code == .storeUnusable && asStore?.hint?.contains("hexlist restore") == true)
        for (name, content) in [("empty", Data()), ("text", Data(repeating: 65, count: 5_000))] {
            try content.write(to: URL(fileURLWithPath: "\(test.folder)/\(name)"))
        }
        for other in [test.path, "\(test.folder)/empty", "\(test.folder)/text", "\(test.folder)/missing", test.folder] {
            let error = #expect(throws: HexlistError.self) { try StoreBackup.restore(other, to: "\(test.folder)/made") }
            #expect(error?.code == .badRequest, "\(other)")
            #expect(!FileManager.default.fileExists(atPath: "\(test.folder)/made"))
        }
    }

    @Test(arguments: [0.3, 0.6, 0.95]) func aBackupThatIsDamagedOrCutOffIsRefused(_ place: Double) async throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try test.receive((0..<500).map { hex(UInt64($0)) }, from: peer)
        let path = try await backUp(test)
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        let at = Int(Double(whole.count) * place)
        for (name, bytes) in [
            ("cut", whole.prefix(at)), ("damaged", whole.prefix(at) + Data(repeating: 0xA5, count: 8_192) + whole.dropFirst(at + 8_192)),
        ] {
            let broken = "\(test.folder)/\(name)"
            try Data(bytes).write(to: URL(fileURLWithPath: broken))
            let error = #expect(throws: HexlistError.self) { try StoreBackup.restore(broken, to: "\(test.folder)/\(name).made") }
            #expect(error?.code == .storeUnusable, "\(name)")
        }
    }

    @Test func aBackupOfANewerVersionIsRefused() async throws {
        let test = try TestStore()
        let path = try await backUp(test)
        let queue = try DatabaseQueue(path: path)
        try await queue.write { try $0.execute(sql: "PRAGMA user_version = 999") }
        try queue.close()
        let error = #expect(throws: HexlistError.self) { try StoreBackup.restore(path, to: "\(test.folder)/made") }
        #expect(error?.code == .storeUnusable)
    }

    @Test func whatDoesNotFitIsSaidBeforeAnythingIsWritten() async throws {
        let test = try TestStore()
        let error = await #expect(throws: HexlistError.self) { try await backUp(test, reserve: 1 << 60) }
        #expect(error?.code == .storageFull)
        #expect(!FileManager.default.fileExists(atPath: "\(test.folder)/copy"))
        _ = try await backUp(test)
        await #expect(throws: HexlistError.self) { try await backUp(test) }  // the existing file is not replaced
        #expect(FileManager.default.fileExists(atPath: "\(test.folder)/copy"))
    }

    @Test(
        "a made-up file is refused as a backup, without a trap",
        arguments: [
            "DROP TABLE backupFile", "DROP TABLE peerGroup", "DROP INDEX hexPeer", "DROP TRIGGER hexDeleted", "DELETE FROM tally",
            "ALTER TABLE peer DROP COLUMN notify", "ALTER TABLE hex ADD COLUMN more TEXT", "CREATE TABLE more (id)",
            "CREATE TRIGGER evil AFTER INSERT ON event BEGIN UPDATE peer SET trust = 'trusted'; END",
            "DROP TRIGGER hexDeleted; CREATE TRIGGER hexDeleted AFTER DELETE ON hex BEGIN DELETE FROM peer; END",
            "CREATE VIEW more AS SELECT 1",
            "DROP TABLE backupFile; CREATE VIEW backupFile AS SELECT 'identity.pem' AS name, x'00' AS content",
            "DROP TABLE search; CREATE TABLE search (about, sender, link, key)", "PRAGMA user_version = 0", "PRAGMA user_version = 1",
            "DROP TABLE backupFile; CREATE TABLE backupFile (name TEXT PRIMARY KEY, content); INSERT INTO backupFile VALUES (NULL, NULL)",
            "DROP TABLE backupFile; CREATE TABLE backupFile (name TEXT PRIMARY KEY, content); INSERT INTO backupFile VALUES (x'FF', 5)",
        ]) func madeUp(sql: String) async throws
    {
        let test = try TestStore()
        let path = try await backUp(test)
        let queue = try DatabaseQueue(path: path)
        try await queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
        let error = #expect(throws: HexlistError.self) { try StoreBackup.restore(path, to: "\(test.folder)/made") }
        #expect(error?.code == .storeUnusable, "\(error?.message ?? "")")
    }

    @Test(
        "a store that contains another program's tables is backed up without them, and restored",
        arguments: [
            "CREATE TABLE more (id); CREATE INDEX moreID ON more (id)", "CREATE INDEX moreColor ON hex (color)",
            "CREATE VIEW more AS SELECT 1",
            "CREATE TABLE more (id); CREATE TRIGGER moreHexes AFTER INSERT ON hex BEGIN INSERT INTO more VALUES (new.id); END",
            "CREATE VIRTUAL TABLE more USING fts5(text); INSERT INTO more VALUES ('river')", "CREATE TABLE \"a \"\"table\" (id)", "ANALYZE",
        ]) func foreignTables(sql: String) async throws
    {
        let test = try TestStore()
        _ = try test.write { try $0.insertMine(content("mine"), at: start) }
        try test.store.onWritingConnection { try $0.execute(sql: sql) }
        let path = try await backUp(test)
        let restored = "\(test.folder)/restored"
        _ = try StoreBackup.restore(path, to: restored)
        let store = try HexStore(path: restored)
        #expect(try store.readSync { try $0.counts() }.mine == 1)
        try store.close()
    }

    @Test func aFileTooLargeToBelongToAStoreIsLeftOut() async throws {
        let test = try TestStore()
        let path = try await backUp(test)
        let queue = try DatabaseQueue(path: path)
        try await queue.write { try $0.execute(sql: "INSERT INTO backupFile VALUES ('large', zeroblob(100000000))") }
        try queue.close()
        #expect(try StoreBackup.restore(path, to: "\(test.folder)/made")["large"] == nil)
    }
}
