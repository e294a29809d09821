internal import GRDB
internal import HexlistLists
public import HexlistModel

/// A change of My Hexlist in the change log: everything that one request changed.
///
/// The log is bounded by `days`, and by `maximumRows` and `maximumBytes` for My Hexlist, or `maximumSharedRows` and `maximumSharedBytes`
/// for each shared list. The oldest changes are removed first.
public struct MyHexlistChange: Sendable, Equatable {
    /// Numbers of changed hexes or links, at all levels.
    public struct Counts: Sendable, Equatable {
        public var added = 0
        public var deleted = 0
        public var restored = 0
        public var moved = 0
        public var changed = 0

        public init() {}

        public var isEmpty: Bool { self == Counts() }

        mutating func add(_ other: Counts) {
            added += other.added
            deleted += other.deleted
            restored += other.restored
            moved += other.moved
            changed += other.changed
        }

        mutating func subtract(_ other: Counts) {
            added -= other.added
            deleted -= other.deleted
            restored -= other.restored
            moved -= other.moved
            changed -= other.changed
        }
    }

    public enum Kind: Int, Sendable, Equatable {
        /// A change that the user requested.
        case user = 0
        case undo = 1
        /// Nodes of another machine, which came in one page.
        case received = 2
        /// The merge with the collection of another machine: it replaced the own one, or its nodes came in the first exchange. Cannot be
        /// undone.
        case joined = 3
    }

    /// The machine from which changes came.
    public enum Source: Sendable, Equatable {
        case here
        case machine(PeerID)

        fileprivate var peer: PeerID? { if case .machine(let peer) = self { peer } else { nil } }
    }

    /// The number by which users refer to it. Numbers ascend; some are missing.
    public var number: Int64
    /// Milliseconds since 1970.
    public var at: Int64
    public var kind = Kind.user
    /// The machine from which the changes came; `nil` for this one.
    public var author: PeerID?
    public var hexes = Counts()
    public var links = Counts()
    /// The first hex that changed, or whose links changed. It may be deleted. `nil` if it never had a number on this machine.
    public var hex: Int64?
    /// The subject of that hex (`HexSubject`) after the change.
    public var subject = ""
    /// Number of further hexes that changed, without those inside added or deleted hexes.
    public var others = 0
    /// The change that undid this one completely; `nil` if that was undone in turn.
    public var undoneBy: Int64?
    /// Whether it can be undone: it was not undone yet, and is stored with the values that an undo needs, because they have at most
    /// `maximumNodeBytes`.
    public var isUndoable = true
    /// The first values that changed.
    public var values: [Value] = []

    /// One value that a change wrote.
    public struct Value: Sendable, Equatable {
        /// The URL of the link; `nil` for a hex.
        public var link: String?
        public var name: String
        /// The texts before and after, shortened.
        public var before: String
        public var after: String
    }

    public static let days = 30
    static let maximumRows = 20_000
    static let maximumBytes = 16 << 20
    /// The bounds of the changes of one shared list.
    static let (maximumSharedRows, maximumSharedBytes) = (2_000, 4 << 20)
    /// Maximum bytes of the nodes of one change.
    static let maximumNodeBytes = 8 << 20
    /// Maximum bytes of changes that are undone together: one of the largest, with small ones beside it.
    static let maximumUndoBytes = maximumNodeBytes + (1 << 20)
    /// Maximum number of values of a change on a page of the log, and maximum bytes of each text.
    static let (listedValues, valueBytes) = (10, 240)
}

/// The node of a hex of My Hexlist.
struct HexNode: Equatable {
    var id: ListNode.ID
    /// `ListRecord.row`.
    var list: Int64
    /// Whether it is the root of a shared list.
    var isRoot: Bool
}

/// A change of the log that a later transaction may continue.
struct LoggedChange {
    /// Maximum bytes of the records of a change that is continued, because each continuation writes them again.
    static let maximumContinuedBytes = 256 << 10

    var number: Int64
    var draft: MyHexlistChangeDraft
    /// The numbers in the trash of the nodes that it deleted. `last` is smaller than `first` if it deleted none.
    var deletions: (first: Int64, last: Int64)
}

