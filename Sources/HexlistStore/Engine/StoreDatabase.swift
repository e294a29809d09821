internal import Dispatch
internal import GRDB
internal import HexlistModel
internal import Synchronization

/// The connections to the store's file. While the store cannot be written, because the disk is full or another program holds the write
/// lock, there is one read-only connection; the others are opened as soon as possible.
final class StoreDatabase: Sendable {
    private enum State {
        case open(DatabasePool)
        /// `inFlight` has the reads in flight: reading from a closed queue crashes.
        case readOnly(DatabaseQueue, inFlight: DispatchGroup, because: StoreFault)
        /// The queue is closed and the pool is being opened. Reads wait for the group.
        case opening(DispatchGroup, because: StoreFault)
        /// There is no connection. Reads fail with the reason.
        case unreadable(because: StoreFault)

        static func readOnly(_ queue: DatabaseQueue, because reason: StoreFault) -> State {
            .readOnly(queue, inFlight: DispatchGroup(), because: reason)
        }
    }

    /// A connection for one read, which is not closed before `end`.
    private struct Lease {
        let reader: any DatabaseReader
        let inFlight: DispatchGroup?

        func end() { inFlight?.leave() }
    }

    private enum Leasing {
        case lease(Lease)
        case wait(DispatchGroup)
    }

    let path: String
    private let state: Mutex<State>

    /// - Throws: the reason why the store cannot be written, if it cannot be read either: it needs a migration, or another program blocks
    ///   readers.
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
        guard reason.isFull else { return try openReadOnly(path, StoreConnection.readOnlyConfiguration, because: reason) }
        do {
            return try openReadOnly(path, StoreConnection.soleConfiguration, because: reason)
        } catch  where StoreFault(error)?.isBusy ?? false {
            // Another program has the store open, so the index of the WAL exists and needs no more disk space.
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

    /// Runs `body` with the reading connections. Blocks while they are being opened.
    /// - Throws: the reason why there is no connection; the errors of `body`.
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

    /// Runs `body` with the reading connections, without blocking a thread.
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

    /// Reads without waiting. `body` is called on a thread of the reading connection, or with an error on any thread.
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

    private func leasing() throws(StoreFault) -> Leasing {
        let result: Result<Leasing, StoreFault> = state.withLock { state in
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

    /// The pool; `nil` while the store is read-only.
    var pool: DatabasePool? {
        state.withLock { state in if case .open(let pool) = state { pool } else { nil } }
    }

    /// The reason why the store cannot be written; `nil` if it can.
    var fault: StoreFault? {
        state.withLock { state in
            switch state {
            case .open: nil
            case .readOnly(_, _, let reason), .opening(_, let reason), .unreadable(let reason): reason
            }
        }
    }

    /// Opens the pool if it is not open yet. Call on one thread at a time.
    /// - Returns: `nil` if the store still cannot be written.
    func openIfPossible() -> DatabasePool? {
        switch state.withLock({ $0 }) {
        case .open(let pool): return pool
        case .readOnly(let queue, let inFlight, let reason):
            guard FileSystemProbe.hasRoom(beside: path) else { return nil }
            guard StoreConnection.isSole(queue) else {
                // Releasing the last reference, that of a read in flight, closes the queue.
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

    /// Closes the old connection, then opens the pool, or a read-only connection. Reads wait meanwhile, without holding the lock.
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

    /// Runs a last checkpoint, which empties the WAL, and closes the connections. Call on the thread of `openIfPossible`.
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
