internal import GRDB
internal import HexlistLists
internal import HexlistModel

/// A change of My Hexlist: of its own list, or of a shared list that it shows. It changes the nodes of the list, from which `finish` then
/// updates the rows of the tables `hex` and `link` that show them. Hexes are named by the ids of these rows. Made by `StoreWriter.changeMine`
/// and `groupMine`.
struct MyHexlistTransaction {
    let writer: StoreWriter
    let list: ListRecord
    var nodes: ListTransaction<SQLListStorage>
    var generator = SystemRandomNumberGenerator()
    /// The positions from which links were added to hexes without `nodes` (`NodeInserter`).
    private var extended = ListTreeChanges()
    /// The changes of the tree that were already derived (`deriveTree`).
    var derived = ListTreeChanges()
    /// The changes so far, for the change log.
    var draft: MyHexlistChangeDraft
    /// The logged change that this transaction continues: `draft` has its changes too.
    private var continued: LoggedChange?
    /// Milliseconds since 1970.
    private let now: Int64

    /// - Parameters:
    ///   - list: `ListRecord.row`.
    ///   - now: milliseconds since 1970.
    fileprivate init(on writer: StoreWriter, in list: Int64, at now: Int64) throws {
        self.writer = writer
        self.now = now
        self.list = try ListRecord(on: writer, row: list)
        let storage = try SQLListStorage(self.list, on: writer, at: now)
        draft = MyHexlistChangeDraft(storage)
        nodes = ListTransaction(
            storage: storage, replica: self.list.replica, clock: HybridClock(last: self.list.clock), digest: self.list.digest, now: now)
    }

    /// Makes the changes of this transaction a part of a logged one, unless that one is large, was removed or undone, or other changes were
    /// made since. Call first.
    mutating func `continue`(_ logged: LoggedChange) throws {
        guard logged.number == list.changes, logged.deletions.last == list.deletions,
            logged.draft.records.bytes.count <= LoggedChange.maximumContinuedBytes,
            try writer.first(
                "SELECT undoneBy IS NULL FROM mineChange WHERE number = ? AND list = ?", logged.number, list.row, read: { $0.bool(0) })
                ?? false
        else { return }
        (continued, draft) = (logged, logged.draft)
        draft.beginPart()
    }

    /// The change that `finish` logs, if there are no further changes; `nil` for none.
    var loggedChange: LoggedChange? {
        guard !draft.isEmpty else { return nil }
        let deletions = (continued?.deletions.first ?? list.deletions + 1, nodes.storage.deletions)
        return LoggedChange(number: continued?.number ?? list.changes + 1, draft: draft, deletions: deletions)
    }

    // MARK: - Adding

    /// Adds the nodes of a hex whose rows were inserted, with its links and inner hexes.
    /// - Parameter parent: the hex at the end of which it is; `nil` for the beginning of the top level.
    mutating func add(_ content: HexContent, row: Int64, into parent: Int64?) throws {
        let container = try parent.map { try node($0) } ?? list.id
        let key = try nodes.keys(at: parent == nil ? .first : .last, in: container, isNewestFirst: parent == nil, using: &generator)
        let origin = origin()
        let id = try insertNodes { try $0.insert(content, row: row, in: container, at: key[0], origin) }
        if parent == nil { try writer.run("UPDATE hex SET orderKey = ? WHERE id = ?", key[0].bytes, row) }
        draft.addTree(
            id, in: container, ListVersion(clock: origin.clock, replica: list.replica), hexesInside: content.children.count,
            links: content.allLinkCount)
    }

    /// Adds links at the end of a hex.
    mutating func append(_ links: [LinkContent], of content: HexContent, to hex: Int64) throws {
        let id = try node(hex)
        try insert(links, of: content, in: id, at: nodes.keys(count: links.count, at: .last, in: id, using: &generator))
    }

