internal import GRDB
internal import HexlistModel

/// The queries of a reader and all changes. Changes are durable once their write request is reported done.
///
/// Valid only during the closure that receives it; must not escape. A failed operation fails the whole request, even if the closure catches
/// its error.
final class StoreWriter: StoreReader {
    /// The counters with the changes of this transaction.
    var counters = StoreCounters()
    private var savedCounters = StoreCounters()
    /// Unsaved changes of peers' counters, by row id.
    private var peerDeltas: [Int64: PeerDelta] = [:]
    /// Maximum bytes of the event log.
    var eventLogBytes = EventLog.bytes
    /// Bytes of hexes that this transaction accepted and may not have written yet.
    var reservedBytes: Int64 = 0
    /// Bytes of the file system to leave free, from the last received batch.
    var diskReserve: Int64 = 0
    /// The changes by the successful requests of this transaction and by the current one.
    private(set) var changes: StoreChange = []
    /// The error because of which the current request must fail.
    private var fault: (any Error)?
    private var preparedInserter: HexInserter?

    override func counts() throws -> StoreCounts { counters.counts }

    /// The inserter of this connection, whose statements are prepared once.
    func inserter() throws -> HexInserter {
        if let preparedInserter { return preparedInserter }
        let inserter = try HexInserter(on: db)
        preparedInserter = inserter
        return inserter
    }

    // MARK: - One change

    /// Runs one operation and saves the changed counters.
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

    /// Records a change for the store's observer. Call inside `change`.
    func changed(_ what: StoreChange) { changes.formUnion(what) }

    func count(peer row: Int64, _ update: (inout PeerDelta) -> Void) {
        update(&peerDeltas[row, default: PeerDelta()])
    }

    func saveCounters() throws {
        for (row, delta) in peerDeltas where delta != PeerDelta() {
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

    /// Saves the time by `LivedClock`, from which the next run continues.
    func saveLivedTime() throws { try change { counters.lived = lived } }

    // MARK: - For the write queue

    /// Prepares for a new transaction. Called after BEGIN.
    /// - Parameter lived: the time by `LivedClock`.
    func transactionBegan(lived: Int64) throws {
        self.lived = lived
        fault = nil
        reservedBytes = 0
        changes = []
        peerDeltas.removeAll(keepingCapacity: true)
        counters = try StoreCounters(on: db)
        savedCounters = counters
    }

    /// Runs the work of one request.
    ///
    /// - Throws: the error of `work`, or of an operation whose error `work` caught. The caller has to roll the changes back.
    func perform(_ work: (StoreWriter) throws -> Void) throws {
        let (before, changesBefore) = (counters, changes)
        do {
            try work(self)
            if let fault { throw fault }
        } catch {
            fault = nil
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

    /// Sets a value, or removes it, without waiting.
    public func setMeta(_ key: String, _ value: String?, completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        submit({ try $0.setMeta(key, value) }, completion: completion)
    }

    /// Does the same and blocks. For tools that run without a daemon.
    public func setMetaSync(_ values: [String: String?]) throws {
        try writeSync { writer in for (key, value) in values { try writer.setMeta(key, value) } }
    }
}
