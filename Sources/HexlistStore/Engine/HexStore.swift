internal import Dispatch
internal import GRDB
public import HexlistModel
internal import Synchronization

/// The store of one installation: inbox, held hexes, My Hexlist, peers, outbox and events, in one SQLite file.
///
/// A single connection performs all writes, with `synchronous=FULL`. Reads use separate read-only connections. Errors are `HexlistError`s:
/// `.storageFull` if the disk is full, `.internal` for other failures of SQLite, and the errors that the operations document.
public final class HexStore: Sendable {
    /// The path of the SQLite file, with symbolic links resolved. SQLite keeps the WAL in the same folder.
    public let path: String
    /// The clock that measures ages and deadlines of records.
    public let clock: StoreOpenTimeClock
    private let database: StoreDatabase
    let writes: WriteQueue
    private let reclaimer: MemoryReclaimer

    /// Opens the store, or creates it if there is no file. The caller must hold the lock of the state folder.
    ///
    /// If the disk is full or another program holds the write lock, the store opens read-only: `fault` is the reason, and writes fail. Once
    /// the cause is gone, the store becomes writable with the next write or within two seconds, and the observer is called with `.room` and
    /// `.peers`.
    ///
    /// - Parameters:
    ///   - metrics: the timer and counter of commits.
    ///   - steady: the monotonic clock.
    /// - Throws: `.storeUnusable` if the file is not a store of this or an earlier version, or cannot be read and written; nothing is
    ///   overwritten. `.storageFull` if the disk is too full to create or open the store.
    public init(
        path named: String, metrics: StoreMetrics = StoreMetrics(), steady: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws {
        do {
            if try StoreFile.inspect(named) == .nothing { try StoreFile.create(named) }
            path = StoreFile.resolved(named)
            try StoreFile.restrict(path)
            if let error = FileSystemProbe.missingLocks(beside: path) { throw HexlistError.withoutLocks(path, error) }
            database = try StoreDatabase(path: path)
            // Throws if the counters row is missing, because such a store is damaged.
            let counters = try database.withReader { try $0.read { db in try StoreCounters(on: db) } }
            clock = StoreOpenTimeClock(from: counters.lived, steady: steady)
            let queue = DispatchQueue(label: "hexlist.store.writer")
            reclaimer = MemoryReclaimer(of: database, on: queue)
            writes = WriteQueue(
                database: database, queue: queue, reclaimer: reclaimer, metrics: metrics, outbox: OutboxAdmission(counters), clock: clock)
            try StoreFile.restrict(path)
            if database.pool == nil { writes.awaitOpening() } else if counters.unindexed > 0 { writes.catchUp() }
        } catch {
            throw HexlistError.of(error, path: named, opening: true)
        }
    }

    // MARK: - Writing

    // The methods that write are extensions of `HexStore` in the files of the records that they change. Most are async. A method takes a
    // completion instead if its callers have no task or need the results in the order of the commits.

    /// Sets the observer. It is called on the writer's thread after each commit that has a `StoreChange`, after the completions of that
    /// commit. A new observer replaces the old one; `nil` removes it. The observer must not block on the store.
    public func observe(_ observer: (@Sendable (StoreChange) -> Void)?) { writes.observe(observer) }

    /// Submits a write request. Requests that are pending at the same time share one transaction. If one of them throws, only its changes
    /// are rolled back.
    ///
    /// - Parameters:
    ///   - rows: maximum number of rows that `work` writes. Requests with few rows are performed first (`PendingWrites`).
    ///   - isDeferrable: whether the request may be deferred for up to 20 ms to share a transaction, because no caller waits for its
    ///     result.
    ///   - completion: called on the writer's thread after COMMIT, with its fsync, returned. On failure, none of the request's changes are
    ///     stored. Must not call `writeSync` or `close`.
    func submit<Value: Sendable>(
        rows: Int = 1, isDeferrable: Bool = false, _ work: @escaping @Sendable (StoreWriter) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        let box = LockedBox<Value>()
        writes.submit(
            WriteRequest(
                rows: rows, isDeferrable: isDeferrable,
                work: { writer in
                    let value = try work(writer)
                    box.value.withLock { $0 = value }
                },
                finish: { [path] error in
                    guard error == nil, let value = box.value.withLock({ $0.take() }) else {
                        let error = error ?? HexlistError(.internal, "The store lost a result.")
                        return completion(.failure(HexlistError.of(error, path: path)))
                    }
                    completion(.success(value))
                }))
    }

    /// Submits a write request and awaits its result. Cancelling the task does not stop the request.
    /// - Parameter rows: as for `submit`.
    func write<Value: Sendable>(rows: Int = 1, _ work: @escaping @Sendable (StoreWriter) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            submit(rows: rows, work) { continuation.resume(with: $0) }
        }
    }