/// The changes of a transaction, for the change log.
struct MyHexlistChangeDraft {
    var (hexes, links) = (MyHexlistChange.Counts(), MyHexlistChange.Counts())
    private(set) var records: ChangeRecordEncoder
    /// The rows of the table `replica`. They must include those of the versions in added changes.
    var replicaRows: [ReplicaNumber: Int64] {
        get { records.replicaRows }
        set { records.replicaRows = newValue }
    }
    private(set) var first: ListNode.ID?
    private(set) var others = 0
    private var affected: Set<ListNode.ID> = []
    private var (added, moved, changed, deletedHexes) = (Set<ListNode.ID>(), Set<ListNode.ID>(), Set<ListNode.ID>(), Set<ListNode.ID>())
    /// The root of the list, which is the top level of My Hexlist, or a shared hex.
    private let root: ListNode.ID
    private let isShared: Bool

    init(_ storage: SQLListStorage) {
        records = ChangeRecordEncoder(replicaRows: storage.replicaRows)
        root = storage.list
        isShared = storage.listRow != ListRecord.mine
    }

    var isEmpty: Bool { hexes.isEmpty && links.isEmpty }

    /// Begins the changes of a further transaction. The links inside a hex that an earlier one deleted are counted one by one.
    mutating func beginPart() { deletedHexes = [] }

    mutating func addTree(_ id: ListNode.ID, in container: ListNode.ID, _ version: ListVersion, hexesInside: Int, links count: Int) {
        records.append(.tree(id, container: container, version))
        hexes.added += 1 + hexesInside
        links.added += count
        // Each is a new hex, so it need not be looked up in `affected`. At the top level, the one that was added last is listed first.
        if first != nil { others += 1 }
        if first == nil || container == root { first = id }
    }

    mutating func addLinks(_ count: Int, to hex: ListNode.ID, _ version: ListVersion) {
        records.append(.links(hex: hex, version))
        links.added += count
        affect(hex)
    }

    /// - Parameter isReceived: whether the changes came from another machine, so that those of a hex may follow those of the nodes inside.
    mutating func add(_ changes: [ListChange], isReceived: Bool = false) {
        if isReceived {
            for change in changes where change.after.id.kind == .hex {
                let parts = change.parts
                if parts.contains(.deletion) { deletedHexes.insert(change.after.id) }
                if parts.contains(.addition) { added.insert(change.after.id) }
            }
        }
        for change in changes {
            let parts = change.parts
            guard !parts.isEmpty else { continue }
            let id = change.after.id
            let isHex = id.kind != .link  // the entry of a shared list is shown as a hex
            var isDeletedWithHex = false
            if parts.contains(.deletion) {
                if isHex { deletedHexes.insert(id) }
                isDeletedWithHex = change.after.deletion?.with.map(deletedHexes.contains) ?? false
            }
            if isDeletedWithHex {
                // `countDeleted` counts it. Restoring the outer hex restores it. Inner hexes have a record for the log of one hex.
                guard isHex else { continue }
            } else {
                var counts = isHex ? hexes : links
                count(change, parts, &counts)
                if isHex { hexes = counts } else { links = counts }
            }
            let container = change.before?.place?.parent ?? change.after.place?.parent
            records.append(.node(change, container: container))
            if isDeletedWithHex || parts.contains(.addition) && container.map(added.contains) ?? false { continue }
            if let hex = isHex ? id : container, isShared || hex != root { affect(hex) }
        }
    }

    /// Counts nodes that are deleted together with a hex.
    mutating func countDeleted(_ nodes: some Collection<ListNode.ID>) {
        countDeleted((hexes: nodes.count { $0.kind == .hex }, links: nodes.count { $0.kind == .link }))
    }

    mutating func countDeleted(_ count: (hexes: Int, links: Int)) {
        hexes.deleted += count.hexes
        links.deleted += count.links
    }

    private mutating func count(_ change: ListChange, _ parts: Set<ListChange.Part>, _ counts: inout MyHexlistChange.Counts) {
        let id = change.after.id
        if parts.contains(.addition) {
            counts.added += 1
            added.insert(id)
        } else if parts.contains(.deletion) {
            counts.deleted += 1
            if moved.remove(id) != nil { counts.moved -= 1 }
            if changed.remove(id) != nil { counts.changed -= 1 }
        } else if parts.contains(.restoring) {
            counts.restored += 1
            added.insert(id)
        } else if !added.contains(id) {
            if parts.contains(.place), moved.insert(id).inserted { counts.moved += 1 }
            if parts != [.place], changed.insert(id).inserted { counts.changed += 1 }
        }
    }

    private mutating func affect(_ hex: ListNode.ID) {
        guard hex != first, affected.insert(hex).inserted else { return }
        if first == nil { first = hex } else { others += 1 }
    }
}

