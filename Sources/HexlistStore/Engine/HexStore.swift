internal import Dispatch
internal import GRDB
public import HexlistModel
internal import Synchronization

/// The store of one installation: inbox, held hexes, My Hexlist, peers, outbox and events, in one SQLite file.
///
/// One connection writes, with `synchronous=FULL`; readers have read-only connections of their own. Errors are `HexlistError`s:
/// `.storageFull` if the disk is full, `.internal` if SQLite fails otherwise, and those the operations name.
public final class HexStore: Sendable {
    /// The path of the file; if it was named by a link, that of the file the link leads to. SQLite keeps its WAL beside that.
    public let path: String
    /// The clock for ages and deadlines of what is in the store.
    public let clock: LivedClock
    private let database: StoreDatabase
    let writes: WriteQueue
    private let residue: MemoryReclaimer

    /// Opens the store, or makes a new one if there is no file. The caller holds the lock of its folder.
    ///
    /// On a full disk, or while another program holds the write lock, the store is only read: `fault` is the reason, and writes fail. Once that is
    /// over it is written again, by the next write or within two seconds, and the observer gets `.room`.
    ///
    /// - Parameters:
    ///   - metrics: measures commits.
    ///   - steady: the monotonic clock.
    /// - Throws: `.storeUnusable` if the file is not a store that this version can use, or cannot be read and written; nothing is
    ///   overwritten. `.storageFull`.
    public init(
        path named: String, metrics: StoreMetrics = StoreMetrics(), steady: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws {
        do {
            if try StoreFile.inspect(named) == .nothing { try StoreFile.create(named) }
            path = StoreFile.resolved(named)
            try StoreFile.restrict(path)
            if let error = FileSystemProbe.missingLocks(beside: path) { throw HexlistError.withoutLocks(path, error) }
            database = try StoreDatabase(path: path)
            // A store without its counters is invalid.
            let tally = try database.withReader { try $0.read { db in try StoreCounters(on: db) } }
            clock = LivedClock(from: tally.lived, steady: steady)
            let queue = DispatchQueue(label: "hexlist.store.writer")
            residue = MemoryReclaimer(of: database, on: queue)
            writes = WriteQueue(
                database: database, queue: queue, residue: residue, metrics: metrics, outbox: OutboxAdmission(tally), clock: clock)
            try StoreFile.restrict(path)
            if database.pool == nil { writes.awaitOpening() } else if tally.behind > 0 { writes.catchUp() }
        } catch {
            throw HexlistError.of(error, path: named, opening: true)
        }
    }

    // MARK: - Writing

    // Every transaction is a method of the store, in the file of the records it changes: an awaited one, or one with a completion if its
    // caller has no task or needs the results in the order of the commits.

    /// Sets the observer, which is called after each commit that changed what `StoreChange` names: on the writer's thread, after the
    /// completions of the commit. The store has one observer; a new one replaces it, `nil` removes it. It must not wait for the store.
    public func observe(_ observer: (@Sendable (StoreChange) -> Void)?) { writes.observe(observer) }

    /// Passes a piece of work to the writer. Pieces that wait together share one transaction; a piece that throws is rolled back alone.
    ///
    /// - Parameters:
    ///   - rows: the number of rows it may write. Pieces of many rows wait for their turn; pieces of few rows go first.
    ///   - waitsForOthers: whether it waits for others of its kind and for a transaction to share, 20 ms at most (`WaitingPieces`), since
    ///     nobody waits for it.
    ///   - completion: called on the writer's thread after COMMIT (with fsync) returned. After a failure nothing of the piece is in the
    ///     store. Must not call `writeSync` or `close`.
    func submit<Value: Sendable>(
        rows: Int = 1, waitsForOthers: Bool = false, _ work: @escaping @Sendable (StoreWriter) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        let box = Box<Value>()
        writes.submit(
            WriteQueue.Piece(
                rows: rows, turn: waitsForOthers ? .patient : .next,
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

    /// Submits a piece of work and awaits its result. Cancelling the task does not stop the piece.
    /// - Parameter rows: the number of rows it may write, as for `submit`.
    func write<Value: Sendable>(rows: Int = 1, _ work: @escaping @Sendable (StoreWriter) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            submit(rows: rows, work) { continuation.resume(with: $0) }
        }
    }

    /// Calls `done` once all that was submitted is done, also what waits for others: at once where there is nothing, else on the writer's thread.
    public func finishWriting(_ done: @escaping @Sendable () -> Void) { writes.finish(done) }

    /// Submits a piece of work and blocks until its result. Must not be called from a completion.
    func writeSync<Value: Sendable>(_ work: @escaping @Sendable (StoreWriter) throws -> Value) throws -> Value {
        let box = Box<Result<Value, any Error>>()
        let done = DispatchSemaphore(value: 0)
        submit(work) { result in
            box.value.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = box.value.withLock({ $0.take() }) else { throw HexlistError(.internal, "The store lost a result.") }
        return try result.get()
    }

    /// The error of the last transaction, because of which nothing can be written; `nil` while the store works.
    public var fault: HexlistError? {
        writes.fault.withLock { $0 }.flatMap { HexlistError.of($0, path: path) as? HexlistError }
    }

    // MARK: - Reading

    /// Reads on a connection of its own, in parallel to the writer; sees the state of the newest commit throughout.
    public func read<Value: Sendable>(_ work: @escaping @Sendable (StoreReader) throws -> Value) async throws -> Value {
        do {
            return try await database.withReader { reader in try await reader.read { [self] db in try read(work, on: db) } }
        } catch {
            throw HexlistError.of(error, path: path)
        }
    }

    /// Reads without waiting; `completion` is called on a thread of the reading connection.
    public func submitRead<Value: Sendable>(
        _ work: @escaping @Sendable (StoreReader) throws -> Value, completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        database.asyncRead { [self] result in
            completion(Result { try read(work, on: result.get()) }.mapError { HexlistError.of($0, path: path) })
        }
    }

    /// Reads and blocks until the result: for start-up and tools.
    public func readSync<Value>(_ work: (StoreReader) throws -> Value) throws -> Value {
        do {
            return try database.withReader { try $0.read { db in try read(work, on: db) } }
        } catch {
            throw HexlistError.of(error, path: path)
        }
    }

    private func read<Value>(_ work: (StoreReader) throws -> Value, on db: Database) throws -> Value {
        let reader = StoreReader(db: db, path: path, lived: clock.now)
        defer { residue.passed(operations: 1, bytes: reader.passedBytes) }
        return try work(reader)
    }

    /// Runs `body` on a reading connection, in one transaction.
    func readDatabase(_ body: @escaping @Sendable (Database) throws -> Void) async throws {
        try await database.withReader { try await $0.read(body) }
    }

    // MARK: - Closing

    /// Does the submitted work, saves the lived time, refuses later work, runs a last checkpoint and closes the file. Must not be called from a
    /// completion. Closing again does nothing.
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

/// Tells a thread that the task it works for was cancelled.
final class CancellationFlag: Sendable {
    private let flag = Mutex(false)

    func set() { flag.withLock { $0 = true } }

    /// - Throws: `CancellationError`
    func check() throws { if flag.withLock({ $0 }) { throw CancellationError() } }
}

/// A value passed between two threads.
private final class Box<Value: Sendable>: Sendable {
    let value = Mutex<Value?>(nil)
}
