internal import GRDB
internal import GRDBSQLite
internal import HexlistModel

/// Inserts hexes and their links. This is the performance-critical path of receiving hexes.
///
/// Statements are prepared once. Texts are bound without copying: SQLite reads them directly from the received frame while a statement
/// runs.
struct HexInserter {
    /// The columns of a hex except the texts of its content.
    struct Row {
        var id: Int64
        var location: HexLocation
        var inboxNumber: Int64?
        var peer: Int64?
        var messageID: MessageID?
        var isProven = false
        var unread = true
        var byteCount: Int
        var receivedAt: Int64
        /// The time of `StoreOpenTimeClock` at which the hex was held; `nil` if it is not held.
        var heldSince: Int64?
        /// The source of a held hex (`HeldSource`); `nil` if it is not held.
        var heldFrom: String?
    }

    /// The number of link ids that are reserved for each hex.
    static let linksPerHex = 8_192
    /// The maximum number of links of a hex of My Hexlist that are shown. Several machines together may exceed `ProtocolLimits.links`.
    static let maximumLinks = linksPerHex - 1

    /// The number of hexes that one statement inserts if the batch has enough. Each statement costs half a microsecond in addition to its
    /// rows.
    ///
    /// Required by a benchmark bound (Docs/Decisions/0027-optimisations-pay-rent.md): with one hex per statement, the rate of a bulk send
    /// is 0.65 to 0.75 times that of two plain C++ processes that do the same work (minimum 0.8).
    static let hexesPerStatement = 8
    private static let columns = 18

    let db: Database
    private let oneHex: SQLStatement
    private let severalHexes: SQLStatement
    private let links: LinkStatements

    init(on db: Database) throws {
        self.db = db
        oneHex = try Self.insertion(of: 1, on: db)
        severalHexes = try Self.insertion(of: Self.hexesPerStatement, on: db)
        links = try LinkStatements(on: db)
    }

    private static func insertion(of count: Int, on db: Database) throws -> SQLStatement {
        try SQLStatement(
            """
            INSERT INTO hex (id, location, inboxNumber, peer, messageID, isProven, unread, linkCount, byteCount, receivedAt,
                inboxAt, heldSince, heldFrom, senderUUID, senderName, description, color, extra)
            VALUES \(SQLStatement.rows(count, of: columns))
            ON CONFLICT (peer, messageID) WHERE isProven = 1 AND messageID IS NOT NULL DO NOTHING
            """, on: db)
    }

    /// Inserts one hex with its links and inner hexes.
    /// - Returns: `false` if the hex is a duplicate: a hex of the same peer with the same proven message id exists. Then nothing is
    ///   inserted.
    func insert(_ content: HexContent, _ row: Row) throws -> Bool {
        guard content.fitsBounds else { throw HexlistError.tooLarge(content) }
        return try Self.withTexts(of: content) { texts in
            try bind(content, row, texts, to: oneHex, at: 1)
            try oneHex.run()
            guard oneHex.changes == 1 else { return false }
            try insert(content.links[...], of: row.id, texts)
            if !content.children.isEmpty { try insertChildren(of: content, row, texts) }
            return true
        }
    }

    /// Inserts `hexesPerStatement` hexes that have no inner hexes.
    /// - Parameter row: the row of the first hex. The other hexes get the following ids and inbox numbers. Message ids and sizes are taken
    ///   from the hexes.
    /// - Returns: `false` if one of the hexes is a duplicate. Then none is inserted.
    func insert(_ hexes: ArraySlice<IncomingHex>, from row: Row) throws -> Bool {
        var texts: [HexTextBuffers] = []
        texts.reserveCapacity(hexes.count)
        return try withTexts(of: hexes, &texts) { texts in
            var next = row
            var parameter: Int32 = 1
            for (index, texts) in zip(hexes.indices, texts) {
                next.messageID = hexes[index].messageID
                next.byteCount = hexes[index].weight
                try bind(hexes[index].content, next, texts, to: severalHexes, at: parameter)
                parameter &+= Int32(Self.columns)
                next.id &+= 1
                next.inboxNumber = next.inboxNumber.map { $0 &+ 1 }
            }
            try severalHexes.run()
            guard severalHexes.changes == hexes.count else {
                let undo = try SQLStatement("DELETE FROM hex WHERE id BETWEEN ? AND ?", on: db)
                try undo.bind([row.id, next.id &- 1])
                try undo.run()
                return false
            }
            var rows = LinkRows(hexes.reduce(0) { $0 + $1.content.links.count }, with: links)
            for (index, texts) in zip(hexes.indices, texts) {
                try rows.add(hexes[index].content.links[...], of: row.id &+ Int64(index &- hexes.startIndex), texts)
            }
            rows.finish()
            return true
        }
    }

