import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// Changes of a member that the owner does not accept, because the list is read-only now.
@Suite(.timeLimit(.minutes(5))) struct SharingRejectionTests: SharingScenario {
    @Test("a copy has only the changed links, inside copies of the hexes around them") func copy() async throws {
        let (ada, bob, hex) = try await shared()
        let inner = try await ada.store.addMine(content("Chapter", links: 2), into: hex, at: start + 3)
        try await bob.request(from: ada, at: start + 3)
        let chapter = try #require(
            try bob.test.read { try $0.first("SELECT id FROM hex WHERE location = 'inside'") { $0.int64(0) } })
        _ = try await bob.store.editMine(chapter, MineEdit(links: [.init(from: 0), .init(from: 1), link("c")]), at: start + 4)
        try await add("d", by: bob)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 5)
        let changes = try await bob.request(from: ada, at: start + 6)
        guard case .becameReadOnly = changes.first, case .rejected(_, let count, let copy) = changes.last else {
            throw Person.Failure.noOffer
        }
        #expect(count == 2)
        #expect(try copy == bob.hex("Reading (not accepted)"))
        #expect(try rejected(bob) == ["Reading (not accepted) https://d.example/ [Chapter]"])
        let links = try #require(try copy.flatMap { copy in try bob.test.read { try $0.hex(copy) } }).content
        #expect(links.children(of: nil).first.map { links.subtree($0).links.count } == 1)
        try await bob.request(from: ada, at: start + 7)
        #expect(try bob.hexes.last == ada.hexes.last)
        #expect(try bob.isConsistent() && ada.isConsistent())
        _ = inner
    }

    @Test("a change of the title alone is kept, and the hex has the owner's title again") func title() async throws {
        let (ada, bob, hex) = try await shared()
        try await bob.store.editMine(try bob.hex("Reading"), MineEdit(description: "Bob's"), at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await exchange((bob, ada), at: 5)
        #expect(try bob.hexes == ["Bob's (not accepted)", "Reading https://a.example/ https://b.example/"])
        let digests = try [ada, bob].map { person in
            try person.test.read { try $0.first("SELECT digest FROM list WHERE id <> 1") { $0.int64(0) } }
        }
        #expect(digests[0] == digests[1])
    }

    @Test("deletions alone leave no copy, but are reported, and undone") func deletion() async throws {
        let (ada, bob, hex) = try await shared()
        try await bob.store.editMine(try bob.hex("Reading"), MineEdit(links: [.init(from: 0)]), at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        let changes = try await bob.request(from: ada, at: start + 5)
        guard case .rejected(_, rows: 1, copy: nil) = changes.last else { throw Person.Failure.noOffer }
        try await exchange((bob, ada), at: 5)
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/"])
    }

    @Test("a change that the owner has received is not rejected, also if another machine of the owner makes the hex read-only")
    func accepted() async throws {
        let (ada, bob, hex) = try await shared()
        let desktop = try Person(4)
        try await pair(ada, desktop)
        try await exchange((ada, desktop), at: 3)
        try desktop.trust(bob)
        try bob.trust(desktop)
        try await join(bob, desktop)
        try await add("c", by: bob)
        try await ada.request(from: bob, at: start + 4)
        try await ada.request(from: bob, at: start + 4)
        try await desktop.request(from: ada, at: start + 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        try await desktop.request(from: ada, at: start + 6)
        let changes = try await bob.request(from: desktop, at: start + 7)
        guard changes.count == 1, case .becameReadOnly = changes.first else {
            Issue.record("\(changes)")
            return
        }
        #expect(try rejected(bob).isEmpty)
    }

    @Test("an own machine that is never there does not make changes appear unaccepted") func idleMachine() async throws {
        let (ada, bob, hex) = try await shared()
        let (laptop, phone) = (try Person(5), try Person(6))
        try await pair(bob, laptop)
        try await pair(bob, phone)
        try await exchange((bob, laptop), at: 3)
        try ada.trust(laptop)
        try laptop.trust(ada)
        _ = try await ada.store.shareMine(hex, with: [laptop.peer.id: .write], at: start + 3)
        try await add("c", by: laptop)
        try await exchange((ada, laptop), at: 4)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read, laptop.peer.id: .read], at: start + 5)
        try await bob.request(from: ada, at: start + 6)
        try await exchange((bob, laptop), (laptop, ada), (bob, ada), at: 7)
        #expect(try rejected(bob).isEmpty && rejected(laptop).isEmpty)
        #expect(try bob.hexes == laptop.hexes && bob.hexes.last == ada.hexes.last)
    }

    @Test("the changes of two machines are in one copy") func twoMachines() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(5)
        try await pair(bob, laptop)
        try await exchange((bob, laptop), at: 3)
        try ada.trust(laptop)
        try laptop.trust(ada)
        _ = try await ada.store.shareMine(hex, with: [laptop.peer.id: .write], at: start + 3)
        try await add("c", by: bob)
        try await add("d", by: laptop)
        try await exchange((bob, laptop), at: 4)
        // Both hear of the access before they exchange the entry, at the same time of the owner's clock if one person has both machines.
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read, laptop.peer.id: .read], at: start + 5)
        try await bob.request(from: ada, at: start + 6)
        try await laptop.request(from: ada, at: start + 6)
        try await exchange((bob, laptop), (laptop, ada), (bob, ada), at: 7)
        let links = try rejected(bob).joined()
        #expect(links.contains("https://c.") && links.contains("https://d."))
        #expect(try bob.hexes == laptop.hexes && bob.hexes.last == ada.hexes.last)
        #expect(try bob.isConsistent() && laptop.isConsistent())
    }

    @Test("a hex with more links than one hex may have does not end the exchange of My Hexlist") func large() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(bob)
        let (laptop, carol) = (try Person(5), try Person(3))
        try await pair(bob, laptop)
        try await exchange((bob, laptop), at: 3)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .write], at: start + 3)
        for _ in 0..<4 {
            try await send((0..<2_000).map { _ in node(.link, in: list, "x", version()) }, of: list, to: ada, from: carol)
        }
        try await bob.request(from: ada, at: start + 4)
        try await exchange((bob, laptop), at: 4)
        let link = try #require(
            try laptop.test.read { try $0.first("SELECT uuid FROM node WHERE list <> 1 AND kind = 2") { $0.nodeID(0) } ?? nil })
        try laptop.test.write { writer in
            try writer.changeMine(at: start + 5, in: try #require(try ListRecord(list, on: writer)).row) { mine in
                try mine.nodes.setTitle(of: link, to: "changed")
            }
        }
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        try await exchange((bob, ada), (bob, laptop), at: 7)
        #expect(try rejected(laptop).count == 1 && rejected(bob) == rejected(laptop))
        _ = hex
    }

    @Test("an older access in the entry, from a machine that was away, does not replace a newer one") func olderAccess() async throws {
        let (ada, bob, hex) = try await shared(.read)
        let laptop = try Person(5)
        try await pair(bob, laptop)
        try await exchange((bob, laptop), at: 3)
        let list = try list(bob)
        // The laptop learns of the older access later, so its register has the greater version.
        _ = try await bob.store.applyOverview(overview(list, .read, at: 20), from: ada.peer.id, at: start + 30)
        _ = try await laptop.store.editMine(
            try await laptop.store.addMine(content("x", links: 0), at: start + 40), MineEdit(), at: start + 41)
        let entry = try #require(try laptop.test.read { try $0.sharedListEntries() }.first).node.id
        _ = try laptop.test.write { writer in
            try writer.changeMine(at: start + 50) { mine in
                let old = SharedListEntry.accessValue(.ended, at: HybridClock.time(milliseconds: start + 15))
                try mine.nodes.setRegister(SharedListEntry.access, of: entry, to: old)
                _ = mine.nodes.takeChanges()
            }
        }
        try await exchange((bob, laptop), at: 60)
        #expect(try bob.test.read { try $0.sharedHexes() }.first?.access == .read)
        _ = hex
    }

    @Test("a newer time of the same access counts, so an older answer of another machine has no effect") func equalAccess() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        #expect(try await bob.store.applyOverview(overview(list, .write, at: 30), from: ada.peer.id, at: start + 31).isEmpty)
        #expect(try await bob.store.applyOverview(overview(list, .read, at: 20), from: ada.peer.id, at: start + 32).isEmpty)
        #expect(try bob.test.read { try $0.sharedHexes() }.first?.access == .write)
    }

    @Test("after write, none and read, the rejected changes are reported") func writeNoneRead() async throws {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 4)
        try await bob.request(from: ada, at: start + 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        guard case .rejected(_, rows: 1, copy: .some) = try await bob.request(from: ada, at: start + 7).last else {
            Issue.record("not reported")
            return
        }
    }

    @Test("repeated changes of the access leave one copy of a change") func flood() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        try await add("c", by: bob)
        for round in 0..<6 as Range<Int64> {
            let overview = overview(list, round.isMultiple(of: 2) ? .read : .write, at: 10 + round)
            _ = try await bob.store.applyOverview(overview, from: ada.peer.id, at: start + 20)
            try await bob.pages(of: list, from: ada, at: start + 20)
        }
        #expect(try rejected(bob) == ["Reading (not accepted) https://c.example/"])
    }
}