    /// Performs all pending writes, including deferred ones, and calls `done` after their completions, on the writer's thread. If no write
    /// is pending, calls `done` immediately on the caller's thread.
    public func finishWriting(_ done: @escaping @Sendable () -> Void) { writes.finish(done) }

    /// Submits a write request and blocks the calling thread until the request is done. Must not be called from a completion, because it
    /// would deadlock.
    func writeSync<Value: Sendable>(_ work: @escaping @Sendable (StoreWriter) throws -> Value) throws -> Value {
        let box = LockedBox<Result<Value, any Error>>()
        let done = DispatchSemaphore(value: 0)
        submit(work) { result in
            box.value.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = box.value.withLock({ $0.take() }) else { throw HexlistError(.internal, "The store lost a result.") }
        return try result.get()
    }

    /// The error of the last transaction that failed because of SQLite or the disk; `nil` after a successful transaction.
    public var fault: HexlistError? {
        writes.fault.withLock { $0 }.flatMap { HexlistError.of($0, path: path) as? HexlistError }
    }

    // MARK: - Reading

    /// Runs `work` on a snapshot of the newest commit, concurrently with writes.
    public func read<Value: Sendable>(_ work: @escaping @Sendable (StoreReader) throws -> Value) async throws -> Value {
        do {
            return try await database.withReader { reader in try await reader.read { [self] db in try read(work, on: db) } }
        } catch {
            throw HexlistError.of(error, path: path)
        }
    }

    /// Starts a read and returns immediately. `completion` is called on a thread of the reading connection, or on any thread if the read
    /// cannot start.
    public func submitRead<Value: Sendable>(
        _ work: @escaping @Sendable (StoreReader) throws -> Value, completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        database.asyncRead { [self] result in
            completion(Result { try read(work, on: result.get()) }.mapError { HexlistError.of($0, path: path) })
        }
    }

    /// Reads and blocks the calling thread until the result. For start-up and command-line tools.
    public func readSync<Value>(_ work: (StoreReader) throws -> Value) throws -> Value {
        do {
            return try database.withReader { try $0.read { db in try read(work, on: db) } }
        } catch {
            throw HexlistError.of(error, path: path)
        }
    }

    private func read<Value>(_ work: (StoreReader) throws -> Value, on db: Database) throws -> Value {
        let reader = StoreReader(db: db, path: path, lived: clock.now)
        defer { reclaimer.passed(operations: 1, bytes: reader.passedBytes) }
        return try work(reader)
    }

    /// Runs `body` on a reading connection, in one transaction.
    func readDatabase(_ body: @escaping @Sendable (Database) throws -> Void) async throws {
        try await database.withReader { try await $0.read(body) }
    }

    // MARK: - Closing

    /// Performs the submitted writes, saves the time of `StoreOpenTimeClock`, refuses later writes, runs a last checkpoint and closes the file.
    /// Must not be called from a completion. Closing again has no effect.
    public func close() throws {
        submit({ try $0.saveLivedTime() }, completion: { _ in })
        do { try writes.close() } catch { throw HexlistError.of(error, path: path) }
    }

    // MARK: - For tests

    /// Runs `body` outside any transaction on the writing connection.
    func onWritingConnection<Value>(_ body: (Database) throws -> Value) throws -> Value {
        guard let pool = database.pool else { throw StoreFault.full }
        return try pool.writeWithoutTransaction(body)
    }
}

/// A flag that carries the cancellation of a task to a thread that works for the task.
final class CancellationFlag: Sendable {
    private let flag = Mutex(false)

    func set() { flag.withLock { $0 = true } }

    /// - Throws: `CancellationError` if the flag is set.
    func check() throws { if flag.withLock({ $0 }) { throw CancellationError() } }
}

/// A mutable value behind a lock, with which one thread passes a result to another.
private final class LockedBox<Value: Sendable>: Sendable {
    let value = Mutex<Value?>(nil)
}
