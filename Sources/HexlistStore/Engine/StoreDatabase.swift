internal import Dispatch
internal import GRDB
internal import HexlistModel
internal import Synchronization

/// The connections to the store's file. While it cannot be written, on a disk without room for the files that SQLite keeps beside it or with
/// the write lock held by another program, it is one connection that only reads; the others are opened as soon as that is over.
final class StoreDatabase: Sendable {
    private enum State {
        case open(DatabasePool)
        /// The group has the reads in flight: a closed queue crashes at a read.
        case readOnly(DatabaseQueue, inFlight: DispatchGroup, because: StoreFault)
        /// The queue is closed and the pool is being opened; reads wait for the group.
        case opening(DispatchGroup, because: StoreFault)
        /// There are no connections; reads fail with the reason.
        case unreadable(because: StoreFault)

        static func readOnly(_ queue: DatabaseQueue, because reason: StoreFault) -> State {
            .readOnly(queue, inFlight: DispatchGroup(), because: reason)
        }
    }

    /// Connections in use by one read, which are not closed before `end`.
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

    /// - Throws: the reason why the store cannot be written, if it cannot be read either: it is of an earlier version, which has to be changed
    ///   first, or another program lets nobody read.
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
            // Another program has the store open, so the index of the WAL is there, which needs no more room.
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

    /// Runs `body` with the connections that read, and blocks meanwhile.
    /// - Throws: the reason why there are no connections; the errors of `body`.
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

    /// The same without blocking.
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

    /// Reads without waiting; `body` is called on a thread of the reading connection, with an error on any thread.
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

    /// The pool; `nil` while the store is only read.
    var pool: DatabasePool? {
        state.withLock { state in if case .open(let pool) = state { pool } else { nil } }
    }

    /// The reason why the store is only read, or not even that; `nil` while it can be written.
    var fault: StoreFault? {
        state.withLock { state in
            switch state {
            case .open: nil
            case .readOnly(_, _, let reason), .opening(_, let reason), .unreadable(let reason): reason
            }
        }
    }

    /// The pool, which is opened if that is possible by now; `nil` while it is not. On one thread at a time.
    func openIfPossible() -> DatabasePool? {
        switch state.withLock({ $0 }) {
        case .open(let pool): return pool
        case .readOnly(let queue, let inFlight, let reason):
            guard FileSystemProbe.hasRoom(beside: path) else { return nil }
            guard StoreConnection.isSole(queue) else {
                // The queue is closed with its last reference, that of a read in flight.
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

    /// Opens the pool, or else a connection that only reads, after the old one is closed. Reads wait meanwhile, without blocking the state.
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

    /// Runs a last checkpoint, which empties the WAL, and closes the connections. On the thread of `openIfPossible`.
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
