internal import GRDB
internal import GRDBSQLite
internal import HexlistModel

/// Inserts hexes and their links: the hot path of the store.
///
/// The statements are prepared once. Texts are bound where they lie in the frame, and SQLite reads them there while a statement runs, so
/// nothing is copied on the way.
struct HexInserter {
    /// The values of a row besides the texts of its content.
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
        var heldFrom: String?
    }

    /// The number of positions for links within a hex's range of link ids.
    static let linksPerHex = 8_192

    let db: Database
    private let hex: SQLStatement
    /// The statement for each number of links that are inserted together, from one up: a third less work than a statement a link.
    private let links: [SQLStatement]
    private static let mostLinks = 8

    init(on db: Database) throws {
        self.db = db
        hex = try SQLStatement(
            """
            INSERT INTO hex (id, location, inboxNumber, peer, messageID, isProven, unread, linkCount, byteCount, receivedAt,
                inboxAt, heldSince, heldFrom, senderUUID, senderName, description, color, extra)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (peer, messageID) WHERE isProven = 1 AND messageID IS NOT NULL DO NOTHING
            """, on: db)
        // FAIL: SQLite would else copy each page first, to undo the rows before one that fails. Whoever calls undoes all of the piece.
        links = try (1...Self.mostLinks).map { count in
            let rows = repeatElement("(?, ?, ?, ?, ?)", count: count).joined(separator: ", ")
            return try SQLStatement("INSERT OR FAIL INTO link (id, url, description, service, extra) VALUES \(rows)", on: db)
        }
    }

    /// - Returns: `false` if a hex with that peer and proven message id exists already; then nothing was inserted.
    func insert(_ content: HexContent, _ row: Row) throws -> Bool {
        guard content.fitsBounds else { throw HexlistError.tooLarge(content) }
        return try content.frame.withUnsafeBytes { frame in
            try content.arena.withUnsafeBytes { arena in
                let texts = Texts(frame: frame, arena: arena)
                try bind(row, linkCount: content.links.count)
                try bind(texts[content.senderUUID], to: hex, at: 14)
                try bind(texts[content.senderName], to: hex, at: 15)
                try bind(texts[content.hexDescription], to: hex, at: 16)
                try bind(texts[content.hexColor], to: hex, at: 17)
                try bind(texts[content.extra], to: hex, at: 18)
                try hex.run()
                guard hex.changes == 1 else { return false }
                try insert(content.links[...], of: row.id, texts)
                if !content.children.isEmpty { try insertChildren(of: content, row, texts) }
                return true
            }
        }
    }

    /// Inserts the links of a hex that has none. After an error some may be there.
    func insertLinks(of content: HexContent, _ hex: Int64) throws {
        try content.frame.withUnsafeBytes { frame in
            try content.arena.withUnsafeBytes { arena in
                try insert(content.links[...], of: hex, Texts(frame: frame, arena: arena))
            }
        }
    }

    @inline(__always)
    func insert(_ links: ArraySlice<LinkContent>, of hex: Int64, _ texts: Texts) throws {
        var id = hex << 13
        var rest = links
        while !rest.isEmpty {
            let some = rest.prefix(Self.mostLinks)
            let statement = self.links[some.count - 1]
            var parameter: Int32 = 1
            for content in some {
                try statement.check(sqlite3_bind_int64(statement.handle, parameter, id))
                try bind(texts[content.url], to: statement, at: parameter &+ 1)
                try bind(texts[content.linkDescription], to: statement, at: parameter &+ 2)
                try bind(texts[content.service], to: statement, at: parameter &+ 3)
                try bind(texts[content.extra], to: statement, at: parameter &+ 4)
                parameter &+= 5
                id &+= 1
            }
            try statement.run()
            rest = rest.dropFirst(some.count)
        }
    }

    private func bind(_ row: Row, linkCount: Int) throws {
        let handle = hex.handle
        try hex.check(sqlite3_bind_int64(handle, 1, row.id))
        try hex.check(row.location.bindValue(to: handle, at: 2))
        try hex.check(row.inboxNumber.bindValue(to: handle, at: 3))
        try hex.check(row.peer.bindValue(to: handle, at: 4))
        try hex.check((row.messageID?.uuid).bindValue(to: handle, at: 5))
        try hex.check(sqlite3_bind_int64(handle, 6, row.isProven ? 1 : 0))
        try hex.check(sqlite3_bind_int64(handle, 7, row.unread ? 1 : 0))
        try hex.check(sqlite3_bind_int64(handle, 8, Int64(linkCount)))
        try hex.check(sqlite3_bind_int64(handle, 9, Int64(row.byteCount)))
        try hex.check(sqlite3_bind_int64(handle, 10, row.receivedAt))
        try hex.check((row.inboxNumber == nil ? nil : row.receivedAt).bindValue(to: handle, at: 11))
        try hex.check((row.heldFrom == nil ? nil : row.receivedAt).bindValue(to: handle, at: 12))
        try hex.check(row.heldFrom.bindValue(to: handle, at: 13))
    }

    @inline(__always)
    private func bind(_ text: UnsafeRawBufferPointer, to statement: SQLStatement, at index: Int32) throws {
        try statement.check(SQLStatement.bindText(text, to: statement.handle, at: index, nil))
    }
}

/// The two buffers that hold a hex's slices.
struct Texts {
    let frame: UnsafeRawBufferPointer
    let arena: UnsafeRawBufferPointer

    /// The bytes of a slice; none for a slice that does not lie inside its buffer.
    @inline(__always)
    subscript(slice: TextSlice) -> UnsafeRawBufferPointer {
        let bytes = slice.isInArena ? arena : frame
        guard slice.offset + slice.count <= bytes.count else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: bytes[slice.offset..<slice.offset + slice.count])
    }
}

extension HexLocation: SQLValue {
    /// The raw value, from static memory.
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
