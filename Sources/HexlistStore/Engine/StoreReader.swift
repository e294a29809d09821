internal import GRDB
internal import HexlistModel

/// The queries on the store. All of them see one snapshot.
///
/// Valid only during the closure that receives it; must not escape.
public class StoreReader {
    let db: Database
    /// The path of the store's file.
    let path: String
    /// The time by `LivedClock`, against which ages and deadlines are compared; in a transaction, that of its beginning.
    var lived: Int64
    /// The bytes of texts read or written, for `MemoryReclaimer`.
    var passedBytes = 0

    init(db: Database, path: String, lived: Int64) {
        self.db = db
        self.path = path
        self.lived = lived
    }

    /// The counts that lists and `status` show. Reads one row.
    public func counts() throws -> StoreCounts { try StoreCounters(on: db).counts }

    /// The bytes on disk, with the write-ahead log.
    public func storeBytes() -> Int64 { StoreFile.bytes(path) }

    /// A value set by `setMeta`; `nil` if there is none.
    public func meta(_ key: String) throws -> String? {
        try first("SELECT value FROM meta WHERE key = ?", key) { $0.text(0) }
    }

    /// Whether nothing was ever done with the store, as after a first start that was interrupted: no value is remembered but the index's own.
    public func isUnused() throws -> Bool {
        let others = try first("SELECT (SELECT count(*) FROM meta WHERE key <> ?) + (SELECT count(*) FROM peer)", SearchIndex.formatKey) {
            $0.int64(0)
        }
        var tally = try StoreCounters(on: db)
        tally.lived = 0  // the time that an interrupted first start took
        return others == 0 && tally == StoreCounters()
    }

    // MARK: - Statements

    /// Reads all rows with `read`, which may only look at columns.
    func all<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLStatement) throws -> Value) throws -> [Value] {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var rows: [Value] = []
        while try statement.step() { rows.append(try read(statement)) }
        return rows
    }

    /// Reads rows with `read` as long as there is room. Of the row after them only the size is looked at.
    /// - Returns: the rows, and whether there are more.
    func page<Value>(
        _ sql: String, _ values: any SQLValue..., limit: Int, size: (SQLStatement) -> Int, read: (SQLStatement) throws -> Value?
    ) throws -> (rows: [Value], hasMore: Bool) {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var room = PageLimit(items: limit)
        defer { passedBytes += room.taken }
        var rows: [Value] = []
        while try statement.step() {
            guard room.take(size(statement)) else { return (rows, true) }
            if let row = try read(statement) { rows.append(row) }
        }
        return (rows, false)
    }

    /// Reads the first row; `nil` if there is none.
    func first<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLStatement) throws -> Value) throws -> Value? {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        return try statement.step() ? read(statement) : nil
    }
}

/// The items of one page: the number asked for, within 1 … 10 000.
func pageLimit(_ limit: Int) -> Int { min(max(1, limit), 10_000) }

/// The room on a page: a number of items, and of bytes of their texts, but always one item.
struct PageLimit {
    /// The most bytes of text read for one page. What is written of it may be longer.
    static let bytes = 4 << 20

    private(set) var items: Int
    private var bytes = PageLimit.bytes
    var taken: Int { PageLimit.bytes - bytes }
    private var isFresh = true

    init(items: Int) { self.items = items }

    /// Takes the room for one more item.
    /// - Returns: whether it fits.
    mutating func take(_ size: Int) -> Bool {
        guard items > 0, isFresh || size <= bytes else { return false }
        isFresh = false
        items -= 1
        bytes -= size
        return true
    }
}

/// The ids as one parameter, whatever their number: `IN (SELECT value FROM json_each(?))`.
func jsonArray(_ ids: some Sequence<Int64>) -> String {
    "[" + ids.lazy.map(String.init).joined(separator: ",") + "]"
}