extension StoreReader {
    /// Returns a page of the change log, newest first.
    /// - Parameters:
    ///   - hex: the hex of My Hexlist whose changes are wanted; `nil` for all.
    ///   - since: milliseconds since 1970; `nil` for all.
    ///   - source: the machine from which the changes came; `nil` for all.
    /// - Throws: `.notFound` if the hex was never in My Hexlist.
    public func mineChanges(
        limit: Int, before: Int64?, hex: Int64? = nil, since: Int64? = nil, from source: MyHexlistChange.Source? = nil
    ) throws -> Page<MyHexlistChange> {
        let limit = pageLimit(limit)
        var node: HexNode?
        if let hex {
            guard let found = try self.node(ofHex: hex) else { throw HexlistError.noMine(hex) }
            node = found
        }
        // All changes of a shared list belong to its root.
        let sharedList = node.flatMap { $0.isRoot ? $0.list : nil }
        let storage = try SQLListStorage(ListRecord(on: self), on: self)
        let found = try page(
            """
            SELECT \(Self.changeColumns), substr(nodes, 1, \(Self.valueRecordBytes)) FROM mineChange
            WHERE number < ?1 AND at >= ?2 AND (?3 IS NULL OR instr(nodes, ?3) > 0 OR nodes IS NULL AND hex = ?4 OR list = ?7)
                AND CASE ?6 WHEN 0 THEN 1 WHEN 1 THEN author IS NULL ELSE author = ?5 END
            ORDER BY number DESC
            """, before ?? .max, since ?? .min, node?.id.uuid, hex, source?.peer?.uuid, source.map { $0 == .here ? 1 : 2 } ?? 0, sharedList,
            limit: limit
        ) { row in
            row.size(of: 14...20)
        } read: { row in
            var change = Self.change(row)
            if let other = change.undoneBy {
                let (last, isUndone) = try lastUndo(from: other)
                change.undoneBy = isUndone ? last : nil
            }
            change.values = try values(ChangeRecordDecoder(row.bytes(20), numbers: storage.numbers), in: row.int64(19))
            return change
        }
        return Page(items: found.rows, next: found.hasMore ? found.rows.last?.number : nil)
    }

    /// Follows the undos of an undo.
    /// - Parameter undo: the number of a change that undid another one.
    /// - Returns: the last undo, and whether the other change is undone by it, or made again.
    func lastUndo(from undo: Int64) throws -> (number: Int64, isUndone: Bool) {
        var (last, isUndone) = (undo, true)
        while let next = try first("SELECT undoneBy FROM mineChange WHERE number = ?", last, read: { $0.optionalInt64(0) }) ?? nil {
            (last, isUndone) = (next, !isUndone)
        }
        return (last, isUndone)
    }

    /// Maximum bytes of `mineChange.nodes` that are read for the values of one change: at least one value, before and after.
    private static let valueRecordBytes = 3 * ProtocolLimits.stringBytes

    private static let changeColumns = """
        number, at, kind, hexesAdded, hexesDeleted, hexesRestored, hexesMoved, hexesChanged, linksAdded, linksDeleted, linksRestored,
        linksMoved, linksChanged, hex, subject, others, undoneBy, undoneBy IS NULL AND nodes IS NOT NULL,
        author, list
        """

    private static func change(_ row: SQLStatement) -> MyHexlistChange {
        func counts(_ first: Int32) -> MyHexlistChange.Counts {
            var counts = MyHexlistChange.Counts()
            (counts.added, counts.deleted, counts.restored) = (row.int(first), row.int(first + 1), row.int(first + 2))
            (counts.moved, counts.changed) = (row.int(first + 3), row.int(first + 4))
            return counts
        }
        return MyHexlistChange(
            number: row.int64(0), at: row.int64(1), kind: MyHexlistChange.Kind(rawValue: row.int(2)) ?? .user,
            author: row.uuid(18).map { PeerID($0) }, hexes: counts(3), links: counts(8), hex: row.optionalInt64(13), subject: row.text(14),
            others: row.int(15),
            undoneBy: row.optionalInt64(16), isUndoable: row.bool(17))
    }

