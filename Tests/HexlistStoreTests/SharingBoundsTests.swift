import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// The bounds of the pages and overviews of a hostile member or owner.
@Suite(.timeLimit(.minutes(5))) struct SharingBoundsTests: SharingScenario {
    @Test("replica numbers of a member do not fill the store for My Hexlist or other lists") func replicaNumbers() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        let nodes = (0..<160).map { row in
            var link = node(.link, in: list, "x", version())
            for number in 0..<60 {
                link.registers[UTF8Text("r\(number)")] = ListNode.Register(
                    version: version(9, UInt64(1_000 + row * 60 + number)), value: "x")
            }
            return link
        }
        await #expect(throws: ListFault.full) { try await send(nodes, of: list, to: ada, from: bob) }
        try await send(Array(nodes[..<6]), of: list, to: ada, from: bob)
        await #expect(throws: ListFault.full) { try await send(Array(nodes[6..<7]), of: list, to: ada, from: bob) }
        // A page without new numbers still arrives.
        var known = nodes[0]
        known.title = ListNode.Register(version: version(12, 1_000), value: "y")
        try await send([known], of: list, to: ada, from: bob)
        // The others are not affected.
        let laptop = try Person(4)
        try await pair(ada, laptop)
        for _ in 0..<2 { try await laptop.request(from: ada, at: start + 20) }
        #expect(try laptop.hexes == ada.hexes)
    }

    @Test("texts of present links cannot grow beyond the bound") func growth() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        let nodes = (0..<5).map { _ in node(.link, in: list, "x", version()) }
        try await send(nodes, of: list, to: ada, from: bob)
        try await ada.store.onWritingConnection {
            try $0.execute(sql: "UPDATE list SET textBytes = ? WHERE id <> 1", arguments: [ListLimits.sharedListTextBytes / 4 * 3 - 1_000])
        }
        func titled(_ bytes: Int, _ offset: Int64) -> ListNode {
            var link = ListNode(id: nodes[0].id)
            link.title = ListNode.Register(version: version(offset), value: UTF8Text(String(repeating: "x", count: bytes)))
            return link
        }
        await #expect(throws: ListFault.full) { try await send([titled(2_000, 20)], of: list, to: ada, from: bob) }
        try await send([titled(900, 20)], of: list, to: ada, from: bob)
        try await send([titled(10, 21)], of: list, to: ada, from: bob)
    }

    @Test("a page of a member is several transactions; the cursor moves with the last one") func transactions() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        func request() throws -> ListPageRequest { try ada.test.read { try $0.listPageRequest(of: list, from: bob.peer.id) } }
        let before = try request()
        let nodes = (0..<600).map { _ in node(.link, in: list, "x", version()) }
        // There is room for the rows of the first two transactions only.
        try await ada.addDeletedRows(74_700)
        let first = try await send(nodes, of: list, to: ada, from: bob)
        #expect(first.fault == .full && first.links.added == 200 && first.changes.count == 1)
        #expect(try request() == before)
        let stored = try ada.test.read { try $0.first("SELECT count(*) FROM node WHERE title = 'x'") { $0.int(0) } }
        #expect(stored == 200)
        try await ada.store.onWritingConnection { try $0.execute(sql: "DELETE FROM node WHERE list > 1 AND state = 1 AND title IS NULL") }
        let result = try await send(nodes, of: list, to: ada, from: bob)
        #expect(result.fault == nil && result.links.added == 400 && result.changes.count == 1 && result.changedRows)
        #expect(try request().cursor == ListCursor(replica: ReplicaNumber(7), sequence: 600))
        let last = try await send([], of: list, to: ada, from: bob)
        #expect(!last.changedRows && last.changes.isEmpty)
    }

    @Test("a page of a member is one change of the log, which is undone as a whole")
    func onePageInTheLog() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(ada)
        let inner = node(.hex, in: list, "Inner", version())
        var nodes = [inner] + (0..<150).map { node(.link, in: inner.id, "\($0)", version()) }
        nodes += (0..<150).map { node(.link, in: list, "\($0)", version()) }
        let before = try ada.test.read { try $0.mineChanges(limit: 9, before: nil).items.count }
        let result = try await send(nodes, of: list, to: ada, from: bob)
        let added = try ada.test.read { try $0.mineChanges(limit: 9, before: nil).items }
        #expect(added.count == before + 1 && added[0].hexes.added == 1 && added[0].links.added == 300)
        #expect(added[0].subject == "Inner" && added[0].others == 1 && result.changes == [added[0].number])
        #expect(result.hexes == added[0].hexes && result.links == added[0].links)

        for index in nodes.indices { nodes[index].deletion = DeletionMark(version: version(), with: index > 150 ? nil : inner.id) }
        nodes[0].deletion = DeletionMark(version: version())
        let deletion = try await send(nodes.reversed(), of: list, to: ada, from: bob)
        let deleted = try ada.test.read { try $0.mineChanges(limit: 1, before: nil).items[0] }
        #expect(deleted.hexes.deleted == 1 && deleted.links.deleted == 300 && deletion.changes == [deleted.number])
        #expect(deletion.hexes == deleted.hexes && deletion.links == deleted.links && deletion.linksBefore == 302)
        _ = try await ada.store.undoMine(deletion.changes, at: start + 10)
        _ = try await ada.store.undoMine(result.changes, at: start + 11)
        #expect(try ada.hex("Reading") == hex && ada.isConsistent())
    }

    @Test("rows that the owner added count to the maximum") func localRows() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        try await ada.addDeletedRows(74_994)
        // A root and two links are there.
        try await send((0..<3).map { _ in node(.link, in: list, "x", version()) }, of: list, to: ada, from: bob)
        await #expect(throws: ListFault.full) { try await send([node(.link, in: list, "x", version())], of: list, to: ada, from: bob) }
    }

    @Test("all that a member changes can be undone, also while its first exchange does not end") func undo() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(ada)
        try await ada.store.onWritingConnection { try $0.execute(sql: "UPDATE listCursor SET isFirstExchangeOver = 0") }
        var root = ListNode(id: list)
        root.title = ListNode.Register(version: version(), value: "Hacked")
        let result = try await send([root], of: list, to: ada, from: bob)
        _ = try await ada.store.undoMine(result.changes, at: start + 10)
        #expect(try ada.hex("Reading") == hex)
    }

    @Test("after 65 MiB were deleted from shared hexes, items of My Hexlist are still in the trash") func trash() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        let mine = try await ada.store.addMine(content("Private", links: 1), at: start + 3)
        _ = try await ada.store.change([mine], .delete, at: start + 4)
        let text = String(repeating: "x", count: 60_000)
        var nodes = (0..<10).map { _ in node(.link, in: list, text, version()) }
        try await send(nodes, of: list, to: ada, from: bob)
        for index in nodes.indices { nodes[index].deletion = DeletionMark(version: version()) }
        try await send(nodes, of: list, to: ada, from: bob)
        _ = try ada.test.write { writer in
            writer.trashBytes = 100_000
            defer { writer.trashBytes = TrashedItem.maximumBytes }
            return try writer.change { try writer.purgeTrash(limit: 10_000) }
        }
        let items = try ada.test.read { try $0.trashPage(limit: 500, before: nil).items }
        #expect(items.contains { $0.hex == mine })
    }

    @Test("forgetting a peer does not show hexes again that were left") func forgetAfterLeaving() async throws {
        let (ada, bob, _) = try await shared()
        _ = try await bob.store.change([try bob.hex("Reading")], .delete, at: start + 3)
        let owner = ada.peer.id
        try bob.test.write { writer in try writer.change { try writer.removeFromSharedLists(owner) } }
        #expect(try bob.hexes.isEmpty && bob.test.read { try $0.sharedHexes() }.isEmpty)
        #expect(try bob.isConsistent())
    }

    @Test("rows that the owner lost with a rolled-back disk come back from a member with write access") func rollback() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        let link = try #require(
            try ada.test.read { try $0.first("SELECT uuid FROM node WHERE list <> 1 AND url LIKE '%b.example%'") { $0.nodeID(0) } ?? nil })
        try ada.test.write { writer in
            try writer.change {
                let record = try #require(try ListRecord(list, on: writer))
                let row = try #require(try SQLListStorage(record, on: writer).row(link))
                var digest = try #require(record.digest)
                digest.toggle(row.node, in: list)
                try writer.run("DELETE FROM node WHERE uuid = ?", link.uuid)
                try writer.run(
                    "UPDATE list SET digest = ?, seq = (SELECT max(seq) FROM node WHERE list <> 1) WHERE id <> 1",
                    Int64(bitPattern: digest.value))
            }
        }
        try await bob.store.repairList(list, with: ada.peer.id)
        for _ in 0..<2 {
            try await ada.request(from: bob, at: start + 5)
            try await bob.request(from: ada, at: start + 5)
        }
        let nodes = try ada.test.read { try $0.first("SELECT count(*) FROM node WHERE uuid = ?", link.uuid) { $0.int(0) } }
        #expect(nodes == 1)
        let digests = try [ada, bob].map { try $0.test.read { try $0.first("SELECT digest FROM list WHERE id <> 1") { $0.int64(0) } } }
        #expect(digests[0] == digests[1])
    }

    @Test("declined offers and lists that were left do not count to the offers of a peer") func declinedOffers() async throws {
        let (ada, bob) = (try Person(1), try Person(2))
        try bob.trust(ada)
        var random = SystemRandomNumberGenerator()
        var offers = ListOverview(now: start, isOwnMachine: false)
        for number in 0..<25 {
            let list = ListNode.ID(kind: .hex, time: start, using: &random)
            offers.lists += overview(list, .read, title: "\(number)").lists
        }
        #expect(try await bob.store.applyOverview(offers, from: ada.peer.id, at: start).count == ListLimits.offersPerPeer)
        for offer in try bob.test.read({ try $0.listOffers() }) { try await bob.store.declineOffer(offer.number) }
        #expect(try await bob.store.applyOverview(offers, from: ada.peer.id, at: start).count == 5)
        #expect(try bob.test.read { try $0.listOffers() }.count { !$0.isDeclined } == 5)
        #expect(try await bob.store.applyOverview(offers, from: ada.peer.id, at: start).isEmpty)
    }

    @Test("an overview of a peer that is not trusted, or with times out of range, has no effect") func overviewRefused() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        var other = overview(list, .read)
        other.lists[0].accessAt = 0
        #expect(try await bob.store.applyOverview(other, from: ada.peer.id, at: start + 10).isEmpty)
        let late = start + ListLimits.clockAhead + 60_000
        #expect(try await bob.store.applyOverview(overview(list, .read), from: ada.peer.id, at: late).isEmpty)
        let stranger = try Person(9)
        #expect(try await bob.store.applyOverview(overview(list, .read), from: stranger.peer.id, at: start + 10).isEmpty)
        #expect(try bob.test.read { try $0.sharedHexes() }.first?.access == .write && bob.test.read { try $0.listOffers() }.isEmpty)
    }

    @Test("a page that was decoded for an own machine is not merged from another person") func decodedAsOwn() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        await #expect(throws: ListFault.outdated) {
            try await send([node(.link, in: list, "x", version())], of: list, to: ada, from: bob, as: .ownMachine)
        }
    }

    @Test("an entry with the maximum of registers still names its list") func manyMembers() async throws {
        let (ada, bob, hex) = try await shared()
        let entry = try #require(try ada.test.read { try $0.sharedListEntries() }.first).node.id
        let member = bob.peer.id
        try ada.test.write { writer in
            try writer.changeMine(at: start + 5) { mine in
                for number in 0..<300 as Range<UInt64> {
                    let peer = PeerID(UUIDBytes(high: 7, low: number))
                    try mine.nodes.setRegister(SharedListEntry.member(peer), of: entry, to: "none")
                }
                try mine.nodes.setRegister(SharedListEntry.member(member), of: entry, to: "write")
                _ = mine.nodes.takeChanges()
            }
        }
        #expect(try ada.test.read { try $0.sharedHex(hex) }?.peers.contains { $0.peer == member && $0.access == .write } == true)
    }

    @Test("a member that was added while another machine deleted the hex learns that the sharing has ended") func deletedEntry()
        async throws
    {
        let (ada, bob, hex) = try await shared()
        let entry = try #require(try ada.test.read { try $0.sharedListEntries() }.first).node.id
        // The deletion by a machine that did not know of the member.
        try ada.test.write { writer in
            try writer.changeMine(at: start + 5) { mine in
                try mine.nodes.delete(entry)
                _ = mine.nodes.takeChanges()
            }
        }
        let changes = try await bob.request(from: ada, at: start + 6)
        guard case .ended = changes.first else {
            Issue.record("\(changes)")
            return
        }
        #expect(try bob.test.read { try $0.sharedHexes() }.first?.access == .ended)
        _ = hex
    }
}
