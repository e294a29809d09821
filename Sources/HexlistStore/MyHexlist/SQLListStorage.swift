internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// A list: a row of the table `list`. The first one is My Hexlist; each other one is a shared list.
struct ListRecord: Sendable {
    /// The row of My Hexlist.
    static let mine: Int64 = 1

    var row: Int64
    var id: ListNode.ID
    /// The replica that writes local changes, and its row in the table `replica`.
    var replica: ReplicaNumber
    var replicaRow: Int64
    /// The greatest time of the hybrid clock that was written or received.
    var clock: Int64
    /// The last number in the change log, which all lists have in common.
    var changes: Int64
    /// The last number in the trash, which all lists have in common.
    var deletions: Int64
    /// The greatest number of a row, and the digest of all rows; `nil` for My Hexlist if the user has no other machine.
    var sequence: Int64?
    var digest: ListDigest?
    /// Whether the user has, or had, another machine. Then the rows of deleted nodes are never removed, because another machine may have the
    /// nodes.
    var isReplicated: Bool

    /// Whether it is a shared list, not My Hexlist.
    var isShared: Bool { row != Self.mine }

    init(on reader: StoreReader, row: Int64 = mine) throws {
        let found = try reader.first("\(Self.selection) AND list.id = ?", row, read: Self.init)
        guard let record = found ?? nil else { throw HexlistError(.storeUnusable, "The store has no list \(row).") }
        self = record
    }

    /// Returns `nil` if there is no list with an id.
    init?(_ id: ListNode.ID, on reader: StoreReader) throws {
        guard let record = try reader.first("\(Self.selection) AND list.uuid = ?", id.uuid, read: Self.init) ?? nil else { return nil }
        self = record
    }

    private static let selection = """
        SELECT list.id, list.uuid, replica.number, replica.id, list.clock, mine.changes, mine.deletions, list.seq, list.digest, list.isReplicated
        FROM list JOIN replica ON replica.id = list.replica JOIN list AS mine ON mine.id = \(mine) WHERE 1
        """

    /// - Returns: `nil` for a row of a damaged file.
    private init?(_ columns: SQLStatement) {
        guard let id = columns.nodeID(1) else { return nil }
        row = columns.int64(0)
        self.id = id
        (replica, replicaRow) = (ReplicaNumber(UInt64(bitPattern: columns.int64(2))), columns.int64(3))
        (clock, changes, deletions) = (columns.int64(4), columns.int64(5), columns.int64(6))
        sequence = columns.optionalInt64(7)
        digest = columns.optionalInt64(8).map { ListDigest(UInt64(bitPattern: $0)) }
        isReplicated = columns.bool(9)
    }
}

/// The rows of a list in the table `node`, or those of the collection that will replace My Hexlist in `joinNode`.
struct SQLListStorage: ListStorage {
    enum Table: String { case node, joinNode }

    let list: ListNode.ID
    /// `ListRecord.row`.
    let listRow: Int64
    var levels: Int { listRow == ListRecord.mine ? ListStructure.levels : ListStructure.sharedLevels }
    /// The greatest number of a row; `nil` if rows are not numbered.
    var sequence: Int64?
    /// The row of the replica in the table `replica` whose nodes the transaction merges; `nil` for local changes.
    var source: Int64?
    /// `node.via` of a row that a merge made of values from several other replicas.
    static let severalReplicas: Int64 = 0
    private let table: Table
    private let reader: StoreReader
    /// The numbers of the replicas by their rows, and the reverse.
    private(set) var numbers: [Int64: ReplicaNumber]
    private(set) var replicaRows: [ReplicaNumber: Int64]
    /// The rows of the replicas that no version of any list has (`list.hasUsedReplica`).
    private var unusedReplicas: Set<Int64>
    /// Milliseconds since 1970: the time of deletion of nodes that a transaction deletes.
    private let now: Int64
    /// The last number in the trash. Each deleted node gets the next one.
    private(set) var deletions: Int64
    /// The hexes that became deleted but shown in this transaction.
    private var retained: Set<ListNode.ID> = []
    /// For each deleted hex that is restored without its contents, the node that stands for these in the trash.
    private var itemsOfDetached: [ListNode.ID: ListNode.ID] = [:]

    /// The rows of a list in the table `node`.
    init(_ list: ListRecord, on reader: StoreReader, at now: Int64 = 0) throws {
        try self.init(
            list: list.id, row: list.row, in: .node, sequence: list.sequence, deletions: list.deletions, on: reader, at: now)
    }

