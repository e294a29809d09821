internal import GRDB
internal import HexlistModel

/// The queries of a reader and all changes. A change is durable once its piece of work is reported done, and not before.
///
/// Valid only during the closure that receives it; must not escape. An operation that fails makes the whole piece fail, even if the closure
/// catches its error.
final class StoreWriter: StoreReader {
    /// The counters as changed by this transaction.
    var tally = StoreCounters()
    private var savedTally = StoreCounters()
    /// Changes of peers' counters that are not in their rows yet, by row id.
    private var peerDeltas: [Int64: PeerDelta] = [:]
    /// The most bytes of the event log.
    var eventLogBytes = EventLog.bytes
    /// The bytes of hexes that this transaction has taken and may not have written yet.
    var reservedBytes: Int64 = 0
    /// The bytes of the file system to leave free, as the last batch of hexes had them.
    var diskReserve: Int64 = 0
    /// The changes by the pieces of this transaction that succeeded, and by the current one.
    private(set) var changes: StoreChange = []
    /// The reason why the piece can no longer succeed.
    private var fault: (any Error)?
    private var preparedInserter: HexInserter?

    override func counts() throws -> StoreCounts { tally.counts }

    /// The inserter of this connection; its statements are prepared once.
    func inserter() throws -> HexInserter {
        if let preparedInserter { return preparedInserter }
        let inserter = try HexInserter(on: db)
        preparedInserter = inserter
        return inserter
    }

    // MARK: - One change

    /// Runs one operation and writes the changed counters into their rows.
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
    /// - Returns: the number of rows it touched.
    @discardableResult
    func run(_ sql: String, _ values: any SQLValue...) throws -> Int {
        let statement = try SQLStatement(sql, on: db)
        try statement.bind(values)
        try statement.run()
        return statement.changes
    }

    /// Notes a change for the store's observer. Inside `change`.
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
        guard tally != savedTally else { return }
        tally.lived = lived
        try tally.save(on: db)
        savedTally = tally
    }

    /// Saves the time by `LivedClock`, from which the next start continues.
    func saveLivedTime() throws { try change { tally.lived = lived } }

    // MARK: - For the write queue

    /// Prepares for a new transaction; called after BEGIN.
    /// - Parameter lived: the time by `LivedClock`.
    func transactionBegan(lived: Int64) throws {
        self.lived = lived
        fault = nil
        reservedBytes = 0
        changes = []
        peerDeltas.removeAll(keepingCapacity: true)
        tally = try StoreCounters(on: db)
        savedTally = tally
    }

    /// Runs one piece of work.
    ///
    /// - Throws: the piece's error, or that of an operation whose error the piece caught. Its changes are still in the transaction; the
    ///   caller rolls them back.
    func perform(_ piece: (StoreWriter) throws -> Void) throws {
        let (before, changesBefore) = (tally, changes)
        do {
            try piece(self)
            if let fault { throw fault }
        } catch {
            fault = nil
            peerDeltas.removeAll(keepingCapacity: true)
            tally = before
            changes = changesBefore
            savedTally = before
            throw error
        }
    }

    // MARK: - Remembered values

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
    /// Sets named values in one transaction, and removes those that are `nil`.
    public func setMeta(_ values: [String: String?]) async throws {
        guard !values.isEmpty else { return }
        try await write { writer in for (key, value) in values { try writer.setMeta(key, value) } }
    }

    /// Does the same and blocks until it is done: for tools that run while no daemon does.
    public func setMetaSync(_ values: [String: String?]) throws {
        try writeSync { writer in for (key, value) in values { try writer.setMeta(key, value) } }
    }
}