    /// Adds links.
    /// - Parameter keys: their positions in the hex.
    mutating func insert(_ links: [LinkContent], of content: HexContent, in hex: ListNode.ID, at keys: [OrderKey]) throws {
        guard !links.isEmpty, let start = keys.min().map({ LeafPosition(key: $0.bytes) }) else { return }
        let origin = origin()
        try insertNodes { try $0.insert(links[...], of: content, in: hex, at: keys[...], origin) }
        if hex != list.id, let row = try nodes.storage.row(hex) {
            try nodes.storage.update(hex, container: row.container, state: row.state, leaves: row.leaves + links.count)
        }
        extended.addLeaves(of: hex, from: start)
        draft.addLinks(links.count, to: hex, ListVersion(clock: origin.clock, replica: list.replica))
    }

    /// Calls `body` with the inserter of nodes, and adds the inserted nodes to numbers and digest.
    private mutating func insertNodes<Value>(_ body: (inout NodeInserter) throws -> Value) throws -> Value {
        let before = nodes.storage.sequence
        _ = try nodes.storage.row(of: list.replica)  // the inserted versions have it
        var after = before
        let value = try writer.insertNodes { inserter in
            inserter.sequence = before
            let value = try body(&inserter)
            after = inserter.sequence
            return value
        }
        nodes.storage.sequence = after
        guard let before, nodes.digest != nil else { return value }
        var inserted = ListDigest()
        try nodes.storage.changed(after: before) { node, _, _ in
            inserted.toggle(node, in: list.id)
            return true
        }
        nodes.toggleDigest(inserted)
        return value
    }

    private mutating func origin() -> NodeInserter.Origin {
        NodeInserter.Origin(clock: nodes.nextVersion().clock, replica: list.replicaRow, list: list.row, now: now)
    }

    // MARK: - Changing

    /// Replaces the values and links of a hex.
    /// - Parameters:
    ///   - content: the new values of the hex, and its new links.
    ///   - old: its present links, with texts in the same arena. Only nodes of links that differ are read, because a hex may have 5 000.
    ///   - origins: for each of the new links its present position; `nil` for a new link. Links whose position is missing are deleted.
    mutating func edit(_ hex: Int64, to content: HexContent, from old: [LinkContent], linksFrom origins: [Int?]) throws {
        let id = try node(hex)
        guard let node = try nodes.storage.row(id)?.node else { throw HexlistError.noHex(hex) }
        try setTitle(of: node, to: content.bytes(content.hexDescription))
        try set([NodeRegisters.color: UTF8Text(utf8: content.bytes(content.hexColor))], of: node)
        try setExtra(of: node, to: content.bytes(content.extra))
        let present = PresentLinks(ids: try nodes.storage.links(in: id), links: old, content: content)
        guard present.ids.count == old.count else {
            throw HexlistError(.storeUnusable, "The links of hex \(hex) are not those of its node.")
        }
        let kept = Set(origins.compactMap(\.self))
        for (position, link) in present.ids.enumerated() where !kept.contains(position) { try nodes.delete(link) }

        var used: Set<Int> = []
        let origins = origins.map { $0.flatMap { used.insert($0).inserted ? $0 : nil } }  // a second copy is a new link
        let fixed = zip(origins, content.links).map { origin, link in origin.flatMap { present.isSame($0, link) ? $0 : nil } }
            .longestAscendingIndices
        var previous: ListPosition = .first
        var index = 0
        while index < content.links.count {
            if fixed.contains(index), let origin = origins[index] {
                try change(origin, of: present, to: content.links[index])
                previous = .after(present.ids[origin])
                index += 1
                continue
            }
            let end = content.links.indices[index...].firstIndex { fixed.contains($0) } ?? content.links.count
            try place(index..<end, origins, present, in: id, at: end == content.links.count ? .last : previous)
            index = end
        }
    }

    /// The links of a hex before an edit.
    private struct PresentLinks {
        var ids: [ListNode.ID]
        var links: [LinkContent]
        /// The new content. It has the texts of these links too.
        var content: HexContent

        /// Whether the URL and service of a link stay the same. Otherwise it is another link.
        func isSame(_ position: Int, _ link: LinkContent) -> Bool {
            isEqual(links[position].url, link.url) && isEqual(links[position].service, link.service)
        }

