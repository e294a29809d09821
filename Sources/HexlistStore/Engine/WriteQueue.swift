internal import Dispatch
internal import GRDB
internal import GRDBSQLite
internal import HexlistModel
internal import Synchronization

/// The only writer. Pieces of work that wait together share a transaction and its one fsync. Each runs in a savepoint, so that a failed one
/// is rolled back alone. A piece is reported done only after COMMIT returned OK.
///
/// The queue has no bound of its own: each caller waits for its completion before it submits much more. Which pieces share a transaction
/// `WaitingPieces` says.
///
/// `@unchecked`: `writer`, `checkpoints` and the state of the index are touched on `queue` only.
final class WriteQueue: @unchecked Sendable {
    struct Piece: Sendable {
        enum Turn: Sendable {
            /// With the next transaction that has room for its rows.
            case next
            /// After a wait for others of its kind, with the next transaction that there is, so that few carry such pieces; at last without one.
            case patient
        }

        let rows: Int
        let turn: Turn
        let work: @Sendable (StoreWriter) throws -> Void
        /// Called with the error; `nil` once the piece is durable.
        let finish: @Sendable ((any Error)?) -> Void
    }

    private static let openingPause = Duration.seconds(2)

    private struct State {
        var waiting = WaitingPieces()
        /// Whether a timer runs that looks after the patient pieces. It runs on when they are taken, so that not each of many hexes sets one.
        var isPatienceTimed = false
        var isDraining = false
        var isClosed = false
    }

    /// A closure that is a mutex's value by itself would be wrapped once more each time it is taken out, and called through all of that.
    private struct Observer: Sendable {
        let tell: @Sendable (StoreChange) -> Void
    }

    /// The error of the last transaction; `nil` once one is committed.
    let fault = Mutex<(any Error)?>(nil)
    /// The ids and the room for rows to come.
    let outbox: Mutex<OutboxAdmission>
    /// The store's observer (`HexStore.observe`).
    private let observer = Mutex<Observer?>(nil)
    private let database: StoreDatabase
    private let queue: DispatchQueue
    private let state = Mutex(State())
    private var writer: StoreWriter?
    private var checkpoints: Checkpoints?

    private let clock: LivedClock
    private let residue: MemoryReclaimer
    private let metrics: StoreMetrics
    private var pace = IndexThrottle()
    /// Whether entries of the index are missing; `false` after a turn that failed, until the next write.
    private var isIndexBehind = false
    private var isTurnPlanned = false

    init(
        database: StoreDatabase, queue: DispatchQueue, residue: MemoryReclaimer, metrics: StoreMetrics, outbox: OutboxAdmission,
        clock: LivedClock
    ) {
        self.clock = clock
        self.database = database
        self.queue = queue
        self.residue = residue
        self.metrics = metrics
        self.outbox = Mutex(outbox)
    }

    /// Submits a piece, from any thread. `finish` is called on the writer's thread, or at once on the caller's if the queue is closed.
    func submit(_ piece: Piece) {
        let (isClosed, starts, timer) = state.withLock { state -> (Bool, Bool, Duration?) in
            guard !state.isClosed else { return (true, false, nil) }
            let now = ContinuousClock.now
            state.waiting.add(piece, at: now)
            let starts = state.waiting.areDue && !state.isDraining
            if starts { state.isDraining = true }
            guard !state.isPatienceTimed, let until = state.waiting.patientUntil else { return (false, starts, nil) }
            state.isPatienceTimed = true
            return (false, starts, until - now)
        }
        if isClosed { return piece.finish(HexlistError(.internal, "The store is closed.")) }
        if let timer { later(timer) { $0.lookAtPatient() } }
        if starts { queue.async { self.drain() } }
    }

    func observe(_ observer: (@Sendable (StoreChange) -> Void)?) {
        self.observer.withLock { $0 = observer.map(Observer.init) }
    }

