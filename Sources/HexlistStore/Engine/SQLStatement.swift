internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import HexlistModel

/// A value that can be bound to a parameter of a statement. SQLite copies its bytes.
protocol SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32
}

extension Int64: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 { sqlite3_bind_int64(statement, index, self) }
}

extension Int: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 { sqlite3_bind_int64(statement, index, Int64(self)) }
}

extension Bool: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 { sqlite3_bind_int64(statement, index, self ? 1 : 0) }
}

extension String: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 {
        var text = self
        return text.withUTF8 {
            SQLStatement.bindText(UnsafeRawBufferPointer($0), to: statement, at: index, SQLStatement.copying)
        }
    }
}

extension [UInt8]: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 { self[...].bindValue(to: statement, at: index) }
}

extension ArraySlice<UInt8>: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 {
        withUnsafeBytes { SQLStatement.bindBlob($0, to: statement, at: index, SQLStatement.copying) }
    }
}

extension UUIDBytes: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 {
        var words = (high.bigEndian, low.bigEndian)
        return withUnsafeBytes(of: &words) {
            sqlite3_bind_blob(statement, index, $0.baseAddress, 16, SQLStatement.copying)
        }
    }
}

extension Optional: SQLValue where Wrapped: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 {
        switch self {
        case .some(let value): value.bindValue(to: statement, at: index)
        case .none: sqlite3_bind_null(statement, index)
        }
    }
}

/// A prepared statement of one connection. It comes from GRDB's statement cache and is run with SQLite's C API.
///
/// GRDB's own API is not used, because it lowers the insert rate by a third, and traps on a value of an unexpected type, for example in a
/// damaged file. SQLite's C API converts the value instead. Use a statement only on its connection's queue. Do not run it again while its
/// rows are being read.
struct SQLStatement {
    private let prepared: Statement  // keeps `handle` alive
    let handle: OpaquePointer
    private let connection: OpaquePointer

    init(_ sql: String, on db: Database) throws {
        guard let connection = db.sqliteConnection else { throw StoreFault.closed }
        prepared = try db.cachedStatement(sql: sql)
        handle = prepared.sqliteStatement
        self.connection = connection
    }

    /// Returns the SQL of `count` rows of parameters for VALUES: `(?, ?), (?, ?)`.
    static func rows(_ count: Int, of columns: Int) -> String {
        let row = "(\(repeatElement("?", count: columns).joined(separator: ", ")))"
        return repeatElement(row, count: count).joined(separator: ", ")
    }

    /// `SQLITE_TRANSIENT`, which makes SQLite copy a bound value. Swift cannot import the macro.
    static var copying: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    /// Binds a text with SQLite's C API, and returns the result code.
    /// - Parameter lifetime: `copying`, or `nil` for bytes that stay valid until the statement is reset.
    @inline(__always)
    static func bindText(
        _ bytes: UnsafeRawBufferPointer, to statement: OpaquePointer, at index: Int32, _ lifetime: sqlite3_destructor_type?
    ) -> Int32 {
        guard bytes.count > 0, let start = bytes.baseAddress else { return sqlite3_bind_text(statement, index, "", 0, nil) }
        let text = start.assumingMemoryBound(to: CChar.self)
        return sqlite3_bind_text64(statement, index, text, UInt64(bytes.count), lifetime, UInt8(SQLITE_UTF8))
    }

    /// Binds a blob with SQLite's C API, and returns the result code.
    /// - Parameter lifetime: as for `bindText`.
    static func bindBlob(
        _ bytes: UnsafeRawBufferPointer, to statement: OpaquePointer, at index: Int32, _ lifetime: sqlite3_destructor_type?
    ) -> Int32 {
        guard bytes.count > 0, let start = bytes.baseAddress else { return sqlite3_bind_zeroblob(statement, index, 0) }
        return sqlite3_bind_blob64(statement, index, start, UInt64(bytes.count), lifetime)
    }

    func bind(_ values: [any SQLValue]) throws {
        for (index, value) in values.enumerated() {
            try check(value.bindValue(to: handle, at: Int32(truncatingIfNeeded: index + 1)))
        }
    }

    /// Binds a text without copying it. The bytes must stay valid until the statement has run.
    @inline(__always)
    func bind(text: UnsafeRawBufferPointer, at index: Int32) throws { try check(Self.bindText(text, to: handle, at: index, nil)) }

    @inline(__always)
    func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw fault(code) }
    }

    /// Steps to the next row. Resets the statement after the last row.
    /// - Returns: whether there is another row.
    func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE:
            sqlite3_reset(handle)
            return false
        case let code: throw fault(code)
        }
    }

    /// Runs the statement to its end.
    func run() throws {
        while try step() {}
    }

    func reset() { sqlite3_reset(handle) }

    /// The number of rows that the connection's last INSERT, UPDATE or DELETE changed, without triggers and cascades.
    var changes: Int { Int(sqlite3_changes(connection)) }

    private func fault(_ code: Int32) -> StoreFault {
        let lastError = errno  // a failed COMMIT does not set sqlite3_system_errno
        let extended = sqlite3_extended_errcode(connection)
        let systemError = sqlite3_system_errno(connection)
        let fault = StoreFault(
            code: extended & 0xFF == code & 0xFF ? extended : code, message: String(cString: sqlite3_errmsg(connection)),
            systemError: systemError == 0 && code & 0xFF == SQLITE_IOERR ? lastError : systemError)
        sqlite3_reset(handle)
        return fault
    }
}

// The values of the current row's columns, counted from 0. SQLite converts a value of another type.
extension SQLStatement {
    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func int64(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func int(_ column: Int32) -> Int { Int(truncatingIfNeeded: sqlite3_column_int64(handle, column)) }

    func bool(_ column: Int32) -> Bool { sqlite3_column_int64(handle, column) != 0 }

    func optionalInt64(_ column: Int32) -> Int64? { isNull(column) ? nil : int64(column) }

    /// Calls `body` with the column's bytes. They are valid only during the call.
    func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        let start = sqlite3_column_blob(handle, column)
        return try body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column))))
    }

    /// Returns the total number of bytes of the texts and blobs in these columns, without copying them.
    func size(of columns: ClosedRange<Int32>) -> Int {
        columns.reduce(0) { sum, column in
            switch sqlite3_column_type(handle, column) {
            case SQLITE_TEXT, SQLITE_BLOB: sum + Int(sqlite3_column_bytes(handle, column))
            default: sum
            }
        }
    }

    func bytes(_ column: Int32) -> [UInt8] { withBytes(column) { Array($0) } }

    func text(_ column: Int32) -> String { withBytes(column) { String(decoding: $0, as: UTF8.self) } }

    func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    /// The UUID in a column; `nil` if it does not have 16 bytes.
    func uuid(_ column: Int32) -> UUIDBytes? { withBytes(column) { UUIDBytes(raw: $0) } }
}

extension UUIDBytes {
    /// Creates a UUID from its 16 bytes; `nil` for another number of bytes. Equivalent to the generic `init(bytes:)`, which takes
    /// microseconds if the compiler does not specialise it.
    init?(raw: UnsafeRawBufferPointer) {
        guard raw.count == 16 else { return nil }
        let words = (raw.loadUnaligned(as: UInt64.self), raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        self.init(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1))
    }
}
