internal import GRDB
internal import HexlistModel
internal import Synchronization

/// The connections to the store's file. While it cannot be written, on a disk without room for the files that SQLite keeps beside it or with
/// the write lock held by another program, it is one connection that only reads; the others are opened as soon as that is over.
final class StoreDatabase: Sendable {
    private enum State {
        case open(DatabasePool)
        case readOnly(DatabaseQueue, because: StoreFault)
    }

    let path: String
    private let state: Mutex<State>

    /// - Throws: the reason why the store cannot be written, if it cannot be read either: it is of an earlier version, which has to be changed
    ///   first, or another program lets nobody read.
    init(path: String) throws {
        self.path = path
        let opened: State
        do {
            guard FileSystemProbe.hasRoom(beside: path) else { throw StoreFault.full }
            opened = .open(try Self.openPool(path))
        } catch {
            guard let reason = Self.transientFault(error, path) else { throw error }
            opened = .readOnly(try Self.openReadOnly(path, because: reason), because: reason)
        }
        state = Mutex(opened)
    }

    /// The fault if it is transient (full disk, lock of another program), else `nil`. SQLite reports some full disks as SQLITE_CANTOPEN.
    private static func transientFault(_ error: any Error, _ path: String) -> StoreFault? {
        guard let fault = StoreFault(error) else { return nil }
        if fault.isFull || !FileSystemProbe.hasRoom(beside: path) { return .full }
        return fault.isBusy ? fault : nil
    }

    private static func openPool(_ path: String) throws -> DatabasePool {
        let pool = try DatabasePool(path: path, configuration: StoreConnection.configuration)
        try pool.writeWithoutTransaction { db in
            try StoreConnection.makeDurable(db, path: path)
            let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            guard version <= StoreSchema.version else { throw StoreSchema.newer(path, version: version) }
        }
        try StoreSchema.migrator.migrate(pool)
        try pool.write { db in try SearchIndex.checkFormat(db) }
        return pool
    }

    private static func openReadOnly(_ path: String, because reason: StoreFault) throws -> DatabaseQueue {
        let configuration = reason.isFull ? StoreConnection.soleConfiguration : StoreConnection.readOnlyConfiguration
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let isCurrent = try queue.read { db in
            try StoreSchema.migrator.hasCompletedMigrations(db) && SearchIndex.isOfThisFormat(db)
        }
        guard isCurrent else { throw reason }
        return queue
    }

    /// The connections that read.
    var reader: any DatabaseReader {
        state.withLock { state in
            switch state {
            case .open(let pool): pool
            case .readOnly(let queue, _): queue
            }
        }
    }

    /// The pool; `nil` while the store is only read.
    var pool: DatabasePool? {
        state.withLock { state in if case .open(let pool) = state { pool } else { nil } }
    }

    /// The reason why the store is only read; `nil` while it can be written.
    var fault: StoreFault? {
        state.withLock { state in if case .readOnly(_, let reason) = state { reason } else { nil } }
    }

    /// The pool, which is opened if that is possible by now; `nil` while it is not. On one thread at a time.
    func openIfPossible() -> DatabasePool? {
        if let pool { return pool }
        guard FileSystemProbe.hasRoom(beside: path) else { return nil }
        guard fault?.isFull ?? false else {
            guard let pool = try? Self.openPool(path) else { return nil }
            replace(with: pool)
            return pool
        }
        // Reads that come meanwhile wait: the connection that reads has the store for itself.
        return state.withLock { state in
            guard case .readOnly(let queue, let reason) = state else { return nil }
            try? queue.close()
            do {
                let pool = try Self.openPool(path)
                state = .open(pool)
                return pool
            } catch {
                if let queue = try? Self.openReadOnly(path, because: reason) { state = .readOnly(queue, because: reason) }
                return nil
            }
        }
    }

    private func replace(with pool: DatabasePool) {
        let replaced = state.withLock { state in
            defer { state = .open(pool) }
            return if case .readOnly(let queue, _) = state { queue } else { nil as DatabaseQueue? }
        }
        try? replaced?.close()
    }

    func releaseMemory() {
        switch reader {
        case let pool as DatabasePool: pool.releaseMemory()
        case let queue as DatabaseQueue: queue.releaseMemory()
        default: break
        }
    }

    /// Runs a last checkpoint, which empties the WAL, and closes the connections.
    func close() throws {
        guard let pool else { return try reader.close() }
        pool.writeWithoutTransaction { db in _ = try? db.checkpoint(.truncate) }
        pool.invalidateReadOnlyConnections()
        try pool.close()
    }
}