    /// Returns the first values of a change.
    /// - Parameter list: `ListRecord.row`.
    private func values(_ records: ChangeRecordDecoder, in list: Int64) throws -> [MyHexlistChange.Value] {
        var values: [MyHexlistChange.Value] = []
        for record in records {
            guard values.count < MyHexlistChange.listedValues else { break }
            guard case .node(let change, _) = record else { continue }
            let (before, after) = (change.before, change.after)
            let link =
                after.id.kind != .link
                ? nil : try first("SELECT url FROM node WHERE uuid = ? AND list = ?", after.id.uuid, list) { $0.text(0) } ?? ""
            func add(_ name: String, _ before: UTF8Text?, _ after: UTF8Text?) {
                func text(_ text: UTF8Text?) -> String { PeerName.shortened(text?.description ?? "", bytes: MyHexlistChange.valueBytes) }
                values.append(MyHexlistChange.Value(link: link, name: name, before: text(before), after: text(after)))
            }
            for part in change.parts.sorted(by: { $0.valueName < $1.valueName }) {
                switch part {
                case .title: add(part.valueName, before?.title?.value, after.title?.value)
                case .register where change.isRenumberedTag(part): break
                case .register(let name):
                    let texts = [before?.registers[name]?.value, after.registers[name]?.value]
                    let tag = NodeRegisters.tag(name)  // the value of a tag is its number
                    let shown = texts.map { text in tag.map { text?.isEmpty ?? true ? .empty : UTF8Text($0) } ?? text }
                    add(part.valueName, shown[0], shown[1])
                case .deletion where link != nil: add(part.valueName, nil, nil)
                default: break
                }
            }
        }
        return values
    }

    /// Returns the node of a hex that is or was in My Hexlist, which has its values and contents; of a shared hex the root of its list.
    func node(ofHex hex: Int64) throws -> HexNode? {
        try first(
            "SELECT node.uuid, list.id, node.uuid = list.uuid FROM node JOIN list ON list.id = node.list WHERE kind = 1 AND hex = ?", hex
        ) {
            row in row.nodeID(0).map { HexNode(id: $0, list: row.int64(1), isRoot: row.bool(2)) }
        } ?? nil
    }

    /// Returns the number of a hex; `nil` if it never had one.
    /// - Parameter list: `ListRecord.row`.
    func hex(ofNode node: ListNode.ID, in list: Int64) throws -> Int64? {
        try first("SELECT hex FROM node WHERE uuid = ? AND list = ?", node.uuid, list) { $0.optionalInt64(0) } ?? nil
    }

    /// Returns the number of the last change of My Hexlist; 0 before the first change.
    public func lastMineChange() throws -> Int64 { try ListRecord(on: self).changes }

    /// Returns the subject (`HexSubject`) of a hex, also of a deleted one, or of the shared hex of an entry.
    /// - Parameter list: `ListRecord.row`.
    func subject(of hex: ListNode.ID, in list: Int64) throws -> String {
        if hex.kind == .sharedList { return try sharedList(of: hex).map { try subject(of: $0.id, in: $0.row) } ?? "" }
        let row = try first("SELECT title, state FROM node WHERE uuid = ? AND list = ?", hex.uuid, list) {
            (title: $0.text(0), isDeleted: $0.int(1) == 1)
        }
        guard let row else { return "" }
        // These are the conditions of the indexes.
        let contents = row.isDeleted ? "goneWith = ? AND state = 1" : "container = ? AND state <> 1"
        let link = try first(
            "SELECT title, url FROM node WHERE \(contents) AND kind = 2 AND list = ? ORDER BY orderKey, uuid LIMIT 1", hex.uuid, list
        ) { (title: $0.text(0), url: $0.text(1)) }
        return HexSubject.of(description: row.title, linkDescription: link?.title ?? "", url: link?.url ?? "")
    }
}

extension ListChange {
    /// Whether a part is a tag that the node had before and has after the change. The value of a tag is its number, which changes if a tag
    /// before it is added or removed.
    func isRenumberedTag(_ part: Part) -> Bool {
        guard case .register(let name) = part, NodeRegisters.tag(name) != nil else { return false }
        return [before, after].allSatisfy { $0?.registers[name].map { !$0.value.isEmpty } ?? false }
    }
}

extension ListChange.Part {
    /// The name by which users see the value.
    var valueName: String {
        switch self {
        case .addition: "added"
        case .deletion: "deleted"
        case .restoring: "restored"
        case .place: "place"
        case .title: "title"
        case .register(let name):
            name == NodeRegisters.extra ? "other" : NodeRegisters.tag(name).map { "tag \($0)" } ?? name.description
        }
    }
}

extension StoreWriter {
    // MARK: - Inside `change`

