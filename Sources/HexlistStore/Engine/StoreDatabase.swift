internal import Dispatch
internal import GRDB
internal import HexlistModel
internal import Synchronization

/// The connections to the store's file. Normally a pool of one writing and several reading connections. While the store cannot be written,
/// because the disk is full or another program holds the write lock, only one read-only connection is open, and `openIfPossible` tries to
/// open the pool.
final class StoreDatabase: Sendable {
    private enum State {
        case open(DatabasePool)
        /// Only the read-only queue is open. `inFlight` counts its running reads: the queue must not be closed before they end, because
        /// reading from a closed queue crashes.
        case readOnly(DatabaseQueue, inFlight: DispatchGroup, because: StoreFault)
        /// The read-only queue was closed, and the pool is being opened. Reads wait for the group.
        case opening(DispatchGroup, because: StoreFault)
        /// No connection is open. Reads fail with the reason.
        case unreadable(because: StoreFault)

        static func readOnly(_ queue: DatabaseQueue, because reason: StoreFault) -> State {
            .readOnly(queue, inFlight: DispatchGroup(), because: reason)
        }
    }

    /// A connection lent to one read. It is not closed before `end` is called.
    private struct Lease {
        let reader: any DatabaseReader
        let inFlight: DispatchGroup?

        func end() { inFlight?.leave() }
    }

    private enum LeaseResult {
        case lease(Lease)
        case wait(DispatchGroup)
    }

    let path: String
    private let state: Mutex<State>

    /// Opens the pool, or a read-only connection if the store cannot be written.
    /// - Throws: the reason why the store cannot be written, if it cannot be opened read-only either, because it needs a migration or
    ///   another program blocks readers.
    init(path: String) throws {
        self.path = path
        state = Mutex(try Self.open(path))
    }

    private static func open(_ path: String) throws -> State {
        do {
            guard FileSystemProbe.hasRoom(beside: path) else { throw StoreFault.full }
            return .open(try openPool(path))
        } catch {
            guard let reason = transientFault(error, path) else { throw error }
            return .readOnly(try openReadOnly(path, because: reason), because: reason)
        }
    }

