/// The stored rows of one list, as `ListTransaction` uses them.
public protocol ListStorage {
    /// The id of the list, which is that of its root.
    var list: ListNode.ID { get }
    /// Maximum levels of the list that are shown.
    var levels: Int { get }

    func row(_ id: ListNode.ID) throws -> ListRow?
    /// Returns the rows of all hexes, with the versions of their values, but maybe without texts, because all are in memory at once. They
    /// may include the root.
    func hexes() throws -> [ListRow]
    /// Returns the leaves that name a hex as their parent and have no container, because the hex was unknown.
    func leaves(waitingFor hex: ListNode.ID) throws -> [ListNode.ID]
    /// Returns the nodes whose deletion mark names a hex, whether or not they are deleted.
    func nodes(deletedWith hex: ListNode.ID) throws -> [ListNode.ID]
    /// Returns the rows that are shown in a hex, by order key and id. Rows without a container are in the root.
    func contents(of hex: ListNode.ID) throws -> [ListRow]
    /// Returns the ids of these rows, in the same order.
    func ids(in hex: ListNode.ID) throws -> [ListNode.ID]
    /// Returns the rows that are shown in a hex directly before and after a position.
    func neighbors(of position: ListPosition, in hex: ListNode.ID) throws -> (before: ListRow?, after: ListRow?)
    /// Calls `body` with each node, in any order.
    func forEachNode(_ body: (ListNode) throws -> Void) throws

    /// Inserts or replaces a row.
    mutating func write(_ row: ListRow, _ kind: ListWrite) throws
    /// Replaces the values of a row that were derived from the tree. It gets no new sequence number.
    mutating func update(_ id: ListNode.ID, container: ListNode.ID?, state: ListRow.State, leaves: Int) throws
}

extension ListStorage {
    public var levels: Int { ListStructure.levels }

    /// Returns all nodes, in any order.
    public func nodes() throws -> [ListNode] {
        var nodes: [ListNode] = []
        try forEachNode { nodes.append($0) }
        return nodes
    }

    public func ids(in hex: ListNode.ID) throws -> [ListNode.ID] { try contents(of: hex).map(\.node.id) }

    public func neighbors(of position: ListPosition, in hex: ListNode.ID) throws -> (before: ListRow?, after: ListRow?) {
        let rows = try contents(of: hex)
        let index = position.index(in: rows)
        return (index > 0 ? rows[index - 1] : nil, index < rows.count ? rows[index] : nil)
    }
}

/// The effect of a write on the exchange with other replicas.
public enum ListWrite: Sendable {
    /// The row gets a sequence number, and is sent to every replica.
    case changed
    /// The row gets a sequence number. It is as the other replica of this transaction sent it, so it is not sent back.
    case received
    /// Values were purged. The row keeps its sequence number.
    case purged
}
