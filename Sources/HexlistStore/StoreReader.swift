internal import GRDB
internal import HexlistModel

/// What can be asked of the store. One snapshot: everything read through it is of the same instant.
///
/// Lives as long as the closure it was given to; it must not leave it.
public class StoreReader {
    let db: Database
    /// The store file.
    let path: String
    /// Bytes of texts it read or wrote, for `Residue`.
    var passedBytes = 0

    init(db: Database, path: String) {
        self.db = db
        self.path = path
    }

    /// Counts that lists and `status` show. Costs one row.
    public func counts() throws -> StoreCounts { try Tally(on: db).counts }

    /// Bytes on disk, with the write-ahead log.
    public func storeBytes() -> Int64 { StoreFile.bytes(path) }

    /// A remembered value; `nil` where there is none.
    public func meta(_ key: String) throws -> String? {
        try first("SELECT value FROM meta WHERE key = ?", key) { $0.text(0) }
    }

    // MARK: - Statements

    /// Every row, read by `read`, which may only look at columns.
    func all<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLStatement) throws -> Value) throws -> [Value] {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var rows: [Value] = []
        while try statement.step() { rows.append(try read(statement)) }
        return rows
    }

    /// Rows as long as there is room, each read by `read`; of one more only the size is looked at.
    /// - Returns: the rows, and whether there is one more.
    func page<Value>(
        _ sql: String, _ values: any SQLValue..., limit: Int, size: (SQLStatement) -> Int, read: (SQLStatement) throws -> Value?
    ) throws -> (rows: [Value], hasMore: Bool) {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        var room = PageRoom(items: limit)
        defer { passedBytes += room.taken }
        var rows: [Value] = []
        while try statement.step() {
            guard room.take(size(statement)) else { return (rows, true) }
            if let row = try read(statement) { rows.append(row) }
        }
        return (rows, false)
    }

    /// The first row, or `nil`.
    func first<Value>(_ sql: String, _ values: any SQLValue..., read: (SQLStatement) throws -> Value) throws -> Value? {
        let statement = try SQLStatement(sql, on: db)
        defer { statement.reset() }
        try statement.bind(values)
        return try statement.step() ? read(statement) : nil
    }
}

/// Items of one page: what is asked for, 1 … 10 000.
func pageLimit(_ limit: Int) -> Int { min(max(1, limit), 10_000) }

/// What a page has room for: so many items, and so many bytes of their texts, but always one item.
struct PageRoom {
    /// Bytes of text that are read for one page; what is written of it may be longer.
    static let bytes = 4 << 20

    private(set) var items: Int
    private var bytes = PageRoom.bytes
    var taken: Int { PageRoom.bytes - bytes }
    private var isFresh = true

    init(items: Int) { self.items = items }

    /// Takes one more item, where it fits.
    mutating func take(_ size: Int) -> Bool {
        guard items > 0, isFresh || size <= bytes else { return false }
        isFresh = false
        items -= 1
        bytes -= size
        return true
    }
}

/// Lists of ids in one statement, whatever their count: `IN (SELECT value FROM json_each(?))`.
func jsonArray(_ ids: some Sequence<Int64>) -> String {
    "[" + ids.lazy.map(String.init).joined(separator: ",") + "]"
}
