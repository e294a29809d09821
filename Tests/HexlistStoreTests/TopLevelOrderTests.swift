import GRDB
import HexlistLists
import HexlistModel
import Testing

@testable import HexlistStore

/// The order of the top level of My Hexlist.
@Suite(.timeLimit(.minutes(5))) struct TopLevelOrderTests {
    private static let mine = HexFilter(location: .mine)

    /// Adds hexes to the top level, the first one first.
    private func add(_ count: Int, to test: TestStore, links: Int = 1) async throws -> [Int64] {
        var ids: [Int64] = []
        for index in 0..<count { ids.append(try await test.store.addMine(content("\(index)", links: links), at: start + Int64(index))) }
        return ids
    }

    private func listed(_ test: TestStore) throws -> [Int64] {
        try test.read { try $0.hexPage(Self.mine, limit: 1_000) }.items.map(\.id)
    }

    @Test("a hex is moved before or after another one; new hexes are the first") func moves() async throws {
        let test = try TestStore()
        let ids = try await add(4, to: test)
        let (a, b, c, d) = (ids[0], ids[1], ids[2], ids[3])
        #expect(try listed(test) == [d, c, b, a])
        try await test.store.moveMine(a, into: nil, beside: .before(d), at: start)
        #expect(try listed(test) == [a, d, c, b])
        try await test.store.moveMine(d, into: nil, beside: .after(b), at: start)
        #expect(try listed(test) == [a, c, b, d])
        let e = try await test.store.addMine(content("e"), at: start)
        #expect(try listed(test) == [e, a, c, b, d])
        // Into a hex, and out again to a position.
        try await test.store.moveMine(c, into: a, at: start)
        try await test.store.moveMine(b, into: nil, beside: .before(c), at: start)  // beside c, which is in a
        #expect(try listed(test) == [e, a, d])
        #expect(try test.read { try $0.hex(b) }?.summary.parent == a)
        try await test.store.moveMine(c, into: nil, beside: .after(e), at: start)
        #expect(try listed(test) == [e, c, a, d])
        try await test.store.moveMine(b, into: nil, at: start)  // before the next older one
        #expect(try listed(test) == [e, c, b, a, d])
        await refused("Hex \(a) cannot be moved after itself.") {
            try await test.store.moveMine(a, into: nil, beside: .after(a), at: start)
        }
        #expect(try listed(test) == [e, c, b, a, d] && test.countersAreRight())
    }

    @Test("an undo restores the place, and so does the trash") func places() async throws {
        let test = try TestStore()
        let ids = try await add(5, to: test)
        try await test.store.moveMine(ids[0], into: nil, beside: .before(ids[3]), at: start)
        let order = [ids[4], ids[0], ids[3], ids[2], ids[1]]
        #expect(try listed(test) == order)
        try await test.store.moveMine(ids[3], into: nil, beside: .after(ids[1]), at: start)
        try await test.store.moveMine(ids[2], into: ids[4], at: start)
        let changes = try test.read { try $0.mineChanges(limit: 2, before: nil) }.items
        #expect(changes.map(\.hexes.moved) == [1, 1])
        _ = try await test.store.undoMine(changes.map(\.number), at: start)
        #expect(try listed(test) == order)
        _ = try await test.store.change([ids[0], ids[2]], .delete, at: start)
        #expect(try listed(test) == [ids[4], ids[3], ids[1]])
        #expect(try await test.store.restoreMine(ids[2], at: start) == ids[2])
        #expect(try await test.store.restoreMine(ids[0], at: start) == ids[0])
        #expect(try listed(test) == order)
        _ = try await test.store.change([ids[3]], .delete, at: start)
        _ = try await test.store.undoMine([test.read { try $0.mineChanges(limit: 1, before: nil) }.items[0].number], at: start)
        #expect(try listed(test) == order)
    }

    /// Reads all pages of hexes, and changes the list after the first one.
    private func pages(_ test: TestStore, limit: Int, then change: () async throws -> Void = {}) async throws -> [Int64] {
        var (ids, after): ([Int64], HexCursor?) = ([], nil)
        repeat {
            let page = try test.read { [after] in try $0.hexPage(Self.mine, limit: limit, after: after) }
            if after == nil { try await change() }
            ids += page.items.map(\.id)
            // The local API passes the cursor as text.
            after = page.next.flatMap { HexCursor("\($0)") }
            #expect(after == page.next)
        } while after != nil
        return ids
    }

    @Test("pages continue at the same place if the last hex of a page is moved or deleted") func cursors() async throws {
        let test = try TestStore()
        let ids = try await add(9, to: test)
        try await test.store.moveMine(ids[2], into: nil, beside: .before(ids[8]), at: start)
        let order = [ids[2], ids[8], ids[7], ids[6], ids[5], ids[4], ids[3], ids[1], ids[0]]
        for limit in [1, 2, 3, 100] { #expect(try await pages(test, limit: limit) == order) }
        #expect(
            try await pages(test, limit: 3) { try await test.store.moveMine(ids[7], into: nil, beside: .after(ids[0]), at: start) } == order
                + [ids[7]])
        let undo = try test.read { try $0.mineChanges(limit: 1, before: nil) }.items[0].number
        _ = try await test.store.undoMine([undo], at: start)
        #expect(try await pages(test, limit: 3) { _ = try await test.store.change([ids[7]], .delete, at: start) } == order)
        _ = try await test.store.restoreMine(ids[7], at: start)
        #expect(try await pages(test, limit: 3) { _ = try await test.store.addMine(content("new"), at: start) } == order)

        // The id of a hex alone, as cursors were before: the hexes after it, also after it was deleted.
        func after(_ id: Int64) throws -> [Int64] {
            try test.read { try $0.hexPage(Self.mine, after: HexCursor(number: id)) }.items.map(\.id)
        }
        #expect(try after(ids[2]) == Array(order.dropFirst()) && after(ids[7]) == Array(order.dropFirst(3)) && after(ids[0]) == [])
        _ = try await test.store.change([ids[2], ids[7]], .delete, at: start)
        #expect(try after(ids[7]) == Array(order.dropFirst(3)) && after(ids[2]) == [ids[8]] + order.dropFirst(3))
        _ = try await test.store.emptyTrash()
        #expect(try after(ids[7]) == Array(order.dropFirst(3)) && after(0) == [] && after(.max) == listed(test))
        try await test.store.moveMine(ids[5], into: ids[0], at: start)
        #expect(try after(ids[5]) == [ids[4], ids[3], ids[1], ids[0]])
        for text in ["", "-", "1-", "1-0", "1-0g", "-1", "1-AB", "x", "1-00-00", "1-" + String(repeating: "00", count: 129)] {
            #expect(HexCursor(text) == nil, "\(text)")
        }
    }

    @Test("links, changes and exports follow the order too") func others() async throws {
        let test = try TestStore()
        let ids = try await add(3, to: test, links: 2)
        try await test.store.moveMine(ids[0], into: nil, beside: .before(ids[2]), at: start)
        let order = [ids[0], ids[2], ids[1]]
        for limit in 1...3 {
            var (links, after): ([LinkPosition], HexCursor?) = ([], nil)
            repeat {
                let page = try test.read { [after] in try $0.linkPage(Self.mine, unique: false, limit: limit, after: after) }
                links += page.items.map { LinkPosition(hex: $0.id, position: $0.position) }
                after = page.next
            } while after != nil
            #expect(links == order.flatMap { hex in (0..<2).map { LinkPosition(hex: hex, position: $0) } })
        }
        // A number alone, as cursors of links were before.
        let second = try test.read { try $0.linkPage(Self.mine, unique: false, limit: 3) }
        let number = try #require(second.next?.number)
        let rest = try test.read { try $0.linkPage(Self.mine, unique: false, after: HexCursor(number: number)) }.items
        #expect(rest.map(\.id) == [ids[2], ids[1], ids[1]])
        #expect(try test.read { try $0.hexIDs(.list(Self.mine)) }.items == order)
        #expect(try await test.store.change(.list(Self.mine), .delete, at: start) == 3)
        #expect(try listed(test).isEmpty)
    }

    // MARK: - Migration

    /// Returns the path of a copy of a store with the schema before migration 31.
    private func older(_ test: TestStore, _ name: String, _ change: String = "") throws -> String {
        let path = test.folder + "/\(name)"
        try test.store.onWritingConnection { try $0.execute(sql: "VACUUM INTO '\(path)'") }
        let old = try DatabaseQueue(path: path)
        try old.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    DROP TABLE offerList; DROP INDEX nodeOffer;
                    DROP INDEX nodeContents; CREATE INDEX nodeContents ON node (container, orderKey) WHERE state <> 1;
                    DROP INDEX nodeAdded; ALTER TABLE node DROP COLUMN addedClock; ALTER TABLE node DROP COLUMN addedBy; DROP TABLE listSeen;
                    ALTER TABLE list DROP COLUMN seen; ALTER TABLE list DROP COLUMN seenClock; ALTER TABLE replica DROP COLUMN isOwn;
                    DROP TABLE listPeer; DROP TABLE listOffer; DROP INDEX nodeUnconfirmed; ALTER TABLE node DROP COLUMN isUnconfirmed;
                    DROP INDEX nodeTrashBytes; DROP INDEX nodeTree; DROP INDEX nodeEntries; DROP INDEX nodeUUID;
                    DROP INDEX nodeChanged; DROP INDEX mineChangeList; ALTER TABLE node DROP COLUMN list; ALTER TABLE mineChange DROP COLUMN list;
                    CREATE UNIQUE INDEX nodeUUID ON node (uuid); ALTER TABLE list DROP COLUMN entry; ALTER TABLE list DROP COLUMN isOwned;
                    ALTER TABLE list DROP COLUMN access; ALTER TABLE list DROP COLUMN epoch; ALTER TABLE list DROP COLUMN textBytes; ALTER TABLE list DROP COLUMN accessAt; ALTER TABLE list DROP COLUMN exchangedAt; ALTER TABLE list DROP COLUMN replicas;
                    DROP INDEX listUnusedReplica; ALTER TABLE list DROP COLUMN rejected; ALTER TABLE list DROP COLUMN hasUsedReplica;
                    CREATE INDEX nodeTrashBytes ON node (trashNumber, trashBytes) WHERE trashNumber IS NOT NULL;
                    DROP TABLE ownMachine; DROP TABLE listCursor; DROP TABLE joining; DROP TABLE joinNode;
                    DROP INDEX nodeUnshown;
                    ALTER TABLE node DROP COLUMN seq; ALTER TABLE node DROP COLUMN via;
                    ALTER TABLE list DROP COLUMN seq; ALTER TABLE list DROP COLUMN digest; ALTER TABLE list DROP COLUMN isReplicated;
                    ALTER TABLE list DROP COLUMN outdatedAt;
                    ALTER TABLE mineChange DROP COLUMN author;
                    DROP INDEX hexOrder; ALTER TABLE hex DROP COLUMN orderKey;
                    DROP INDEX nodeTrash; DROP INDEX nodeTrashedWith; ALTER TABLE node DROP COLUMN trashedWith;
                    CREATE INDEX nodeTrash ON node (trashNumber) WHERE trashNumber IS NOT NULL AND goneWith IS NULL;
                    \(change);
                    DELETE FROM grdb_migrations WHERE CAST(identifier AS INTEGER) >= 31; PRAGMA user_version = 30;
                    """)
        }
        try old.close()
        return path
    }

    private struct NodeValues: Equatable {
        var hex: Int64
        var key: [UInt8]
        var clock: Int64
        var titleClock: Int64
        var goneClock: Int64?
    }

    private func nodes(_ store: HexStore) throws -> [NodeValues] {
        try store.readSync { reader in
            try reader.all(
                "SELECT hex, orderKey, placeClock, coalesce(titleClock, placeClock), goneClock FROM node WHERE kind = 1 ORDER BY hex"
            ) {
                NodeValues(
                    hex: $0.int64(0), key: $0.bytes(1), clock: $0.int64(2), titleClock: $0.int64(3), goneClock: $0.optionalInt64(4))
            }
        }
    }

    @Test("an existing store keeps the order of its list, newest first, and deleted hexes their places") func migration() async throws {
        let test = try TestStore()
        let ids = try await add(12, to: test)
        _ = try await test.store.change([ids[3], ids[6], ids[7]], .delete, at: start)
        let unchanged = try nodes(test.store)
        do {
            let store = try HexStore(path: older(test, "right"))
            defer { try? store.close() }
            #expect(try nodes(store) == unchanged)
            #expect(try store.readSync { try $0.hexPage(Self.mine) }.items.map(\.id) == listed(test))
        }

        // Keys in another order: two shown hexes, one of them with the key of another, and two deleted hexes, as of the former bin.
        let change = """
            UPDATE node SET orderKey = (SELECT orderKey FROM node WHERE hex = \(ids[1])) WHERE hex = \(ids[9]);
            UPDATE node SET orderKey = x'0102030405060708' WHERE hex = \(ids[2]);
            UPDATE node SET orderKey = x'0002030405060708' WHERE hex = \(ids[6]);
            UPDATE node SET orderKey = x'0002030405060709' WHERE hex = \(ids[7])
            """
        let (one, other) = (try HexStore(path: older(test, "one", change)), try HexStore(path: older(test, "other", change)))
        defer {
            try? one.close()
            try? other.close()
        }
        let wanted = Array([ids[11], ids[10], ids[9], ids[8], ids[5], ids[4], ids[2], ids[1], ids[0]])
        for store in [one, other] { #expect(try store.readSync { try $0.hexPage(Self.mine) }.items.map(\.id) == wanted) }
        let now = try nodes(one)
        #expect(try nodes(other) == now)  // two copies of one store have the same keys
        let clock = try test.read { try ListRecord(on: $0).clock }
        for (before, after) in zip(unchanged, now) {
            let isChanged = [ids[9], ids[2], ids[6], ids[7]].contains(after.hex)
            // A changed value has a new version, so a merge takes it. The title keeps its version.
            #expect((after.clock > clock) == isChanged && after.titleClock == before.titleClock, "\(after)")
            #expect(isChanged || before == after, "\(after)")
            #expect((after.goneClock == nil) == (before.goneClock == nil) && (after.goneClock ?? .max) >= after.clock)
        }
        #expect(try one.readSync { try ListRecord(on: $0).clock } == now.map(\.clock).max())
        #expect(try one.readSync { try $0.trashPage(limit: 9, before: nil) }.items.map(\.hex) == [ids[7], ids[6], ids[3]])
        for id in [ids[7], ids[3], ids[6]] { #expect(try await one.restoreMine(id, at: start) == id) }
        #expect(try one.readSync { try $0.hexPage(Self.mine) }.items.map(\.id) == ids.reversed())
        try await one.moveMine(ids[0], into: nil, beside: .before(ids[11]), at: start)
        #expect(try one.readSync { try $0.hexPage(Self.mine) }.items.map(\.id) == [ids[0]] + ids.dropFirst().reversed())
    }
}

/// Expects that `body` throws a `HexlistError` with this message.
private func refused(_ message: String, _ body: () async throws -> Void) async {
    let error = await #expect(throws: HexlistError.self) { try await body() }
    #expect(error?.message == message)
}
