internal import GRDB
internal import HexlistModel

/// Queries on one snapshot of the store. Valid only during the closure that receives it; must not escape.
public class StoreReader {
    let db: Database
    /// The path of the store's file.
    let path: String
    /// The time by `LivedClock` for ages and deadlines: that of the beginning of the transaction.
    var lived: Int64
    /// Bytes of texts read or written, for `MemoryReclaimer`.
    var passedBytes = 0

    init(db: Database, path: String, lived: Int64) {
        self.db = db
        self.path = path
        self.lived = lived
    }

    /// The counts for lists and `status`. Reads one row.
    public func counts() throws -> StoreCounts { try StoreCounters(on: db).counts }

    /// The bytes on disk, with the WAL.
    public func storeBytes() -> Int64 { StoreFile.bytes(path) }

    /// The value that `setMeta` set; `nil` if there is none.
    public func meta(_ key: String) throws -> String? {
        try first("SELECT value FROM meta WHERE key = ?", key) { $0.text(0) }
    }

    /// Whether the store was never used, as after an interrupted first start: it has no value, no peer and no counts, except the format of
    /// the index.
    public func isUnused() throws -> Bool {
        let others = try first("SELECT (SELECT count(*) FROM meta WHERE key <> ?) + (SELECT count(*) FROM peer)", SearchIndex.formatKey) {
            $0.int64(0)
        }
        var counters = try StoreCounters(on: db)
        counters.lived = 0  // an interrupted first start took some time
        return others == 0 && counters == StoreCounters()
    }

    // MARK: - Statements

    /// Reads all rows with `read`, which may only access columns.
    func all<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLStatement) throws -> Value) throws -> [Value] {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var rows: [Value] = []
        while try statement.step() { rows.append(try read(statement)) }
        return rows
    }

    /// Reads rows with `read` up to the limits of a page (`PageLimit`). Only the size of the row after them is read.
    /// - Returns: the rows, and whether there are more.
    func page<Value>(
        _ sql: String, _ values: any SQLValue..., limit: Int, size: (SQLStatement) -> Int, read: (SQLStatement) throws -> Value?
    ) throws -> (rows: [Value], hasMore: Bool) {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var pageLimit = PageLimit(items: limit)
        defer { passedBytes += pageLimit.taken }
        var rows: [Value] = []
        while try statement.step() {
            guard pageLimit.take(size(statement)) else { return (rows, true) }
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

/// The number of items of a page: the requested one, clamped to 1...10 000.
func pageLimit(_ limit: Int) -> Int { min(max(1, limit), 10_000) }

/// The remaining capacity of a page: a number of items and of bytes of their texts. A page has at least one item.
struct PageLimit {
    /// Maximum bytes of text of one page. Its JSON may be longer.
    static let bytes = 4 << 20

    private(set) var items: Int
    private var bytes = PageLimit.bytes
    var taken: Int { PageLimit.bytes - bytes }
    private var isFresh = true

    init(items: Int) { self.items = items }

    /// Reserves capacity for one more item.
    /// - Returns: whether it fits.
    mutating func take(_ size: Int) -> Bool {
        guard items > 0, isFresh || size <= bytes else { return false }
        isFresh = false
        items -= 1
        bytes -= size
        return true
    }
}

/// Any number of ids as one parameter: `IN (SELECT value FROM json_each(?))`.
func jsonArray(_ ids: some Sequence<Int64>) -> String {
    "[" + ids.lazy.map(String.init).joined(separator: ",") + "]"
}
