import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

@Suite(.timeLimit(.minutes(5))) struct UnseenLinksTests: SharingScenario {
    private func sharing(_ person: Person) throws -> HexSharing {
        let hex = try person.hex("Reading")
        return try #require(try person.test.read { try $0.sharing(of: [hex])[hex] })
    }

    /// The number of new links in the hex "Reading". The list of shared hexes and the total have to be equal to it.
    private func new(_ person: Person) throws -> Int {
        let new = try sharing(person).new
        #expect(try person.test.read { try $0.sharedHexes() }.first?.new == new)
        #expect(try person.test.read { try $0.newLinkCount() } == new)
        return new
    }

    /// The URLs of the new links in a hex and in those inside.
    private func newLinks(_ person: Person, in title: String = "Reading") throws -> [String] {
        let hex = try person.test.read { reader in
            try #require(try reader.all("SELECT id FROM hex WHERE description = ?", title) { $0.int64(0) }.first)
        }
        return try person.test.read { reader in
            try reader.newLinks(in: #require(try reader.hex(hex))).map { position in
                let content = try #require(try reader.hex(position.hex)).content
                return String(decoding: content.bytes(content.links[position.position].url), as: UTF8.self)
            }.sorted()
        }
    }

    @discardableResult
    private func open(_ person: Person, through sequence: Int64? = nil, at offset: Int64 = 9) async throws -> Int {
        try await person.store.markSeen(try person.hex("Reading"), through: sequence, at: start + offset)
    }

    private func refuses(_ message: String, _ body: () async throws -> Void) async {
        await #expect { try await body() } throws: { ($0 as? HexlistError)?.message == message }
    }

    @Test("links that others add are new until the hex is opened; those of the user and those at joining are not") func course()
        async throws
    {
        let (ada, bob, hex) = try await shared()
        #expect(try new(ada) == 0 && new(bob) == 0 && newLinks(bob).isEmpty)
        try await add("c", by: bob)
        try await add("d", by: ada)
        try await exchange((ada, bob), at: 5)
        #expect(try new(ada) == 1 && newLinks(ada) == ["https://c.example/"])
        #expect(try new(bob) == 1 && newLinks(bob) == ["https://d.example/"])
        #expect(try await open(ada) == 1)
        #expect(try new(ada) == 0 && newLinks(ada).isEmpty && new(bob) == 1)
        let sequence = try ada.test.read { try ListRecord(on: $0).clock }
        #expect(try await open(ada) == 0)
        #expect(try ada.test.read { try ListRecord(on: $0).clock } == sequence)  // nothing was written
        // The log has no change, and neither has the hex for others.
        #expect(try ada.test.read { try $0.mineChanges(limit: 9, before: nil, hex: hex) }.items.map(\.author).first == bob.peer.id)
        #expect(try await bob.request(from: ada, at: start + 10).isEmpty)
        #expect(try ada.isConsistent() && bob.isConsistent())

        let inner = try await ada.store.addMine(content("Inner", links: 2), into: hex, at: start + 11)
        let other = try await ada.store.addMine(content("Other"), at: start + 11)
        try await bob.request(from: ada, at: start + 11)
        #expect(try new(bob) == 3 && newLinks(bob, in: "Inner") == ["https://example.com/0", "https://example.com/1"])
        #expect(try newLinks(bob).count == 3)
        await refuses("Hex \(inner) is inside the shared hex “Reading”.") { _ = try await ada.store.markSeen(inner, at: start + 12) }
        await refuses("Hex \(other) is not shared.") { _ = try await ada.store.markSeen(other, at: start + 12) }
        await refuses("There is no hex 999.") { _ = try await ada.store.markSeen(999, at: start + 12) }
        let around = try bob.test.read { reader in
            try reader.sharing(around: #require(try reader.all("SELECT id FROM hex WHERE description = 'Inner'") { $0.int64(0) }.first))
        }
        #expect(try around?.hex == bob.hex("Reading") && around?.sharing == sharing(bob) && around?.sharing.owner == ada.peer.id)
        // A deleted link is not new.
        _ = try await ada.store.change([inner], .delete, at: start + 13)
        try await bob.request(from: ada, at: start + 13)
        #expect(try new(bob) == 1)
    }

    @Test("links that arrive after the hex was read stay new, also those that were added before the hex was opened") func late()
        async throws
    {
        let (ada, bob, hex) = try await shared()
        let carol = try Person(3)
        try ada.trust(carol)
        try carol.trust(ada)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .write], at: start + 1)
        try await join(carol, ada)
        try await add("c", by: carol, at: 4)  // not sent yet
        try await add("d", by: bob, at: 5)
        try await ada.request(from: bob, at: start + 6)
        let sequence = try sharing(ada).sequence
        try await add("e", by: bob, at: 7)
        try await ada.request(from: bob, at: start + 8)
        #expect(try await open(ada, through: sequence) == 1)
        #expect(try newLinks(ada) == ["https://e.example/"])
        #expect(try await open(ada, through: .max, at: 100) == 1)
        try await ada.request(from: carol, at: start + 101)
        #expect(try newLinks(ada) == ["https://c.example/"])
        #expect(try await open(ada, at: 102) == 1)
        #expect(try new(ada) == 0)
    }

    @Test("moved, renamed and restored links are not new; a new link stays new when it is moved") func moves() async throws {
        let (ada, bob, hex) = try await shared()
        let copy = try bob.hex("Reading")
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 1), .init(from: 0, linkDescription: "A")]), at: start + 3)
        try await exchange((ada, bob), at: 4)
        #expect(try ada.hexes == ["Reading https://b.example/ https://a.example/"] && new(ada) == 0)
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 0)]), at: start + 5)
        let deletion = try #require(try bob.test.read { try $0.mineChanges(limit: 1, before: nil) }.items.first)
        _ = try await bob.store.undoMine([deletion.number], at: start + 6)
        try await exchange((ada, bob), at: 7)
        #expect(try ada.hexes == ["Reading https://b.example/ https://a.example/"] && new(ada) == 0)
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 0), .init(from: 1), link("c")]), at: start + 8)
        try await ada.request(from: bob, at: start + 9)
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 2), .init(from: 0), .init(from: 1)]), at: start + 10)
        try await ada.request(from: bob, at: start + 11)
        #expect(try newLinks(ada) == ["https://c.example/"])
        _ = try await ada.store.markSeen(hex, at: start + 12)
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 1), .init(from: 2), .init(from: 0)]), at: start + 13)
        try await ada.request(from: bob, at: start + 14)
        #expect(try new(ada) == 0)
    }

    @Test("all machines of a user agree; links that one of them added are not new on the others") func ownMachines() async throws {
        let (ada, bob, _) = try await shared()
        let (laptop, phone) = (try Person(4), try Person(5))
        try await pair(ada, laptop)
        try await pair(bob, phone)
        try await exchange((ada, laptop), (bob, phone), at: 3)
        #expect(try new(laptop) == 0 && new(phone) == 0)
        try await add("c", by: laptop, at: 4)
        try await add("d", by: phone, at: 5)
        try await exchange((ada, laptop), (bob, phone), (ada, bob), (ada, laptop), (bob, phone), at: 6)
        for person in [ada, laptop] { #expect(try newLinks(person) == ["https://d.example/"]) }
        for person in [bob, phone] { #expect(try newLinks(person) == ["https://c.example/"]) }
        try await open(laptop)
        try await open(bob)
        try await exchange((ada, laptop), (bob, phone), (ada, bob), at: 10)
        for person in [ada, laptop, bob, phone] { #expect(try new(person) == 0 && person.isConsistent()) }
        #expect(try digest(ada) == digest(bob))
        // Another number of the same machine.
        try await laptop.store.renewReplicas()
        try await add("e", by: laptop, at: 11)
        try await exchange((ada, laptop), (ada, bob), (bob, phone), at: 12)
        #expect(try new(ada) == 0 && new(laptop) == 0 && newLinks(phone) == ["https://e.example/"])
    }

    @Test("opening the hex on one machine does not bring it back that another one deleted") func openAndDelete() async throws {
        let (ada, bob, _) = try await shared()
        let phone = try Person(5)
        try await pair(bob, phone)
        try await exchange((bob, phone), at: 3)
        try await add("c", by: ada, at: 4)
        try await phone.request(from: bob, at: start + 5)
        try await bob.request(from: ada, at: start + 5)
        _ = try await phone.store.change([try phone.hex("Reading")], .delete, at: start + 6)
        #expect(try await open(bob, at: 7) == 1)
        try await exchange((bob, phone), at: 8)
        #expect(try bob.hexes.isEmpty && phone.hexes.isEmpty)
        #expect(try bob.isConsistent() && phone.isConsistent())
    }

    @Test("renewing counts as seeing for the owner, and joining the new list for members") func renewal() async throws {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob)
        try await add("d", by: ada)
        try await exchange((ada, bob), at: 4)
        #expect(try new(ada) == 1 && new(bob) == 1)
        _ = try await ada.store.renewShared(hex, at: start + 5)
        #expect(try new(ada) == 0)
        let offers = try await bob.request(from: ada, at: start + 6).compactMap { change -> ListOffer? in
            guard case .offered(let offer) = change else { return nil }
            return offer
        }
        _ = try await bob.store.change([try bob.hex("Reading")], .delete, at: start + 7)
        _ = try await bob.store.joinOffer(try #require(offers.first).number, at: start + 8)
        try await exchange((ada, bob), at: 9)
        #expect(try bob.hexes == ada.hexes && new(bob) == 0)
        try await add("e", by: ada, at: 10)
        try await bob.request(from: ada, at: start + 11)
        #expect(try newLinks(bob) == ["https://e.example/"])
    }

    @Test("the number is bounded, and a list from before this version has no new links until it is opened") func bounds() async throws {
        let (ada, bob, _) = try await shared()
        let copy = try bob.hex("Reading")
        _ = try await bob.store.addMine(content("Many", links: HexSharing.maximumNew + 1), into: copy, at: start + 3)
        try await exchange((ada, bob), at: 4)
        #expect(try new(ada) == HexSharing.maximumNew && newLinks(ada).count == HexSharing.maximumNew + 1)
        try await ada.store.onWritingConnection {
            try $0.execute(sql: "UPDATE list SET seen = '', seenClock = NULL; DELETE FROM listSeen")
        }
        #expect(try new(ada) == 0)
        try await open(ada)
        try await add("c", by: bob, at: 10)
        try await ada.request(from: bob, at: start + 11)
        #expect(try new(ada) == 1)
    }

    @Test(
        "the register with the seen links",
        arguments: [
            ("0", true), ("7 00000000000000aa:12", true), ("9223372036854775807 00000000000000aa:1 ffffffffffffffff:2", true),
            ("", false), ("x", false), ("-1", false), ("7 aa:12", false), ("7 00000000000000aa", false), ("7 00000000000000aa:x", false),
            ("7 00000000000000aa:1:2", false),
        ]) func register(text: String, isValid: Bool)
    {
        let seen = SeenLinks(UTF8Text(text))
        #expect((seen != nil) == isValid)
        #expect(seen.map { SeenLinks($0.value) == $0 } ?? true)
    }

    @Test("the register has at most 1 000 replicas, those with the latest links") func manyReplicas() throws {
        var seen = SeenLinks(base: 1)
        for number in 0..<1_200 { seen.clocks[ReplicaNumber(UInt64(number))] = Int64(number) }
        let value = seen.value
        #expect(value.count < ListLimits.textBytes)
        #expect(try #require(SeenLinks(value)).clocks.values.sorted() == Array(200..<1_200))
    }
}

/// A hex that is shared again with a former member.
@Suite(.timeLimit(.minutes(5))) struct SharingAgainTests: SharingScenario {
    private func kinds(_ changes: [SharingChange]) -> [String] {
        changes.map { change in
            switch change {
            case .offered(let offer): "offered \(offer.title) \(offer.access)"
            case .ended(let hex): "ended \(hex.subject)"
            case .resumed(let hex): "resumed \(hex.subject) \(hex.access)"
            case .becameReadOnly(let hex): "read-only \(hex.subject)"
            case .rejected(let hex, _, _): "rejected \(hex.subject)"
            case .member(let hex, let state): "\(state) \(hex.subject)"
            }
        }
    }

    @Test("a member that has the hex goes on with it, and is told", arguments: [ListOverview.Access.read, .write])
    func resumed(access: ListOverview.Access) async throws {
        let (ada, bob, hex) = try await shared()
        let copy = try bob.hex("Reading")
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 3)
        #expect(kinds(try await bob.request(from: ada, at: start + 4)) == ["ended Reading"])
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: access], at: start + 5)
        #expect(kinds(try await bob.request(from: ada, at: start + 6)) == ["resumed Reading \(access)"])
        #expect(try await bob.request(from: ada, at: start + 7).isEmpty)
        #expect(try bob.hex("Reading") == copy && bob.test.read { try $0.listOffers() }.isEmpty)
        let member = try #require(try ada.test.read { try $0.sharedHex(hex) }?.peers.first)
        #expect(member.state == .joined && member.access == access)
    }

    @Test(
        "a member that has deleted the hex gets a new offer, whether it did so before or after the sharing ended", arguments: [true, false])
    func deleted(isFirst: Bool) async throws {
        let (ada, bob, hex) = try await shared()
        let delete = { _ = try await bob.store.change([try bob.hex("Reading")], .delete, at: start + 3) }
        if isFirst {
            try await delete()
            try await ada.request(from: bob, at: start + 3)
            #expect(kinds(try await bob.request(from: ada, at: start + 3)) == [])
            #expect(try bob.test.read { try $0.listOffers() }.map(\.isDeclined) == [true])
        }
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 4)
        #expect(kinds(try await bob.request(from: ada, at: start + 5)) == (isFirst ? [] : ["ended Reading"]))
        if !isFirst { try await delete() }
        #expect(kinds(try await bob.request(from: ada, at: start + 5)) == [])
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 6)
        #expect(kinds(try await bob.request(from: ada, at: start + 7)) == ["offered Reading write"])
        #expect(kinds(try await bob.request(from: ada, at: start + 8)) == [])
        let offer = try #require(try bob.test.read { try $0.listOffers() }.first)
        #expect(!offer.isDeclined)
        _ = try await bob.store.joinOffer(offer.number, at: start + 9)
        try await exchange((ada, bob), at: 10)
        #expect(try bob.hexes == ada.hexes && bob.isConsistent())
        #expect(try ada.test.read { try $0.sharedHex(hex) }?.peers.first?.state == .joined)
        try await add("c", by: bob, at: 11)
        try await exchange((ada, bob), at: 12)
        #expect(try ada.hexes == ["Reading https://a.example/ https://b.example/ https://c.example/"])
    }

    @Test("a declined offer comes again only after the sharing has ended") func declined() async throws {
        let (ada, bob) = (try SharingPerson(1), try SharingPerson(2))
        try ada.trust(bob)
        try bob.trust(ada)
        let hex = try await ada.store.addMine(content("Reading"), at: start)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 1)
        #expect(kinds(try await bob.request(from: ada, at: start + 1)) == ["offered Reading read"])
        _ = try await bob.store.declineOffer(try #require(try bob.test.read { try $0.listOffers() }.first).number)
        // A change of the access is no new offer.
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 2)
        #expect(kinds(try await bob.request(from: ada, at: start + 2)) == [])
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 3)
        #expect(kinds(try await bob.request(from: ada, at: start + 3)) == [])
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        #expect(kinds(try await bob.request(from: ada, at: start + 4)) == ["offered Reading read"])
        #expect(kinds(try await bob.request(from: ada, at: start + 5)) == [])
    }

    @Test("another peer cannot make a hex that the user has left an offer again") func otherPeer() async throws {
        let (ada, bob, hex) = try await shared()
        let mallory = try SharingPerson(3)
        try bob.trust(mallory)
        _ = try await bob.store.change([try bob.hex("Reading")], .delete, at: start + 3)
        try await bob.request(from: ada, at: start + 3)
        let list = try #require(try ada.test.read { try $0.sharedHex(hex) }).list
        var entry = ListOverview.Entry(
            list: list, role: .shared, access: .ended, replica: ReplicaNumber(7), sequence: 0, digest: ListDigest())
        entry.accessAt = (start + 4) << 16
        var overview = ListOverview(now: start + 4, isOwnMachine: false)
        overview.lists = [entry]
        #expect(try await bob.store.applyOverview(overview, from: mallory.peer.id, at: start + 4).isEmpty)
        #expect(kinds(try await bob.request(from: ada, at: start + 5)) == [])
        #expect(try bob.test.read { try $0.listOffers() }.map(\.isDeclined) == [true])
    }
}
