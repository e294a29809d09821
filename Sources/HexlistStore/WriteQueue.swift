internal import Dispatch
internal import GRDB
internal import GRDBSQLite
internal import HexlistModel
internal import Synchronization

/// The only writer. Pieces of work that wait together share a transaction and its one fsync. Each runs in a savepoint, so that a failed one
/// is rolled back alone. A piece is reported done only after COMMIT returned OK.
///
/// The queue has no bound of its own: each caller waits for its completion before it submits much more. A transaction has one: if there
/// are pieces with many rows, some wait for the next transaction, so that no piece waits for the rows of all sessions. Pieces with few rows
/// go first; one piece with many rows is always included, so that none waits for ever.
///
/// `@unchecked`: `writer` is touched on `queue` only.
final class WriteQueue: @unchecked Sendable {
    struct Piece: Sendable {
        enum Turn: Sendable {
            /// With the next transaction that has room for its rows.
            case next
            /// It waits for others, up to `WriteQueue.patience`, so that it costs no transaction of its own.
            case patient
            /// Before all others of the next transaction, so that the ids of their rows are higher: whoever is told of these first has missed
            /// none. `tell` is called once the piece has succeeded, with the rest of the transaction and its commit still to come, unless
            /// `WriteQueue.isDiskTrusted` says that this is likely to fail. Ids of rows that were told are not given again by this process.
            case ahead(tell: @Sendable () -> Void)

            var tell: (@Sendable () -> Void)? { if case .ahead(let tell) = self { tell } else { nil } }
        }

        let rows: Int
        let turn: Turn
        let work: @Sendable (StoreWriter) throws -> Void
        /// Called with the error; `nil` once the piece is durable.
        let finish: @Sendable ((any Error)?) -> Void
    }

    private struct State {
        var ahead: [Piece] = []
        var few: [Piece] = []
        var many: ArraySlice<Piece> = []
        /// Pieces that wait for others. They go with the next transaction, or by themselves once their time is over.
        var patient: [Piece] = []
        /// Rises with each transaction that takes patient pieces, so that a timer knows whether it is for those that wait now.
        var patientTurn: UInt64 = 0
        /// Whether the time of the patient pieces is over, so that they go without company.
        var isPatienceOver = false
        var isDraining = false
        var isClosed = false

        /// Takes the pieces of the next transaction, in order of submission among those that go ahead, those with few rows, and those with
        /// many. Pieces that waited come before those with few: they were submitted before.
        mutating func take() -> [Piece] {
            if !patient.isEmpty, !ahead.isEmpty || !few.isEmpty || !many.isEmpty || isPatienceOver || isClosed {
                few = patient + few
                patient.removeAll(keepingCapacity: true)
                patientTurn &+= 1
                isPatienceOver = false
            }
            var rows = 0
            let next = many.prefix { piece in
                rows += piece.rows
                return rows == piece.rows || rows <= WriteQueue.transactionRows
            }
            many.removeFirst(next.count)
            defer {
                ahead.removeAll(keepingCapacity: true)
                few.removeAll(keepingCapacity: true)
            }
            return ahead + few + next
        }
    }

    /// A closure that is a mutex's value by itself would be wrapped once more each time it is taken out, and called through all of that.
    private struct Observer: Sendable {
        let tell: @Sendable (StoreChange) -> Void
    }

    /// The most rows of a piece that does not wait for its turn: more than a user's hex has, and than 20 hexes of a stream.
    private static let fewRows = 256
    /// The most rows of the pieces with many in one transaction, but always one piece: four full batches, a few hundredths of a second.
    private static let transactionRows = 16_384

    /// The time that a patient piece waits for company: much longer than a sender that waits for each hex takes to send the next one, so that
    /// what became of the one is written with the other; and so short that nobody sees the difference.
    private static let patience = DispatchTimeInterval.milliseconds(3)

    /// The error of the last transaction; `nil` once one is committed.
    let fault = Mutex<(any Error)?>(nil)
    /// The store's observer (`HexStore.observe`).
    private let observer = Mutex<Observer?>(nil)
    private let pool: DatabasePool
    private let queue: DispatchQueue
    private let state = Mutex(State())
    private var writer: StoreWriter?

    private let residue: Residue
    private let metrics: StoreMetrics
    /// Whether pieces that go ahead are told: not after a transaction that the disk failed, until one with such a piece is committed. One without
    /// says little: for the little it writes there may be room yet.
    private var isDiskTrusted = true
    private var pace = IndexPace()
    /// Whether entries of the index are missing; `false` after a turn that failed, until the next write.
    private var isIndexBehind = false
    private var isTurnPlanned = false

    init(pool: DatabasePool, queue: DispatchQueue, residue: Residue, metrics: StoreMetrics) {
        self.pool = pool
        self.queue = queue
        self.residue = residue
        self.metrics = metrics
    }

