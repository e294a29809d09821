internal import GRDB
internal import HexlistModel

/// The search index: an FTS5 table with one entry for each hex. Entries are inserted in batches after the commits that stored the hexes.
///
/// Entries are inserted in the order of ids. `StoreCounters.indexed` is the highest indexed id; the table `reindex` lists lower ids that
/// need a new entry. Storing a hex therefore does not write to the index, and after a crash indexing continues from these values. The index
/// does not store the texts, so an entry can be removed only with the texts of the hex's rows, before the rows change.
enum SearchIndex {
    /// Maximum number of entries in one batch, and maximum bytes of their texts. A batch takes about 30 ms and has at least one entry.
    static let batchEntries = 500
    static let batchBytes = 512 << 10
    /// The values of `batchEntries` and `batchBytes` while other writes wait.
    static let busyBatchEntries = 100
    static let busyBatchBytes = 128 << 10

    /// The name of the stored value (`setMeta`) that has the `SearchDocument.format` of the index.
    static let formatKey = "searchFormat"

    /// Whether the index has the format of this version.
    static func isOfThisFormat(_ db: Database) throws -> Bool {
        try String.fetchOne(db, sql: "SELECT value FROM meta WHERE key = ?", arguments: [formatKey]) == String(SearchDocument.format)
    }

    /// Empties the index if it has another format than this version, so that it is rebuilt.
    static func checkFormat(_ db: Database) throws {
        guard try !isOfThisFormat(db) else { return }
        let format = String(SearchDocument.format)
        try db.execute(
            sql: """
                INSERT INTO search (search) VALUES ('delete-all');
                DELETE FROM reindex;
                UPDATE tally SET indexed = 0, reindex = 0;
                """)
        try db.execute(
            sql: "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            arguments: [formatKey, format])
    }

    /// The result code `SQLITE_CORRUPT_VTAB`: the content of a virtual table is damaged.
    fileprivate static let damaged: Int32 = 267
}

extension StoreWriter {
    var isIndexBehind: Bool { counters.unindexed > 0 }

    /// Indexes the next batch of hexes. Has no effect if all are indexed or the disk has no space.
    func index(entries limit: Int = SearchIndex.batchEntries, bytes: Int = SearchIndex.batchBytes) throws {
        guard isIndexBehind, try !isDiskFull(reserve: diskReserve, writing: Int64(bytes)) else { return }
        try change {
            try emptyingIfDamaged {
                let entries = try SearchEntries(on: db)
                var remaining = bytes
                defer { passedBytes += bytes - remaining }
                let again = counters.reindex == 0 ? [] : try all("SELECT hex FROM reindex ORDER BY hex LIMIT ?", limit) { $0.int64(0) }
                for id in again where remaining > 0 {
                    guard try insert(id, entries, &remaining) else { return }
                    counters.reindex -= Int64(try run("DELETE FROM reindex WHERE hex = ?", id))
                }
                guard again.count < limit, remaining > 0 else { return }
                let next = try all("SELECT id FROM hex WHERE id > ? ORDER BY id LIMIT ?", counters.indexed, limit - again.count) {
                    $0.int64(0)
                }
                for id in next where remaining > 0 {
                    guard try insert(id, entries, &remaining) else { return }
                    counters.indexed = id
                }
                if remaining > 0, next.count < limit - again.count { counters.indexed = counters.nextHex - 1 }
            }
        }
    }

    /// Inserts one entry.
    /// - Parameter remaining: the remaining bytes of the batch, for which free disk space was checked. An entry may be longer; then free
    ///   space is checked again.
    /// - Returns: `false` if the disk has no space for the entry; then nothing is inserted.
    private func insert(_ id: Int64, _ entries: SearchEntries, _ remaining: inout Int) throws -> Bool {
        guard let document = try entries.document(id) else { return true }
        let bytes = document.byteCount + 1
        if bytes > remaining, try isDiskFull(reserve: diskReserve, writing: Int64(bytes - remaining)) { return false }
        try entries.insert(document, id)
        remaining -= bytes
        return true
    }

