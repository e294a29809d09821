internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// A change of My Hexlist. It changes the nodes of the list, from which `finish` then updates the rows of the tables `hex` and `link` that
/// show them. Hexes are named by the ids of these rows. Use it inside `StoreWriter.change`.
struct MyHexlistTransaction {
    private let writer: StoreWriter
    private let list: ListRecord
    private var nodes: ListTransaction<SQLListStorage>
    private var generator = SystemRandomNumberGenerator()
    /// Hexes to which links were added without `nodes` (`NodeInserter`).
    private var extended: Set<ListNode.ID> = []
    /// Milliseconds since 1970.
    private let now: Int64

    /// - Parameter now: milliseconds since 1970.
    fileprivate init(on writer: StoreWriter, at now: Int64) throws {
        self.writer = writer
        self.now = now
        list = try ListRecord(on: writer)
        nodes = ListTransaction(
            storage: try SQLListStorage(list: list.id, on: writer), replica: list.replica, clock: HybridClock(last: list.clock),
            digest: nil,
            now: now)
    }

    // MARK: - Adding

    /// Adds the nodes of a hex whose rows were inserted, with its links and inner hexes.
    /// - Parameter parent: the hex at the end of which it is; `nil` for the beginning of the top level.
    mutating func add(_ content: HexContent, row: Int64, into parent: Int64?) throws {
        let container = try parent.map { try node($0) } ?? list.id
        let key = try nodes.keys(at: parent == nil ? .first : .last, in: container, isNewestFirst: parent == nil, using: &generator)
        let origin = origin()
        try writer.insertNodes { try $0.insert(content, row: row, in: container, at: key[0], origin) }
    }

    /// Adds links at the end of a hex.
    mutating func append(_ links: [LinkContent], of content: HexContent, to hex: Int64) throws {
        let id = try node(hex)
        try insert(links, of: content, in: id, at: nodes.keys(count: links.count, at: .last, in: id, using: &generator))
    }

    private mutating func insert(_ links: [LinkContent], of content: HexContent, in hex: ListNode.ID, at keys: [OrderKey]) throws {
        guard !links.isEmpty else { return }
        let origin = origin()
        try writer.insertNodes { try $0.insert(links[...], of: content, in: hex, at: keys[...], origin) }
        if let row = try nodes.storage.row(hex) {
            try nodes.storage.update(hex, container: row.container, state: row.state, leaves: row.leaves + links.count)
        }
        extended.insert(hex)
    }

    private mutating func origin() -> NodeInserter.Origin {
        NodeInserter.Origin(clock: nodes.nextVersion().clock, replica: list.replicaRow, now: now)
    }

    // MARK: - Changing

    /// Replaces the values and links of a hex.
    /// - Parameters:
    ///   - content: the new values of the hex, and its new links.
    ///   - origins: for each of these links its present position; `nil` for a new link. Links whose position is missing are deleted.
    mutating func edit(_ hex: Int64, to content: HexContent, linksFrom origins: [Int?]) throws {
        let id = try node(hex)
        guard let node = try nodes.storage.row(id)?.node else { throw HexlistError.noHex(hex) }
        try setTitle(of: node, to: content.bytes(content.hexDescription))
        try set([NodeRegisters.color: UTF8Text(utf8: content.bytes(content.hexColor))], of: node)
        try setExtra(of: node, to: content.bytes(content.extra))
        let old = try links(of: id)
        let kept = Set(origins.compactMap(\.self))
        for (position, link) in old.enumerated() where !kept.contains(position) { try nodes.delete(link.node.id) }

        var used: Set<Int> = []
        let origins = origins.map { $0.flatMap { used.insert($0).inserted ? $0 : nil } }  // a second copy is a new link
        let fixed = Self.longestAscending(
            zip(origins, content.links).map { origin, link in origin.flatMap { old[$0].node.isSame(link, of: content) ? $0 : nil } })
        var previous: ListPosition = .first
        var index = 0
        while index < content.links.count {
            if fixed.contains(index), let origin = origins[index] {
                try change(old[origin].node, to: content.links[index], of: content)
                previous = .after(old[origin].node.id)
                index += 1
                continue
            }
            let end = content.links.indices[index...].firstIndex { fixed.contains($0) } ?? content.links.count
            try place(index..<end, origins, old, content, in: id, at: end == content.links.count ? .last : previous)
            index = end
        }
    }