    /// Adds a change to the log, and removes the oldest changes above the bounds.
    /// - Parameters:
    ///   - author: the machine from which the changes came; `nil` for this one.
    ///   - list: `ListRecord.row`.
    ///   - deletions: the numbers in the trash of the nodes that it deleted.
    ///   - replaced: the number of the logged change that `draft` contains and continues; `nil` for a new change.
    func log(
        _ draft: MyHexlistChangeDraft, _ kind: MyHexlistChange.Kind, from author: PeerID? = nil, in list: Int64,
        _ deletions: (first: Int64, last: Int64), replacing replaced: Int64? = nil, at now: Int64
    ) throws {
        if let replaced { try forgetChanges(from: replaced, upTo: replaced, in: list) }
        let number = try replaced ?? ListRecord(on: self).changes + 1
        let nodes = kind == .joined || draft.records.bytes.count > MyHexlistChange.maximumNodeBytes ? nil : draft.records.bytes
        let subject = try draft.first.map { try self.subject(of: $0, in: list) } ?? ""
        let hex = try draft.first.flatMap { try self.hex(ofNode: $0, in: list) }
        let bytes = 128 + subject.utf8.count + (nodes?.count ?? 0)
        let (hexes, links) = (draft.hexes, draft.links)
        try run(
            """
            INSERT INTO mineChange (number, at, lived, kind, hexesAdded, hexesDeleted, hexesRestored, hexesMoved, hexesChanged,
                linksAdded, linksDeleted, linksRestored, linksMoved, linksChanged, hex, subject, others, bytes, nodes, firstDeletion,
                lastDeletion, author, list)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, number, now, lived, kind.rawValue, hexes.added, hexes.deleted, hexes.restored, hexes.moved, hexes.changed, links.added,
            links.deleted, links.restored, links.moved, links.changed, hex, subject, draft.others, bytes, nodes, deletions.first,
            deletions.last, author?.uuid, list)
        try run("UPDATE list SET changes = ? WHERE id = ?", number, ListRecord.mine)
        try run("UPDATE list SET changeBytes = changeBytes + ? WHERE id = ?", bytes, list)
        // Each list has a log of its own, so that members cannot remove changes of My Hexlist.
        let (rows, maximumBytes) =
            list == ListRecord.mine
            ? (MyHexlistChange.maximumRows, MyHexlistChange.maximumBytes)
            : (MyHexlistChange.maximumSharedRows, MyHexlistChange.maximumSharedBytes)
        let oldest = try first("SELECT number FROM mineChange WHERE list = ? ORDER BY number DESC LIMIT 1 OFFSET ?", list, rows) {
            $0.int64(0)
        }
        if let oldest { try forgetChanges(upTo: oldest, in: list) }
        while try first("SELECT changeBytes FROM list WHERE id = ?", list, read: { $0.int(0) }) ?? 0 > maximumBytes,
            let oldest = try first("SELECT number FROM mineChange WHERE list = ? ORDER BY number LIMIT 1", list, read: { $0.int64(0) })
        {
            try forgetChanges(upTo: oldest, in: list)
        }
    }

    /// Removes changes from the log.
    /// - Returns: their number.
    @discardableResult
    func forgetChanges(upTo number: Int64) throws -> Int {
        try all("SELECT id FROM list", read: { $0.int64(0) }).reduce(0) { try $0 + forgetChanges(upTo: number, in: $1) }
    }

    @discardableResult
    private func forgetChanges(from start: Int64 = .min, upTo number: Int64, in list: Int64) throws -> Int {
        let changes = "mineChange WHERE list = ? AND number BETWEEN ? AND ?"
        let bytes = try first("SELECT coalesce(sum(bytes), 0) FROM \(changes)", list, start, number) { $0.int64(0) } ?? 0
        guard bytes > 0 else { return 0 }
        try run("UPDATE list SET changeBytes = changeBytes - ? WHERE id = ?", bytes, list)
        return try run("DELETE FROM \(changes)", list, start, number)
    }

    /// Removes old changes from the log.
    /// - Parameters:
    ///   - time: the latest time that is old, by `StoreOpenTimeClock`.
    ///   - limit: maximum number of changes.
    /// - Returns: their number.
    func forgetChanges(madeUntil time: Int64, limit: Int) throws -> Int {
        let oldest = try all("SELECT number, lived FROM mineChange WHERE number > 0 ORDER BY number LIMIT ?", limit) {
            (number: $0.int64(0), lived: $0.int64(1))
        }
        guard let last = oldest.last(where: { $0.lived <= time }) else { return 0 }
        return try forgetChanges(upTo: last.number)
    }
}
