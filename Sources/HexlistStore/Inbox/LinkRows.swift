internal import GRDB
internal import GRDBSQLite
internal import HexlistModel

/// The statements that insert links: for one to seven, and for multiples of eight up to 40.
struct LinkStatements {
    fileprivate static let columns = 5
    private static let most = 40
    private static let sizes = Array(1...7) + stride(from: 8, through: most, by: 8)

    private let statements: [SQLStatement]

    init(on db: Database) throws {
        // FAIL: SQLite would else copy each page first, to undo the rows before one that fails. Whoever calls undoes all of the piece.
        statements = try Self.sizes.map { rows in
            try SQLStatement(
                "INSERT OR FAIL INTO link (id, url, description, service, extra) VALUES \(SQLStatement.rows(rows, of: Self.columns))",
                on: db)
        }
    }

    /// The statement with the most rows that are no more than some, of which there is one at least.
    fileprivate func largest(upTo count: Int) -> (rows: Int, statement: SQLStatement) {
        let rows = count < 8 ? count : min(count & ~7, Self.most)
        return (rows, statements[rows < 8 ? rows &- 1 : 6 &+ rows / 8])
    }
}

/// A number of rows of links that is known before, in few statements: one row after the other is bound, and a statement runs once it is full.
struct LinkRows {
    private let statements: LinkStatements
    /// The rows that come after those of `statement`.
    private var rest: Int
    private var statement: SQLStatement?
    private var parameter: Int32 = 1
    /// The rows that `statement` still takes.
    private var room = 0

    /// - Parameter count: the rows that will be added.
    init(_ count: Int, with statements: LinkStatements) {
        self.statements = statements
        rest = count
        next()
    }

    private mutating func next() {
        guard rest > 0 else { return }
        let (rows, statement) = statements.largest(upTo: rest)
        self.statement = statement
        room = rows
        rest &-= rows
        parameter = 1
    }

    /// Adds the links of one hex. Their texts have to stay in place until `finish`.
    @inline(__always)
    mutating func add(_ links: ArraySlice<LinkContent>, of hex: Int64, _ texts: Texts) throws {
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
            room &-= 1
            guard room == 0 else { continue }
            try statement.run()
            next()
        }
    }

    /// To be called behind the last row.
    func finish() { assert(room == 0 && rest == 0, "fewer rows than were announced") }
}
