internal import Dispatch
internal import GRDB
internal import GRDBSQLite
internal import HexlistModel
internal import Synchronization

/// The only writer of the store. Requests that are pending at the same time share a transaction and so a single fsync (`PendingWrites`).
/// Each request runs in a savepoint, so that a failed request is rolled back without the others. The completion of a request reports
/// success only after COMMIT succeeded.
///
/// The number of pending requests has no limit in this type: the callers limit the requests that they have in flight.
///
/// `@unchecked`: `writer`, `checkpoints`, `throttle` and the two index flags are used on `queue` only.
final class WriteQueue: @unchecked Sendable {
    /// Interval between attempts to make a read-only store writable.
    private static let openingInterval = Duration.seconds(2)

    private struct State {
        var pending = PendingWrites()
        var isDraining = false
        /// Whether a timer for the deferred requests runs. It keeps running after a transaction took them, so that not every deferred
        /// request starts a timer.
        var hasDeferralTimer = false
        var isClosed = false
    }

    /// The observer's closure in a struct. With a bare closure in a mutex, the compiler would wrap the closure in another thunk at each
    /// `withLock`.
    private struct Observer: Sendable {
        let notify: @Sendable (StoreChange) -> Void
    }

    /// The SQLite error of the last failed transaction; `nil` after a successful transaction.
    let fault = Mutex<(any Error)?>(nil)
    /// Allocates ids of new outbox rows, and estimates whether the outbox has capacity for them.
    let outbox: Mutex<OutboxAdmission>
    /// The store's observer (`HexStore.observe`).
    private let observer = Mutex<Observer?>(nil)
    private let database: StoreDatabase
    private let queue: DispatchQueue
    private let state = Mutex(State())
    private var writer: StoreWriter?
    private var checkpoints: Checkpoints?

    private let clock: StoreOpenTimeClock
    private let reclaimer: MemoryReclaimer
    private let metrics: StoreMetrics
    private var throttle = IndexThrottle()
    /// Whether hexes wait to be indexed; `false` after a failed index batch, until the next write.
    private var isIndexBehind = false
    private var isIndexBatchScheduled = false

    init(
        database: StoreDatabase, queue: DispatchQueue, reclaimer: MemoryReclaimer, metrics: StoreMetrics, outbox: OutboxAdmission,
        clock: StoreOpenTimeClock
    ) {
        self.clock = clock
        self.database = database
        self.queue = queue
        self.reclaimer = reclaimer
        self.metrics = metrics
        self.outbox = Mutex(outbox)
    }

    /// Submits a request, from any thread. If the queue is closed, the request fails immediately on the caller's thread.
    func submit(_ request: WriteRequest) {
        let (isClosed, starts, delay) = state.withLock { state -> (Bool, Bool, Duration?) in
            guard !state.isClosed else { return (true, false, nil) }
            let now = ContinuousClock.now
            state.pending.add(request, at: now)
            let starts = state.pending.areDue && !state.isDraining
            if starts { state.isDraining = true }
            guard !state.hasDeferralTimer, let deadline = state.pending.deadline else { return (false, starts, nil) }
            state.hasDeferralTimer = true
            return (false, starts, deadline - now)
        }
        if isClosed { return request.finish(HexlistError(.internal, "The store is closed.")) }
        if let delay { schedule(after: delay) { $0.writeDeferred() } }
        if starts { queue.async { self.drain() } }
    }

    func observe(_ observer: (@Sendable (StoreChange) -> Void)?) {
        self.observer.withLock { $0 = observer.map(Observer.init) }
    }

