import GRDB
import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// The nodes of My Hexlist, and the rows of `hex` and `link` that show them.
@Suite(.timeLimit(.minutes(5))) struct MyHexlistNodeTests {
    /// Compares the rows of My Hexlist with the nodes of all lists, and the derived values of the nodes with those derived from all nodes.
    func rowsShowTheNodes(_ store: HexStore) throws -> Bool {
        try store.readSync { reader in
            let lists = try reader.all("SELECT id FROM list WHERE id = 1 OR entry IS NOT NULL") { $0.int64(0) }.map {
                try ListRecord(on: reader, row: $0)
            }
            let shown = try lists.reduce(0) { try $0 + shownHexes(of: $1, reader) }
            let mine = try ListRecord(on: reader)
            let tops = try reader.all(
                """
                SELECT hex FROM node WHERE container = ? AND state <> 1 AND list = 1 AND (kind = 1 OR uuid IN (SELECT entry FROM list))
                ORDER BY orderKey
                """, mine.id.uuid
            ) { $0.int64(0) }
            let listed = try reader.hexPage(HexFilter(location: .mine), limit: 1_000).items.map(\.id)
            let ordered = try reader.first("SELECT count(*) FROM hex WHERE orderKey IS NOT NULL") { $0.int(0) }
            #expect(ordered == listed.count)
            let hexes = try reader.first("SELECT count(*) FROM hex WHERE location IN ('mine', 'inside')") { $0.int(0) }
            #expect(tops == listed && hexes == shown)
            return try lists.allSatisfy { list in
                let storage = try SQLListStorage(list, on: reader)
                return try derivedAgain(storage.nodes(), list) == storage.allRows()
            }
        }
    }

    /// Compares the rows of the shown hexes of a list with their nodes, and returns their number.
    private func shownHexes(of list: ListRecord, _ reader: StoreReader) throws -> Int {
        let storage = try SQLListStorage(list, on: reader)
        var shown = 0
        let ids = try reader.all("SELECT uuid FROM node WHERE kind = 1 AND state <> 1 AND list = ?", list.row) { $0.nodeID(0) }
        for id in ids.compactMap(\.self) where list.isShared || id != list.id {
            let node = try #require(try storage.row(id))
            let expected = try reader.content(of: node, in: storage)
            let row = try #require(
                try reader.first("SELECT hex FROM node WHERE uuid = ? AND list = ?", id.uuid, list.row) { $0.optionalInt64(0) } ?? nil)
            let detail = try #require(try reader.hex(row))
            let parent =
                try reader.first("SELECT uuid FROM node WHERE hex = ? AND kind = 1", detail.summary.parent ?? -1) { $0.nodeID(0) } ?? nil
            #expect(detail.content.texts == expected.texts && detail.summary.linkCount == expected.links.count)
            if id == list.id {
                #expect(parent == nil && detail.summary.location == .mine)
            } else {
                #expect((parent ?? list.id) == node.container && detail.summary.linkCount == node.leaves)
                #expect(detail.summary.location == .mine)
            }
            let children = try storage.contents(of: id).filter { $0.node.id.kind == .hex }.map(\.node.id)
            let rows = try reader.all(
                "SELECT node.uuid FROM hex JOIN node ON node.hex = hex.id AND node.kind = 1 WHERE hex.parent = ? ORDER BY hex.position", row
            ) {
                $0.nodeID(0)
            }
            #expect(rows == children)
            shown += 1
        }
        return shown
    }

    /// The rows that result from merging all nodes into an empty list.
    private func derivedAgain(_ nodes: [ListNode], _ list: ListRecord) throws -> [ListNode.ID: ListRow] {
        let other = try TestStore()
        return try other.write { writer in
            try writer.change {
                try writer.run("UPDATE list SET uuid = ?", list.id.uuid)
                try writer.run("UPDATE replica SET number = ?", Int64(bitPattern: list.replica.value))
                var transaction = ListTransaction(
                    storage: try SQLListStorage(list, on: writer), replica: list.replica, clock: HybridClock(), digest: nil,
                    now: start)
                for node in nodes { try transaction.merge(node) }
                _ = try transaction.deriveTree()
                return try transaction.storage.allRows()
            }
        }
    }

    /// A tree of hexes with random links, tags and unknown members.
    private func tree(_ random: inout some RandomNumberGenerator) -> HexContent {
        var tree = content("Hex \(Int.random(in: 0..<100, using: &random))", links: Int.random(in: 0...4, using: &random))
        for index in tree.links.indices where Bool.random(using: &random) {
            tree.links[index].extra = tree.add(
                [#"{"note":"n","tags":["b","a"]}"#, #"{"x":1,"tags":["a"]}"#, #"{"tags":["a","a"],"y":2}"#].randomElement(using: &random)
                    ?? "")
        }
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            var child = ChildContent(parent: nil)
            child.hexDescription = tree.add("Child")
            let first = tree.childLinks.count
            tree.childLinks += tree.links.prefix(2)
            child.links = first..<tree.childLinks.count
            tree.add(child: child)
        }
        return tree
    }

    @Test("the hexes of an existing store become nodes, with the same ids, order and values") func conversion() async throws {
        let test = try TestStore()
        var random = SeededGenerator(seed: 1)
        var ids: [Int64] = []
        for step in 0..<20 { ids.append(try await test.store.addMine(tree(&random), at: start + Int64(step) % 3 * day)) }
        // Inner hexes with lower and higher ids than their parents, and positions with gaps.
        for (hex, parent) in [(3, 0), (5, 3), (1, 5), (7, 0), (6, 0)] {
            try await test.store.moveMine(ids[hex], into: ids[parent], at: start)
        }
        _ = try await test.store.change([ids[8], ids[9]], .delete, at: start)
        try test.write { writer in
            _ = try writer.change { try writer.run("DELETE FROM node WHERE state = 1") }  // an existing store has no deleted nodes
        }
        let before = try test.read { try $0.hexes(ids).map(\.content.texts) }
        let path = test.folder + "/older"
        try test.store.onWritingConnection { try $0.execute(sql: "VACUUM INTO '\(path)'") }
        let old = try DatabaseQueue(path: path)
        try await old.writeWithoutTransaction { [ids] db in
            try db.execute(
                sql: """
                    DROP TABLE node; DROP TABLE list; DROP TABLE replica; DROP TABLE mineChange;
                    DROP INDEX hexOrder; ALTER TABLE hex DROP COLUMN orderKey;
                    DROP TABLE offerList; DROP TABLE listSeen; DROP TABLE listPeer; DROP TABLE listOffer; DROP TABLE ownMachine; DROP TABLE listCursor;
                    DROP TABLE joining; DROP TABLE joinNode;
                    CREATE TABLE bin (
                        number INTEGER PRIMARY KEY, hex INTEGER NOT NULL UNIQUE, parent INTEGER, subject TEXT NOT NULL,
                        hexesInside INTEGER NOT NULL, links INTEGER NOT NULL, deletedAt INTEGER NOT NULL, lived INTEGER NOT NULL,
                        content BLOB NOT NULL
                    ) STRICT;
                    CREATE INDEX binLived ON bin (lived);
                    INSERT INTO bin SELECT 1, \(ids[8]), \(ids[1]), 'b', 2, 3, 77, 88, CAST('\(Self.binned)' AS BLOB);
                    INSERT INTO bin SELECT 2, \(ids[9]), 999, '', 0, 0, 78, 89, CAST('damaged' AS BLOB);
                    DELETE FROM grdb_migrations WHERE CAST(identifier AS INTEGER) >= 30;
                    PRAGMA user_version = 29;
                    """)
        }
        try old.close()
        let store = try HexStore(path: path)
        defer { try? store.close() }
        #expect(try store.readSync { try $0.hexes(ids).map(\.content.texts) } == before)
        #expect(try rowsShowTheNodes(store))
        let keys = try store.readSync { reader in
            try reader.all("SELECT node.placeClock >> 16 FROM hex JOIN node ON node.hex = hex.id WHERE hex.id = ?", ids[1]) { $0.int64(0) }
        }
        #expect(keys == [start + day])
        try await store.editMine(ids[1], MineEdit(description: "later"), at: start)
        #expect(try rowsShowTheNodes(store))

        // The bin is now the trash. Its hexes can be restored, with their numbers.
        let trashed = try store.readSync { try $0.trashPage(limit: 9, before: nil) }.items
        #expect(trashed.map(\.hex) == [ids[8]] && trashed.map(\.subject) == ["b"] && trashed.map(\.deletedAt) == [77])
        #expect(trashed.map(\.hexesInside) == [2] && trashed.map(\.links) == [3] && trashed.map(\.container) == [ids[1]])
        #expect(try await store.restoreMine(ids[8], at: start) == ids[8])
        let hex = try #require(try store.readSync { try $0.hex(ids[8]) })
        #expect(hex.summary.parent == ids[1] && hex.content.texts.contains("https://b.example/1") && hex.content.children.count == 2)
        #expect(hex.content.links(of: 1).count == 1)
        #expect(try rowsShowTheNodes(store))
    }

    private static let binned = """
        {"top":{"senderUUID":"","senderName":"","description":"b","color":"red","extra":"{\\"tags\\":[\\"x\\"]}","links":[
        {"url":"https://b.example/1","description":"one","service":"Box","extra":""},
        {"url":"https://b.example/2","description":"","service":"Unknown","extra":"{\\"size\\":3}"}]},"children":[
        {"senderUUID":"","senderName":"","description":"c","color":"","extra":"","links":[]},
        {"parent":0,"senderUUID":"","senderName":"","description":"d","color":"","extra":"","links":[
        {"url":"https://b.example/3","description":"three","service":"","extra":""}]}]}
        """

    @Test("a deleted link is removed with age, and when the trash is emptied") func purge() async throws {
        let test = try TestStore()
        let id = try await test.store.addMine(content("a", links: 3), at: start)
        func urls() throws -> [String] { try test.read { try $0.all("SELECT url FROM node WHERE kind = 2 ORDER BY id") { $0.text(0) } } }
        try await test.store.editMine(id, MineEdit(links: [.init(from: 0), .init(from: 2)]), at: start)
        #expect(try urls() == ["https://example.com/0", "https://example.com/1", "https://example.com/2"])
        let gone = try #require(try test.read { try $0.first("SELECT max(lived) FROM node") { $0.int64(0) } })
        #expect(try test.write { try $0.maintain(at: gone + 60 * day - 1) }.linksPurged == 0)
        #expect(try test.write { try $0.maintain(at: gone + 60 * day) }.linksPurged == 1)
        #expect(try urls() == ["https://example.com/0", "https://example.com/2"])
        _ = try await test.store.change([id], .delete, at: start)
        #expect(try await test.store.emptyTrash() == (1, 0))
        #expect(try test.read { try $0.first("SELECT count(*) FROM node") { $0.int(0) } } == 0 && rowsShowTheNodes(test.store))
    }

    @Test("a restored backup writes with another replica number") func replica() async throws {
        let test = try TestStore()
        _ = try await test.store.addMine(content("a"), at: start)
        let (backup, restored) = (test.folder + "/backup", test.folder + "/restored")
        try await test.store.backUp(to: backup, files: [:], diskReserve: 0)
        _ = try StoreBackup.restore(backup, to: restored)
        let copy = try HexStore(path: restored)
        defer { try? copy.close() }
        let (old, new) = (try test.read { try ListRecord(on: $0) }, try copy.readSync { try ListRecord(on: $0) })
        #expect(old.id == new.id && old.replica != new.replica)
        let added = try await copy.addMine(content("b"), at: start)
        #expect(try copy.readSync { try $0.first("SELECT placeBy FROM node WHERE hex = ?", added) { $0.int64(0) } } == new.replicaRow)
    }

    @Test("after any changes the rows are those that the nodes show, also after a merge of all nodes", arguments: 0..<3)
    func random(seed: UInt64) async throws {
        let test = try TestStore()
        var random = SeededGenerator(seed: seed)
        for step in 0..<60 {
            let ids = try test.read { try $0.all("SELECT id FROM hex ORDER BY id") { $0.int64(0) } }
            let id = ids.randomElement(using: &random)
            let other = ids.randomElement(using: &random)
            let now = start + Int64(step)
            do {
                switch (Int.random(in: 0..<15, using: &random), id, other) {
                case (0...1, _, _), (_, nil, _):
                    _ = try await test.store.addMine(tree(&random), into: Bool.random(using: &random) ? id : nil, at: now)
                case (2, let id?, let other?): try await test.store.moveMine(id, into: other, at: now)
                case (3, let id?, _): try await test.store.moveMine(id, into: nil, at: now)
                case (11, let id?, let other?): try await test.store.moveMine(id, into: nil, beside: .before(other), at: now)
                case (12, let id?, let other?): try await test.store.moveMine(id, into: nil, beside: .after(other), at: now)
                case (4, let id?, _) where step % 3 == 0: _ = try await test.store.change([id], .delete, at: now)
                case (5, let id?, _): _ = try await test.store.saveMine([id], at: now)
                case (8, _, _):
                    let items = try test.read { try $0.trashPage(limit: 9, before: nil) }.items.map(\.number)
                    if let item = items.randomElement(using: &random) { _ = try await test.store.restoreMine(numbers: [item], at: now) }
                case (9, _, _):
                    let changes = try test.read { try $0.mineChanges(limit: 9, before: nil) }.items.filter(\.isUndoable).map(\.number)
                    let some = Set((0...1).compactMap { _ in changes.randomElement(using: &random) })
                    if !some.isEmpty { _ = try await test.store.undoMine(Array(some), at: now) }
                case (10, _, _) where step % 4 == 0: _ = try await test.store.emptyTrash()
                case (13...14, let id?, _):
                    let links = try #require(try test.read { try $0.mineLinkIDs(of: id) })
                    try await test.store.editMine(id, by: MineNodeEdit.random(of: links, using: &random), at: now)
                case (_, let id?, _):
                    let count = try #require(try test.read { try $0.hex(id) }).content.links.count
                    var links = (0..<count).shuffled(using: &random).dropLast(count / 3).map { MineEdit.Link(from: $0) }
                    links.append(MineEdit.Link(url: "https://new.example/\(step)", tags: ["x", "y"]))
                    if Bool.random(using: &random) { links.shuffle(using: &random) }
                    links[0].url = Bool.random(using: &random) ? "https://changed.example/\(step)" : links[0].url
                    links[0].linkDescription = "Changed"
                    links[0].tags = ["new"]
                    try await test.store.editMine(id, MineEdit(description: "Edited", tags: ["t"], links: links), at: now)
                }
            } catch let error as HexlistError where error.code == .badRequest {}
        }
        #expect(try rowsShowTheNodes(test.store) && test.countersAreRight())
    }
}