        func isEqual(_ left: TextSlice, _ right: TextSlice) -> Bool {
            left == right || content.withBytes(of: left) { left in content.withBytes(of: right) { left.elementsEqual($0) } }
        }
    }

    /// Places new and moved links, and links with a new URL, one after the other.
    private mutating func place(
        _ range: Range<Int>, _ origins: [Int?], _ present: PresentLinks, in hex: ListNode.ID, at position: ListPosition
    ) throws {
        let content = present.content
        let keys = try nodes.keys(count: range.count, at: position, in: hex, using: &generator)
        var new: (links: [LinkContent], keys: [OrderKey]) = ([], [])
        for (index, key) in zip(range, keys) {
            let link = content.links[index]
            guard let origin = origins[index] else {
                new.links.append(link)
                new.keys.append(key)
                continue
            }
            if present.isSame(origin, link) {
                try change(origin, of: present, to: link)
                try nodes.move(present.ids[origin], to: hex, key: key)
            } else {
                let (url, service) = (UTF8Text(utf8: content.bytes(link.url)), UTF8Text(utf8: content.bytes(link.service)))
                let id = try nodes.setURL(of: present.ids[origin], to: url, service: service, using: &generator)
                guard let id, let node = try nodes.storage.row(id)?.node else { continue }
                try setTitle(of: node, to: content.bytes(link.linkDescription))
                try setExtra(of: node, to: content.bytes(link.extra))
                try nodes.move(id, to: hex, key: key)
            }
        }
        try insert(new.links, of: content, in: hex, at: new.keys)
    }

    /// Writes the values of a link that differ.
    private mutating func change(_ origin: Int, of present: PresentLinks, to link: LinkContent) throws {
        let (id, old, content) = (present.ids[origin], present.links[origin], present.content)
        guard !present.isEqual(old.linkDescription, link.linkDescription) || !present.isEqual(old.extra, link.extra),
            let node = try nodes.storage.row(id)?.node
        else { return }
        try setTitle(of: node, to: content.bytes(link.linkDescription))
        try setExtra(of: node, to: content.bytes(link.extra))
    }

    /// Sets the description of links that have none. It gets the version of the empty one, over which a merge prefers it, because it is no
    /// change by the user: it neither appears in the change log nor keeps an undo from deleting the link.
    /// - Parameter positions: their positions in the hex.
    mutating func fillDescription(ofLinks positions: [Int], in hex: Int64, with description: String) throws {
        draft.add(nodes.takeChanges())
        let links = try nodes.storage.links(in: node(hex))
        for position in positions where links.indices.contains(position) {
            guard let version = try nodes.storage.row(links[position])?.node.title?.version else { continue }
            var node = ListNode(id: links[position])
            node.title = ListNode.Register(version: version, value: UTF8Text(utf8: Array(description.utf8)))
            try nodes.merge(node)
        }
        _ = nodes.takeChanges()
    }

    mutating func setTitle(of node: ListNode, to title: [UInt8]) throws {
        if node.title?.value.bytes != title { try nodes.setTitle(of: node.id, to: UTF8Text(utf8: title)) }
    }

    mutating func setExtra(of node: ListNode, to extra: [UInt8]) throws {
        guard NodeRegisters.extra(of: node.registers.mapValues(\.value)) != extra else { return }
        let removed = node.registers.keys.filter(NodeRegisters.isExtra).map { ($0, UTF8Text.empty) }
        try set(NodeRegisters.values(ofExtra: extra).merging(removed) { value, _ in value }, of: node)
    }

    mutating func set(_ values: [UTF8Text: UTF8Text], of node: ListNode) throws {
        // Removed ones first, so that they make room for new ones.
        for (name, value) in values.sorted(by: { $0.value.isEmpty && !$1.value.isEmpty })
        where node.registers[name]?.value ?? .empty != value {
            try nodes.setRegister(name, of: node.id, to: value)
        }
    }

    // MARK: - Moving and deleting