    /// Places new and moved links, and links with a new URL, one after the other.
    private mutating func place(
        _ range: Range<Int>, _ origins: [Int?], _ old: [ListRow], _ content: HexContent, in hex: ListNode.ID, at position: ListPosition
    ) throws {
        let keys = try nodes.keys(count: range.count, at: position, in: hex, using: &generator)
        var new: (links: [LinkContent], keys: [OrderKey]) = ([], [])
        for (index, key) in zip(range, keys) {
            let link = content.links[index]
            guard let node = origins[index].map({ old[$0].node }) else {
                new.links.append(link)
                new.keys.append(key)
                continue
            }
            var id = node.id
            if !node.isSame(link, of: content) {
                let (url, service) = (UTF8Text(utf8: content.bytes(link.url)), UTF8Text(utf8: content.bytes(link.service)))
                id = try nodes.setURL(of: id, to: url, service: service, using: &generator) ?? id
            }
            if let node = try nodes.storage.row(id)?.node { try change(node, to: link, of: content) }
            try nodes.move(id, to: hex, key: key)
        }
        try insert(new.links, of: content, in: hex, at: new.keys)
    }

    /// Writes the values of a link that differ.
    private mutating func change(_ node: ListNode, to link: LinkContent, of content: HexContent) throws {
        try setTitle(of: node, to: content.bytes(link.linkDescription))
        try setExtra(of: node, to: content.bytes(link.extra))
    }

    /// Sets the description of links.
    /// - Parameter positions: their positions in the hex.
    mutating func setDescription(ofLinks positions: [Int], in hex: Int64, to description: String) throws {
        let links = try links(of: node(hex))
        for position in positions where links.indices.contains(position) {
            try setTitle(of: links[position].node, to: Array(description.utf8))
        }
    }

    private mutating func setTitle(of node: ListNode, to title: [UInt8]) throws {
        if node.title?.value.bytes != title { try nodes.setTitle(of: node.id, to: UTF8Text(utf8: title)) }
    }

    private mutating func setExtra(of node: ListNode, to extra: [UInt8]) throws {
        guard !extra.isEmpty || !node.registers.isEmpty, NodeRegisters.extra(of: node.registers.mapValues(\.value)) != extra else { return }
        let removed = node.registers.keys.filter(NodeRegisters.isExtra).map { ($0, UTF8Text.empty) }
        try set(NodeRegisters.values(ofExtra: extra).merging(removed) { value, _ in value }, of: node)
    }

    private mutating func set(_ values: [UTF8Text: UTF8Text], of node: ListNode) throws {
        for (name, value) in values where node.registers[name]?.value ?? .empty != value {
            try nodes.setRegister(name, of: node.id, to: value)
        }
    }

    // MARK: - Moving and deleting

    /// Moves a hex.
    /// - Parameters:
    ///   - parent: the hex that will contain it; `nil` for the top level.
    ///   - sibling: the hex there before which it is inserted; `nil` for the end.
    mutating func move(_ hex: Int64, into parent: Int64?, before sibling: Int64?) throws {
        let container = try parent.map { try node($0) } ?? list.id
        let position = try sibling.map { ListPosition.before(try node($0)) } ?? .last
        let key = try nodes.keys(at: position, in: container, isNewestFirst: parent == nil, using: &generator)
        try nodes.move(node(hex), to: container, key: key[0])
    }