    /// The rows of the collection that will replace My Hexlist.
    init(joining list: ListNode.ID, on reader: StoreReader, at now: Int64) throws {
        try self.init(list: list, row: ListRecord.mine, in: .joinNode, sequence: nil, deletions: 0, on: reader, at: now)
    }

    private init(
        list: ListNode.ID, row: Int64, in table: Table, sequence: Int64?, deletions: Int64, on reader: StoreReader, at now: Int64
    ) throws {
        self.list = list
        listRow = row
        self.sequence = sequence
        self.table = table
        self.deletions = deletions
        self.reader = reader
        self.now = now
        let rows = try reader.all("SELECT id, number FROM replica") { ($0.int64(0), ReplicaNumber(UInt64(bitPattern: $0.int64(1)))) }
        numbers = Dictionary(rows) { first, _ in first }
        replicaRows = Dictionary(rows.map { ($1, $0) }) { first, _ in first }
        unusedReplicas = Set(try reader.all("SELECT replica FROM list WHERE hasUsedReplica = 0") { $0.int64(0) })
    }

    // MARK: - Reading

    func row(_ id: ListNode.ID) throws -> ListRow? {
        try reader.first("SELECT \(Self.columns) FROM \(table.rawValue) WHERE uuid = ? AND \(inList)", id.uuid, read: decode) ?? nil
    }

    /// Returns the subject (`HexSubject`) of the root.
    func subject() throws -> String { try reader.subject(of: list, in: listRow) }

    func hexes() throws -> [ListRow] {
        try reader.all("SELECT \(Self.columnsWithoutTexts) FROM \(table.rawValue) WHERE kind = 1 AND \(inList)") {
            decode($0, hasTexts: false)
        }
        .compactMap(\.self)
    }

    func forEachNode(_ body: (ListNode) throws -> Void) throws {
        let statement = try SQLStatement("SELECT \(Self.columns) FROM \(table.rawValue) WHERE \(inList)", on: reader.db)
        defer { statement.reset() }
        try statement.bind([])
        while try statement.step() {
            if let node = decode(statement)?.node { try body(node) }
        }
    }

    func leaves(waitingFor hex: ListNode.ID) throws -> [ListNode.ID] {
        // Links and entries of shared lists. Nodes of unknown kinds are never shown.
        let leaves = "SELECT uuid FROM \(table.rawValue) WHERE parent = ? AND container IS NULL AND kind IN (2, 3) AND \(inList)"
        return try reader.all(leaves, hex.uuid) { $0.nodeID(0) }.compactMap(\.self)
    }

    func nodes(deletedWith hex: ListNode.ID) throws -> [ListNode.ID] {
        try reader.all("SELECT uuid FROM \(table.rawValue) WHERE goneWith = ? AND \(inList)", hex.uuid) { $0.nodeID(0) }.compactMap(\.self)
    }

    func contents(of hex: ListNode.ID) throws -> [ListRow] {
        try reader.all(
            "SELECT \(Self.columns) FROM \(table.rawValue) WHERE \(isShown(in: hex)) ORDER BY orderKey, uuid", hex.uuid, read: decode
        ).compactMap(\.self)
    }

    func ids(in hex: ListNode.ID) throws -> [ListNode.ID] {
        try reader.all("SELECT uuid FROM \(table.rawValue) WHERE \(isShown(in: hex)) ORDER BY orderKey, uuid", hex.uuid) { $0.nodeID(0) }
            .compactMap(\.self)
    }

    /// Returns the links that are shown in a hex, in order, without those beyond the ids that are reserved for a hex.
    func links(in hex: ListNode.ID) throws -> [ListNode.ID] {
        try reader.all(
            "SELECT uuid FROM \(table.rawValue) WHERE \(isShown(in: hex)) AND kind = 2 ORDER BY orderKey, uuid LIMIT ?", hex.uuid,
            HexInserter.maximumLinks
        ) { $0.nodeID(0) }.compactMap(\.self)
    }

    /// Returns the links shown in a hex whose place or title has a version.
    func links(in hex: ListNode.ID, at version: ListVersion) throws -> [ListNode.ID] {
        try reader.all(
            """
            SELECT uuid FROM node WHERE container = ?1 AND state <> 1 AND kind = 2 AND \(inList)
                AND (placeClock = ?2 AND placeBy = ?3 OR titleClock = ?2 AND titleBy = ?3)
            """, hex.uuid, version.clock, replicaRow(version)
        ) { $0.nodeID(0) }.compactMap(\.self)
    }

