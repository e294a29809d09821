internal import Foundation
internal import GRDB
internal import HexlistModel

/// A backup: one SQLite file with everything that is in the store, and files that belong to it, such as the identity.
///
/// It is no store: its application id is another, so that no daemon runs on it by mistake.
public enum StoreBackup {
    /// Bytes 68 … 71 of the file, "HexB".
    static let applicationID: Int32 = 0x4865_7842
    /// The table of the files that belong to the store.
    static let files = "CREATE TABLE backupFile (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT"
    /// The most files, and bytes of one.
    private static let (mostFiles, fileBytes) = (16, 64 << 10)
    /// The pages of one step, 16 MiB: between two of them a backup that nobody waits for any more ends.
    fileprivate static let pagesPerStep: CInt = 4_096

    /// Makes a store of a backup, and checks all of it. The backup is only read.
    ///
    /// - Parameter path: where the store goes; there must be nothing.
    /// - Returns: the files that were backed up with it, by name.
    /// - Throws: `.badRequest` if the file is no backup; `.storeUnusable` if it is damaged or of a newer Hexlist; `.storageFull`.
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
                    db, sql: "SELECT name, content FROM backupFile WHERE coalesce(length(content), 0) <= \(fileBytes) LIMIT \(mostFiles)")
                // A made-up backup may have anything in its rows.
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
            try HexStore(path: path).close()  // with the migrations of this version
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
                .badRequest, "\(path) is \(isStore ? "a store" : "no backup") of Hexlist\(isStore ? ", and no backup" : "").",
                hint: isStore
                    ? "A store is used where it lies with its identity.pem: `--state-dir` names that folder."
                    : "Name a file that `hexlist backup` wrote.")
        }
        guard header.schema <= UInt32(StoreSchema.version) else { throw StoreSchema.newer(path, version: Int(header.schema)) }
    }

    private static func damaged(_ path: String) -> HexlistError {
        HexlistError(.storeUnusable, "The backup \(path) is damaged.", hint: "Nothing was changed. Take another backup.")
    }
}

extension HexStore {
    /// Writes a backup as of one moment, while the store goes on: readers, the writer and receiving do not wait for it. Meanwhile the log of
    /// what is written cannot be moved into the store, so it grows.
    ///
    /// - Parameters:
    ///   - path: where it goes; there must be nothing. It has mode 0600, and after a failure it is gone.
    ///   - files: files that belong to it, by name.
    ///   - diskReserve: the bytes of the file system to leave free.
    /// - Throws: `.storageFull`, where it would not fit, before anything is written; `CancellationError` where the task was cancelled.
    public func backUp(to path: String, files: [String: [UInt8]], diskReserve: Int64) async throws {
        try StoreFile.makeEmpty(path)
        let isCancelled = CancellationFlag()
        do {
            let needed = StoreFile.bytes(self.path) + diskReserve
            guard StoreFile.freeBytes(path).map({ $0 >= needed }) ?? true else {
                throw HexlistError(
                    .storageFull, "The disk has no room for a copy of the store (\(needed >> 20) MiB with the reserve).",
                    hint: "Free that much where the state folder is.")
            }
            try await withTaskCancellationHandler {
                try await readDatabase { source in
                    let made = try DatabaseQueue(path: path, configuration: StoreFile.makingConfiguration)
                    try made.writeWithoutTransaction { db in
                        try source.backup(to: db, pagesPerStep: StoreBackup.pagesPerStep) { _ in try isCancelled.check() }
                        // The copy says that it has a write-ahead log, as the store does.
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