    /// Deletes hexes with everything inside.
    mutating func delete(_ hexes: Set<Int64>) throws { for hex in hexes { try nodes.delete(node(hex)) } }

    /// Removes the values of links that were deleted.
    /// - Parameters:
    ///   - time: the latest time of deletion, by `StoreOpenTimeClock`.
    ///   - limit: maximum number of links.
    /// - Returns: their number.
    mutating func purge(deletedUntil time: Int64, limit: Int) throws -> Int {
        let links = try writer.all("SELECT uuid FROM node WHERE goneAt <= ? ORDER BY goneAt LIMIT ?", time, limit) { $0.nodeID(0) }
        for link in links.compactMap(\.self) {
            try nodes.purge(link)
            try writer.run("UPDATE node SET goneAt = NULL WHERE uuid = ?", link.uuid)
        }
        return links.count
    }

    // MARK: - Finishing

    /// Derives the tree of the nodes and updates the rows that show it.
    fileprivate mutating func finish() throws {
        var tree = try nodes.deriveTree()
        tree.contents.formUnion(extended)
        if nodes.clock.last != list.clock { try writer.run("UPDATE list SET clock = ? WHERE id = 1", nodes.clock.last) }
        try writer.project(tree, nodes.storage)
    }

    private func node(_ hex: Int64) throws -> ListNode.ID {
        let found = try writer.first("SELECT uuid FROM node WHERE kind = 1 AND hex = ?", hex) { $0.nodeID(0) }
        guard let id = found ?? nil else { throw HexlistError.noHex(hex) }
        return id
    }

    private func links(of hex: ListNode.ID) throws -> [ListRow] {
        try nodes.storage.contents(of: hex).filter { $0.node.id.kind == .link }
    }

    /// Returns the indices of a longest ascending subsequence, without `nil`s.
    private static func longestAscending(_ numbers: [Int?]) -> Set<Int> {
        var ends: [Int] = []  // ends[n]: the index at which the ascending subsequence of length n + 1 with the smallest end ends
        var before = [Int?](repeating: nil, count: numbers.count)
        for (index, number) in numbers.enumerated() {
            guard let number else { continue }
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] ?? 0 < number { low = middle + 1 } else { high = middle }
            }
            before[index] = low > 0 ? ends[low - 1] : nil
            if low < ends.count { ends[low] = index } else { ends.append(index) }
        }
        var indices: Set<Int> = []
        var next = ends.last
        while let index = next {
            indices.insert(index)
            next = before[index]
        }
        return indices
    }
}

extension ListNode {
    /// Whether URL and service of a link are the same. Otherwise it is another link.
    fileprivate func isSame(_ link: LinkContent, of content: HexContent) -> Bool {
        content.withBytes(of: link.url) { $0.elementsEqual(url.bytes) }
            && content.withBytes(of: link.service) { $0.elementsEqual(service.bytes) }
    }
}

extension HexStore {
    /// Gives the list of My Hexlist a new replica number. Required before changes if another copy of the store may be in use, so that no two
    /// copies write different values with one version.
    public func renewReplica() async throws { try await write { try $0.renewReplica() } }
}

extension StoreWriter {
    func renewReplica() throws {
        _ = try change {
            try run("INSERT INTO replica (number) VALUES (?)", Int64(bitPattern: UInt64.random(in: .min ... .max)))
            try run("UPDATE list SET replica = (SELECT max(id) FROM replica) WHERE id = 1")
        }
    }

    /// Changes My Hexlist: first its nodes, in `body`, then the rows that show them.
    /// - Parameter now: milliseconds since 1970.
    func changeMine<Value>(at now: Int64, _ body: (inout MyHexlistTransaction) throws -> Value) throws -> Value {
        try change {
            var transaction = try MyHexlistTransaction(on: self, at: now)
            let value = try body(&transaction)
            try transaction.finish()
            return value
        }
    }
}
