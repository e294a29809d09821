internal import Foundation
internal import GRDB
internal import HexlistModel

/// Operations on the store's file that do not use an open store: inspects and creates the file, restricts its permissions, and measures its
/// size.
enum StoreFile {
    /// The application id of a store, "Hex1": bytes 68 to 71 of the SQLite file. Distinguishes the store from databases of other programs.
    static let applicationID: Int32 = 0x4865_7831

    enum Content: Equatable {
        case nothing
        case store
    }

    /// Inspects the file without writing, locking or creating anything.
    ///
    /// - Throws: `.storeUnusable` if a file exists that is not a store of this or an earlier version.
    static func inspect(_ path: String) throws -> Content {
        var info = stat()
        guard stat(path, &info) == 0 else {
            guard errno == ENOENT else { throw unusable(path, "cannot be accessed (\(systemError))", hint: permissions) }
            try inspectFolder(of: path)
            try inspectLeftovers(of: path)
            return .nothing
        }
        guard info.st_mode & S_IFMT != S_IFDIR else {
            throw unusable(path, "is a folder", hint: "Name a file, or move the folder away.")
        }
        guard info.st_mode & S_IFMT == S_IFREG else {
            throw unusable(path, "is not a regular file", hint: "Name a regular file.")
        }
        guard access(path, R_OK | W_OK) == 0 else {
            throw unusable(path, "cannot be read and written (\(systemError))", hint: permissions)
        }
        try inspectFolder(of: resolved(path))
        try inspectHeader(path)
        return .store
    }

    /// Creates an empty store with all migrations applied. Creates it under a temporary name and then renames it, so that a crash leaves
    /// either no store or a complete one. The caller must hold the lock of the state folder, and no file may exist at `path`.
    static func create(_ path: String) throws {
        let making = path + ".new"
        for leftover in [making, making + "-journal"] where unlink(leftover) != 0 && errno != ENOENT {
            throw unusable(leftover, "has the name of a needed file and cannot be removed (\(systemError))", hint: permissions)
        }
        try makeEmpty(making)
        do {
            let queue = try DatabaseQueue(path: making, configuration: makingConfiguration)
            try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA application_id = \(applicationID)") }
            try StoreSchema.migrator.migrate(queue)
            try queue.close()
        } catch {
            unlink(making)
            unlink(making + "-journal")
            throw error
        }
        guard rename(making, path) == 0 else {
            let error = unusable(path, "cannot be created (\(systemError))", hint: permissions)
            unlink(making)
            throw error
        }
        syncFolder(of: path)
    }

