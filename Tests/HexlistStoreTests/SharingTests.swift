import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

@Suite(.timeLimit(.minutes(5))) struct SharingTests: SharingScenario {
    /// Ada has the hex Reading, with an inner hex, and shares it with Bob, who has joined.
    private func sharedWithInnerHex(_ access: ListOverview.Access = .write) async throws -> (ada: Person, bob: Person, hex: Int64) {
        let (ada, bob) = (try Person(1), try Person(2))
        try ada.trust(bob)
        try bob.trust(ada)
        let hex = try await ada.store.addMine(content("Reading", links: 0), at: start)
        try await ada.store.editMine(hex, MineEdit(links: [link("a"), link("b")]), at: start)
        _ = try await ada.store.addMine(content("Inner", links: 0), into: hex, at: start)
        let other = try await ada.store.addMine(content("Other", links: 0), at: start)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: access], at: start + 1)
        #expect(try ada.hex("Reading") == hex && ada.hex("Other") == other)
        guard case .offered(let offer) = try await bob.request(from: ada).first else { throw SharingPerson.Failure.noOffer }
        #expect(offer.title == "Reading" && offer.access == access && offer.links == 2 && offer.hexes == 1)
        _ = try await bob.store.joinOffer(offer.number, at: start + 2)
        try await bob.request(from: ada)
        try await ada.request(from: bob)
        return (ada, bob, hex)
    }

    @Test("a shared hex keeps its place and id, and appears at the member") func share() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        #expect(try ada.hexes == ["Other", "Reading https://a.example/ https://b.example/ [Inner]"])
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/ [Inner]"])
        #expect(try ada.isConsistent() && bob.isConsistent())
        #expect(try ada.test.read { try $0.trashPage(limit: 9, before: nil).items }.isEmpty)
        let member = try #require(try ada.test.read { try $0.sharedHex(hex) }?.peers.first)
        #expect(member.peer == bob.peer.id && member.access == .write && member.state == .joined)
    }

    @Test("changes of a writer and of the owner reach each other, with their authors") func changes() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let copy = try bob.hex("Reading")
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 0), .init(from: 1), link("c")]), at: start + 3)
        try await ada.store.editMine(hex, MineEdit(description: "Books"), at: start + 3)
        try await ada.request(from: bob)
        try await bob.request(from: ada)
        let expected = "Books https://a.example/ https://b.example/ https://c.example/ [Inner]"
        #expect(try ada.hexes.last == expected && bob.hexes == [expected])
        let log = try ada.test.read { try $0.mineChanges(limit: 9, before: nil, hex: hex) }.items
        #expect(log.first?.author == bob.peer.id && log.first?.links.added == 1 && log.first?.subject == "Books")
        _ = try await ada.store.undoMine([try #require(log.first).number], at: start + 4)
        try await bob.request(from: ada)
        #expect(try bob.hexes == ["Books https://a.example/ https://b.example/ [Inner]"])
        #expect(try ada.isConsistent() && bob.isConsistent())
    }

    @Test("a reader cannot change the hex, and its rows are never requested") func reader() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex(.read)
        let copy = try bob.hex("Reading")
        await #expect(throws: HexlistError.self) { try await bob.store.editMine(copy, MineEdit(description: "Mine"), at: start + 3) }
        let list = try #require(try ada.test.read { try $0.sharedHex(hex) }).list
        // A modified program would change its rows. The owner does not ask for them, and refuses them.
        try await bob.store.onWritingConnection { try $0.execute(sql: "UPDATE list SET access = 'write' WHERE id <> 1") }
        try await bob.store.editMine(copy, MineEdit(description: "Mine"), at: start + 3)
        try await ada.request(from: bob)
        await #expect(throws: ListFault.outdated) { try await ada.page(of: list, from: bob) }
        #expect(try ada.hexes.last == "Reading https://a.example/ https://b.example/ [Inner]")
    }

    @Test("another peer learns nothing of a shared hex, and cannot read or write it") func others() async throws {
        let (ada, _, hex) = try await sharedWithInnerHex()
        let carol = try Person(3)
        try ada.trust(carol)
        try carol.trust(ada)
        let list = try #require(try ada.test.read { try $0.sharedHex(hex) }).list
        #expect(try ada.test.read { try $0.listOverview(for: carol.peer.id, at: start) }.lists.isEmpty)
        let request = ListPageRequest(cursor: nil, requester: ReplicaNumber(7))
        #expect(try ada.store.listPageSync(list, request, for: carol.peer.id, at: start) == .notFound)
        var page = ListPage(list: list, replica: ReplicaNumber(7), after: 0, through: 1, isLast: true)
        page.nodes = [ListNode(id: list)]
        page.nodes[0].title = ListNode.Register(version: ListVersion(clock: 1 << 50, replica: ReplicaNumber(7)), value: "Carol's")
        await #expect(throws: ListFault.outdated) {
            let request = try ada.test.read { try $0.listPageRequest(of: list, from: carol.peer.id) }
            _ = try await ada.store.mergeListPage(
                page, answering: request, from: carol.peer.id, as: .otherPerson, at: start, diskReserve: 0)
        }
    }

    @Test("write access that becomes read-only: unaccepted links are in a hex of their own") func revocation() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let copy = try bob.hex("Reading")
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 0), link("c")]), at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        let changes = try await bob.request(from: ada, at: start + 5)
        guard case .rejected(_, rows: 2, copy: let rejected?) = changes.last else {
            Issue.record("\(changes)")
            return
        }
        try await bob.request(from: ada, at: start + 5)
        #expect(
            try bob.hexes.sorted() == [
                "Reading (not accepted) https://c.example/",
                "Reading https://a.example/ https://b.example/ [Inner]",
            ])
        #expect(try bob.hex("Reading (not accepted)") == rejected && bob.hex("Reading") == copy)
        #expect(try ada.isConsistent() && bob.isConsistent())
    }

    @Test("sharing that ends leaves a copy that cannot be changed; it can begin again") func end() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 3)
        guard case .ended(let ended) = try await bob.request(from: ada).first else {
            Issue.record("not ended")
            return
        }
        #expect(ended.subject == "Reading")
        let copy = try bob.hex("Reading")
        try await ada.store.editMine(hex, MineEdit(description: "Books"), at: start + 4)
        #expect(try await bob.request(from: ada).isEmpty)
        await #expect(throws: HexlistError.self) { try await bob.store.editMine(copy, MineEdit(description: "Mine"), at: start + 4) }
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write], at: start + 5)
        try await bob.request(from: ada)
        try await bob.request(from: ada)
        #expect(try bob.hex("Books") == copy)
    }

    @Test("a member leaves by deleting the hex, and joins again by restoring it") func leave() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let copy = try bob.hex("Reading")
        _ = try await bob.store.change([copy], .delete, at: start + 3)
        #expect(try bob.hexes.isEmpty && bob.isConsistent())
        try await ada.request(from: bob)
        #expect(try ada.test.read { try $0.sharedHex(hex) }?.peers.map(\.state) == [.left])
        #expect(try await bob.request(from: ada).isEmpty)  // no new offer
        #expect(try bob.test.read { try $0.listOffers() }.allSatisfy(\.isDeclined))
        let item = try #require(try bob.test.read { try $0.trashPage(limit: 9, before: nil).items }.first)
        #expect(item.subject == "Reading" && item.hex == copy && item.links == 2 && item.hexesInside == 1)
        _ = try await bob.store.restoreMine(numbers: [item.number], at: start + 4)
        try await bob.request(from: ada)
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/ [Inner]"] && bob.hex("Reading") == copy)
        #expect(try bob.isConsistent())
    }

    @Test("the owner's deletion ends the sharing, also after the hex was restored") func deletion() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        _ = try await ada.store.change([hex], .delete, at: start + 3)
        #expect(try ada.hexes == ["Other"])
        guard case .ended = try await bob.request(from: ada).first else {
            Issue.record("not ended")
            return
        }
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/ [Inner]"])
        _ = try await ada.store.restoreMine(hex, at: start + 4)
        #expect(try ada.hexes == ["Other", "Reading https://a.example/ https://b.example/ [Inner]"] && ada.isConsistent())
        #expect(try await bob.request(from: ada).isEmpty)
    }

    @Test("a hex inside another one moves to the top level when it is shared; its contents cannot leave it") func inner() async throws {
        let (ada, bob) = (try Person(1), try Person(2))
        try ada.trust(bob)
        let work = try await ada.store.addMine(content("Work"), at: start)
        let hex = try await ada.store.addMine(content("Reading", links: 2), into: work, at: start)
        let inner = try await ada.store.addMine(content("Inner", links: 1), into: hex, at: start)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 1)
        #expect(try ada.test.read { try $0.hex(hex)?.summary.location } == .mine && ada.isConsistent())
        await #expect(throws: HexlistError.self) { try await ada.store.moveMine(inner, into: work, at: start + 2) }
        await #expect(throws: HexlistError.self) { try await ada.store.moveMine(hex, into: work, at: start + 2) }
        await #expect(throws: HexlistError.self) { try await ada.store.moveMine(work, into: hex, at: start + 2) }
        await #expect(throws: HexlistError.self) { try await ada.store.shareMine(inner, with: [:], at: start + 2) }
        try await ada.store.moveMine(hex, into: nil, beside: .before(work), at: start + 3)
        #expect(try ada.test.read { try $0.hexPage(HexFilter(location: .mine)).items.map(\.id) } == [hex, work])
        try await ada.store.moveMine(hex, into: nil, beside: .after(work), at: start + 3)
        #expect(try ada.test.read { try $0.hexPage(HexFilter(location: .mine)).items.map(\.id) } == [work, hex])
    }

    @Test("all machines of the owner and of a member have a shared hex") func ownMachines() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let (laptop, phone) = (try Person(4), try Person(5))
        for (first, second) in [(ada, laptop), (bob, phone)] {
            try await first.add(second)
            try await second.add(first)
        }
        // The collections of new machines are empty and younger. They are replaced as after `own add`.
        for (first, second) in [(ada, laptop), (bob, phone)] {
            let list = try first.test.read { try $0.mineList() }
            try await second.pages(of: list, from: first)
            let sequence = try #require(try second.test.read { try ListRecord(on: $0).sequence })
            _ = try await second.store.joinList(list, with: first.peer.id, ifStillAt: sequence, at: start + 3, diskReserve: 0)
            try await second.request(from: first)
            try await second.request(from: first)
        }
        #expect(try laptop.hexes == ada.hexes && phone.hexes == bob.hexes)
        try await ada.store.editMine(hex, MineEdit(description: "Books"), at: start + 4)
        try await bob.request(from: ada)
        try await phone.request(from: bob)
        try await laptop.request(from: ada)
        #expect(try laptop.hexes == ada.hexes && phone.hexes == bob.hexes && phone.hexes.first?.hasPrefix("Books") == true)

        // Rejected changes of one machine are discarded on the other one too.
        let copy = try phone.hex("Books")
        try await phone.store.editMine(copy, MineEdit(links: [.init(from: 0), .init(from: 1), link("c")]), at: start + 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        try await bob.request(from: phone, at: start + 7)
        try await phone.store.editMine(
            copy, MineEdit(links: [.init(from: 0), .init(from: 1), .init(from: 2), link("d")]), at: start + 7)
        try await bob.request(from: ada, at: start + 7)
        try await phone.request(from: bob, at: start + 7)
        try await bob.request(from: phone, at: start + 7)
        try await bob.request(from: ada, at: start + 7)
        try await phone.request(from: bob, at: start + 7)
        #expect(
            try bob.hexes.sorted() == [
                "Books (not accepted) https://c.example/ https://d.example/",
                "Books https://a.example/ https://b.example/ [Inner]",
            ])
        #expect(try phone.hexes.sorted() == bob.hexes.sorted())
        for person in [ada, bob, laptop, phone] { #expect(try person.isConsistent()) }
    }

    @Test("on the other machines of the owner, sharing is no deletion; earlier changes cannot bring back the hex")
    func sharingOnOwnMachine()
        async throws
    {
        let (ada, laptop, bob) = (try Person(1), try Person(4), try Person(2))
        let other = try await ada.store.addMine(content("Other", links: 0), at: start)
        try await pair(ada, laptop)
        try ada.trust(bob)
        let hex = try await ada.store.addMine(content("Reading", links: 150), at: start)
        _ = try await ada.store.addMine(content("Inner", links: 2), into: hex, at: start)
        try await ada.store.editMine(hex, MineEdit(description: "Books"), at: start + 1)
        let rename = try #require(try ada.test.read { try $0.mineChanges(limit: 1, before: nil) }.items.first).number
        func exchange(at now: Int64) async throws {
            for _ in 0..<2 { for (first, second) in [(ada, laptop), (laptop, ada)] { try await first.request(from: second, at: now) } }
        }
        try await exchange(at: start + 2)
        let log = try laptop.test.read { try $0.mineChanges(limit: 9, before: nil) }.items.count
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 3)
        try await exchange(at: start + 4)
        for person in [ada, laptop] {
            #expect(try person.test.read { try $0.trashPage(limit: 9, before: nil).items }.isEmpty)
            #expect(try person.hexes.count == 2 && person.isConsistent())
        }
        #expect(try laptop.hexes == ada.hexes)
        let news = try laptop.test.read { try $0.mineChanges(limit: 9, before: nil) }.items.prefix(while: { _ in true }).dropLast(log)
        #expect(news.allSatisfy { $0.links.deleted == 0 && $0.hexes.deleted == 0 })
        await #expect(throws: HexlistError.self) { try await ada.store.undoMine([rename], at: start + 5) }
        #expect(try ada.hexes.count == 2 && ada.hex("Other") == other && ada.isConsistent())
    }

    @Test("a forgotten peer loses its access; with a takeover, its new identity gets it") func forget() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let list = try #require(try ada.test.read { try $0.sharedHex(hex) }).list
        let reinstalled = try Person(6)
        try ada.trust(reinstalled)
        try reinstalled.trust(ada)
        _ = try await ada.store.takeOver(from: bob.peer.id, by: reinstalled.peer.id)
        try ada.trust(bob)  // the same key again
        let request = ListPageRequest(cursor: nil, requester: ReplicaNumber(7))
        #expect(try ada.store.listPageSync(list, request, for: bob.peer.id, at: start) == .notFound)
        let offer = try #require(try await reinstalled.request(from: ada).first)
        guard case .offered(let offer) = offer else { return #expect(Bool(false), "\(offer)") }
        _ = try await reinstalled.store.joinOffer(offer.number, at: start)
        try await reinstalled.request(from: ada)
        #expect(try reinstalled.hexes == bob.hexes)
        // The member forgets the owner: the hex stays, and does not become the member's own.
        try await reinstalled.store.forgetPeer(ada.peer.id)
        let shared = try #require(try reinstalled.test.read { try $0.sharedHexes() }.first)
        #expect(!shared.isOwned && shared.peers.isEmpty)
        #expect(try reinstalled.isConsistent() && ada.isConsistent())
    }

    @Test("two machines of a member that join independently show the hex once; one deletion removes it") func joinTwice() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let phone = try Person(5)
        try await pair(bob, phone)
        try ada.trust(phone)
        try phone.trust(ada)
        _ = try await bob.store.change([bob.hex("Reading")], .delete, at: start + 3)
        for (first, second) in [(bob, phone), (phone, bob)] { try await first.request(from: second, at: start + 3) }
        _ = try await ada.store.shareMine(hex, with: [phone.peer.id: .read], at: start + 3)
        // Both join while they are apart.
        for person in [bob, phone] {
            try await person.request(from: ada, at: start + 4)
            let number = try person.test.read { try $0.first("SELECT id FROM listOffer") { $0.int64(0) } }
            _ = try await person.store.joinOffer(try #require(number), at: start + 4)
            try await person.request(from: ada, at: start + 4)
        }
        for _ in 0..<2 { for (first, second) in [(bob, phone), (phone, bob)] { try await first.request(from: second, at: start + 5) } }
        for person in [bob, phone] { #expect(try person.hexes.count == 1) }
        _ = try await phone.store.change([phone.hex("Reading")], .delete, at: start + 6)
        for _ in 0..<2 { for (first, second) in [(bob, phone), (phone, bob)] { try await first.request(from: second, at: start + 7) } }
        for person in [bob, phone] { #expect(try person.hexes.isEmpty && person.isConsistent()) }
    }

    @Test("a row with an id of another list changes only its own list") func sameID() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let other = try await ada.store.addMine(content("Recipes", links: 2), at: start)
        _ = try await ada.store.shareMine(other, with: [bob.peer.id: .read], at: start + 3)
        let lists = try ada.test.read { (try $0.sharedHex(hex), try $0.sharedHex(other)) }
        let (reading, recipes) = try (#require(lists.0).list, #require(lists.1).list)
        let stolen = try ada.test.read { reader in
            let record = try #require(try ListRecord(recipes, on: reader))
            return try #require(try SQLListStorage(record, on: reader).contents(of: recipes).first).node
        }
        let before = try ada.hexes.first { $0.hasPrefix("Recipes") }
        for id in [stolen.id, try ada.test.read { try $0.mineList() }, recipes] {
            let request = try ada.test.read { try $0.listPageRequest(of: reading, from: bob.peer.id) }
            let after = request.cursor?.sequence ?? 0
            var page = ListPage(
                list: reading, replica: request.cursor?.replica ?? ReplicaNumber(7), after: after, through: after + 1, isLast: true)
            var node = ListNode(id: id)
            let version = ListVersion(clock: HybridClock.time(milliseconds: start + 9), replica: ReplicaNumber(7))
            node.place = ListNode.Place(version: version, parent: reading, key: OrderKey(bytes: [1, 1, 1, 1, 1, 1, 1, 1]))
            node.title = ListNode.Register(version: version, value: "Stolen")
            node.deletion = id == recipes ? DeletionMark(version: version) : nil
            page.nodes = [node]
            _ = try await ada.store.mergeListPage(
                page, answering: request, from: bob.peer.id, as: .otherPerson, at: start + 9, diskReserve: 0)
        }
        #expect(try ada.hexes.first { $0.hasPrefix("Recipes") } == before && ada.isConsistent())
        #expect(try ada.test.read { try $0.sharedHex(hex)?.list } == reading)
    }

    @Test("a shared list has a maximum of rows and of text") func bounds() async throws {
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let list = try #require(try ada.test.read { try $0.sharedHex(hex) }).list
        func page(_ count: Int, title: Int = 1) throws -> (ListPage, ListPageRequest) {
            let request = try ada.test.read { try $0.listPageRequest(of: list, from: bob.peer.id) }
            let after = request.cursor?.sequence ?? 0
            var page = ListPage(list: list, replica: ReplicaNumber(7), after: 0, through: after + Int64(count), isLast: true)
            let version = ListVersion(clock: HybridClock.time(milliseconds: start + 9), replica: ReplicaNumber(7))
            var random = SeededGenerator(seed: UInt64(after))
            page.nodes = (0..<count).map { _ in
                var node = ListNode(id: ListNode.ID(kind: .link, time: start, using: &random))
                node.place = ListNode.Place(version: version, parent: list, key: OrderKey(bytes: [1, 1, 1, 1, 1, 1, 1, 1]))
                node.title = ListNode.Register(version: version, value: UTF8Text(String(repeating: "x", count: title)))
                return node
            }
            return (page, request)
        }
        try await ada.store.onWritingConnection {
            try $0.execute(
                sql: """
                    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99990)
                    INSERT INTO node (uuid, kind, url, service, state, leaves, seq, list, goneClock, goneBy)
                    SELECT randomblob(16), 2, '', '', 1, 0, 10000 + n, (SELECT max(id) FROM list), 1, 1 FROM numbers;
                    UPDATE list SET seq = 109999 WHERE id <> 1;
                    """)
        }
        let (large, request) = try page(10)
        await #expect(throws: ListFault.full) {
            _ = try await ada.store.mergeListPage(
                large, answering: request, from: bob.peer.id, as: .otherPerson, at: start + 9, diskReserve: 0)
        }
        try await ada.store.onWritingConnection {
            try $0.execute(sql: "DELETE FROM node WHERE seq > 10000 AND goneClock = 1; UPDATE list SET seq = 50 WHERE id <> 1")
        }
        try await ada.store.onWritingConnection {
            try $0.execute(sql: "UPDATE node SET title = printf('%.*c', 67108000, 'x') WHERE list <> 1 AND kind = 2 AND url LIKE '%a.ex%'")
        }
        try await ada.store.onWritingConnection { try $0.execute(sql: "UPDATE list SET textBytes = 67108864 WHERE id <> 1") }
        let (small, second) = try page(1, title: 2_000)
        await #expect(throws: ListFault.full) {
            _ = try await ada.store.mergeListPage(
                small, answering: second, from: bob.peer.id, as: .otherPerson, at: start + 9, diskReserve: 0)
        }
    }

    // MARK: - Random

    /// The shown tree of a list as text.
    private func tree(_ list: ListNode.ID, of person: Person) throws -> String {
        try person.test.read { reader in
            guard let record = try ListRecord(list, on: reader), let root = try SQLListStorage(record, on: reader).row(list) else {
                return "-"
            }
            let storage = try SQLListStorage(record, on: reader)
            func text(_ row: ListRow, _ indent: String) throws -> String {
                let node = row.node
                let values = node.registers.filter { !$0.value.value.isEmpty }.map { "\($0)=\($1.value)" }.sorted().joined(separator: ",")
                let inside = node.id.kind == .hex ? try storage.contents(of: node.id).map { try text($0, indent + "  ") }.joined() : ""
                return "\(indent)\(node.title?.value.description ?? "") \(node.url) \(values)\n\(inside)"
            }
            return try text(root, "")
        }
    }

    @Test(
        "random changes of an owner, a writer and a reader with several machines converge",
        arguments: 0..<(LongTests.areWanted ? 60 : 3) as Range<UInt64>)
    func random(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let (ada, bob, hex) = try await sharedWithInnerHex()
        let (laptop, phone, carol) = (try Person(4), try Person(5), try Person(3))
        try await pair(ada, laptop)
        try await pair(bob, phone)
        try ada.trust(carol)
        try carol.trust(ada)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 3)
        try await carol.request(from: ada)
        _ = try await carol.store.joinOffer(try #require(try carol.test.read { try $0.listOffers() }.first).number, at: start + 3)
        let links = [(ada, laptop), (laptop, ada), (bob, phone), (phone, bob), (ada, bob), (bob, ada), (carol, ada)]
        func exchange(at now: Int64) async throws {
            for _ in 0..<4 { for (first, second) in links { try await first.request(from: second, at: now) } }
        }
        try await exchange(at: start + 4)
        let list = try #require(try ada.test.read { try $0.sharedHex(hex) }).list
        let people = [ada, bob, laptop, phone]
        var access = ListOverview.Access.write
        for step in 0..<80 {
            let now = start + 10 + Int64(step) * 1_000
            do {
                if Int.random(in: 0..<4, using: &random) == 0 {
                    let (first, second) = try #require(links.randomElement(using: &random))
                    try await first.request(from: second, at: now)
                } else if step % 20 == 19 {
                    access = access == .write ? .read : .write
                    _ = try await ada.store.shareMine(hex, with: [bob.peer.id: access], at: now)
                } else {
                    try await change(try #require(people.randomElement(using: &random)), hex, step, at: now, using: &random)
                }
            } catch let error as HexlistError where error.code == .badRequest || error.code == .notFound {}
        }
        if try ada.test.read({ try $0.sharedHex(hex) }) == nil { _ = try await ada.store.restoreMine(hex, at: start + 100_000) }
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .write, carol.peer.id: .read], at: start + 100_001)
        try await exchange(at: start + 100_002)
        for person in [ada, bob, laptop, phone, carol] {
            #expect(try person.isConsistent(), "seed \(seed)")
            let shown = try person.test.read { reader in try reader.sharedHexes().contains { $0.list == list } }
            if shown { #expect(try tree(list, of: person) == tree(list, of: ada), "seed \(seed), \(person.peer.id)") }
        }
        for (first, second) in [(ada, laptop), (bob, phone)] {
            let mine = try first.test.read { try $0.mineList() }
            #expect(try tree(mine, of: first) == tree(mine, of: second), "seed \(seed)")
            #expect(try first.hexes == second.hexes, "seed \(seed)")
        }
    }

    /// Makes a random change, without deleting the shared hex.
    private func change(_ person: Person, _ sharedHex: Int64, _ step: Int, at now: Int64, using random: inout SeededGenerator) async throws
    {
        let store = person.store
        let roots = try person.test.read { reader in try reader.sharedHexes().compactMap(\.hex) }
        let ids = try person.test.read { try $0.all("SELECT id FROM hex ORDER BY id") { $0.int64(0) } }
        let (id, other) = (ids.randomElement(using: &random), ids.randomElement(using: &random))
        switch (Int.random(in: 0..<12, using: &random), id, other) {
        case (0...2, _, _), (_, nil, _):
            _ = try await store.addMine(
                content("Hex \(step)", links: step % 4), into: Int.random(in: 0..<3, using: &random) > 0 ? id : nil, at: now)
        case (3, let id?, let other?): try await store.moveMine(id, into: other, at: now)
        case (4, let id?, _): try await store.moveMine(id, into: nil, at: now)
        case (5, let id?, let other?): try await store.moveMine(id, into: nil, beside: .before(other), at: now)
        case (6, let id?, _): if !roots.contains(id) { _ = try await store.change([id], .delete, at: now) }
        case (7, _, _):
            let items = try person.test.read { try $0.trashPage(limit: 100, before: nil) }.items.map(\.number)
            if let item = items.randomElement(using: &random) { _ = try await store.restoreMine(numbers: [item], at: now) }
        case (8, _, _):
            let changes = try person.test.read { try $0.mineChanges(limit: 9, before: nil) }.items.filter(\.isUndoable).map(\.number)
            let some = Set((0...1).compactMap { _ in changes.randomElement(using: &random) })
            if !some.isEmpty { _ = try await store.undoMine(Array(some), at: now) }
        case (_, let id?, _):
            let count = try #require(try person.test.read { try $0.hex(id) }).content.links.count
            var links = (0..<count).shuffled(using: &random).dropLast(count / 3).map { MineEdit.Link(from: $0) }
            links.append(MineEdit.Link(url: "https://new.example/\(step)", tags: ["x"]))
            if Bool.random(using: &random) { links.shuffle(using: &random) }
            links[0].linkDescription = "Changed \(step)"
            try await store.editMine(
                id, MineEdit(description: Bool.random(using: &random) ? "Edited \(step)" : nil, tags: ["t\(step % 3)"], links: links),
                at: now)
        }
    }
}