    /// Submits a piece, from any thread. `finish` is called on the writer's thread, or at once on the caller's if the queue is closed.
    func submit(_ piece: Piece) {
        let (isClosed, starts, patientTurn) = state.withLock { state -> (Bool, Bool, UInt64?) in
            guard !state.isClosed else { return (true, false, nil) }
            switch piece.turn {
            case .patient:
                defer { state.patient.append(piece) }
                return (false, false, state.patient.isEmpty ? state.patientTurn : nil)
            case .ahead: state.ahead.append(piece)
            case .next where piece.rows <= Self.fewRows: state.few.append(piece)
            case .next: state.many.append(piece)
            }
            defer { state.isDraining = true }
            return (false, !state.isDraining, nil)
        }
        if let patientTurn {
            queue.asyncAfter(deadline: .now() + Self.patience) { [weak self] in self?.endPatience(of: patientTurn) }
        }
        if isClosed { return piece.finish(HexlistError(.internal, "The store is closed.")) }
        if starts { queue.async { self.drain() } }
    }

    func observe(_ observer: (@Sendable (StoreChange) -> Void)?) {
        self.observer.withLock { $0 = observer.map(Observer.init) }
    }

    /// Does the waiting work, refuses later work, and moves the log into the store. Must not be called from a completion.
    func close() throws {
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            return state.isClosed
        }
        guard !wasClosed else { return }
        try queue.sync {
            drain()
            writer = nil
            pool.writeWithoutTransaction { db in _ = try? db.checkpoint(.truncate) }
            pool.invalidateReadOnlyConnections()
            try pool.close()
        }
    }

    /// Has the index brought on, as at the start of a store whose index is behind.
    func catchUp() {
        queue.async { [self] in
            isIndexBehind = true
            planTurn()
        }
    }

    // MARK: - On the writer's thread

    /// Begins a transaction for the pieces that wait for others, unless another one took those of this turn.
    private func endPatience(of turn: UInt64) {
        let starts = state.withLock { state in
            guard state.patientTurn == turn, !state.patient.isEmpty else { return false }
            state.isPatienceOver = true
            defer { state.isDraining = true }
            return !state.isDraining
        }
        if starts { drain() }
    }

    private func drain() {
        while true {
            let pieces = state.withLock { state in
                let pieces = state.take()
                if pieces.isEmpty { state.isDraining = false }
                return pieces
            }
            guard !pieces.isEmpty else { return planTurn() }
            var changes: StoreChange = []
            let outcomes = pool.writeWithoutTransaction { db in commit(pieces, on: db, &changes) }
            pace.wrote(at: .now)
            isIndexBehind = writer?.isIndexBehind ?? false
            for (piece, outcome) in zip(pieces, outcomes) { piece.finish(outcome) }
            if !changes.isEmpty { observer.withLock { $0 }?.tell(changes) }
        }
    }

    /// Plans the index's next turn, if it is behind and none is planned. The writer's thread does what was submitted before first.
    private func planTurn() {
        guard isIndexBehind, !isTurnPlanned else { return }
        isTurnPlanned = true
        let wait = pace.wait(at: .now).components
        queue.asyncAfter(deadline: .now() + Double(wait.seconds) + Double(wait.attoseconds) / 1e18) { [weak self] in self?.takeTurn() }
    }

    private func takeTurn() {
        isTurnPlanned = false
        guard isIndexBehind, !state.withLock({ $0.isClosed }) else { return }
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
        planTurn()
    }

    /// - Returns: the error of each piece; `nil` for a committed one.
    private func commit(_ pieces: [Piece], on db: Database, _ changes: inout StoreChange) -> [(any Error)?] {
        let writer = writer ?? StoreWriter(db: db, path: pool.path)
        self.writer = writer
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
        var hasAhead = false
        do {
            try rollBack(writer)  // an open transaction would absorb this one; there never is one
            try writer.run("BEGIN IMMEDIATE")
            try writer.transactionBegan()
            while next < pieces.count {
                next += 1
                do {
                    if !isAlone { try writer.run("SAVEPOINT piece") }
                    try writer.perform(pieces[next - 1].work)
                    if !isAlone { try writer.run("RELEASE piece") }
                    if let tell = pieces[next - 1].turn.tell {
                        hasAhead = true
                        guard isDiskTrusted else { continue }
                        writer.keepOutboxIDs()
                        tell()
                    }
                } catch {
                    outcomes[next - 1] = error
                    guard isInTransaction(writer), !isAlone else { throw error }
                    try writer.run("ROLLBACK TO piece")
                    try writer.run("RELEASE piece")
                }
            }
            let began = ContinuousClock.now
            try writer.run("COMMIT")
            metrics.commit.recordNanoseconds((ContinuousClock.now - began).nanoseconds)
            fault.withLock { $0 = nil }
            if hasAhead { isDiskTrusted = true }
            changes.formUnion(writer.changes)
        } catch {
            if StoreFault(error) != nil {
                fault.withLock { $0 = error }
                metrics.failures.increment()
                isDiskTrusted = false
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