    /// Creates an empty file with mode 0600. No file may exist at `path`.
    static func makeEmpty(_ path: String) throws {
        let descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw unusable(path, "cannot be created (\(systemError))", hint: permissions) }
        close(descriptor)
    }

    /// The configuration of the connection that initialises a new store or backup.
    static var makingConfiguration: Configuration {
        var configuration = StoreConnection.plainConfiguration
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA synchronous = EXTRA; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY")
        }
        return configuration
    }

    /// Fields of the header of a database file (SQLite's "Database File Format").
    struct Header {
        var isSQLite: Bool
        var isEmpty: Bool
        /// The `PRAGMA user_version`: the number of applied migrations.
        var schema: UInt32
        var applicationID: UInt32
    }

    /// Reads the header of a database file; `nil` if the file cannot be read, with the reason in `errno`.
    static func header(_ path: String) -> Header? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var header = [UInt8](repeating: 0, count: 100)
        let count = pread(descriptor, &header, header.count, 0)
        guard count >= 0 else { return nil }
        func number(at offset: Int) -> UInt32 { header[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }
        return Header(
            isSQLite: count == header.count && header.starts(with: Array("SQLite format 3\0".utf8)), isEmpty: count == 0,
            schema: number(at: 60), applicationID: number(at: 68))
    }

    /// Sets mode 0600 on the store, its WAL and the WAL's index. SQLite gives new files the mode of the store.
    static func restrict(_ path: String) throws {
        for file in [path, path + "-wal", path + "-shm"] {
            var info = stat()
            guard stat(file, &info) == 0, info.st_mode & 0o777 != 0o600 else { continue }
            guard chmod(file, 0o600) == 0 else {
                throw unusable(file, "is open to other users and its mode cannot be changed (\(systemError))", hint: permissions)
            }
        }
    }

    /// Returns the path with symbolic links resolved; unchanged if there is no such file.
    static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Returns the size of the store on disk in bytes, including the WAL.
    static func bytes(_ path: String) -> Int64 { fileBytes(path) + fileBytes(path + "-wal") }

    /// Returns the size of a file in bytes; 0 if there is no such file.
    static func fileBytes(_ path: String) -> Int64 {
        var info = stat()
        return stat(path, &info) == 0 ? Int64(info.st_size) : 0
    }

    /// Returns the free bytes that an unprivileged process can use on the file system of `path`; `nil` if the number is unknown.
    static func freeBytes(_ path: String) -> Int64? {
        var info = statvfs()
        guard statvfs(path, &info) == 0 else { return nil }
        let (bytes, overflow) = UInt64(info.f_bavail).multipliedReportingOverflow(by: UInt64(info.f_frsize))
        return overflow ? .max : Int64(clamping: bytes)
    }

    // MARK: - Helpers

    private static let permissions = "Check the owner and the permissions of the file and its folder."
    private static var systemError: String { String(cString: strerror(errno)) }

    private static func unusable(_ path: String, _ what: String, hint: String) -> HexlistError {
        HexlistError(.storeUnusable, "The store \(path) \(what).", hint: hint)
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func inspectFolder(of path: String) throws {
        let folder = folder(of: path)
        var info = stat()
        guard stat(folder, &info) == 0, info.st_mode & S_IFMT == S_IFDIR else {
            throw unusable(path, "has no folder: \(folder) is missing", hint: "Create the folder, or name another one.")
        }
        guard access(folder, W_OK | X_OK) == 0 else {
            throw unusable(
                path, "needs a writable folder, but \(folder) is not writable (\(systemError))",
                hint: "Make the folder writable, or name another one; SQLite keeps more files beside the store.")
        }
    }

    /// Throws if an earlier store seems to have disappeared: there is a dangling symbolic link, or files of SQLite without their database.
    /// A new store would replace the link, or SQLite would replay the WAL of the old store into the new one.
    private static func inspectLeftovers(of path: String) throws {
        let putBack = "Mount the disk it is on, or put a backup in its place (`hexlist restore FILE`). To begin with an empty store, first"
        if let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) {
            throw unusable(
                path, "is a link to \(target), which is missing", hint: "\(putBack) remove the link.")
        }
        for log in ["-wal", "-journal", "-shm"] where access(path + log, F_OK) == 0 {
            throw unusable(
                path, "is missing, but its log \(path + log) exists",
                hint: "\(putBack) move the log away.")
        }
    }

    private static func inspectHeader(_ path: String) throws {
        let elsewhere =
            "Nothing was changed. Put a backup in its place (`hexlist restore FILE`), name another one, or move the file away and "
            + "run `hexlistd --begin-anew`."
        guard let header = header(path) else { throw unusable(path, "cannot be read (\(systemError))", hint: permissions) }
        guard header.isSQLite else { throw unusable(path, header.isEmpty ? "is empty" : "is not a SQLite database", hint: elsewhere) }
        guard header.applicationID != UInt32(bitPattern: StoreBackup.applicationID) else {
            throw unusable(path, "is a backup, not a store", hint: "Nothing was changed. Move it away, then run `hexlist restore FILE`.")
        }
        guard header.applicationID == UInt32(bitPattern: applicationID) else {
            throw unusable(path, "is a SQLite database of another program", hint: elsewhere)
        }
        guard header.schema <= UInt32(StoreSchema.version) else { throw StoreSchema.newer(path, version: Int(header.schema)) }
    }

    private static func syncFolder(of path: String) {
        let descriptor = open(folder(of: path), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
