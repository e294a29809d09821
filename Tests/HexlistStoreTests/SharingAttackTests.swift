import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

@Suite(.timeLimit(.minutes(5))) struct SharingAttackTests: SharingScenario {
    @Test("a reader's other machine cannot change the hex either") func readerPhone() async throws {
        let (ada, bob, _) = try await shared(.read)
        let phone = try Person(5)
        try await pair(bob, phone)
        for _ in 0..<2 { try await phone.request(from: bob) }
        let copy = try phone.hex("Reading")
        await #expect(throws: HexlistError.self, "read-only on bob, writable on phone") {
            try await phone.store.editMine(copy, MineEdit(links: [link("evil")]), at: start + 5)
        }
        for _ in 0..<3 {
            try await bob.request(from: phone, at: start + 6)
            try await bob.request(from: ada, at: start + 6)
            try await ada.request(from: bob, at: start + 6)
            try await phone.request(from: bob, at: start + 6)
        }
        #expect(try bob.hexes == ["Reading https://a.example/ https://b.example/"])
        #expect(try bob.hexes.last == ada.hexes.last)
    }

    @Test("the other machine of a member learns that the sharing has ended") func endedPhone() async throws {
        let (ada, bob, hex) = try await shared()
        let phone = try Person(5)
        try await pair(bob, phone)
        for _ in 0..<2 { try await phone.request(from: bob) }
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 3)
        try await bob.request(from: ada)
        for _ in 0..<2 { try await phone.request(from: bob) }
        #expect(try phone.test.read { try $0.sharedHexes() }.first?.access == .ended)
    }

    @Test("emptying the trash removes a deleted shared hex, without other machines too") func purge() async throws {
        let ada = try Person(1)
        let bob = try Person(2)
        try ada.trust(bob)
        let hex = try await ada.store.addMine(content("Secret", links: 3), at: start)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 1)
        _ = try await ada.store.change([hex], .delete, at: start + 2)
        _ = try await ada.store.emptyTrash()
        let left = try ada.test.read {
            (
                try $0.first("SELECT count(*) FROM list WHERE id <> 1") { $0.int(0) },
                try $0.first("SELECT count(*) FROM node WHERE list <> 1 AND url <> ''") { $0.int(0) },
                try $0.first("SELECT count(*) FROM listPeer") { $0.int(0) }
            )
        }
        #expect(left.1 == 0, "links with their URLs")
        // The list and its members stay, so that they learn that the sharing has ended.
        #expect(left.0 == 1 && left.2 == 1)
        #expect(try ada.test.read { try $0.listOverview(for: bob.peer.id, at: start) }.lists.map(\.access) == [.ended])
    }

    @Test("a peer that offers a list of the user's own cannot take its ownership") func stolenOwnership() async throws {
        let (ada, bob, hex) = try await shared()
        let carol = try Person(3)
        try ada.trust(carol)
        let list = try list(ada)
        _ = try await ada.store.applyOverview(overview(list, .write, title: "Holiday"), from: carol.peer.id, at: start)
        let offers = try ada.test.read { try $0.listOffers() }
        #expect(offers.isEmpty)
        if let offer = offers.first { _ = try? await ada.store.joinOffer(offer.number, at: start + 3) }
        let shared = try #require(try ada.test.read { try $0.sharedHex(hex) })
        #expect(shared.isOwned && shared.peers.map(\.peer) == [bob.peer.id])
    }

    @Test("a machine that was a member before it became an own machine") func memberBecomesOwn() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(4)
        try ada.trust(laptop)
        try laptop.trust(ada)
        _ = try await ada.store.shareMine(hex, with: [laptop.peer.id: .write], at: start + 3)
        try await join(laptop, ada)
        try await pair(ada, laptop)
        for _ in 0..<3 { for (first, second) in [(ada, laptop), (laptop, ada)] { try await first.request(from: second, at: start + 4) } }
        let mine = try #require(try ada.test.read { try $0.sharedHex(hex) })
        #expect(mine.isOwned, "ada is no owner of her hex any more")
        #expect(mine.peers.contains { $0.peer == bob.peer.id && $0.access == .write })
        try await ada.store.editMine(hex, MineEdit(description: "Books"), at: start + 5)
        try await bob.request(from: ada, at: start + 6)
        #expect(try bob.hexes.first?.hasPrefix("Books") == true)
        try await laptop.request(from: ada, at: start + 6)
        #expect(try ada.hexes == laptop.hexes)
        #expect(try ada.isConsistent())
        #expect(try laptop.isConsistent())

    }

    @Test("a hex that two machines joined is left with one deletion") func leaveTwoEntries() async throws {
        let (ada, bob, hex) = try await shared()
        let phone = try Person(5)
        try await pair(bob, phone)
        _ = try await bob.store.change([try bob.hex("Reading")], .delete, at: start + 3)
        _ = try await bob.store.emptyTrash()
        for _ in 0..<2 { try await phone.request(from: bob) }
        try ada.trust(phone)
        try phone.trust(ada)
        _ = try await ada.store.shareMine(hex, with: [phone.peer.id: .write], at: start + 4)
        try await join(bob, ada)
        try await join(phone, ada)
        for _ in 0..<3 { for (first, second) in [(bob, phone), (phone, bob)] { try await first.request(from: second, at: start + 5) } }
        #expect(try bob.hexes.count == 1 && phone.hexes.count == 1)
        _ = try await bob.store.change([try bob.hex("Reading")], .delete, at: start + 6)
        #expect(try bob.hexes.isEmpty)
        #expect(try bob.isConsistent())
    }

    @Test("changes that were not accepted do not stay in the list if the access was write, none and read") func writeNoneRead() async throws
    {
        let (ada, bob, hex) = try await shared()
        let copy = try bob.hex("Reading")
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 0), .init(from: 1), link("c")]), at: start + 3)
        for access in [ListOverview.Access.ended, .read] {
            _ = try await ada.store.shareMine(hex, with: [bob.peer.id: access], at: start + 4)
            try await bob.request(from: ada, at: start + 5)
        }
        for _ in 0..<3 { try await bob.request(from: ada, at: start + 6) }
        #expect(try bob.hexes.first { $0.hasPrefix("Reading ht") } == ada.hexes.last)
    }

    @Test("a member that left with unsent changes, and joins again with read access, has the owner's list") func rejoinAsReader()
        async throws
    {
        let (ada, bob, hex) = try await shared()
        let copy = try bob.hex("Reading")
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 0), .init(from: 1), link("c")]), at: start + 3)
        _ = try await bob.store.change([copy], .delete, at: start + 4)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 5)
        try await join(bob, ada)
        for _ in 0..<3 { try await bob.request(from: ada, at: start + 6) }
        #expect(try bob.hexes.first { $0.hasPrefix("Reading ht") } == ada.hexes.last)
    }

    @Test("an owner cannot fill the My Hexlist of a member") func floodOfRejected() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(bob)
        for round in 0..<5 as Range<Int64> {
            let nodes = (0..<20).map { _ in node(.link, in: list, "spam", version()) }
            try await send(nodes, of: list, to: bob, from: ada, replica: UInt64(100 + 2 * round))
            // Rows that differ from the stored and from the received ones after the merge.
            let moved = nodes.map { spam in
                var spam = spam
                spam.title = nil
                spam.place?.version = version(10 + round)
                return spam
            }
            try await send(moved, of: list, to: bob, from: ada, replica: UInt64(101 + 2 * round))
            for access in [ListOverview.Access.read, .write] {
                let overview = overview(list, access, at: 10 + 2 * round + (access == .read ? 0 : 1))
                _ = try await bob.store.applyOverview(overview, from: ada.peer.id, at: start + 10)
                #expect(try bob.test.read { try $0.sharedHexes() }.first?.access == access)
            }
        }
        let count = try bob.hexes.count { $0.contains("(not accepted)") }
        #expect(count == 0, "bob changed nothing; the owner wrote into his My Hexlist")
    }

    @Test("rows of the owner's other machine are not rejected changes of the member") func rejectedOfOwner() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(4)
        try await pair(ada, laptop)
        for _ in 0..<2 { for (first, second) in [(ada, laptop), (laptop, ada)] { try await first.request(from: second, at: start + 3) } }
        try laptop.trust(bob)
        try bob.trust(laptop)
        try await join(bob, laptop)
        let onLaptop = try laptop.hex("Reading")
        try await laptop.store.editMine(onLaptop, MineEdit(links: [.init(from: 0), .init(from: 1), link("owners")]), at: start + 4)
        try await ada.request(from: laptop, at: start + 5)
        try await bob.request(from: laptop, at: start + 5)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 6)
        let changes = try await bob.request(from: ada, at: start + 7)
        #expect(try bob.hexes.filter { $0.contains("(not accepted)") } == [], "\(changes)")
    }

    @Test("two machines of the owner that disagree for a while do not flip the access of a member with each overview") func flipping()
        async throws
    {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(4)
        try await pair(ada, laptop)
        for _ in 0..<2 { for (first, second) in [(ada, laptop), (laptop, ada)] { try await first.request(from: second, at: start + 3) } }
        try laptop.trust(bob)
        try bob.trust(laptop)
        try await join(bob, laptop)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 6)
        var changes = 0
        for _ in 0..<5 {
            changes += try await bob.request(from: ada, at: start + 7).count
            try await bob.request(from: laptop, at: start + 7)
        }
        #expect(changes == 1)
    }

    @Test("a member cannot remove changes of My Hexlist from the log") func flushLog() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        let mine = try await ada.store.addMine(content("Private", links: 1), at: start + 3)
        let number = try #require(try ada.test.read { try $0.mineChanges(limit: 1, before: nil, hex: mine) }.items.first).number
        try await send([], of: list, to: ada, from: bob)
        let text = String(repeating: "x", count: 60_000)
        var target = node(.link, in: list, text, version())
        for step in 0..<200 {
            target.title = ListNode.Register(version: version(10 + Int64(step)), value: UTF8Text(text + "\(step)"))
            try await send([target], of: list, to: ada, from: bob)
        }
        #expect(try ada.test.read { try $0.mineChanges(limit: 100, before: nil, hex: mine) }.items.contains { $0.number == number })
    }

    @Test("a member cannot remove items of My Hexlist from the trash") func flushTrash() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        let mine = try await ada.store.addMine(content("Private", links: 1), at: start + 3)
        _ = try await ada.store.change([mine], .delete, at: start + 4)
        let text = String(repeating: "x", count: 60_000)
        for _ in 0..<45 {
            let nodes = (0..<16).map { _ in node(.link, in: list, text, version()) }
            try await send(nodes, of: list, to: ada, from: bob)
            try await send(
                nodes.map { node in
                    var mark = ListNode(id: node.id)
                    mark.deletion = DeletionMark(version: version())
                    return mark
                }, of: list, to: ada, from: bob)
        }
        _ = try ada.test.write { writer in try writer.change { try writer.purgeTrash(limit: 10_000) } }
        #expect(try ada.test.read { try $0.trashPage(limit: 500, before: nil, hexesOnly: true) }.items.contains { $0.hex == mine })
    }

    @Test("the bound of texts counts the services") func services() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        let text = String(repeating: "x", count: 65_000)
        await #expect(throws: ListFault.full) {
            for _ in 0..<80 {
                try await send(
                    (0..<16).map { _ in
                        var link = node(.link, in: list, "", version())
                        link.service = UTF8Text(text)
                        return link
                    }, of: list, to: ada, from: bob)
            }
        }
    }

    @Test("a list near its maximum still receives changes of present rows") func nearlyFull() async throws {
        let (ada, bob, _) = try await shared()
        let list = try list(ada)
        let nodes = (0..<20).map { _ in node(.link, in: list, "", version()) }
        try await send(nodes, of: list, to: ada, from: bob)
        try await ada.store.onWritingConnection {
            try $0.execute(
                sql: """
                    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99970)
                    INSERT INTO node (uuid, kind, url, service, state, leaves, seq, list, goneClock, goneBy)
                    SELECT randomblob(16), 2, '', '', 1, 0, 10000 + n, (SELECT max(id) FROM list), 1, 1 FROM numbers
                    """)
        }
        try await send(
            nodes.map { node in
                var node = node
                node.title = ListNode.Register(version: version(10), value: "new title")
                return node
            }, of: list, to: ada, from: bob)
    }

    @Test("a link restored into the hex that was copied for sharing is in the trash after that hex is deleted again")
    func copiedHexInTrash() async throws {
        let (ada, bob) = (try Person(1), try Person(2))
        try ada.trust(bob)
        let hex = try await ada.store.addMine(content("Reading", links: 0), at: start)
        try await ada.store.editMine(hex, MineEdit(links: [link("a"), link("x")]), at: start)
        try await ada.store.editMine(hex, MineEdit(links: [.init(from: 0)]), at: start + 1)
        let item = try #require(try ada.test.read { try $0.trashPage(limit: 9, before: nil).items }.first)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 2)
        let restored = try await ada.store.restoreMine(numbers: [item.number], at: start + 3)
        _ = try await ada.store.change([restored[0].hex], .delete, at: start + 4)
        let trash = try ada.test.read { try $0.trashPage(limit: 9, before: nil).items }
        #expect(trash.count == 1, "the link x is lost")
        #expect(try ada.isConsistent())
    }

    @Test("a rejected link keeps its tags and its note") func rejectedTags() async throws {
        let (ada, bob, hex) = try await shared()
        let copy = try bob.hex("Reading")
        let new = MineEdit.Link(url: "https://c.example/", tags: ["important"])
        try await bob.store.editMine(copy, MineEdit(links: [.init(from: 0), .init(from: 1), new]), at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await bob.request(from: ada, at: start + 5)
        let rejected = try bob.hex("Reading (not accepted)")
        let content = try #require(try bob.test.read { try $0.hex(rejected) }).content
        #expect(content.links.last.map { String(decoding: content.bytes($0.extra), as: UTF8.self) }?.contains("important") == true)
    }

    @Test("rejected changes of hexes are kept") func rejectedHexes() async throws {
        let (ada, bob, hex) = try await shared()
        let copy = try bob.hex("Reading")
        _ = try await bob.store.addMine(content("My chapter", links: 0), into: copy, at: start + 3)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 4)
        try await bob.request(from: ada, at: start + 5)
        try await bob.request(from: ada, at: start + 5)
        let everything = try bob.hexes.joined()
        #expect(everything.contains("My chapter"))
    }

    @Test("a declined offer does not come again") func declined() async throws {
        let (ada, bob) = (try Person(1), try Person(2))
        try bob.trust(ada)
        var random = SystemRandomNumberGenerator()
        let list = ListNode.ID(kind: .hex, time: start, using: &random)
        guard case .offered(let offer) = try await bob.store.applyOverview(overview(list, .read), from: ada.peer.id, at: start).first else {
            throw Person.Failure.noOffer
        }
        try await bob.store.declineOffer(offer.number)
        #expect(try await bob.store.applyOverview(overview(list, .read), from: ada.peer.id, at: start).isEmpty)
        _ = try await bob.store.applyOverview(overview(list, .ended), from: ada.peer.id, at: start)
        #expect(try await bob.store.applyOverview(overview(list, .read), from: ada.peer.id, at: start).isEmpty)
    }

    @Test("a joined hex of which nothing has arrived can be left") func leaveUnarrived() async throws {
        let (ada, bob) = (try Person(1), try Person(2))
        try bob.trust(ada)
        var random = SystemRandomNumberGenerator()
        let list = ListNode.ID(kind: .hex, time: start, using: &random)
        guard case .offered(let offer) = try await bob.store.applyOverview(overview(list, .read), from: ada.peer.id, at: start).first else {
            throw Person.Failure.noOffer
        }
        let joined = try await bob.store.joinOffer(offer.number, at: start)
        let hex = try #require(joined.hex, "no id with which the user could leave it")
        _ = try await bob.store.change([hex], .delete, at: start + 1)
        #expect(try bob.test.read { try $0.sharedHexes() }.isEmpty)
    }

    @Test("a member cannot nest hexes deeper than 8 levels of My Hexlist") func depth() async throws {
        let (ada, bob, hex) = try await shared()
        let list = try list(ada)
        var nodes: [ListNode] = []
        for _ in 0..<10 { nodes.append(node(.hex, in: nodes.last?.id ?? list, "Deep", version())) }
        nodes.append(node(.link, in: try #require(nodes.last).id, "deep link", version()))
        try await send(nodes, of: list, to: ada, from: bob)
        let levels = try ada.test.read {
            try $0.first(
                """
                WITH RECURSIVE tree (id, level) AS (SELECT ?, 1 UNION ALL SELECT hex.id, level + 1 FROM tree JOIN hex ON hex.parent = tree.id)
                SELECT max(level) FROM tree
                """, hex
            ) { $0.int(0) } ?? 0
        }
        #expect(levels <= ProtocolLimits.levels, "\(levels) levels")
        #expect(try ada.isConsistent())
    }

    @Test("two machines with shared hexes keep them when their collections are merged") func joinWithLists() async throws {
        let (ada, bob, hex) = try await shared()
        let (laptop, carol) = (try Person(4), try Person(3))
        try laptop.trust(carol)
        try carol.trust(laptop)
        let other = try await laptop.store.addMine(content("Cooking", links: 3), at: start)
        let inner = try await laptop.store.addMine(content("Cakes", links: 3), into: other, at: start)
        _ = try await laptop.store.shareMine(other, with: [carol.peer.id: .write], at: start + 1)
        try await join(carol, laptop)
        try await pair(ada, laptop)
        for _ in 0..<3 { for (first, second) in [(ada, laptop), (laptop, ada)] { try await first.request(from: second, at: start + 4) } }
        #expect(try ada.hexes.sorted() == laptop.hexes.sorted() && ada.hexes.count == 2)
        #expect(try ada.isConsistent() && laptop.isConsistent())
        #expect(try laptop.hex("Cooking") == other && laptop.test.read { try $0.hex(inner) } != nil)
        #expect(try ada.hex("Reading") == hex)
        #expect(try ada.test.read { try $0.sharedHexes() }.count == 2 && laptop.test.read { try $0.sharedHexes() }.count == 2)
        _ = bob
        _ = try await laptop.store.removeOwnMachine(ada.peer.id)
        _ = try await ada.store.removeOwnMachine(laptop.peer.id)
        try await laptop.store.editMine(other, MineEdit(description: "Kitchen"), at: start + 5)
        for _ in 0..<2 { try await carol.request(from: laptop, at: start + 6) }
        #expect(try carol.hexes.first?.hasPrefix("Kitchen") == true)
        #expect(try ada.isConsistent() && laptop.isConsistent())
    }

    @Test("a former member does not learn when the hex changes") func formerMember() async throws {
        let (ada, bob, hex) = try await shared()
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 3)
        let list = try list(ada)
        let before = try #require(try ada.test.read { try $0.announcedLists() }.first { $0.id == list })
        try await ada.store.editMine(hex, MineEdit(description: "Books"), at: start + 4)
        let after = try #require(try ada.test.read { try $0.announcedLists() }.first { $0.id == list })
        // `ListDriver.announce` sends `ListNews` if the sequence changed, but not to former members.
        #expect(after.sequence > before.sequence && after.former == [bob.peer.id])
    }

    @Test("the deletion mark and place of the root have no effect, and its owner can still delete and restore it") func root() async throws
    {
        let (ada, bob, hex) = try await shared()
        let list = try list(ada)
        var root = ListNode(id: list)
        root.deletion = DeletionMark(version: version(1_000))
        root.place = ListNode.Place(version: version(), parent: list, key: OrderKey(bytes: [1]))
        root.url = "https://evil.example/"
        try await send([root], of: list, to: ada, from: bob)
        try await send([node(.link, in: list, "z", version())], of: list, to: ada, from: bob)
        #expect(try ada.hexes.last?.hasPrefix("Reading https") == true && ada.isConsistent())
        try await ada.store.editMine(hex, MineEdit(description: "Books"), at: start + 10)
        _ = try await ada.store.change([hex], .delete, at: start + 11)
        _ = try await ada.store.restoreMine(hex, at: start + 12)
        #expect(try ada.hex("Books") == hex && ada.isConsistent())
    }

    @Test("the queries of each page and of the trash use an index") func plans() async throws {
        let (ada, _, _) = try await shared()
        for sql in [
            "SELECT number FROM mineChange WHERE list = 2"
        ] {
            let plan = try ada.test.read { try $0.all("EXPLAIN QUERY PLAN \(sql)") { $0.text(3) } }
            #expect(!plan.contains { $0.hasPrefix("SCAN") }, "\(sql): \(plan)")
        }
    }

    @Test("malformed entries of an own machine do no harm") func malformedEntries() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(4)
        try await pair(ada, laptop)
        let mine = try ada.test.read { try $0.mineList() }
        for _ in 0..<2 { try await ada.request(from: laptop) }
        let list = try list(ada)
        func entry(_ registers: [UTF8Text: String], list: String = "") -> ListNode {
            var node = node(.sharedList, in: mine, list, version())
            for (name, value) in registers { node.registers[name] = ListNode.Register(version: version(), value: UTF8Text(value)) }
            return node
        }
        let peer = "\(bob.peer.id)"
        let nodes = [
            entry([:]), entry([:], list: ""), entry([:], list: "\(mine.uuid)"), entry(["epoch": "1"], list: "x"),
            entry(
                [
                    UTF8Text("with/" + peer): "rubbish", "with/ABCDEFAB-0101-8101-8101-010101010101": "none",
                    "with/abcdefab-0101-8101-8101-010101010101": "write",
                ], list: "\(list.uuid)"),
            entry([:], list: "\(list.uuid)".uppercased() as String),
            entry([UTF8Text("from/" + peer): "1"], list: "\(mine.uuid)"),
        ]
        let request = try ada.test.read { try $0.listPageRequest(of: mine, from: laptop.peer.id) }
        _ = request
        try await send(nodes, of: mine, to: ada, from: laptop, as: .ownMachine, replica: 77)
        #expect(try ada.isConsistent())
        #expect(try ada.hex("Reading") == hex)
        _ = try ada.test.read { try $0.sharedHexes() }
        _ = try ada.test.read { try $0.listOverview(for: laptop.peer.id, at: start) }
    }

    @Test("the owner's machine that was restored from a backup sends no duplicates, and a member's rows are not lost") func restoredOwner()
        async throws
    {
        let (ada, bob, _) = try await shared()
        try await ada.store.renewReplicas()
        try await bob.store.editMine(try bob.hex("Reading"), MineEdit(links: [.init(from: 0), .init(from: 1), link("c")]), at: start + 3)
        for _ in 0..<3 {
            try await ada.request(from: bob)
            try await bob.request(from: ada)
        }
        #expect(try ada.hexes.last == bob.hexes.first && ada.isConsistent() && bob.isConsistent())
    }
}
