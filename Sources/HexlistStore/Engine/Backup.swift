internal import Foundation
internal import GRDB
internal import HexlistModel

/// A backup: one SQLite file that contains a copy of the store and additional files, such as the identity.
///
/// Its application id differs from a store's, so that no daemon opens it by mistake.
public enum StoreBackup {
    /// The application id of a backup, "HexB": bytes 68 to 71 of the SQLite file.
    static let applicationID: Int32 = 0x4865_7842
    /// The SQL statement that creates the table of additional files.
    static let files = "CREATE TABLE backupFile (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT"
    /// Maximum number of additional files, and maximum bytes of each.
    private static let (maxFiles, maxFileBytes) = (16, 64 << 10)
    /// Number of pages copied in one step: 16 MiB with 4 KiB pages. Cancellation is checked between two steps.
    fileprivate static let pagesPerStep: CInt = 4_096

    /// Creates a store from a backup and checks the integrity of the copy. The backup is not changed.
    ///
    /// - Parameter path: the path of the new store. No file may exist there.
    /// - Returns: the additional files in the backup, by name.
    /// - Throws: `.badRequest` if the file is not a backup; `.storeUnusable` if it is damaged or of a newer Hexlist; `.storageFull` if the
    ///   disk is full.
    public static func restore(_ backup: String, to path: String) throws -> [String: [UInt8]] {
        do {
            try inspect(backup)
            try StoreFile.makeEmpty(path)
            var reading = StoreConnection.plainConfiguration
            reading.readonly = true
            let source = try DatabaseQueue(path: backup, configuration: reading)
            let made = try DatabaseQueue(path: path, configuration: StoreFile.makingConfiguration)
            try source.backup(to: made, pagesPerStep: pagesPerStep)
            try source.close()
            let files = try made.writeWithoutTransaction { db in
                guard try StoreSchema.isWhole(db, with: StoreBackup.files), try String.fetchOne(db, sql: "PRAGMA quick_check(1)") == "ok"
                else { throw damaged(backup) }
                let rows = try Row.fetchAll(
                    db, sql: "SELECT name, content FROM backupFile WHERE coalesce(length(content), 0) <= \(maxFileBytes) LIMIT \(maxFiles)")
                // A forged backup may have values of any type.
                let files = try rows.map { row -> (String, [UInt8]) in
                    guard let name = String.fromDatabaseValue(row[0]), let content = Data.fromDatabaseValue(row[1]) else {
                        throw damaged(backup)
                    }
                    return (name, [UInt8](content))
                }
                try db.execute(sql: "DROP TABLE backupFile; PRAGMA application_id = \(StoreFile.applicationID)")
                return Dictionary(files) { first, _ in first }
            }
            try made.close()
            let store = try HexStore(path: path)  // applies the migrations of this version
            try store.writeSync { try $0.renewReplicas() }
            try store.close()
            return files
        } catch let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR].contains(error.resultCode) {
            throw damaged(backup)
        } catch {
            throw HexlistError.of(error, path: path)
        }
    }

    private static func inspect(_ path: String) throws(HexlistError) {
        guard let header = StoreFile.header(path) else {
            throw HexlistError(
                .badRequest, "\(path) cannot be read (\(String(cString: strerror(errno)))).",
                hint: "Name a file that `hexlist backup` wrote.")
        }
        guard header.isSQLite, header.applicationID == UInt32(bitPattern: applicationID) else {
            let isStore = header.isSQLite && header.applicationID == UInt32(bitPattern: StoreFile.applicationID)
            throw HexlistError(
                .badRequest, "\(path) is \(isStore ? "a Hexlist store, not a backup" : "not a Hexlist backup").",
                hint: isStore
                    ? "To use a store, pass the folder with it and its identity.pem: `hexlistd --state-dir`."
                    : "Name a file that `hexlist backup` wrote.")
        }
        guard header.schema <= UInt32(StoreSchema.version) else { throw StoreSchema.newer(path, version: Int(header.schema)) }
    }

    private static func damaged(_ path: String) -> HexlistError {
        HexlistError(.storeUnusable, "The backup \(path) is damaged.", hint: "Nothing was changed. Take another backup.")
    }
}

extension HexStore {
    /// Writes a backup of one snapshot of the store. Other reads and writes continue, but no checkpoint can complete before the backup
    /// ends, so the WAL grows.
    ///
    /// - Parameters:
    ///   - path: the path of the backup, with mode 0600. No file may exist there. After a failure the file is deleted.
    ///   - files: additional files, by name.
    ///   - diskReserve: bytes of the file system to leave free.
    /// - Throws: `.storageFull` before anything is written if the disk has no space for the backup; `CancellationError`.
    public func backUp(to path: String, files: [String: [UInt8]], diskReserve: Int64) async throws {
        try StoreFile.makeEmpty(path)
        let isCancelled = CancellationFlag()
        do {
            let needed = StoreFile.bytes(self.path) + diskReserve
            guard StoreFile.freeBytes(path).map({ $0 >= needed }) ?? true else {
                throw HexlistError(
                    .storageFull, "The disk has no space for a copy of the store (\(needed >> 20) MiB with the reserve).",
                    hint: "Free disk space.")
            }
            try await withTaskCancellationHandler {
                try await readDatabase { source in
                    let made = try DatabaseQueue(path: path, configuration: StoreFile.makingConfiguration)
                    try made.writeWithoutTransaction { db in
                        try source.backup(to: db, pagesPerStep: StoreBackup.pagesPerStep) { _ in try isCancelled.check() }
                        // The header of the copy says WAL mode, as in the store. DELETE mode makes the backup a single file without a WAL.
                        _ = try String.fetchOne(db, sql: "PRAGMA journal_mode = DELETE")
                        try StoreSchema.dropOthers(db)
                        try db.execute(sql: StoreBackup.files)
                        for (name, content) in files {
                            try db.execute(sql: "INSERT INTO backupFile VALUES (?, ?)", arguments: [name, Data(content)])
                        }
                        try db.execute(sql: "PRAGMA application_id = \(StoreBackup.applicationID)")
                    }
                    try made.close()
                }
            } onCancel: {
                isCancelled.set()
            }
        } catch {
            for file in [path, path + "-journal", path + "-wal", path + "-shm"] { unlink(file) }
            throw error is CancellationError ? error : HexlistError.of(error, path: path)
        }
    }
}