    /// Returns the fault if it may go away while the daemon runs (full disk, lock of another program), else `nil`. Checks free space too,
    /// because SQLite reports a full disk sometimes as SQLITE_CANTOPEN.
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
        guard reason.isFull else { return try openReadOnly(path, StoreConnection.readOnlyConfiguration, because: reason) }
        do {
            return try openReadOnly(path, StoreConnection.soleConfiguration, because: reason)
        } catch  where StoreFault(error)?.isBusy ?? false {
            // Another program has the store open, so the shared index of the WAL exists already and needs no disk space.
            do {
                return try openReadOnly(path, StoreConnection.readOnlyConfiguration, because: reason)
            } catch {
                throw transientFault(error, path) == nil ? error : reason
            }
        }
    }

    private static func openReadOnly(_ path: String, _ configuration: Configuration, because reason: StoreFault) throws -> DatabaseQueue {
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let isCurrent = try queue.read { db in
            try StoreSchema.migrator.hasCompletedMigrations(db) && SearchIndex.isOfThisFormat(db)
        }
        guard isCurrent else { throw reason }
        return queue
    }

    /// Runs `body` with the reading connections. Blocks the thread while the connections are being opened.
    /// - Throws: the reason why no connection is open; errors of `body`.
    func withReader<Value>(_ body: (any DatabaseReader) throws -> Value) throws -> Value {
        while true {
            switch try leasing() {
            case .lease(let lease):
                defer { lease.end() }
                return try body(lease.reader)
            case .wait(let opened): opened.wait()
            }
        }
    }

    /// Runs `body` with the reading connections. Suspends, without blocking a thread, while the connections are being opened.
    func withReader<Value>(_ body: (any DatabaseReader) async throws -> Value) async throws -> Value {
        while true {
            switch try leasing() {
            case .lease(let lease):
                defer { lease.end() }
                return try await body(lease.reader)
            case .wait(let opened):
                await withCheckedContinuation { continuation in opened.notify(queue: .global()) { continuation.resume() } }
            }
        }
    }

    /// Starts a read and returns immediately. `body` is called on a thread of the reading connection, or with an error on any thread.
    func asyncRead(_ body: @escaping @Sendable (Result<Database, any Error>) -> Void) {
        do {
            switch try leasing() {
            case .lease(let lease):
                lease.reader.asyncRead { result in
                    defer { lease.end() }
                    body(result)
                }
            case .wait(let opened): opened.notify(queue: .global()) { [self] in asyncRead(body) }
            }
        } catch {
            body(.failure(error))
        }
    }

    private func leasing() throws(StoreFault) -> LeaseResult {
        let result: Result<LeaseResult, StoreFault> = state.withLock { state in
            switch state {
            case .open(let pool): return .success(.lease(Lease(reader: pool, inFlight: nil)))
            case .readOnly(let queue, let inFlight, _):
                inFlight.enter()
                return .success(.lease(Lease(reader: queue, inFlight: inFlight)))
            case .opening(let opened, _): return .success(.wait(opened))
            case .unreadable(let reason): return .failure(reason)
            }
        }
        return try result.get()
    }

    /// The connection pool; `nil` while the store cannot be written.
    var pool: DatabasePool? {
        state.withLock { state in if case .open(let pool) = state { pool } else { nil } }
    }

    /// The reason why the store cannot be written; `nil` if it is writable.
    var fault: StoreFault? {
        state.withLock { state in
            switch state {
            case .open: nil
            case .readOnly(_, _, let reason), .opening(_, let reason), .unreadable(let reason): reason
            }
        }
    }

    /// Opens the pool if it is not open yet. Must not be called on several threads at the same time.
    /// - Returns: `nil` if the store still cannot be written.
    func openIfPossible() -> DatabasePool? {
        switch state.withLock({ $0 }) {
        case .open(let pool): return pool
        case .readOnly(let queue, let inFlight, let reason):
            guard FileSystemProbe.hasRoom(beside: path) else { return nil }
            guard StoreConnection.isSole(queue) else {
                // The old queue is not closed here: it closes itself when the last running read releases it.
                guard let pool = try? Self.openPool(path) else { return nil }
                state.withLock { $0 = .open(pool) }
                return pool
            }
            return reopen(because: reason) {
                inFlight.wait()
                try? queue.close()
            }
        case .unreadable(.closed), .opening: return nil
        case .unreadable(let reason): return reopen(because: reason) {}
        }
    }

    /// Closes the old connection with `closing`, then opens the pool, or else a read-only connection. Meanwhile the state is `opening`, so
    /// that reads wait for the group and not for the lock.
    private func reopen(because reason: StoreFault, closing: () -> Void) -> DatabasePool? {
        let opened = DispatchGroup()
        opened.enter()
        defer { opened.leave() }
        state.withLock { $0 = .opening(opened, because: reason) }
        closing()
        let next = (try? Self.open(path)) ?? .unreadable(because: reason)
        state.withLock { $0 = next }
        return if case .open(let pool) = next { pool } else { nil }
    }

    func releaseMemory() {
        switch state.withLock({ $0 }) {
        case .open(let pool): pool.releaseMemory()
        case .readOnly(let queue, _, _): queue.releaseMemory()
        case .opening, .unreadable: break
        }
    }

    /// Runs a last checkpoint, which empties the WAL, and closes all connections. Must be called on the same thread as `openIfPossible`.
    func close() throws {
        let last = state.withLock { state in
            defer { if case .open = state {} else { state = .unreadable(because: .closed) } }
            return state
        }
        switch last {
        case .open(let pool):
            pool.writeWithoutTransaction { db in _ = try? db.checkpoint(.truncate) }
            pool.invalidateReadOnlyConnections()
            try pool.close()
        case .readOnly(let queue, let inFlight, _):
            inFlight.wait()
            try queue.close()
        case .opening, .unreadable: break
        }
    }
}
