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
            /// After a wait of `WriteQueue.patience` for others of its kind, with the next transaction that there is, so that few carry such pieces;
            /// and at last by itself.
            case patient
        }

        let rows: Int
        let turn: Turn
        let work: @Sendable (StoreWriter) throws -> Void
        /// Called with the error; `nil` once the piece is durable.
        let finish: @Sendable ((any Error)?) -> Void
    }

    private struct State {
        var few: [Piece] = []
        var many: ArraySlice<Piece> = []
        /// Pieces that wait for others. Once their time is over, or they have many rows, they go with the next transaction.
        var patient: [Piece] = []
        /// When the first of them was submitted.
        var patientSince = ContinuousClock.Instant.now
        /// Whether a timer runs that looks after them. It runs on when they are taken, so that not each of many hexes sets one.
        var isPatienceTimed = false
        var isDraining = false
        var isClosed = false

        private var patientFor: Duration { .now - patientSince }
        private var hasManyPatientRows: Bool { patient.reduce(0) { $0 + $1.rows } > WriteQueue.patientRows }

        /// The time after which the patient pieces, of which there are some, go by themselves.
        var patienceLeft: Duration { (hasManyPatientRows ? WriteQueue.patience : WriteQueue.longestPatience) - patientFor }

        /// Takes the pieces of the next transaction, in order of submission among those with few rows, those that waited and those with many. Pieces
        /// that waited come behind those with few: what they settle may be written by one of these.
        mutating func take() -> [Piece] {
            if !patient.isEmpty, isClosed || patientFor >= WriteQueue.patience || hasManyPatientRows {
                endPatience()
            }
            var rows = 0
            let next = many.prefix { piece in
                rows += piece.rows
                return rows == piece.rows || rows <= WriteQueue.transactionRows
            }
            many.removeFirst(next.count)
            defer { few.removeAll(keepingCapacity: true) }
            return few + next
        }

        /// Has the patient pieces go with the next transaction.
        mutating func endPatience() {
            few += patient
            patient.removeAll(keepingCapacity: true)
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

    /// The time that a patient piece waits for company: several times what a sender that waits for each hex takes for one, so that what became of
    /// some is written at once, and the rest have less to wait for.
    private static let patience = Duration.milliseconds(3)
    /// The time after which it waits for no other transaction: so short that nobody sees the difference, and as long as many such hexes take, each of
    /// which has a transaction to share.
    private static let longestPatience = Duration.milliseconds(20)
    /// More rows than these of patient pieces are of a stream: they go with the next transaction, and by themselves after `patience`, since their
    /// pages are needed for what comes.
    private static let patientRows = 64

    /// The error of the last transaction; `nil` once one is committed.
    let fault = Mutex<(any Error)?>(nil)
    /// The ids and the room for rows to come.
    let outbox: Mutex<OutboxOutlook>
    /// The store's observer (`HexStore.observe`).
    private let observer = Mutex<Observer?>(nil)
    private let pool: DatabasePool
    private let queue: DispatchQueue
    private let state = Mutex(State())
    private var writer: StoreWriter?

    private let residue: Residue
    private let metrics: StoreMetrics
    private var pace = IndexPace()
    /// Whether entries of the index are missing; `false` after a turn that failed, until the next write.
    private var isIndexBehind = false
    private var isTurnPlanned = false
    /// The log after the last transaction, and whether it is looked at once nothing is written.
    private var log = LogSize(written: 0, length: 0)
    private var isLogPlanned = false

    init(pool: DatabasePool, queue: DispatchQueue, residue: Residue, metrics: StoreMetrics, outbox: OutboxOutlook) {
        self.pool = pool
        self.queue = queue
        self.residue = residue
        self.metrics = metrics
        self.outbox = Mutex(outbox)
    }

    /// Submits a piece, from any thread. `finish` is called on the writer's thread, or at once on the caller's if the queue is closed.
    func submit(_ piece: Piece) {
        let (isClosed, starts, timer) = state.withLock { state -> (Bool, Bool, Duration?) in
            guard !state.isClosed else { return (true, false, nil) }
            switch piece.turn {
            case .patient:
                if state.patient.isEmpty { state.patientSince = .now }
                state.patient.append(piece)
                defer { state.isPatienceTimed = true }
                return (false, false, state.isPatienceTimed ? nil : state.patienceLeft)
            case .next where piece.rows <= Self.fewRows: state.few.append(piece)
            case .next: state.many.append(piece)
            }
            defer { state.isDraining = true }
            return (false, !state.isDraining, nil)
        }
        if let timer { later(timer) { $0.lookAtPatient() } }
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

    /// Does what was submitted, also what waits for others, and calls `done` behind its completions.
    func finish(_ done: @escaping @Sendable () -> Void) {
        guard state.withLock({ $0.isDraining || !$0.patient.isEmpty }) else { return done() }
        queue.async { [self] in
            state.withLock { $0.endPatience() }
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

    private func later(_ time: Duration, _ work: @escaping @Sendable (WriteQueue) -> Void) {
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(time.nanoseconds))) { [weak self] in if let self { work(self) } }
    }

    // MARK: - On the writer's thread

    /// Begins a transaction for the pieces that wait for others, once their time is over.
    private func lookAtPatient() {
        let left = state.withLock { state in
            let left = state.patient.isEmpty ? nil : state.patienceLeft
            state.isPatienceTimed = left.map { $0 > .zero } ?? false
            return left
        }
        guard let left else { return }
        if left > .zero { later(left) { $0.lookAtPatient() } } else { drain() }
    }

    private func drain() {
        while true {
            let pieces = state.withLock { state in
                let pieces = state.take()
                if pieces.isEmpty { state.isDraining = false }
                return pieces
            }
            guard !pieces.isEmpty else {
                planLog()
                return planTurn()
            }
            var changes: StoreChange = []
            let (outcomes, upkeep) = pool.writeWithoutTransaction { db in commit(pieces, on: db, &changes) }
            pace.wrote(at: .now)
            isIndexBehind = writer?.isIndexBehind ?? false
            for (piece, outcome) in zip(pieces, outcomes) { piece.finish(outcome) }
            if !changes.isEmpty { observer.withLock { $0 }?.tell(changes) }
            perform(upkeep)
        }
    }

    private func perform(_ upkeep: LogUpkeep?) {
        guard let upkeep else { return }
        pool.writeWithoutTransaction { db in
            upkeep.perform(on: db)
            log = LogSize(of: db)
        }
    }

    /// Plans what is due on the log once nothing is written, if anything is and none is planned.
    private func planLog() {
        guard !isLogPlanned, LogUpkeep.dueInQuiet(log) != nil else { return }
        isLogPlanned = true
        later(max(pace.untilQuiet(of: LogUpkeep.quiet, at: .now), LogUpkeep.quietPause)) { $0.keepLogInQuiet() }
    }

    private func keepLogInQuiet() {
        isLogPlanned = false
        guard !state.withLock({ $0.isClosed }) else { return }
        guard pace.untilQuiet(of: LogUpkeep.quiet, at: .now) == .zero else { return planLog() }
        guard let due = LogUpkeep.dueInQuiet(log), due == .checkpoint || LogUpkeep.hasRoomForQuiet(pool.path) else { return }
        let before = log
        perform(due)
        // What changed nothing is not done again before something is written.
        if log != before { planLog() }
    }

    /// Plans the index's next turn, if it is behind and none is planned. The writer's thread does what was submitted before first.
    private func planTurn() {
        guard isIndexBehind, !isTurnPlanned else { return }
        isTurnPlanned = true
        later(pace.wait(at: .now)) { $0.takeTurn() }
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
        let (outcomes, upkeep) = pool.writeWithoutTransaction { db in commit([piece], on: db, &changes) }
        pace.tookTurn(from: now, to: .now)
        let after = writer?.tally.behind ?? 0
        // A turn that failed, or for which the disk has no room, is not repeated before something is written.
        isIndexBehind = outcomes.allSatisfy { $0 == nil } && after > 0 && after != before
        perform(upkeep)
        planTurn()
    }

    /// - Returns: the error of each piece, `nil` for a committed one; and the work that is due on the log.
    private func commit(_ pieces: [Piece], on db: Database, _ changes: inout StoreChange) -> ([(any Error)?], LogUpkeep?) {
        let writer = writer ?? StoreWriter(db: db, path: pool.path)
        self.writer = writer
        defer {
            residue.passed(operations: pieces.count, bytes: writer.passedBytes)
            writer.passedBytes = 0
        }
        let size = LogSize(of: db)
        var outcomes = [(any Error)?](repeating: nil, count: pieces.count)
        var start = 0
        while start < pieces.count {
            start = transaction(pieces, from: start, outcomes: &outcomes, &changes, writer)
        }
        log = LogSize(of: db)
        return (outcomes, .due(since: size, log))
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
            try writer.transactionBegan()
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
