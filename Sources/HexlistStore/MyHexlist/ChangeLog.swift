internal import GRDB
internal import HexlistLists
public import HexlistModel

/// A change of My Hexlist in the change log: everything that one request changed.
///
/// The log is bounded by `days`, `maximumRows` and `maximumBytes`; the oldest changes are removed first.
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
    }

    public enum Kind: Int, Sendable, Equatable {
        /// A change that the user requested.
        case user = 0
        case undo = 1
        /// Nodes of another machine of the user, which came in one page.
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
    /// Maximum bytes of the nodes of one change.
    static let maximumNodeBytes = 8 << 20
    /// Maximum bytes of changes that are undone together: one of the largest, with small ones beside it.
    static let maximumUndoBytes = maximumNodeBytes + (1 << 20)
    /// Maximum number of values of a change on a page of the log, and maximum bytes of each text.
    static let (listedValues, valueBytes) = (10, 240)
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
    private let list: ListNode.ID

    init(_ storage: SQLListStorage) {
        records = ChangeRecordEncoder(replicaRows: storage.replicaRows)
        list = storage.list
    }

    var isEmpty: Bool { hexes.isEmpty && links.isEmpty }

    mutating func addTree(_ id: ListNode.ID, in container: ListNode.ID, _ version: ListVersion, hexesInside: Int, links count: Int) {
        records.append(.tree(id, container: container, version))
        hexes.added += 1 + hexesInside
        links.added += count
        // Each is a new hex, so it need not be looked up in `affected`. At the top level, the one that was added last is listed first.
        if first != nil { others += 1 }
        if first == nil || container == list { first = id }
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
            let isHex = id.kind == .hex
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
            if let hex = isHex ? id : container, hex != list { affect(hex) }
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
        var node: ListNode.ID?
        if let hex {
            guard let id = try self.node(ofHex: hex) else { throw HexlistError.noMine(hex) }
            node = id
        }
        let storage = try SQLListStorage(ListRecord(on: self), on: self)
        let found = try page(
            """
            SELECT \(Self.changeColumns), substr(nodes, 1, \(Self.valueRecordBytes)) FROM mineChange
            WHERE number < ?1 AND at >= ?2 AND (?3 IS NULL OR instr(nodes, ?3) > 0 OR nodes IS NULL AND hex = ?4)
                AND CASE ?6 WHEN 0 THEN 1 WHEN 1 THEN author IS NULL ELSE author = ?5 END
            ORDER BY number DESC
            """, before ?? .max, since ?? .min, node?.uuid, hex, source?.peer?.uuid, source.map { $0 == .here ? 1 : 2 } ?? 0, limit: limit
        ) { row in
            row.size(of: 14...19)
        } read: { row in
            var change = Self.change(row)
            if let other = change.undoneBy {
                let (last, isUndone) = try lastUndo(from: other)
                change.undoneBy = isUndone ? last : nil
            }
            change.values = try values(ChangeRecordDecoder(row.bytes(19), numbers: storage.numbers))
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
        author
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
    private func values(_ records: ChangeRecordDecoder) throws -> [MyHexlistChange.Value] {
        var values: [MyHexlistChange.Value] = []
        for record in records {
            guard values.count < MyHexlistChange.listedValues else { break }
            guard case .node(let change, _) = record else { continue }
            let (before, after) = (change.before, change.after)
            let link = after.id.kind == .hex ? nil : try first("SELECT url FROM node WHERE uuid = ?", after.id.uuid) { $0.text(0) } ?? ""
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

    /// Returns the node of a hex that is or was in My Hexlist.
    func node(ofHex hex: Int64) throws -> ListNode.ID? {
        try first("SELECT uuid FROM node WHERE kind = 1 AND hex = ?", hex) { $0.nodeID(0) } ?? nil
    }

    /// Returns the number of a hex; `nil` if it never had one.
    func hex(ofNode node: ListNode.ID) throws -> Int64? {
        try first("SELECT hex FROM node WHERE uuid = ?", node.uuid) { $0.optionalInt64(0) } ?? nil
    }

    /// Returns the subject (`HexSubject`) of a hex, also of a deleted one.
    func subject(of hex: ListNode.ID) throws -> String {
        let row = try first("SELECT title, state FROM node WHERE uuid = ?", hex.uuid) { (title: $0.text(0), isDeleted: $0.int(1) == 1) }
        guard let row else { return "" }
        // These are the conditions of the indexes.
        let contents = row.isDeleted ? "goneWith = ? AND state = 1" : "container = ? AND state <> 1"
        let link = try first("SELECT title, url FROM node WHERE \(contents) AND kind = 2 ORDER BY orderKey, uuid LIMIT 1", hex.uuid) {
            (title: $0.text(0), url: $0.text(1))
        }
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
    ///   - number: `ListRecord.changes` plus 1.
    ///   - deletions: the numbers in the trash of the nodes that it deleted.
    func log(
        _ draft: MyHexlistChangeDraft, _ kind: MyHexlistChange.Kind, from author: PeerID? = nil, number: Int64,
        _ deletions: (first: Int64, last: Int64), at now: Int64
    ) throws {
        let nodes = kind == .joined || draft.records.bytes.count > MyHexlistChange.maximumNodeBytes ? nil : draft.records.bytes
        let subject = try draft.first.map { try self.subject(of: $0) } ?? ""
        let hex = try draft.first.flatMap(hex(ofNode:))
        let bytes = 128 + subject.utf8.count + (nodes?.count ?? 0)
        let (hexes, links) = (draft.hexes, draft.links)
        try run(
            """
            INSERT INTO mineChange (number, at, lived, kind, hexesAdded, hexesDeleted, hexesRestored, hexesMoved, hexesChanged,
                linksAdded, linksDeleted, linksRestored, linksMoved, linksChanged, hex, subject, others, bytes, nodes, firstDeletion,
                lastDeletion, author)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, number, now, lived, kind.rawValue, hexes.added, hexes.deleted, hexes.restored, hexes.moved, hexes.changed, links.added,
            links.deleted, links.restored, links.moved, links.changed, hex, subject, draft.others, bytes, nodes, deletions.first,
            deletions.last, author?.uuid)
        try run("UPDATE list SET changes = ?, changeBytes = changeBytes + ? WHERE id = 1", number, bytes)
        try forgetChanges(upTo: number - Int64(MyHexlistChange.maximumRows))
        while let oldest = try oldestOverflowingChange() { try forgetChanges(upTo: oldest) }
    }

    /// Returns the oldest change if the log is too large.
    private func oldestOverflowingChange() throws -> Int64? {
        let bytes = try first("SELECT changeBytes FROM list WHERE id = 1") { $0.int(0) } ?? 0
        guard bytes > MyHexlistChange.maximumBytes else { return nil }
        return try first("SELECT number FROM mineChange WHERE number > 0 ORDER BY number LIMIT 1") { $0.int64(0) }
    }

    /// Removes changes from the log.
    /// - Returns: their number.
    @discardableResult
    func forgetChanges(upTo number: Int64) throws -> Int {
        let bytes = try first("SELECT coalesce(sum(bytes), 0) FROM mineChange WHERE number <= ?", number) { $0.int64(0) } ?? 0
        guard bytes > 0 else { return 0 }
        try run("UPDATE list SET changeBytes = changeBytes - ? WHERE id = 1", bytes)
        return try run("DELETE FROM mineChange WHERE number <= ?", number)
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