    /// Moves a hex.
    /// - Parameters:
    ///   - parent: the hex that will contain it; `nil` for the top level.
    ///   - sibling: the hex there beside which it is inserted; `nil` for the end.
    mutating func move(_ hex: Int64, into parent: Int64?, beside sibling: SiblingPosition?) throws {
        let container = try parent.map { try node($0) } ?? list.id
        let position: ListPosition =
            switch sibling {
            case nil: .last
            case .before(let hex): .before(try placedNode(hex))
            case .after(let hex): .after(try placedNode(hex))
            }
        let id = try placedNode(hex)
        if try nodes.storage.row(id)?.container == container {
            // It may be there already.
            let (before, after) = try nodes.storage.neighbors(of: position, in: container)
            if before?.node.id == id || after?.node.id == id { return }
        }
        let key = try nodes.keys(at: position, in: container, isNewestFirst: parent == nil, using: &generator)
        try nodes.move(id, to: container, key: key[0])
    }

    /// Moves a hex to the top level, directly before the one with the next lower id. If the user has not moved any, the newest is first. In a
    /// shared list, moves it to the end of the shared hex.
    mutating func moveToTop(_ id: ListNode.ID) throws {
        guard !list.isShared else {
            let key = try nodes.keys(at: .last, in: list.id, isNewestFirst: false, using: &generator)
            try nodes.move(id, to: list.id, key: key[0])
            return
        }
        let row = try writer.hex(ofNode: id, in: list.row)
        let next = try row.flatMap { row in
            try writer.first(
                """
                SELECT uuid FROM node INDEXED BY nodeHexes WHERE kind = 1 AND hex < ? AND container = ? AND state <> 1 AND list = ?
                ORDER BY hex DESC LIMIT 1
                """, row, list.id.uuid, list.row
            ) { $0.nodeID(0) } ?? nil
        }
        let position = next.map { ListPosition.before($0) } ?? (row == nil ? .first : .last)
        let key = try nodes.keys(at: position, in: list.id, isNewestFirst: true, using: &generator)
        try nodes.move(id, to: list.id, key: key[0])
    }

    /// Deletes hexes with everything inside.
    mutating func delete(_ hexes: [Int64]) throws {
        for hex in hexes {
            let id = try placedNode(hex)
            if id.kind == .sharedList { try endSharing(id) }
            for other in try writer.otherEntries(ofListOf: id) {  // otherwise one of them would show the list
                try nodes.delete(other)
                _ = nodes.takeChanges()
            }
            try deleteWithContents(id)
        }
    }

    /// - Returns: the deleted nodes.
    @discardableResult
    private mutating func deleteWithContents(_ hex: ListNode.ID) throws -> [ListNode.ID] {
        var draft = MyHexlistChangeDraft(nodes.storage)
        swap(&draft, &self.draft)  // a copy would cost as much as all earlier changes
        defer { swap(&draft, &self.draft) }
        let deleted = try nodes.delete(hex) { draft.add($0) }
        draft.countDeleted(deleted.dropFirst())
        draft.add(nodes.takeChanges())
        return deleted
    }

    /// Merges duplicates. The list must not have changed since they were found.
    mutating func merge(_ duplicates: ListDuplicates) throws {
        try nodes.merge(duplicates, using: &generator)
        try deriveTree()
        var deleted: Set<ListNode.ID> = []
        for hex in duplicates.hexes.flatMap(\.others) where !deleted.contains(hex) { deleted.formUnion(try deleteWithContents(hex)) }
    }

    // MARK: - Finishing

    /// Derives the tree of the nodes, so that the following changes read it. A deleted hex that is shown because something in it was restored
    /// or moved there is restored too, without its other contents.
    mutating func deriveTreeAndRevive() throws {
        try deriveTree()
        while try derived.hexes.reduce(false, { try nodes.revive($1) || $0 }) { try deriveTree() }
    }

    /// Derives the tree of the nodes, so that the following changes read it.
    mutating func deriveTree() throws {
        let isReceived = nodes.storage.source != nil
        if !isReceived { draft.add(nodes.takeChanges()) }
        let tree = try nodes.deriveTree()
        if isReceived { try addReceived(nodes.takeChanges()) }
        derived.formUnion(tree)
    }

