internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// Inserts the nodes of new hexes and links of My Hexlist. A new node has a new id, so there is nothing to merge, and it is shown in the
/// hex to which it is added. Therefore no rows are read, and one statement inserts several links. This decides the speed of imports.
struct NodeInserter {
    /// The version that all values of the inserted nodes get, and the time for their ids and positions.
    struct Origin {
        var clock: Int64
        /// The row of the replica in the table `replica`.
        var replica: Int64
        /// `ListRecord.row`.
        var list: Int64
        /// Milliseconds since 1970.
        var now: Int64
    }

    private let hex: SQLStatement
    /// Statements that insert 1 to 7, 8, 16, 24, 32 or 40 links.
    private let links: [SQLStatement]
    private static let maximumRows = 40
    /// Parameters that all rows of a statement share, and parameters of each row.
    private static let (sharedParameters, parametersOfRow): (Int32, Int32) = (4, 7)
    /// The number of the last row, which is increased for each inserted one; `nil` if rows are not numbered.
    var sequence: Int64?

    private var ids = ListNode.IDSequence()
    private var generator = SystemRandomNumberGenerator()

    init(on db: Database) throws {
        hex = try SQLStatement(
            """
            INSERT INTO node (uuid, kind, url, service, parent, container, orderKey, placeClock, placeBy, title, registers, state, leaves, hex,
                seq, list)
            VALUES (?1, 1, '', '', ?2, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10, ?11)
            """, on: db)
        links = try (Array(1...7) + stride(from: 8, through: Self.maximumRows, by: 8)).map { rows in
            let values = (0..<Int32(rows)).map { row in
                let first = Self.sharedParameters + row * Self.parametersOfRow
                return
                    "(?\(first + 1), 2, ?\(first + 2), ?\(first + 3), ?1, ?1, ?\(first + 4), ?2, ?3, ?\(first + 5), ?\(first + 6), 0, 0, ?\(first + 7), ?4)"
            }
            // With OR FAIL, SQLite needs no statement journal to undo the first rows after an error in a later one. That is not necessary,
            // because each write request is rolled back as a whole.
            return try SQLStatement(
                """
                INSERT OR FAIL INTO node (uuid, kind, url, service, parent, container, orderKey, placeClock, placeBy, title, registers,
                    state, leaves, seq, list)
                VALUES \(values.joined(separator: ", "))
                """, on: db)
        }
    }

    /// Inserts a hex with its links and inner hexes.
    /// - Parameters:
    ///   - row: the id of its row in the table `hex`. The ids of its inner hexes follow, in the order of `content.children`.
    ///   - container: the hex in which it is, or the list's id.
    ///   - key: its position there.
    /// - Returns: the id of its node.
    mutating func insert(
        _ content: HexContent, row: Int64, in container: ListNode.ID, at key: OrderKey, _ origin: Origin
    ) throws -> ListNode.ID {
        let base = OrderKey.first(number: origin.now, using: &generator)
        func keys(_ links: Int, _ children: Range<Int>) -> [OrderKey] { base.run(count: max(1, links + children.count)) ?? [] }
        let top = ids.next(.hex, time: origin.now, using: &generator)
        let inside = content.children(of: nil)
        let topKeys = keys(content.links.count, inside)
        try insert(
            top, in: container, at: key, content.hexDescription, of: content,
            Self.registers(content, color: content.hexColor, content.senderUUID, content.senderName, content.extra, origin),
            links: content.links.count, row: row, origin)
        try insert(content.links[...], of: content, in: top, at: topKeys[...], origin)
        guard !content.children.isEmpty else { return top }
        var (hexes, positions) = ([ListNode.ID](), [OrderKey?](repeating: nil, count: content.children.count))
        for (key, child) in zip(topKeys.dropFirst(content.links.count), inside) { positions[child] = key }
        for (index, child) in content.children.enumerated() {
            let id = ids.next(.hex, time: origin.now, using: &generator)
            hexes.append(id)
            let links = content.links(of: index)
            let childKeys = keys(links.count, child.children)
            for (key, grandchild) in zip(childKeys.dropFirst(links.count), child.children) { positions[grandchild] = key }
            try insert(
                id, in: child.parent.map { hexes[$0] } ?? top, at: positions[index] ?? base, child.hexDescription, of: content,
                Self.registers(content, color: child.hexColor, child.senderUUID, child.senderName, child.extra, origin),
                links: links.count, row: row + 1 + Int64(index), origin)
            try insert(links, of: content, in: id, at: childKeys[...], origin)
        }
        return top
    }

