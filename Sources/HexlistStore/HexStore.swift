internal import Dispatch
internal import GRDB
public import HexlistModel
internal import Synchronization

/// The store of one installation: inbox, held hexes, My Hexlist, peers, outbox and events, in one SQLite file.
///
/// One connection writes, with `synchronous=FULL`; readers have their own, read-only ones. Errors are `HexlistError`s:
/// `.storageFull` when the disk is, `.internal` when SQLite fails otherwise, and those the operations name.
public final class HexStore: Sendable {
    /// The file. SQLite keeps its log beside it.
    public let path: String
    private let pool: DatabasePool
    private let writes: WriteQueue
    private let residue: Residue

    /// Opens the store, or makes a new one where there is no file. The caller holds the lock of its folder.
    ///
    /// - Throws: `.storeUnusable` where there is something else than a store this version can use, or it cannot be read
    ///   and written; nothing is overwritten. `.storageFull`.
    public init(path: String) throws {
        self.path = path
        do {
            if try StoreFile.inspect(path) == .nothing { try StoreFile.create(path) }
            try StoreFile.restrict(path)
            pool = try DatabasePool(path: path, configuration: StoreConnection.configuration)
            try pool.writeWithoutTransaction { db in
                try StoreConnection.makeDurable(db, path: path)
                let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                guard version <= StoreSchema.version else { throw StoreSchema.newer(path, version: version) }
            }
            try StoreSchema.migrator.migrate(pool)
            _ = try pool.writeWithoutTransaction { db in try Tally(on: db) }  // a store without its counters is none
            let queue = DispatchQueue(label: "hexlist.store.writer")
            residue = Residue(of: pool, on: queue)
            writes = WriteQueue(pool: pool, queue: queue, residue: residue)
            try StoreFile.restrict(path)
        } catch {
            throw HexlistError.of(error, path: path, opening: true)
        }
    }

    // MARK: - Writing

    // Every transaction there is stands in this module, as a method of the store beside the records it changes: one that is awaited, or one
    // with a completion where the caller needs the results in the order of the commits, or has no task.

    /// Calls `observer` after each commit that changed something it tells of, on the writer's thread, once those who wait for the commit
    /// were told. One observer at a time: another takes its place, and `nil` ends it. It must not wait for the store.
    public func observe(_ observer: (@Sendable (StoreChange) -> Void)?) { writes.observer.withLock { $0 = observer } }

    /// Hands a piece of work to the writer. What waits there together shares one transaction; a piece that throws is
    /// taken back alone.
    ///
    /// - Parameters:
    ///   - rows: it may write. Many wait until it is their turn, and few go before them.
    ///   - completion: runs on the writer's thread after COMMIT (with fsync) returned; with a failure nothing of the piece is in
    ///     the store. It must not call `writeSync` or `close`.
    func submit<Value: Sendable>(
        rows: Int = 1, _ work: @escaping @Sendable (StoreWriter) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        let box = Box<Value>()
        writes.submit(
            WriteQueue.Piece(
                rows: rows,
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

    /// `submit`, awaited. Cancelling the task does not stop what was submitted.
    /// - Parameter rows: as `submit` takes it.
    func write<Value: Sendable>(rows: Int = 1, _ work: @escaping @Sendable (StoreWriter) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            submit(rows: rows, work) { continuation.resume(with: $0) }
        }
    }

    /// `submit`, waited for. Not from a completion.
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

    /// Why nothing can be written: what the last transaction failed of; `nil` while the store works.
    public var fault: HexlistError? {
        writes.fault.withLock { $0 }.flatMap { HexlistError.of($0, path: path) as? HexlistError }
    }

    // MARK: - Reading

    /// Reads on a connection of its own, beside the writer: it sees the newest commit, and that only.
    public func read<Value: Sendable>(_ work: @escaping @Sendable (StoreReader) throws -> Value) async throws -> Value {
        do {
            return try await pool.read { [self] db in try read(work, on: db) }
        } catch {
            throw HexlistError.of(error, path: path)
        }
    }

    /// `read` without waiting: `completion` runs on a thread of the reading connection.
    public func submitRead<Value: Sendable>(
        _ work: @escaping @Sendable (StoreReader) throws -> Value, completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        pool.asyncRead { [self] result in
            completion(Result { try read(work, on: result.get()) }.mapError { HexlistError.of($0, path: path) })
        }
    }

    /// `read`, waited for: for start-up and tools.
    public func readSync<Value>(_ work: (StoreReader) throws -> Value) throws -> Value {
        do {
            return try pool.read { db in try read(work, on: db) }
        } catch {
            throw HexlistError.of(error, path: path)
        }
    }

    private func read<Value>(_ work: (StoreReader) throws -> Value, on db: Database) throws -> Value {
        let reader = StoreReader(db: db, path: path)
        defer { residue.passed(operations: 1, bytes: reader.passedBytes) }
        return try work(reader)
    }

    // MARK: - Closing

    /// Does what was submitted, refuses what comes later, moves the log into the file and closes it. Not from a
    /// completion. Closing again does nothing.
    public func close() throws {
        do { try writes.close() } catch { throw HexlistError.of(error, path: path) }
    }

    // MARK: - For tests

    /// Runs outside any transaction on the writing connection.
    func onWritingConnection<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try pool.writeWithoutTransaction(body)
    }
}

/// A value on its way between two threads.
private final class Box<Value: Sendable>: Sendable {
    let value = Mutex<Value?>(nil)
}
