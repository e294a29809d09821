internal import GRDB
internal import GRDBSQLite
internal import HexlistModel

/// Prepared statements that each insert a fixed number of links: 1 to 8, 16, 24, 32 or 40.
struct LinkStatements {
    fileprivate static let columns = 5
    private static let maximumRows = 40
    private static let sizes = Array(1...7) + stride(from: 8, through: maximumRows, by: 8)

    private let statements: [SQLStatement]

    init(on db: Database) throws {
        // OR FAIL is faster than the default, with which SQLite first copies each page to be able to undo the rows of a failed statement.
        // That is not needed, because after an error the whole write request is rolled back.
        statements = try Self.sizes.map { rows in
            try SQLStatement(
                "INSERT OR FAIL INTO link (id, url, description, service, extra) VALUES \(SQLStatement.rows(rows, of: Self.columns))",
                on: db)
        }
    }

    /// Returns the statement with the most rows that `count` links can fill. `count` must be at least 1.
    fileprivate func largest(upTo count: Int) -> (rows: Int, statement: SQLStatement) {
        let rows = count < 8 ? count : min(count & ~7, Self.maximumRows)
        return (rows, statements[rows < 8 ? rows &- 1 : 6 &+ rows / 8])
    }
}

/// Inserts a known number of links with as few statements as possible. Rows are bound one after the other, and a statement runs once all
/// its rows are bound.
struct LinkRows {
    private let statements: LinkStatements
    /// Number of rows that the statements after the current one will insert.
    private var rest: Int
    private var statement: SQLStatement?
    private var parameter: Int32 = 1
    /// Number of rows that are still to be bound to `statement`.
    private var missing = 0

    /// - Parameter count: the total number of links that will be added.
    init(_ count: Int, with statements: LinkStatements) {
        self.statements = statements
        rest = count
        next()
    }

    private mutating func next() {
        guard rest > 0 else { return }
        let (rows, statement) = statements.largest(upTo: rest)
        self.statement = statement
        missing = rows
        rest &-= rows
        parameter = 1
    }

    /// Adds the links of one hex. Their texts must stay valid until `finish`.
    @inline(__always)
    mutating func add(_ links: ArraySlice<LinkContent>, of hex: Int64, _ texts: HexTextBuffers) throws {
        var id = hex << 13
        for link in links {
            guard let statement else { return assertionFailure("more rows than were announced") }
            try statement.check(sqlite3_bind_int64(statement.handle, parameter, id))
            try statement.bind(text: texts[link.url], at: parameter &+ 1)
            try statement.bind(text: texts[link.linkDescription], at: parameter &+ 2)
            try statement.bind(text: texts[link.service], at: parameter &+ 3)
            try statement.bind(text: texts[link.extra], at: parameter &+ 4)
            parameter &+= Int32(LinkStatements.columns)
            id &+= 1
            missing &-= 1
            guard missing == 0 else { continue }
            try statement.run()
            next()
        }
    }

    /// Checks that all announced rows were added. Call after the last one.
    func finish() { assert(missing == 0 && rest == 0, "fewer rows than were announced") }
}