    /// Reads the two rows only. In the root with links of unknown hexes, which are rare, reads all rows.
    func neighbors(of position: ListPosition, in hex: ListNode.ID) throws -> (before: ListRow?, after: ListRow?) {
        if hex == list, try hasStrays() {
            let rows = try contents(of: hex)
            let index = position.index(in: rows)
            return (index > 0 ? rows[index - 1] : nil, index < rows.count ? rows[index] : nil)
        }
        let shown = "SELECT \(Self.columns) FROM \(table.rawValue) WHERE container = ?1 AND state <> 1 AND \(inList)"
        let (ascending, descending) = ("ORDER BY orderKey, uuid LIMIT 1", "ORDER BY orderKey DESC, uuid DESC LIMIT 1")
        func first(_ sql: String, _ values: any SQLValue...) throws -> ListRow? {
            let statement = try SQLStatement(sql, on: reader.db)
            defer { statement.reset() }
            try statement.bind([hex.uuid] + values)
            return try statement.step() ? decode(statement) : nil
        }
        if let id = position.sibling {
            guard let row = try row(id), row.container == hex, row.state != .deleted, let key = row.node.place?.key.bytes else {
                return (try first("\(shown) \(descending)"), nil)
            }
            let after = "AND (orderKey, uuid) > (?2, ?3) \(ascending)"
            let before = "AND (orderKey, uuid) < (?2, ?3) \(descending)"
            if case .after = position { return (row, try first("\(shown) \(after)", key, id.uuid)) }
            return (try first("\(shown) \(before)", key, id.uuid), row)
        }
        return position == .first ? (nil, try first("\(shown) \(ascending)")) : (try first("\(shown) \(descending)"), nil)
    }

    /// Whether there are links whose hex is unknown. They are shown in the root.
    private func hasStrays() throws -> Bool {
        try reader.first("SELECT 1 FROM \(table.rawValue) WHERE \(isStray) LIMIT 1") { _ in true } ?? false
    }

    /// SQL condition: whether a row is in the list.
    private var inList: String { "list = \(listRow)" }
    /// SQL condition: whether a row is shown in the hex that is the next parameter. Links whose hex is unknown are shown in the root. For
    /// them SQLite reads the rows of all hexes, so the condition includes them only if there are any.
    func isShown(in hex: ListNode.ID) throws -> String {
        try hex == list && hasStrays()
            ? "(container = ? OR container IS NULL AND kind <> 1) AND state <> 1 AND \(inList)"
            : "container = ? AND state <> 1 AND \(inList)"
    }

    private var isStray: String { "container IS NULL AND state <> 1 AND kind <> 1 AND \(inList)" }

    static let columns = columns(url: "url", service: "service", title: "title")
    private static let columnsWithoutTexts = columns(url: "''", service: "''", title: "iif(title IS NULL, NULL, '')")

    private static func columns(url: String, service: String, title: String) -> String {
        """
        uuid, \(url), \(service), parent, orderKey, previousParent, placeClock, placeBy, \(title), titleClock, titleBy, registers,
        goneClock, goneBy, goneWith, container, state, leaves
        """
    }

    /// SQL: the values of `addedClock` and `addedBy` of a new row. The parameters are those of the place and the title.
    private static let addedVersion = "iif(?10 < ?7, ?10, ?7), iif(?10 < ?7, ?11, ?8)"

    private func decode(_ row: SQLStatement) -> ListRow? { decode(row, hasTexts: true) }

    /// - Parameter hasTexts: whether the values of the registers are wanted, not only their versions.
    /// - Returns: `nil` for a row of a damaged file.
    private func decode(_ row: SQLStatement, hasTexts: Bool) -> ListRow? {
        guard let id = row.nodeID(0) else { return nil }
        func version(_ clock: Int32, _ by: Int32) -> ListVersion? {
            guard !row.isNull(clock), let replica = numbers[row.int64(by)] else { return nil }
            return ListVersion(clock: row.int64(clock), replica: replica)
        }
        var node = ListNode(id: id)
        (node.url, node.service) = (row.utf8Text(1), row.utf8Text(2))
        if let version = version(6, 7), let parent = row.nodeID(3) {
            node.place = ListNode.Place(
                version: version, parent: parent, key: OrderKey(bytes: row.bytes(4)), previousParent: row.nodeID(5))
        }
        if !row.isNull(8), let version = version(9, 10) ?? node.place?.version {
            node.title = ListNode.Register(version: version, value: row.utf8Text(8))
        }
        if !row.isNull(11) {
            NodeRegisters.decode(row.bytes(11)) { name, clock, replica, value in
                guard let replica = numbers[replica] else { return }
                node.registers[name] = ListNode.Register(
                    version: ListVersion(clock: clock, replica: replica), value: hasTexts ? value : .empty)
            }
        }
        if let version = version(12, 13) { node.deletion = DeletionMark(version: version, with: row.nodeID(14)) }
        return ListRow(node: node, container: row.nodeID(15), state: ListRow.State(rawValue: row.int(16)) ?? .deleted, leaves: row.int(17))
    }