    /// Adds changes of nodes that came from another machine to the log. New nodes that are deleted are left out, and so are deletions that
    /// take effect with a later page, which deletes the hex, and deletions of hexes that are shared lists now.
    private mutating func addReceived(_ changes: [ListChange]) throws {
        let copied = try list.isShared ? [:] : writer.copiedHexes()
        let changes = try Self.coalesced(changes).filter { change in
            let id = change.after.id
            guard list.isShared || id != list.id, id.kind == .hex || id.kind == .link, let state = try nodes.storage.row(id)?.state else {
                return false
            }
            if change.before == nil { return state != .deleted }
            if change.parts.contains(.deletion), try isDeleted(change.after, with: copied) { return false }
            return !change.parts.contains(.deletion) || (id.kind == .hex ? state != .present : state == .deleted)
        }
        draft.replicaRows = nodes.storage.replicaRows
        draft.add(changes, isReceived: true)
        let deletions = changes.filter { $0.after.id.kind == .hex && $0.parts.contains(.deletion) }.map(\.after)
        let deleted = Set(deletions.map(\.id))
        for hex in deletions where !(hex.deletion?.with.map(deleted.contains) ?? false) {
            draft.countDeleted(try writer.deletedTogether(with: hex.id, in: list.row))
        }
    }

    /// Makes one change of those of one node.
    private static func coalesced(_ changes: [ListChange]) -> [ListChange] {
        var (result, indices): ([ListChange], [ListNode.ID: Int]) = ([], [:])
        for change in changes {
            if let index = indices[change.after.id] {
                result[index].after = change.after
            } else {
                indices[change.after.id] = result.count
                result.append(change)
            }
        }
        return result
    }

    /// Whether a deleted node is one of some hexes, or was deleted together with one.
    /// - Parameter hexes: the hexes, each with a hybrid time after which it was not changed.
    private func isDeleted(_ node: ListNode, with hexes: [ListNode.ID: Int64]) throws -> Bool {
        guard !hexes.isEmpty else { return false }
        var (top, level) = (node, 0)
        while hexes[top.id] == nil, let hex = top.deletion?.with, level < ListStructure.levels, let row = try nodes.storage.row(hex) {
            (top, level) = (row.node, level + 1)
        }
        guard let time = hexes[top.id], let version = top.version else { return false }
        return version.clock < time
    }

    /// Derives the tree of the nodes, updates the rows that show it, and adds the changes to the log.
    /// - Parameter author: the machine from which the changes came; `nil` for this one.
    fileprivate mutating func finish(_ kind: MyHexlistChange.Kind, from author: PeerID? = nil) throws {
        // A merge causes no local change: hexes that other machines deleted stay deleted, even if something in them is shown.
        if nodes.storage.source == nil { try deriveTreeAndRevive() } else { try deriveTree() }
        derived.formUnion(extended)
        if author == nil, !draft.isEmpty { try writer.checkIsWritable(list) }
        let storage = nodes.storage
        if let sequence = storage.sequence, sequence != list.sequence { writer.changed(.list) }
        if nodes.clock.last != list.clock || storage.sequence != list.sequence || nodes.digest != list.digest {
            try writer.run(
                "UPDATE list SET clock = ?, seq = ?, digest = ? WHERE id = ?", nodes.clock.last, storage.sequence,
                nodes.digest.map { Int64(bitPattern: $0.value) }, list.row)
        }
        if storage.deletions != list.deletions {
            try writer.run("UPDATE list SET deletions = ? WHERE id = ?", storage.deletions, ListRecord.mine)
        }
        try writer.project(derived, storage)
        if !derived.entries.isEmpty { try writer.updateSharedLists(at: now) }
        if !list.isShared, storage.deletions != list.deletions { try writer.removeCopiedFromTrash() }
        guard let logged = loggedChange else { return }
        try writer.log(logged.draft, kind, from: author, in: list.row, logged.deletions, replacing: continued?.number, at: now)
    }

    /// The hexes whose rows change.
    var changedHexes: Set<ListNode.ID> { derived.hexes.union(derived.contents.keys) }

