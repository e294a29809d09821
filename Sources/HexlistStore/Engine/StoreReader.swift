internal import GRDB
internal import HexlistModel

/// Queries on one snapshot of the store. Valid only during the closure that receives it; must not escape.
public class StoreReader {
    let db: Database
    /// The path of the store's file.
    let path: String
    /// The time of `StoreOpenTimeClock` at the beginning of the transaction. All ages and deadlines in the transaction are measured from it.
    var lived: Int64
    /// Bytes of texts that were read or written so far, for `MemoryReclaimer`.
    var passedBytes = 0

    init(db: Database, path: String, lived: Int64) {
        self.db = db
        self.path = path
        self.lived = lived
    }

    /// Returns the counts of records, for lists and `hexlist status`. Reads only the counters row.
    public func counts() throws -> StoreCounts { try StoreCounters(on: db).counts }

    /// Returns the size of the store on disk in bytes, including the WAL.
    public func storeBytes() -> Int64 { StoreFile.bytes(path) }

    /// Returns the named value that `setMeta` stored; `nil` if there is none.
    public func meta(_ key: String) throws -> String? {
        try first("SELECT value FROM meta WHERE key = ?", key) { $0.text(0) }
    }

    /// Returns the named values whose keys begin with a prefix. In the result, `name` is the key without the prefix.
    /// - Parameter prefix: ASCII that ends with `.`.
    public func meta(withPrefix prefix: String) throws -> [(name: String, value: String)] {
        // `/` is the character after `.` in ASCII, so the range contains exactly the keys with this prefix.
        try all("SELECT key, value FROM meta WHERE key >= ? AND key < ? ORDER BY key", prefix, prefix.dropLast() + "/") {
            (String($0.text(0).dropFirst(prefix.count)), $0.text(1))
        }
    }

    /// Whether the store was never used, for example after an interrupted first start of the daemon: it has no named values except the
    /// format of the search index, no peers, and no counts.
    public func isUnused() throws -> Bool {
        let others = try first("SELECT (SELECT count(*) FROM meta WHERE key <> ?) + (SELECT count(*) FROM peer)", SearchIndex.formatKey) {
            $0.int64(0)
        }
        var counters = try StoreCounters(on: db)
        counters.lived = 0  // the time that the interrupted first start took does not count as a use
        return others == 0 && counters == StoreCounters()
    }

    // MARK: - Statements

    /// Runs a query and converts each row with `read`, which may only access columns of the row.
    func all<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLStatement) throws -> Value) throws -> [Value] {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var rows: [Value] = []
        while try statement.step() { rows.append(try read(statement)) }
        return rows
    }

    /// Runs a query and converts rows with `read`, up to the limits of a page (`PageCapacity`). Of the first row beyond the page only the size
    /// is determined.
    /// - Returns: the rows of the page, and whether the query has more.
    func page<Value>(
        _ sql: String, _ values: any SQLValue..., limit: Int, size: (SQLStatement) -> Int, read: (SQLStatement) throws -> Value?
    ) throws -> (rows: [Value], hasMore: Bool) {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var pageLimit = PageCapacity(items: limit)
        defer { passedBytes += pageLimit.taken }
        var rows: [Value] = []
        while try statement.step() {
            guard pageLimit.take(size(statement)) else { return (rows, true) }
            if let row = try read(statement) { rows.append(row) }
        }
        return (rows, false)
    }

    /// Runs a query and converts its first row with `read`; `nil` if there is no row.
    func first<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLStatement) throws -> Value) throws -> Value? {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        return try statement.step() ? read(statement) : nil
    }
}

/// Returns the requested number of items of a page, clamped to 1...10 000.
func pageLimit(_ limit: Int) -> Int { min(max(1, limit), 10_000) }

/// The remaining capacity of a page: a number of items, and a number of bytes of their texts. The first item always fits, so that a page is
/// never empty.
struct PageCapacity {
    /// Maximum bytes of the texts of one page. The JSON of the page may be longer.
    static let bytes = 4 << 20

    private(set) var items: Int
    private var bytes = PageCapacity.bytes
    var taken: Int { PageCapacity.bytes - bytes }
    private var isFresh = true

    init(items: Int) { self.items = items }

    /// Reserves capacity for one more item of `size` bytes.
    /// - Returns: whether the item fits into the page.
    mutating func take(_ size: Int) -> Bool {
        guard items > 0, isFresh || size <= bytes else { return false }
        isFresh = false
        items -= 1
        bytes -= size
        return true
    }
}

/// Returns ids as a JSON array, so that a statement can take any number of them as one parameter: `IN (SELECT value FROM json_each(?))`.
func jsonArray(_ ids: some Sequence<Int64>) -> String {
    "[" + ids.lazy.map(String.init).joined(separator: ",") + "]"
}