    /// Does the waiting work, refuses later work, and runs a last checkpoint. Must not be called from a completion.
    func close() throws {
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            state.waiting.endPatience()
            return state.isClosed
        }
        guard !wasClosed else { return }
        try queue.sync {
            drain()
            writer = nil
            try database.close()
        }
    }

    /// Does what was submitted, also what waits for others, and calls `done` behind its completions.
    func finish(_ done: @escaping @Sendable () -> Void) {
        guard state.withLock({ $0.isDraining || !$0.waiting.isEmpty }) else { return done() }
        queue.async { [self] in
            state.withLock { state in
                state.waiting.endPatience()
                state.isDraining = true
            }
            drain()
            done()
        }
    }

    /// Has the index brought on, as at the start of a store whose index is behind.
    func catchUp() {
        queue.async { [self] in
            isIndexBehind = true
            planTurn()
        }
    }

    /// Tries every two seconds to open a store that is only read, until it can be written: neither room on the disk nor a lock that is given up is
    /// an event.
    func awaitOpening() {
        fault.withLock { $0 = database.fault }
        later(Self.openingPause) { $0.tryToOpen() }
    }

    private func later(_ time: Duration, _ work: @escaping @Sendable (WriteQueue) -> Void) {
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(time.nanoseconds))) { [weak self] in if let self { work(self) } }
    }

    // MARK: - On the writer's thread

    /// Begins a transaction for the patient pieces, once their time is over.
    private func lookAtPatient() {
        let left = state.withLock { state in
            let left = state.waiting.patientUntil.map { $0 - .now }
            state.isPatienceTimed = left.map { $0 > .zero } ?? false
            if let left, left <= .zero { state.isDraining = true }
            return left
        }
        guard let left else { return }
        if left > .zero { later(left) { $0.lookAtPatient() } } else { drain() }
    }

    private func tryToOpen() {
        guard !state.withLock({ $0.isClosed }) else { return }
        guard database.openIfPossible() != nil else { return later(Self.openingPause) { $0.tryToOpen() } }
        fault.withLock { $0 = nil }
        catchUp()
        observer.withLock { $0 }?.tell([.room, .peers])
    }

    private func drain() {
        while true {
            let pieces = state.withLock { state in
                let pieces = state.waiting.take(at: .now)
                if pieces.isEmpty { state.isDraining = false }
                return pieces
            }
            guard !pieces.isEmpty else { return planTurn() }
            guard let pool = database.openIfPossible() else {
                metrics.failures.increment()
                outbox.withLock { $0.diskFailed() }
                for piece in pieces { piece.finish(database.fault ?? StoreFault.full) }
                continue
            }
            var changes: StoreChange = []
            let outcomes = pool.writeWithoutTransaction { db in commit(pieces, on: db, &changes) }
            pace.wrote(at: .now)
            isIndexBehind = writer?.isIndexBehind ?? false
            for (piece, outcome) in zip(pieces, outcomes) { piece.finish(outcome) }
            if !changes.isEmpty { observer.withLock { $0 }?.tell(changes) }
            checkpoint(pool)
        }
    }

    private func checkpoint(_ pool: DatabasePool) { pool.writeWithoutTransaction { db in checkpoints?.run(on: db) } }

    /// Plans the index's next turn, if it is behind and none is planned. The writer's thread does what was submitted before first.
    private func planTurn() {
        guard isIndexBehind, !isTurnPlanned else { return }
        isTurnPlanned = true
        later(pace.wait(at: .now)) { $0.takeTurn() }
    }

    private func takeTurn() {
        isTurnPlanned = false
        guard isIndexBehind, !state.withLock({ $0.isClosed }), let pool = database.pool else { return }
        let now = ContinuousClock.now
        guard pace.wait(at: now) == .zero else { return planTurn() }
        let before = writer?.tally.behind
        var changes: StoreChange = []
        let isShort = pace.isBusy(at: now)
        let piece = Piece(
            rows: 0, turn: .next,
            work: { writer in
                if isShort {
                    try writer.index(entries: SearchIndex.entriesOfShort, bytes: SearchIndex.bytesOfShort)
                } else {
                    try writer.index()
                }
            }, finish: { _ in })
        let outcomes = pool.writeWithoutTransaction { db in commit([piece], on: db, &changes) }
        pace.tookTurn(from: now, to: .now)
        let after = writer?.tally.behind ?? 0
        // A turn that failed, or for which the disk has no room, is not repeated before something is written.
        isIndexBehind = outcomes.allSatisfy { $0 == nil } && after > 0 && after != before
        checkpoint(pool)
        planTurn()
    }

    /// - Returns: the error of each piece, `nil` for a committed one.
    private func commit(_ pieces: [Piece], on db: Database, _ changes: inout StoreChange) -> [(any Error)?] {
        let writer = writer ?? StoreWriter(db: db, path: database.path, lived: clock.now)
        self.writer = writer
        if checkpoints == nil { checkpoints = Checkpoints(on: db) }
        defer {
            residue.passed(operations: pieces.count, bytes: writer.passedBytes)
            writer.passedBytes = 0
        }
        var outcomes = [(any Error)?](repeating: nil, count: pieces.count)
        var start = 0
        while start < pieces.count {
            start = transaction(pieces, from: start, outcomes: &outcomes, &changes, writer)
        }
        return outcomes
    }

    /// Runs one transaction.
    /// - Returns: the index of the first piece it did not reach: SQLite abandons a whole transaction on some errors, and the pieces after
    ///   the one that caused it go on in another.
    private func transaction(
        _ pieces: [Piece], from start: Int, outcomes: inout [(any Error)?], _ changes: inout StoreChange, _ writer: StoreWriter
    ) -> Int {
        let isAlone = pieces.count - start == 1  // then the transaction serves as its savepoint
        var next = start
        do {
            try rollBack(writer)  // an open transaction would absorb this one; there never is one
            try writer.run("BEGIN IMMEDIATE")
            try writer.transactionBegan(lived: clock.now)
            outbox.withLock { $0.committed(writer.tally) }
            while next < pieces.count {
                next += 1
                do {
                    if !isAlone { try writer.run("SAVEPOINT piece") }
                    try writer.perform(pieces[next - 1].work)
                    if !isAlone { try writer.run("RELEASE piece") }
                } catch {
                    outcomes[next - 1] = error
                    if StoreFault(error) != nil { outbox.withLock { $0.diskFailed() } }
                    guard isInTransaction(writer), !isAlone else { throw error }
                    try writer.run("ROLLBACK TO piece")
                    try writer.run("RELEASE piece")
                }
            }
            let began = ContinuousClock.now
            try writer.run("COMMIT")
            metrics.commit.recordNanoseconds((ContinuousClock.now - began).nanoseconds)
            fault.withLock { $0 = nil }
            outbox.withLock { $0.committed(writer.tally) }
            changes.formUnion(writer.changes)
        } catch {
            if StoreFault(error) != nil {
                fault.withLock { $0 = error }
                metrics.failures.increment()
                outbox.withLock { $0.diskFailed() }
            }
            if next == start { next = pieces.count }  // BEGIN failed, and would fail again
            for index in start..<next where outcomes[index] == nil { outcomes[index] = error }
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
