internal import GRDB
internal import HexlistModel

/// All operations that change the store, in addition to the queries of `StoreReader`. Changes are durable once the completion of their
/// write request is called.
///
/// Valid only during the closure that receives the writer; must not escape. If an operation throws, the whole request fails, even if the
/// closure catches the error.
final class StoreWriter: StoreReader {
    /// The counters, including unsaved changes of this transaction.
    var counters = StoreCounters()
    private var savedCounters = StoreCounters()
    /// Unsaved changes of peers' counters, by row id.
    private var peerDeltas: [Int64: PeerCounterIncrements] = [:]
    /// Maximum bytes of the event log. Variable for tests.
    var eventLogBytes = EventLog.bytes
    /// Maximum bytes of the texts in the trash. Variable for tests.
    var trashBytes = TrashedItem.maximumBytes
    /// Bytes of hexes that this transaction accepted and that may not have taken disk space yet.
    var reservedBytes: Int64 = 0
    /// Bytes of the file system to leave free, as passed with the last received batch. Also applies to batches of the search index.
    var diskReserve: Int64 = 0
    /// The changes that the successful requests of this transaction and the current request recorded, for the observer.
    private(set) var changes: StoreChange = []
    /// The error because of which the current request must fail.
    private var fault: (any Error)?
    private var preparedInserter: HexInserter?
    private var preparedNodeInserter: NodeInserter?
    /// The changes of My Hexlist since `groupMine` began, by the rows of their lists; `nil` outside of it.
    var openMine: [Int64: MyHexlistTransaction]?
    /// Changes of shared lists that are to be added to My Hexlist (`addRejected`).
    var rejected: [RejectedChanges] = []
    /// Whether a change of My Hexlist is being made (`changeMine`).
    var isChangingMine = false

    override func counts() throws -> StoreCounts { counters.counts }

    /// Returns the inserter of this connection. It is created once, because it prepares statements.
    func inserter() throws -> HexInserter {
        if let preparedInserter { return preparedInserter }
        let inserter = try HexInserter(on: db)
        preparedInserter = inserter
        return inserter
    }

    /// Calls `body` with the inserter of nodes of this connection, which is created once.
    func insertNodes<Value>(_ body: (inout NodeInserter) throws -> Value) throws -> Value {
        var inserter = try preparedNodeInserter ?? NodeInserter(on: db)
        preparedNodeInserter = nil
        defer { preparedNodeInserter = inserter }
        return try body(&inserter)
    }

    // MARK: - One change

    /// Runs one operation and then saves the changed counters. All changes have to be made inside `change`, because it also fails the
    /// request if `body` throws.
    @discardableResult
    func change<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            let value = try body()
            try saveCounters()
            return value
        } catch {
            fault = error
            throw error
        }
    }

    /// Runs one statement to its end.
    /// - Returns: the number of changed rows.
    @discardableResult
    func run(_ sql: String, _ values: any SQLValue...) throws -> Int {
        let statement = try SQLStatement(sql, on: db)
        try statement.bind(values)
        try statement.run()
        return statement.changes
    }

    /// Marks kinds of records as changed, for the store's observer. Call inside `change`.
    func changed(_ what: StoreChange) { changes.formUnion(what) }

    func count(peer row: Int64, _ update: (inout PeerCounterIncrements) -> Void) {
        update(&peerDeltas[row, default: PeerCounterIncrements()])
    }

    func saveCounters() throws {
        for (row, delta) in peerDeltas where delta != PeerCounterIncrements() {
            try run(
                """
                UPDATE peer SET hexes = hexes + ?, unread = unread + ?, held = held + ?, heldBytes = heldBytes + ?,
                    queued = queued + ? WHERE id = ?
                """, delta.hexes, delta.unread, delta.held, delta.heldBytes, delta.queued, row)
        }
        peerDeltas.removeAll(keepingCapacity: true)
        guard counters != savedCounters else { return }
        counters.lived = lived
        try counters.save(on: db)
        savedCounters = counters
    }

    /// Saves the current time of `StoreOpenTimeClock`, from which the next run of the daemon continues.
    func saveLivedTime() throws { try change { counters.lived = lived } }

    // MARK: - For the write queue

    /// Prepares for a new transaction. Called after BEGIN.
    /// - Parameter lived: the current time of `StoreOpenTimeClock`.
    func transactionBegan(lived: Int64) throws {
        self.lived = lived
        fault = nil
        reservedBytes = 0
        changes = []
        peerDeltas.removeAll(keepingCapacity: true)
        counters = try StoreCounters(on: db)
        savedCounters = counters
    }

    /// Runs the work of one request. On failure, resets the in-memory counters and changes to their state before the request.
    ///
    /// - Throws: the error of `work`, or an error of an operation that `work` caught. The caller has to roll the database back.
    func perform(_ work: (StoreWriter) throws -> Void) throws {
        let (before, changesBefore) = (counters, changes)
        do {
            try work(self)
            if let fault { throw fault }
        } catch {
            fault = nil
            rejected = []
            peerDeltas.removeAll(keepingCapacity: true)
            counters = before
            changes = changesBefore
            savedCounters = before
            throw error
        }
    }

    // MARK: - Named values

    /// Sets a named value, or removes it with `nil`.
    func setMeta(_ key: String, _ value: String?) throws {
        try change {
            if let value {
                try run("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", key, value)
            } else {
                try run("DELETE FROM meta WHERE key = ?", key)
            }
        }
    }
}

extension HexStore {
    /// Sets named values in one transaction, and removes the values that are `nil`.
    public func setMeta(_ values: [String: String?]) async throws {
        guard !values.isEmpty else { return }
        try await write { writer in for (key, value) in values { try writer.setMeta(key, value) } }
    }

    /// Sets a named value, or removes it if `value` is `nil`. Returns immediately. The write may be deferred for up to 20 ms to share a
    /// transaction.
    public func setMeta(_ key: String, _ value: String?, completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        submit(isDeferrable: true, { try $0.setMeta(key, value) }, completion: completion)
    }

    /// Sets or removes named values and blocks the calling thread. For tools that run without a daemon.
    public func setMetaSync(_ values: [String: String?]) throws {
        try writeSync { writer in for (key, value) in values { try writer.setMeta(key, value) } }
    }
}
