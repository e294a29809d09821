@testable import HexlistLists

/// The rows of a list in memory, with the numbers by which other replicas request changes.
struct MemoryStorage: ListStorage {
    let list: ListNode.ID
    private(set) var rows: [ListNode.ID: ListRow] = [:]
    /// The last change of each row: its sequence number, and the replica that sent the row as it is.
    private(set) var numbers: [ListNode.ID: (sequence: Int64, source: ReplicaNumber?)] = [:]
    private(set) var sequence: Int64 = 0
    /// The replica whose nodes are merged by the present transaction.
    var source: ReplicaNumber?

    private var shown: [ListNode.ID: Set<ListNode.ID>] = [:]
    private var deletedWith: [ListNode.ID: Set<ListNode.ID>] = [:]
    private var waiting: [ListNode.ID: Set<ListNode.ID>] = [:]
    private var hexIDs: Set<ListNode.ID> = []

    init(list: ListNode.ID) { self.list = list }

    func row(_ id: ListNode.ID) -> ListRow? { rows[id] }
    func hexes() -> [ListRow] { hexIDs.compactMap { rows[$0] } }
    func leaves(waitingFor hex: ListNode.ID) -> [ListNode.ID] { Array(waiting[hex] ?? []) }
    func nodes(deletedWith hex: ListNode.ID) -> [ListNode.ID] { Array(deletedWith[hex] ?? []) }
    func nodes() -> [ListNode] { rows.values.map(\.node) }
    func forEachNode(_ body: (ListNode) throws -> Void) rethrows { for row in rows.values { try body(row.node) } }

    func contents(of hex: ListNode.ID) -> [ListRow] { (shown[hex] ?? []).compactMap { rows[$0] }.sorted(by: Self.isBefore) }

    static func isBefore(_ left: ListRow, _ right: ListRow) -> Bool {
        let (leftKey, rightKey) = (left.node.place?.key.bytes ?? [], right.node.place?.key.bytes ?? [])
        return leftKey == rightKey ? left.node.id < right.node.id : leftKey.lexicographicallyPrecedes(rightKey)
    }

    mutating func write(_ row: ListRow, _ kind: ListWrite) {
        replace(row)
        guard kind != .purged else { return }
        sequence += 1
        numbers[row.node.id] = (sequence, kind == .received ? source : nil)
    }

    mutating func update(_ id: ListNode.ID, container: ListNode.ID?, state: ListRow.State, leaves: Int) {
        guard let row = rows[id] else { return }
        replace(ListRow(node: row.node, container: container, state: state, leaves: leaves))
    }

    private mutating func replace(_ row: ListRow) {
        let id = row.node.id
        if let old = rows[id] {
            shown[old.container ?? list]?.remove(id)
            if let hex = old.node.deletion?.with { deletedWith[hex]?.remove(id) }
            if let parent = old.node.place?.parent { waiting[parent]?.remove(id) }
        }
        rows[id] = row
        if id.kind == .hex { hexIDs.insert(id) }
        if row.state != .deleted, id != list { shown[row.container ?? list, default: []].insert(id) }
        if let hex = row.node.deletion?.with { deletedWith[hex, default: []].insert(id) }
        if let parent = row.node.place?.parent, row.container == nil, id.kind.isLeaf { waiting[parent, default: []].insert(id) }
    }

    /// The tree as text: for each level links, then hexes with their contents. From the derived values only.
    var shownText: String {
        func text(of hex: ListNode.ID, _ indent: String) -> String {
            let rows = contents(of: hex)
            let links = rows.filter { $0.node.id.kind == .link }.map { "\(indent)- \($0.node.linkText)\n" }
            let hexes = rows.filter { $0.node.id.kind == .hex }.map { row in
                "\(indent)+ \(row.node.hexText)\n" + text(of: row.node.id, indent + "  ")
            }
            return (links + hexes).joined()
        }
        return text(of: list, "")
    }

    /// Returns a storage to which the same rows were added in one transaction, in another order.
    func derivedAgain(using generator: inout some RandomNumberGenerator) throws -> MemoryStorage {
        var transaction = ListTransaction(
            storage: MemoryStorage(list: list), replica: ReplicaNumber(1), clock: HybridClock(), digest: ListDigest(), now: 0)
        for node in nodes().sorted(by: { $0.id < $1.id }).shuffled(using: &generator) { try transaction.merge(node) }
        _ = try transaction.deriveTree()
        return transaction.storage
    }

    /// The digest, computed from all rows.
    var fullDigest: ListDigest { rows.values.reduce(into: ListDigest()) { $0.toggle($1.node, in: list) } }
}

extension ListNode {
    var linkText: String { "\(title?.value.description ?? "") <\(url)>" }
    var hexText: String {
        let color = registers["color"]?.value.description ?? ""
        return (title?.value.description ?? "") + (color.isEmpty ? "" : " " + color)
    }
}