    // MARK: - Writing

    mutating func write(_ row: ListRow, _ kind: ListWrite) throws {
        let (node, place) = (row.node, row.node.place)
        for replica in Set(node.versions.map(\.replica)) { _ = try self.row(of: replica) }
        if kind != .purged { sequence? += 1 }
        // A link that was deleted before it arrived here. It is only in the trash of machines that have shown it, but its values have to be
        // removed here, too. (A hex keeps its values.)
        let isUnshown = node.id.kind == .link && node.isMarkedDeleted && !node.isPurged && row.state == .deleted
        let isShared = listRow != ListRecord.mine  // `joinNode`, which lacks these columns, has only rows of My Hexlist
        let titleVersion = node.title?.version == place?.version ? nil : node.title?.version
        let registers = NodeRegisters.encode(
            node.registers.lazy.map { [self] in (name: $0, clock: $1.version.clock, replica: replicaRow($1.version), value: $1.value) })
        try run(
            """
            INSERT INTO \(table.rawValue) (uuid, url, service, parent, orderKey, previousParent, placeClock, placeBy, title, titleClock, titleBy,
                registers, goneClock, goneBy, goneWith, container, state, leaves, kind, seq, via,
                deletedAt, lived, list\(isShared ? ", addedClock, addedBy" : ""))
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \(listRow)\(isShared ? ", \(Self.addedVersion)" : ""))
            ON CONFLICT (uuid, list) DO UPDATE SET trashedWith = CASE WHEN state = 1 AND excluded.goneWith IS NULL
                    THEN CASE WHEN goneWith IS NULL THEN trashedWith ELSE ?24 END END,
                via = CASE WHEN excluded.seq IS NULL OR via IS NULL AND excluded.via = \(Self.severalReplicas) THEN via
                    ELSE excluded.via END,
                (url, service, parent, orderKey, previousParent, placeClock, placeBy, title, titleClock, titleBy,
                registers, goneClock, goneBy, goneWith, container, state, leaves, seq)
                = (excluded.url, excluded.service, excluded.parent, excluded.orderKey, excluded.previousParent, excluded.placeClock,
                excluded.placeBy, excluded.title, excluded.titleClock, excluded.titleBy, excluded.registers, excluded.goneClock,
                excluded.goneBy, excluded.goneWith, excluded.container, excluded.state, excluded.leaves, coalesce(excluded.seq, seq))
            """, node.id.uuid, node.url, node.service, place?.parent.uuid, place?.key.bytes,
            place.flatMap { $0.previousParent == $0.parent ? nil : $0.previousParent.uuid }, place?.version.clock,
            place.map { replicaRow($0.version) }, node.title?.value, titleVersion?.clock, titleVersion.map(replicaRow), registers,
            node.deletion?.version.clock, node.deletion.map { replicaRow($0.version) }, node.deletion?.with?.uuid, row.container?.uuid,
            (node.id == list ? .present : row.state).rawValue,  // the root is always shown
            row.leaves, Int(node.id.kind.rawValue), kind == .purged ? nil : sequence,
            source == nil || kind == .received ? source : Self.severalReplicas, isUnshown ? now : nil, isUnshown ? reader.lived : nil,
            kind == .purged ? nil : try itemAfterDetaching(row))
    }

    /// Returns the row of a replica in the table `replica`, and inserts it if it is new.
    mutating func row(of replica: ReplicaNumber) throws -> Int64 {
        if let row = replicaRows[replica] {
            if unusedReplicas.remove(row) != nil { try run("UPDATE list SET hasUsedReplica = 1 WHERE replica = ?", row) }
            return row
        }
        try run("INSERT INTO replica (number) VALUES (?)", Int64(bitPattern: replica.value))
        let row = try reader.first("SELECT last_insert_rowid()") { $0.int64(0) } ?? 0
        (replicaRows[replica], numbers[row]) = (row, replica)
        return row
    }