    @inline(__always)
    func insert(_ links: ArraySlice<LinkContent>, of hex: Int64, _ texts: HexTextBuffers) throws {
        var rows = LinkRows(links.count, with: self.links)
        try rows.add(links, of: hex, texts)
        rows.finish()
    }

    static func withTexts<Result>(of content: HexContent, _ body: (HexTextBuffers) throws -> Result) rethrows -> Result {
        try content.frame.withUnsafeBytes { frame in
            try content.arena.withUnsafeBytes { arena in try body(HexTextBuffers(frame: frame, arena: arena)) }
        }
    }

    /// Calls `body` with the buffers of all hexes. Recurses once for each hex, so that all buffers stay valid during the call.
    private func withTexts<Result>(
        of hexes: ArraySlice<IncomingHex>, _ texts: inout [HexTextBuffers], _ body: ([HexTextBuffers]) throws -> Result
    ) rethrows -> Result {
        guard !hexes.isEmpty else { return try body(texts) }
        return try Self.withTexts(of: hexes[hexes.startIndex].content) {
            texts.append($0)
            return try withTexts(of: hexes.dropFirst(), &texts, body)
        }
    }

    private func bind(_ content: HexContent, _ row: Row, _ texts: HexTextBuffers, to hex: SQLStatement, at first: Int32) throws {
        let handle = hex.handle
        try hex.check(sqlite3_bind_int64(handle, first, row.id))
        try hex.check(row.location.bindValue(to: handle, at: first &+ 1))
        try hex.check(row.inboxNumber.bindValue(to: handle, at: first &+ 2))
        try hex.check(row.peer.bindValue(to: handle, at: first &+ 3))
        try hex.check((row.messageID?.uuid).bindValue(to: handle, at: first &+ 4))
        try hex.check(sqlite3_bind_int64(handle, first &+ 5, row.isProven ? 1 : 0))
        try hex.check(sqlite3_bind_int64(handle, first &+ 6, row.unread ? 1 : 0))
        try hex.check(sqlite3_bind_int64(handle, first &+ 7, Int64(content.links.count)))
        try hex.check(sqlite3_bind_int64(handle, first &+ 8, Int64(row.byteCount)))
        try hex.check(sqlite3_bind_int64(handle, first &+ 9, row.receivedAt))
        try hex.check((row.inboxNumber == nil ? nil : row.receivedAt).bindValue(to: handle, at: first &+ 10))
        try hex.check(row.heldSince.bindValue(to: handle, at: first &+ 11))
        try hex.check(row.heldFrom.bindValue(to: handle, at: first &+ 12))
        try hex.bind(text: texts[content.senderUUID], at: first &+ 13)
        try hex.bind(text: texts[content.senderName], at: first &+ 14)
        try hex.bind(text: texts[content.hexDescription], at: first &+ 15)
        try hex.bind(text: texts[content.hexColor], at: first &+ 16)
        try hex.bind(text: texts[content.extra], at: first &+ 17)
    }
}

extension HexLocation: SQLValue {
    /// Binds the raw value from static memory, without a copy.
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 {
        let text: StaticString =
            switch self {
            case .inbox: "inbox"
            case .held: "held"
            case .mine: "mine"
            }
        let bytes = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return SQLStatement.bindText(bytes, to: statement, at: index, nil)
    }
}
