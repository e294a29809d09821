internal import GRDB
internal import HexlistModel

/// Everything a reader can ask, and every change. What it does is durable once the piece of work it was given to is
/// reported done, and not before.
///
/// Lives as long as the closure it was given to; it must not leave it. An operation that fails half way makes the whole
/// piece fail, also where the closure catches its error.
final class StoreWriter: StoreReader {
    /// The counters as this transaction has them.
    var tally = Tally()
    private var savedTally = Tally()
    /// Changes of peers' counters that are not in their rows yet, by row id.
    private var peerDeltas: [Int64: PeerDelta] = [:]
    /// Most bytes of the event log.
    var eventLogBytes = EventLog.bytes
    /// Bytes of hexes this transaction has taken and may not have written yet.
    var reservedBytes: Int64 = 0
    /// What the pieces of this transaction that succeeded, and the one that runs, changed.
    private(set) var changes: StoreChange = []
    /// Why the piece can no longer succeed.
    private var fault: (any Error)?

    override func counts() throws -> StoreCounts { tally.counts }

    // MARK: - One change

    /// Runs one operation and brings the counters into their rows.
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
    /// - Returns: rows it touched.
    @discardableResult
    func run(_ sql: String, _ values: any SQLValue...) throws -> Int {
        let statement = try SQLStatement(sql, on: db)
        try statement.bind(values)
        try statement.run()
        return statement.changes
    }

    /// Notes what the piece of work changes, for who observes the store. Inside `change`.
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
        try tally.save(on: db)
        savedTally = tally
    }

    // MARK: - What the write queue does around it

    /// After BEGIN.
    func transactionBegan() throws {
        fault = nil
        reservedBytes = 0
        changes = []
        peerDeltas.removeAll(keepingCapacity: true)
        tally = try Tally(on: db)
        savedTally = tally
    }

    /// Runs one piece of work.
    ///
    /// - Throws: its error, or that of an operation whose error it swallowed. Its changes are still in the transaction:
    ///   the caller takes them back there.
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

    /// Remembers a value, or forgets it with `nil`.
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
    /// Remembers values, all or none: of each key the value, or nothing any more where that is `nil`.
    public func setMeta(_ values: [String: String?]) async throws {
        guard !values.isEmpty else { return }
        try await write { writer in for (key, value) in values { try writer.setMeta(key, value) } }
    }
}
