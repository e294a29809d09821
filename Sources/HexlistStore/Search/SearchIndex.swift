internal import GRDB
internal import HexlistModel

/// The index behind `search`: one entry a hex, put in after the commit that stored the hex.
///
/// Entries are made in the order of ids: `tally.indexed` is the highest id that was looked at, and `reindex` lists the few below it that have
/// to be done again. So a hex that arrives writes nothing for its entry, and a crash leaves index and hexes as one transaction left them.
/// The index keeps no texts, so an entry is taken out by the texts of the rows, before those change.
enum SearchIndex {
    /// The most entries, and bytes of their texts, of one turn, but always one entry: some hundredths of a second.
    static let entries = 500
    static let bytes = 512 << 10
    /// The same of a short turn.
    static let (entriesOfShort, bytesOfShort) = (100, 128 << 10)

    /// The remembered `SearchDocument.format`.
    static let formatKey = "searchFormat"

    /// Whether the entries were made by today's rule.
    static func isOfThisFormat(_ db: Database) throws -> Bool {
        try String.fetchOne(db, sql: "SELECT value FROM meta WHERE key = ?", arguments: [formatKey]) == String(SearchDocument.format)
    }

    /// Empties the index if its entries were made by another rule than today's.
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

    /// SQLite's code for a virtual table whose content is damaged (`SQLITE_CORRUPT_VTAB`).
    fileprivate static let damaged: Int32 = 267
}

extension StoreWriter {
    var isIndexBehind: Bool { tally.behind > 0 }

    /// Puts the next entries into the index.
    func index(entries limit: Int = SearchIndex.entries, bytes: Int = SearchIndex.bytes) throws {
        guard isIndexBehind, try !isDiskFull(reserve: diskReserve, writing: Int64(bytes)) else { return }
        try change {
            try orAnew {
                let entries = try SearchEntries(on: db)
                var room = bytes
                defer { passedBytes += bytes - room }
                let again = tally.reindex == 0 ? [] : try all("SELECT hex FROM reindex ORDER BY hex LIMIT ?", limit) { $0.int64(0) }
                for id in again where room > 0 {
                    guard try insert(id, entries, &room) else { return }
                    tally.reindex -= Int64(try run("DELETE FROM reindex WHERE hex = ?", id))
                }
                guard again.count < limit, room > 0 else { return }
                let next = try all("SELECT id FROM hex WHERE id > ? ORDER BY id LIMIT ?", tally.indexed, limit - again.count) {
                    $0.int64(0)
                }
                for id in next where room > 0 {
                    guard try insert(id, entries, &room) else { return }
                    tally.indexed = id
                }
                if room > 0, next.count < limit - again.count { tally.indexed = tally.nextHex - 1 }
            }
        }
    }

    /// Puts one entry in.
    /// - Parameter room: the bytes that are left of the turn's, for which the disk was asked; one entry may take more.
    /// - Returns: `false` if the disk has no room for it; then nothing is put in.
    private func insert(_ id: Int64, _ entries: SearchEntries, _ room: inout Int) throws -> Bool {
        guard let document = try entries.document(id) else { return true }
        let bytes = document.byteCount + 1
        if bytes > room, try isDiskFull(reserve: diskReserve, writing: Int64(bytes - room)) { return false }
        try entries.insert(document, id)
        room -= bytes
        return true
    }

    /// Takes the entries of hexes, and of those inside them, out of the index. To be called inside `change`, before their rows change.
    func unindex(_ ids: [Int64]) throws {
        let indexed = try withInside(ids).filter { $0 <= tally.indexed }.sorted()
        guard !indexed.isEmpty else { return }
        try orAnew {
            let waiting =
                tally.reindex == 0
                ? []
                : Set(try all("SELECT hex FROM reindex WHERE hex IN (SELECT value FROM json_each(?))", jsonArray(indexed)) { $0.int64(0) })
            let entries = try SearchEntries(on: db)
            for id in indexed where !waiting.contains(id) { try entries.remove(id) }
            guard !waiting.isEmpty else { return }
            tally.reindex -= Int64(try run("DELETE FROM reindex WHERE hex IN (SELECT value FROM json_each(?))", jsonArray(waiting)))
        }
    }

    /// Has entries made again that `unindex` took out, of the same hexes. To be called inside `change`, after the rows changed.
    func reindex(_ ids: [Int64]) throws {
        let indexed = try withInside(ids).filter { $0 <= tally.indexed }
        guard !indexed.isEmpty else { return }
        tally.reindex += Int64(try run("INSERT OR IGNORE INTO reindex (hex) SELECT value FROM json_each(?)", jsonArray(indexed)))
    }