    /// Inserts links.
    /// - Parameters:
    ///   - hex: the hex in which they are.
    ///   - keys: their positions there, at least as many.
    mutating func insert(
        _ links: ArraySlice<LinkContent>, of content: HexContent, in hex: ListNode.ID, at keys: ArraySlice<OrderKey>, _ origin: Origin
    ) throws {
        guard !links.isEmpty else { return }
        try HexInserter.withTexts(of: content) { texts in
            var (rest, keys) = (links, keys)
            while !rest.isEmpty {
                let rows = rest.count < 8 ? rest.count : min(rest.count & ~7, Self.maximumRows)
                let statement = self.links[rows < 8 ? rows - 1 : 6 + rows / 8]
                let handle = statement.handle
                try statement.check(hex.uuid.bindValue(to: handle, at: 1))
                try statement.check(origin.clock.bindValue(to: handle, at: 2))
                try statement.check(origin.replica.bindValue(to: handle, at: 3))
                try statement.check(origin.list.bindValue(to: handle, at: 4))
                var parameter = Self.sharedParameters + 1
                for link in rest.prefix(rows) {
                    let id = ids.next(.link, time: origin.now, using: &generator)
                    try statement.check(id.uuid.bindValue(to: handle, at: parameter))
                    try statement.bind(text: texts[link.url], at: parameter + 1)
                    try statement.bind(text: texts[link.service], at: parameter + 2)
                    try statement.check((keys.popFirst()?.bytes ?? []).bindValue(to: handle, at: parameter + 3))
                    try statement.bind(text: texts[link.linkDescription], at: parameter + 4)
                    let registers = link.extra.isEmpty ? nil : Self.encode(NodeRegisters.values(ofExtra: content.bytes(link.extra)), origin)
                    try statement.check(registers.bindValue(to: handle, at: parameter + 5))
                    sequence? += 1
                    try statement.check(sequence.bindValue(to: handle, at: parameter + 6))
                    parameter += Self.parametersOfRow
                }
                try statement.run()
                rest = rest.dropFirst(rows)
            }
        }
    }

    private mutating func insert(
        _ id: ListNode.ID, in container: ListNode.ID, at key: OrderKey, _ title: TextSlice, of content: HexContent, _ registers: [UInt8]?,
        links: Int, row: Int64, _ origin: Origin
    ) throws {
        sequence? += 1
        let values: [any SQLValue] = [
            id.uuid, container.uuid, key.bytes, origin.clock, origin.replica, UTF8Text(utf8: content.bytes(title)), registers, links, row,
            sequence, origin.list,
        ]
        try hex.bind(values)
        try hex.run()
    }

    // MARK: - Registers

    private static func registers(
        _ content: HexContent, color: TextSlice, _ sender: TextSlice, _ senderName: TextSlice, _ extra: TextSlice, _ origin: Origin
    ) -> [UInt8]? {
        let values = NodeRegisters.values(
            color: content.bytes(color), sender: content.bytes(sender), senderName: content.bytes(senderName), extra: content.bytes(extra))
        return encode(values, origin)
    }

    private static func encode(_ values: [UTF8Text: UTF8Text], _ origin: Origin) -> [UInt8]? {
        NodeRegisters.encode(values.lazy.map { (name: $0, clock: origin.clock, replica: origin.replica, value: $1) })
    }
}

extension HexContent {
    func bytes(_ slice: TextSlice) -> [UInt8] { withBytes(of: slice) { Array($0) } }
}