    /// Performs the pending requests, refuses later ones, runs a last checkpoint and closes the database. Must not be called from a
    /// completion.
    func close() throws {
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            state.pending.endDeferral()
            return state.isClosed
        }
        guard !wasClosed else { return }
        try queue.sync {
            drain()
            writer = nil
            try database.close()
        }
    }

    /// Performs all pending requests, including deferred ones, and calls `done` after their completions, on the writer's thread. If no
    /// request is pending, calls `done` immediately on the caller's thread.
    func finish(_ done: @escaping @Sendable () -> Void) {
        guard state.withLock({ $0.isDraining || !$0.pending.isEmpty }) else { return done() }
        queue.async { [self] in
            state.withLock { state in
                state.pending.endDeferral()
                state.isDraining = true
            }
            drain()
            done()
        }
    }

    /// Starts indexing the hexes that an earlier run of the program left unindexed.
    func catchUp() {
        queue.async { [self] in
            isIndexBehind = true
            scheduleIndexBatch()
        }
    }

    /// Starts trying every two seconds to make a read-only store writable, until it succeeds. Polls, because the system does not notify of
    /// free disk space or a released lock.
    func awaitOpening() {
        fault.withLock { $0 = database.fault }
        schedule(after: Self.openingInterval) { $0.tryToOpen() }
    }

    private func schedule(after delay: Duration, _ work: @escaping @Sendable (WriteQueue) -> Void) {
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(delay.nanoseconds))) { [weak self] in if let self { work(self) } }
    }

    // MARK: - On the writer's thread

    /// Called by the deferral timer. Performs the deferred requests if they are due; otherwise sets the timer again.
    private func writeDeferred() {
        let delay = state.withLock { state in
            let delay = state.pending.deadline.map { $0 - .now }
            state.hasDeferralTimer = delay.map { $0 > .zero } ?? false
            if let delay, delay <= .zero { state.isDraining = true }
            return delay
        }
        guard let delay else { return }
        if delay > .zero { schedule(after: delay) { $0.writeDeferred() } } else { drain() }
    }

    private func tryToOpen() {
        guard !state.withLock({ $0.isClosed }) else { return }
        guard database.openIfPossible() != nil else { return schedule(after: Self.openingInterval) { $0.tryToOpen() } }
        fault.withLock { $0 = nil }
        catchUp()
        observer.withLock { $0 }?.notify([.room, .peers])
    }

    private func drain() {
        while true {
            let batch = state.withLock { state in
                let batch = state.pending.takeBatch(at: .now)
                if batch.isEmpty { state.isDraining = false }
                return batch
            }
            guard !batch.isEmpty else { return scheduleIndexBatch() }
            guard let pool = database.openIfPossible() else {
                metrics.failures.increment()
                outbox.withLock { $0.diskFailed() }
                for request in batch { request.finish(database.fault ?? StoreFault.full) }
                continue
            }
            var changes: StoreChange = []
            let errors = pool.writeWithoutTransaction { db in commit(batch, on: db, &changes) }
            throttle.wrote(at: .now)
            isIndexBehind = writer?.isIndexBehind ?? false
            for (request, error) in zip(batch, errors) { request.finish(error) }
            if !changes.isEmpty { observer.withLock { $0 }?.notify(changes) }
            checkpoint(pool)
        }
    }

    private func checkpoint(_ pool: DatabasePool) {
        let isIdle = state.withLock { $0.pending.isEmpty }
        pool.writeWithoutTransaction { db in checkpoints?.run(on: db, isIdle: isIdle) }
    }

    /// Schedules an index batch if there are unindexed hexes. Requests that are submitted before the batch runs are performed first.
    private func scheduleIndexBatch() {
        guard isIndexBehind, !isIndexBatchScheduled else { return }
        isIndexBatchScheduled = true
        schedule(after: throttle.delay(at: .now)) { $0.runIndexBatch() }
    }

    private func runIndexBatch() {
        isIndexBatchScheduled = false
        guard isIndexBehind, !state.withLock({ $0.isClosed }), let pool = database.pool else { return }
        let now = ContinuousClock.now
        guard throttle.delay(at: now) == .zero else { return scheduleIndexBatch() }
        let before = writer?.counters.unindexed
        var changes: StoreChange = []
        let isBusy = throttle.isBusy(at: now)
        let request = WriteRequest(
            rows: 0,
            work: { writer in
                if isBusy {
                    try writer.index(entries: SearchIndex.busyBatchEntries, bytes: SearchIndex.busyBatchBytes)
                } else {
                    try writer.index()
                }
            }, finish: { _ in })
        let errors = pool.writeWithoutTransaction { db in commit([request], on: db, &changes) }
        throttle.ranBatch(from: now, to: .now)
        let after = writer?.counters.unindexed ?? 0
        // A batch that failed or made no progress, for example on a full disk, is not repeated before the next write.
        isIndexBehind = errors.allSatisfy { $0 == nil } && after > 0 && after != before
        checkpoint(pool)
        scheduleIndexBatch()
    }

    /// Runs the requests in one transaction, or in several if SQLite rolls a whole transaction back.
    /// - Returns: one element for each request: its error, or `nil` if it is committed.
    private func commit(_ batch: [WriteRequest], on db: Database, _ changes: inout StoreChange) -> [(any Error)?] {
        let writer = writer ?? StoreWriter(db: db, path: database.path, lived: clock.now)
        self.writer = writer
        if checkpoints == nil { checkpoints = Checkpoints(on: db) }
        defer {
            reclaimer.passed(operations: batch.count, bytes: writer.passedBytes)
            writer.passedBytes = 0
        }
        var errors = [(any Error)?](repeating: nil, count: batch.count)
        var start = 0
        while start < batch.count {
            start = runTransaction(batch, from: start, &errors, &changes, writer)
        }
        return errors
    }

    /// Runs one transaction with the requests from index `start` on.
    /// - Returns: the index of the first request that the transaction did not reach. On some errors SQLite rolls back the whole
    ///   transaction; then the requests after the one that caused the error have to run in another transaction.
    private func runTransaction(
        _ batch: [WriteRequest], from start: Int, _ errors: inout [(any Error)?], _ changes: inout StoreChange, _ writer: StoreWriter
    ) -> Int {
        let isAlone = batch.count - start == 1  // a single request needs no savepoint, because the transaction can be rolled back
        var next = start
        do {
            try rollBack(writer)  // a precaution: no transaction should be open here
            try writer.run("BEGIN IMMEDIATE")
            try writer.transactionBegan(lived: clock.now)
            outbox.withLock { $0.committed(writer.counters) }
            while next < batch.count {
                next += 1
                do {
                    if !isAlone { try writer.run("SAVEPOINT request") }
                    try writer.perform(batch[next - 1].work)
                    if !isAlone { try writer.run("RELEASE request") }
                } catch {
                    errors[next - 1] = error
                    if StoreFault(error) != nil { outbox.withLock { $0.diskFailed() } }
                    guard isInTransaction(writer), !isAlone else { throw error }
                    try writer.run("ROLLBACK TO request")
                    try writer.run("RELEASE request")
                }
            }
            let began = ContinuousClock.now
            try writer.run("COMMIT")
            metrics.commit.recordNanoseconds((ContinuousClock.now - began).nanoseconds)
            fault.withLock { $0 = nil }
            outbox.withLock { $0.committed(writer.counters) }
            changes.formUnion(writer.changes)
        } catch {
            if StoreFault(error) != nil {
                fault.withLock { $0 = error }
                metrics.failures.increment()
                outbox.withLock { $0.diskFailed() }
            }
            if next == start { next = batch.count }  // BEGIN failed, and would fail for the other requests too
            for index in start..<next where errors[index] == nil { errors[index] = error }
            try? rollBack(writer)
        }
        return next
    }

    private func isInTransaction(_ writer: StoreWriter) -> Bool {
        guard let connection = writer.db.sqliteConnection else { return false }
        return sqlite3_get_autocommit(connection) == 0
    }

    private func rollBack(_ writer: StoreWriter) throws {
        if isInTransaction(writer) { try writer.run("ROLLBACK") }
    }
}