    /// Returns the node with the values and contents of a hex.
    func node(_ hex: Int64) throws -> ListNode.ID {
        guard let node = try writer.node(ofHex: hex), node.list == list.row else { throw HexlistError.noHex(hex) }
        return node.id
    }

    /// Returns the node with the place of a hex: of a shared hex the entry of its list.
    private func placedNode(_ hex: Int64) throws -> ListNode.ID {
        guard let node = try writer.node(ofHex: hex), node.isRoot, let entry = try writer.entry(ofList: node.list) else {
            return try self.node(hex)
        }
        return entry
    }
}

extension HexStore {
    /// Gives all lists new replica numbers. Required before changes if another copy of the store may be in use, so that no two copies write
    /// different values with one version.
    public func renewReplicas() async throws { try await write { try $0.renewReplicas() } }
}

extension StoreWriter {
    func renewReplicas() throws {
        try change { for list in try all("SELECT id FROM list", read: { $0.int64(0) }) { try renewReplica(of: list) } }
    }

    /// Draws a new replica number. Its row replaces that of the former one if this one is in no version, so that the table does not grow.
    /// - Parameter list: `ListRecord.row`.
    func renewReplica(of list: Int64) throws {
        try change {
            let number = ReplicaNumber(.random(in: .min ... .max))
            let unused = try first("SELECT replica FROM list WHERE id = ? AND NOT hasUsedReplica", list) { $0.int64(0) }
            if let unused {
                try run("UPDATE replica SET number = ? WHERE id = ?", Int64(bitPattern: number.value), unused)
            } else {
                let replica = try replicaRow(of: number)
                try markOwn(replica)
                try run("UPDATE list SET replica = ?, hasUsedReplica = 0 WHERE id = ?", replica, list)
                // The bound for My Hexlist does not count those of shared lists.
                if list != ListRecord.mine { try run("UPDATE list SET replicas = replicas + 1 WHERE id = ?", list) }
            }
            _ = try run("UPDATE listCursor SET acked = 0 WHERE list = ?", list)
        }
    }

    /// Changes a list of My Hexlist: first its nodes, in `body`, then the rows that show them. Inside `groupMine`, the rows are updated at its
    /// end.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - kind: the kind of the change in the log.
    ///   - author: the machine from which the change came; `nil` for this one.
    ///   - list: `ListRecord.row`.
    ///   - body: must not call `changeMine`: a second transaction would not see the changes of the first, which would overwrite its own.
    /// - Returns: the value of `body`.
    @discardableResult
    func changeMine<Value>(
        at now: Int64, as kind: MyHexlistChange.Kind = .user, from author: PeerID? = nil, in list: Int64 = ListRecord.mine,
        _ body: (inout MyHexlistTransaction) throws -> Value
    ) throws -> Value {
        precondition(!isChangingMine, "A change of My Hexlist inside another one")
        isChangingMine = true
        defer { isChangingMine = false }
        return try change {
            if openMine != nil {
                var open = try openMine?.removeValue(forKey: list) ?? MyHexlistTransaction(on: self, in: list, at: now)
                defer { openMine?[list] = open }
                return try body(&open)
            }
            var transaction = try MyHexlistTransaction(on: self, in: list, at: now)
            let value = try body(&transaction)
            try transaction.finish(kind, from: author)
            isChangingMine = false
            try addRejected(at: now)
            return value
        }
    }

    /// Makes all changes of one list of My Hexlist in `body` one change of the log, and updates the rows only once. New hexes have their rows
    /// at once. Changes of more than one list must only be additions: each deletion gets a number in the trash, which the lists share.
    /// - Parameter now: milliseconds since 1970.
    func groupMine<Value>(at now: Int64, _ body: () throws -> Value) throws -> Value {
        try change {
            guard openMine == nil else { return try body() }
            openMine = [:]
            defer { openMine = nil }
            let value = try body()
            let transactions = openMine ?? [:]
            openMine = nil
            for (_, transaction) in transactions.sorted(by: { $0.key < $1.key }) {
                var transaction = transaction
                try transaction.finish(.user)
            }
            return value
        }
    }
}