    /// Returns the node of the trash item of which a node becomes a part: the first one that was detached from the same deleted hex.
    /// - Parameter row: the new values of a node.
    /// - Returns: `nil` if the node is not being detached from a deleted hex, or is the first one.
    private mutating func itemAfterDetaching(_ row: ListRow) throws -> UUIDBytes? {
        guard row.state == .deleted, let deletion = row.node.deletion, deletion.with == nil else { return nil }
        let hex =
            try reader.first("SELECT goneWith FROM \(table.rawValue) WHERE uuid = ? AND \(inList)", row.node.id.uuid) {
                $0.nodeID(0)
            } ?? nil
        guard let hex else { return nil }
        if let item = itemsOfDetached[hex] { return item.uuid }
        itemsOfDetached[hex] = row.node.id
        return nil
    }

    mutating func update(_ id: ListNode.ID, container: ListNode.ID?, state: ListRow.State, leaves: Int) throws {
        if state != .present { deletions += 1 }
        if state == .retained { retained.insert(id) }
        // It is deleted now if it was present, or if a deleted hex was shown (state 2) before the transaction and is not any more.
        func atDeletion(_ column: String, _ new: String) -> String {
            "\(column) = CASE WHEN ?2 = 0 THEN NULL WHEN state = 0 OR state = 2 AND ?2 = 1 AND ?8 THEN \(new) ELSE \(column) END"
        }
        try run(
            """
            UPDATE \(table.rawValue) SET container = ?1, state = ?2, leaves = ?3, \(atDeletion("deletedAt", "?5")), \(atDeletion("lived", "?4")),
                \(atDeletion("trashNumber", "?7"))
            WHERE uuid = ?6 AND \(inList)
            """, container?.uuid, state.rawValue, leaves, reader.lived, now, id.uuid, deletions, !retained.contains(id))
        if state != .deleted { try leaveTrash(id) }
    }

    /// Removes a node that is not deleted any more from an item of the trash. The other nodes of its own item become items.
    private func leaveTrash(_ id: ListNode.ID) throws {
        try run("UPDATE \(table.rawValue) SET trashedWith = NULL WHERE uuid = ? AND trashedWith IS NOT NULL AND \(inList)", id.uuid)
        try run("UPDATE \(table.rawValue) SET trashedWith = NULL WHERE trashedWith = ? AND \(inList)", id.uuid)
    }

    // MARK: - Numbers

    /// Calls `body` with the rows whose numbers are greater than one, without unconfirmed ones (`RejectedChanges`), in the order of their
    /// numbers, until it returns `false`.
    func changed(
        after number: Int64, limit: Int = .max, _ body: (_ node: ListNode, _ number: Int64, _ source: Int64?) throws -> Bool
    ) throws {
        let statement = try SQLStatement(
            "SELECT \(Self.columns), seq, via FROM \(table.rawValue) WHERE \(inList) AND seq > ? AND isUnconfirmed = 0 ORDER BY seq LIMIT ?",
            on: reader.db)
        defer { statement.reset() }
        try statement.bind([number, limit])
        while try statement.step() {
            guard let node = decode(statement)?.node else { continue }
            guard try body(node, statement.int64(18), statement.optionalInt64(19)) else { return }
        }
    }

    private func replicaRow(_ version: ListVersion) -> Int64 { replicaRows[version.replica] ?? 0 }

    private func run(_ sql: String, _ values: any SQLValue...) throws {
        let statement = try SQLStatement(sql, on: reader.db)
        try statement.bind(values)
        try statement.run()
    }
}

extension ListPosition {
    /// The node before or after which the position is.
    fileprivate var sibling: ListNode.ID? {
        switch self {
        case .first, .last: nil
        case .before(let id), .after(let id): id
        }
    }
}

extension UTF8Text: SQLValue {
    func bindValue(to statement: OpaquePointer, at index: Int32) -> Int32 {
        bytes.withUnsafeBytes { SQLStatement.bindText($0, to: statement, at: index, SQLStatement.copying) }
    }
}

extension SQLStatement {
    /// The id of a node in a column; `nil` if it is none.
    func nodeID(_ column: Int32) -> ListNode.ID? { uuid(column).flatMap(ListNode.ID.init) }

    fileprivate func utf8Text(_ column: Int32) -> UTF8Text { UTF8Text(utf8: bytes(column)) }
}