    /// The hexes and those inside them, at all levels.
    private func withInside(_ ids: [Int64]) throws -> Set<Int64> {
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

    /// Runs `body`. If the index is damaged, it is emptied, to be made anew: it must not keep a hex from being deleted.
    private func orAnew(_ body: () throws -> Void) throws {
        do {
            // The savepoint's release writes what FTS5 would else write at the commit, where a damage could be told no more.
            try run("SAVEPOINT entries")
            try body()
            try run("RELEASE entries")
        } catch let fault as StoreFault where fault.code == SearchIndex.damaged {
            try run("ROLLBACK TO entries")
            try run("RELEASE entries")
            try emptyIndex()
        }
    }

    /// Takes all entries out of the index, to be made anew.
    fileprivate func emptyIndex() throws {
        try change {
            try run("INSERT INTO search (search) VALUES ('delete-all')")
            try run("DELETE FROM reindex")
            tally.indexed = 0
            tally.reindex = 0
        }
    }
}

extension StoreCounters {
    /// The most hexes that have no entry yet.
    var behind: Int64 { Swift.max(0, nextHex - 1 - indexed) + reindex }
}

extension HexStore {
    /// Puts the next entries into the index now, whatever waits, so that what arrived lately is found. Does nothing if the store cannot be
    /// written: a search tells then what it is behind.
    public func bringIndexOn() async {
        _ = try? await write { try $0.index() }
    }

    /// Reads with the index, after the next entries were put into it. If the index is damaged, it is emptied to be made anew, and `work` is
    /// done once more.
    public func readWithIndex<Value: Sendable>(_ work: @escaping @Sendable (StoreReader) throws -> Value) async throws -> Value {
        await bringIndexOn()
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
            await bringIndexOn()
            return try await read(work)
        }
    }

    private struct DamagedIndex: Error {}
}

/// The statements that put entries in and take them out.
private struct SearchEntries {
    private let hex: SQLStatement
    private let top: SQLStatement
    private let links: SQLStatement
    private let put: SQLStatement
    private let take: SQLStatement

    init(on db: Database) throws {
        hex = try SQLStatement("SELECT location, peer, senderName, description, color FROM hex WHERE id = ?", on: db)
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
            "SELECT url, description, service FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191 ORDER BY id", on: db)
        put = try SQLStatement("INSERT INTO search (rowid, about, sender, link, key) VALUES (?, ?, ?, ?, ?)", on: db)
        take = try SQLStatement("INSERT INTO search (search, rowid, about, sender, link, key) VALUES ('delete', ?, ?, ?, ?, ?)", on: db)
    }

    func insert(_ document: SearchDocument, _ id: Int64) throws { try run(put, document, id) }

    func remove(_ id: Int64) throws { if let document = try document(id) { try run(take, document, id) } }

    private func run(_ statement: SQLStatement, _ document: SearchDocument, _ id: Int64) throws {
        try statement.check(id.bindValue(to: statement.handle, at: 1))
        for (index, text) in [document.about, document.sender, document.links, document.keys].enumerated() {
            try text.withUnsafeBytes {
                try statement.check(SQLStatement.bindText($0, to: statement.handle, at: Int32(index) + 2, SQLStatement.copying))
            }
        }
        try statement.run()
    }

    /// The place and the sender of a hex: if it is inside another, those of the topmost hex it is in.
    private func place(_ id: Int64, _ row: SQLStatement) throws -> (location: String, peer: Int64?) {
        let location = row.text(0)
        guard HexLocation(rawValue: location) == nil else { return (location, row.optionalInt64(1)) }
        try top.bind([id])
        defer { top.reset() }
        return try top.step() ? (top.text(0), top.optionalInt64(1)) : (location, nil)
    }

    /// The texts of a hex; `nil` if there is no such hex.
    func document(_ id: Int64) throws -> SearchDocument? {
        try hex.bind([id])
        defer { hex.reset() }
        guard try hex.step() else { return nil }
        let place = try place(id, hex)
        var document = SearchDocument(
            location: place.location, peer: place.peer, senderName: hex.bytes(2), description: hex.bytes(3), color: hex.bytes(4))
        try links.bind([id])
        defer { links.reset() }
        while try links.step() { document.add(url: links.bytes(0), description: links.bytes(1), service: links.bytes(2)) }
        return document
    }
}