    /// Removes the index entries of hexes and their inner hexes. Call inside `change`, before the rows of the hexes change.
    func unindex(_ ids: [Int64]) throws {
        let indexed = try withDescendants(ids).filter { $0 <= counters.indexed }.sorted()
        guard !indexed.isEmpty else { return }
        try emptyingIfDamaged {
            let waiting =
                counters.reindex == 0
                ? []
                : Set(try all("SELECT hex FROM reindex WHERE hex IN (SELECT value FROM json_each(?))", jsonArray(indexed)) { $0.int64(0) })
            let entries = try SearchEntries(on: db)
            for id in indexed where !waiting.contains(id) { try entries.remove(id) }
            guard !waiting.isEmpty else { return }
            counters.reindex -= Int64(try run("DELETE FROM reindex WHERE hex IN (SELECT value FROM json_each(?))", jsonArray(waiting)))
        }
    }

    /// Schedules new index entries for hexes and their inner hexes, whose entries `unindex` removed. Call inside `change`, after the rows
    /// changed.
    func reindex(_ ids: [Int64]) throws {
        let indexed = try withDescendants(ids).filter { $0 <= counters.indexed }
        guard !indexed.isEmpty else { return }
        counters.reindex += Int64(try run("INSERT OR IGNORE INTO reindex (hex) SELECT value FROM json_each(?)", jsonArray(indexed)))
    }

    /// Returns the ids of the hexes and of their inner hexes, at all levels.
    private func withDescendants(_ ids: [Int64]) throws -> Set<Int64> {
        let list = jsonArray(Set(ids))
        let hasInside = try first("SELECT 1 FROM hex WHERE id IN (SELECT value FROM json_each(?)) AND hexesInside > 0 LIMIT 1", list) { _ in
            true
        }
        guard hasInside ?? false else { return Set(ids) }
        let all = try all(
            """
            WITH RECURSIVE wanted (id, level) AS (
                SELECT value, 1 FROM json_each(?)
                UNION ALL
                SELECT hex.id, level + 1 FROM wanted CROSS JOIN hex ON hex.parent = wanted.id WHERE level < \(ProtocolLimits.levels)
            )
            SELECT id FROM wanted
            """, list
        ) { $0.int64(0) }
        return Set(all)
    }

    /// Runs `body`, which changes the index. If the index is damaged, undoes `body` and empties the index, so that it is rebuilt. A damaged
    /// index must not prevent the deletion of a hex.
    private func emptyingIfDamaged(_ body: () throws -> Void) throws {
        do {
            // Releasing the savepoint makes FTS5 write its pending entries, so that its errors occur here. At COMMIT they could not be
            // attributed to the index.
            try run("SAVEPOINT entries")
            try body()
            try run("RELEASE entries")
        } catch let fault as StoreFault where fault.code == SearchIndex.damaged {
            try run("ROLLBACK TO entries")
            try run("RELEASE entries")
            try emptyIndex()
        }
    }

    /// Removes all entries of the index, so that it is rebuilt.
    fileprivate func emptyIndex() throws {
        try change {
            try run("INSERT INTO search (search) VALUES ('delete-all')")
            try run("DELETE FROM reindex")
            counters.indexed = 0
            counters.reindex = 0
        }
    }
}

extension StoreCounters {
    /// Upper bound of the number of hexes that are not indexed yet.
    var unindexed: Int64 { Swift.max(0, nextHex - 1 - indexed) + reindex }
}

extension HexStore {
    /// Indexes the next batch immediately, so that a search finds recent arrivals. Has no effect if the store cannot be written; search
    /// results then report the number of unindexed hexes.
    public func indexNextBatch() async {
        _ = try? await write { try $0.index() }
    }