extension SQLListStorage {
    fileprivate func allRows() throws -> [ListNode.ID: ListRow] {
        Dictionary(uniqueKeysWithValues: try nodes().compactMap { node in try row(node.id).map { (node.id, $0) } })
    }
}

extension StoreReader {
    /// Returns the content of a hex without its inner hexes, from its nodes.
    fileprivate func content(of hex: ListRow, in storage: SQLListStorage) throws -> HexContent {
        var content = HexContent()
        func register(_ name: UTF8Text) -> [UInt8] { hex.node.registers[name]?.value.bytes ?? [] }
        content.hexDescription = content.add(bytes: hex.node.title?.value.bytes ?? [])
        content.hexColor = content.add(bytes: register(NodeRegisters.color))
        content.senderUUID = content.add(bytes: register(NodeRegisters.sender))
        content.senderName = content.add(bytes: register(NodeRegisters.senderName))
        content.extra = content.add(bytes: NodeRegisters.extra(of: hex.node.registers.mapValues(\.value)))
        let links = try SQLStatement(
            """
            SELECT url, title, service, registers FROM node WHERE \(storage.isShown(in: hex.node.id)) AND kind = 2 ORDER BY orderKey, uuid
            """, on: db)
        defer { links.reset() }
        try links.bind([hex.node.id.uuid])
        while try links.step() {
            let extra = links.withBytes(3) { NodeRegisters.extra(inColumn: $0) }
            content.links.append(
                LinkContent(
                    url: content.add(bytes: links.bytes(0)), linkDescription: content.add(bytes: links.bytes(1)),
                    service: content.add(bytes: links.bytes(2)), extra: content.add(bytes: extra)))
        }
        return content
    }
}