    /// Indexes the next batch, then runs `work`, which may search. If the index is damaged, empties it, so that it is rebuilt, and runs
    /// `work` once more.
    /// - Parameter indexesFirst: `false` if `work` needs no entries of hexes that changed just now. Indexing a large hex takes longer than
    ///   reading it.
    public func readWithIndex<Value: Sendable>(
        indexesFirst: Bool = true, _ work: @escaping @Sendable (StoreReader) throws -> Value
    ) async throws -> Value {
        if indexesFirst { await indexNextBatch() }
        do {
            return try await read { reader in
                do {
                    return try work(reader)
                } catch let fault as StoreFault where fault.code == SearchIndex.damaged {
                    throw DamagedIndex()
                }
            }
        } catch is DamagedIndex {
            try await write { try $0.emptyIndex() }
            await indexNextBatch()
            return try await read(work)
        }
    }

    private struct DamagedIndex: Error {}
}

/// The prepared statements that insert and remove index entries.
private struct SearchEntries {
    private let hex: SQLStatement
    private let top: SQLStatement
    private let links: SQLStatement
    private let dead: SQLStatement
    private let insertion: SQLStatement
    private let removal: SQLStatement

    init(on db: Database) throws {
        hex = try SQLStatement("SELECT location, peer, senderName, description, color, extra FROM hex WHERE id = ?", on: db)
        top = try SQLStatement(
            """
            WITH RECURSIVE above (parent, location, peer, level) AS (
                SELECT parent, location, peer, 1 FROM hex WHERE id = ?
                UNION ALL
                SELECT hex.parent, hex.location, hex.peer, level + 1 FROM above CROSS JOIN hex ON hex.id = above.parent
                    WHERE level < \(ProtocolLimits.levels)
            )
            SELECT location, peer FROM above WHERE parent IS NULL
            """, on: db)
        links = try SQLStatement(
            "SELECT url, description, service, extra FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191 ORDER BY id", on: db)
        dead = try SQLStatement("SELECT 1 FROM deadLink WHERE hex = ? LIMIT 1", on: db)
        insertion = try SQLStatement("INSERT INTO search (rowid, about, sender, link, key) VALUES (?, ?, ?, ?, ?)", on: db)
        removal = try SQLStatement("INSERT INTO search (search, rowid, about, sender, link, key) VALUES ('delete', ?, ?, ?, ?, ?)", on: db)
    }

    func insert(_ document: SearchDocument, _ id: Int64) throws { try run(insertion, document, id) }

    func remove(_ id: Int64) throws { if let document = try document(id) { try run(removal, document, id) } }

    private func run(_ statement: SQLStatement, _ document: SearchDocument, _ id: Int64) throws {
        try statement.check(id.bindValue(to: statement.handle, at: 1))
        for (index, text) in [document.about, document.sender, document.links, document.keys].enumerated() {
            try text.withUnsafeBytes {
                try statement.check(SQLStatement.bindText($0, to: statement.handle, at: Int32(index) + 2, SQLStatement.copying))
            }
        }
        try statement.run()
    }

    /// Returns the location and the sender of a hex; for an inner hex, those of its topmost hex.
    private func origin(of id: Int64, _ row: SQLStatement) throws -> (location: String, peer: Int64?) {
        let location = row.text(0)
        guard HexLocation(rawValue: location) == nil else { return (location, row.optionalInt64(1)) }
        try top.bind([id])
        defer { top.reset() }
        return try top.step() ? (top.text(0), top.optionalInt64(1)) : (location, nil)
    }

    /// Returns the indexed texts of a hex; `nil` if there is no such hex.
    func document(_ id: Int64) throws -> SearchDocument? {
        try hex.bind([id])
        defer { hex.reset() }
        guard try hex.step() else { return nil }
        let origin = try origin(of: id, hex)
        var document = SearchDocument(
            location: origin.location, peer: origin.peer, senderName: hex.bytes(2), description: hex.bytes(3), color: hex.bytes(4),
            extra: hex.bytes(5))
        try links.bind([id])
        defer { links.reset() }
        while try links.step() {
            document.add(url: links.bytes(0), description: links.bytes(1), service: links.bytes(2), extra: links.bytes(3))
        }
        try dead.bind([id])
        defer { dead.reset() }
        if try dead.step() { document.addDeadLinks() }
        return document
    }
}
