import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// The owner of a list decides about its rows: members have what the owner has, also after faults.
@Suite(.timeLimit(.minutes(5))) struct SharingAuthorityTests: SharingScenario {
    private func link(_ person: Person, _ name: String) throws -> ListNode.ID {
        let row = try person.test.read {
            try $0.first("SELECT uuid FROM node WHERE list <> 1 AND url LIKE '%\(name).example%'") { $0.nodeID(0) } ?? nil
        }
        return try #require(row)
    }

    private func url(of link: ListNode.ID, _ person: Person) throws -> String? {
        try person.test.read { try $0.first("SELECT url FROM node WHERE list <> 1 AND uuid = ?", link.uuid) { $0.text(0) } }
    }

    /// A member that joins the hex of the owner from all its machines.
    private func member(_ number: UInt8, of hex: Int64, _ owners: Person..., access: ListOverview.Access = .write) async throws -> Person {
        let member = try Person(number)
        for owner in owners {
            try owner.trust(member)
            try member.trust(owner)
        }
        _ = try await owners[0].store.shareMine(hex, with: [member.peer.id: access], at: start + 3)
        for owner in owners {
            if owner !== owners[0] { try await owner.request(from: owners[0], at: start + 3) }
            try await join(member, owner)
        }
        return member
    }

    // MARK: - The URL of a link

    /// Deletes the link b, removes its values from the owner's machine, and lets bob bring it back with a lesser URL.
    private func bringBack(_ ada: Person, _ bob: Person, _ others: Person..., hex: Int64) async throws -> ListNode.ID {
        let link = try link(ada, "b")
        try await ada.store.editMine(hex, MineEdit(links: [.init(from: 0)]), at: start + 4)
        for _ in 0..<2 { for other in others { try await other.request(from: ada, at: start + 4) } }
        _ = try await ada.store.emptyTrash()
        #expect(try url(of: link, ada) == "")
        var node = ListNode(id: link)
        node.url = "https://0.example/"
        node.place = ListNode.Place(version: version(20), parent: try list(ada), key: OrderKey(bytes: [1, 1, 1, 1, 1, 1, 1, 1]))
        node.title = ListNode.Register(version: version(20), value: "back")
        try await send([node], of: try list(ada), to: ada, from: bob, at: start + 21)
        #expect(try url(of: link, ada) == "https://0.example/")
        return link
    }

    @Test("a purged link that a member brings back with another URL has the owner's URL on all machines of other members")
    func purgedLink() async throws {
        let (ada, bob, hex) = try await shared()
        let carol = try await member(3, of: hex, ada)
        let phone = try Person(6)
        try await pair(carol, phone)
        try await exchange((carol, phone), at: 3)
        let link = try await bringBack(ada, bob, carol, hex: hex)
        #expect(try url(of: link, carol) == "https://b.example/")
        try await exchange((carol, phone), at: 21)
        try await exchange((carol, ada), (carol, phone), at: 22)
        for person in [carol, phone] {
            #expect(try url(of: link, person) == "https://0.example/")
            #expect(try digest(person) == digest(ada))
            #expect(try person.hexes.contains("Reading https://0.example/ https://a.example/"))
            #expect(try person.isConsistent())
        }
        #expect(try ada.isConsistent())
    }

    @Test("machines of the owner agree about that URL, and members take it") func purgedLinkOnTwoMachines() async throws {
        let (ada, bob, hex) = try await shared()
        let desktop = try Person(4)
        try await pair(ada, desktop)
        try await exchange((ada, desktop), at: 3)
        let carol = try await member(3, of: hex, ada)
        let link = try await bringBack(ada, bob, carol, desktop, hex: hex)
        try await carol.request(from: ada, at: start + 22)
        try await exchange((ada, desktop), at: 22)
        try await exchange((carol, ada), at: 22)
        for person in [carol, desktop] {
            #expect(try url(of: link, person) == url(of: link, ada))
            #expect(try digest(person) == digest(ada))
        }
    }

    @Test("a member's other machine with a link that was changed meanwhile gets the owner's URL") func changedLink() async throws {
        let (ada, bob, hex) = try await shared()
        let carol = try await member(3, of: hex, ada)
        let phone = try Person(6)
        try await pair(carol, phone)
        try await exchange((carol, phone), at: 3)
        let link = try await bringBack(ada, bob, carol, hex: hex)
        let list = try list(phone)
        try phone.test.write { writer in
            let record = try #require(try ListRecord(list, on: writer))
            try writer.changeMine(at: start + 30, in: record.row) { try $0.nodes.setTitle(of: link, to: "later") }
        }
        try await exchange((carol, phone), (carol, ada), (carol, phone), at: 31)
        for person in [carol, phone] {
            #expect(try url(of: link, person) == "https://0.example/")
            #expect(try digest(person) == digest(ada))
        }
    }

    // MARK: - Rows that the owner lost

    /// Removes a link from the store as if a backup without it had been restored.
    private func lose(_ link: ListNode.ID, _ person: Person) async throws {
        let list = try list(person)
        try person.test.write { writer in
            try writer.change {
                let record = try #require(try ListRecord(list, on: writer))
                let row = try #require(try SQLListStorage(record, on: writer).row(link))
                var digest = try #require(record.digest)
                digest.toggle(row.node, in: list)
                try writer.run("DELETE FROM node WHERE uuid = ? AND list = ?", link.uuid, record.row)
                try writer.run(
                    "UPDATE list SET digest = ?, seq = (SELECT max(seq) FROM node WHERE list = ?2) WHERE id = ?2",
                    Int64(bitPattern: digest.value), record.row)
                try writer.project(ListTreeChanges(allOf: [list]), SQLListStorage(ListRecord(on: writer, row: record.row), on: writer))
            }
        }
        try await person.store.renewReplicas()
    }

    @Test("a reader drops rows that the owner lost, on all machines") func reader() async throws {
        let (ada, bob, hex) = try await shared(.read)
        let phone = try Person(6)
        try await pair(bob, phone)
        try await add("c", by: ada)
        try await bob.request(from: ada, at: start + 4)
        try await exchange((bob, phone), at: 4)
        #expect(try phone.hexes.last?.contains("https://c.") == true)
        try await lose(link(ada, "c"), ada)
        try await exchange((bob, ada), (bob, phone), at: 5)
        #expect(try bob.hexes.last?.contains("https://c.") == true && digest(bob) != digest(ada))
        try await bob.store.repairList(list(bob), with: ada.peer.id)
        try await exchange((bob, ada), (bob, phone), at: 6)
        for person in [bob, phone] {
            #expect(try person.hexes == ["Reading https://a.example/ https://b.example/"])
            #expect(try digest(person) == digest(ada))
            #expect(try person.isConsistent())
        }
        #expect(try rejected(bob).isEmpty && bob.test.read { try $0.trashPage(limit: 10, before: nil).items }.isEmpty)
        // Later changes arrive.
        _ = try await ada.store.editMine(hex, MineEdit(description: "Books"), at: start + 7)
        try await bob.request(from: ada, at: start + 8)
        try await exchange((bob, phone), at: 8)
        #expect(try bob.hexes.last?.hasPrefix("Books") == true && phone.hexes.last?.hasPrefix("Books") == true)
    }

    @Test("links that a member had added before it became a reader, and that the owner lost, are copied") func formerWriter() async throws {
        let (ada, bob, hex) = try await shared()
        try await add("c", by: bob)
        try await exchange((ada, bob), at: 4)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .read], at: start + 5)
        try await exchange((bob, ada), at: 6)
        #expect(try rejected(bob).isEmpty && digest(bob) == digest(ada))
        try await lose(link(ada, "c"), ada)
        try await bob.request(from: ada, at: start + 7)
        try await bob.store.repairList(list(bob), with: ada.peer.id)
        try await bob.request(from: ada, at: start + 8)
        #expect(try rejected(bob) == ["Reading (not accepted) https://c.example/"])
        #expect(try digest(bob) == digest(ada))
    }

    @Test("a reader keeps rows if the owner has several machines, of which one may not have them yet") func twoOwners() async throws {
        let (ada, bob, _) = try await shared(.read)
        let desktop = try Person(4)
        try await pair(ada, desktop)
        try await exchange((ada, desktop), at: 3)
        try desktop.trust(bob)
        try bob.trust(desktop)
        try await join(bob, desktop)
        try await add("c", by: desktop)
        try await bob.request(from: desktop, at: start + 4)
        try await bob.store.repairList(list(bob), with: ada.peer.id)
        try await bob.request(from: ada, at: start + 5)
        #expect(try bob.hexes.last?.contains("https://c.") == true)
    }

    // MARK: - Bounds

    @Test("a machine of the owner accepts a full list from another one, but not from members") func fullList() async throws {
        let (ada, bob, _) = try await shared()
        let desktop = try Person(4)
        try await pair(ada, desktop)
        try await exchange((ada, desktop), at: 3)
        let list = try list(ada)
        try desktop.trust(bob)
        try await desktop.addDeletedRows(74_997)  // beside the root and two links
        let nodes = (0..<2).map { _ in node(.link, in: list, "x", version()) }
        await #expect(throws: ListFault.full) { try await send([nodes[0]], of: list, to: desktop, from: bob) }
        try await send([nodes[0]], of: list, to: desktop, from: ada, as: .ownMachine, replica: 8)
        try await desktop.store.onWritingConnection {
            try $0.execute(
                sql: "UPDATE list SET textBytes = ?, replicas = ? WHERE id <> 1",
                arguments: [ListLimits.sharedListTextBytes / 4 * 3, StoreWriter.maximumSharedReplicas / 4 * 3])
        }
        var other = nodes[1]
        other.title?.version = version(9, 1_000)
        try await send([other], of: list, to: desktop, from: ada, as: .ownMachine, replica: 8)
    }

    @Test("purged rows of My Hexlist do not keep the machine from which they came") func purgedRows() async throws {
        let (ada, laptop) = (try Person(1), try Person(4))
        try await pair(ada, laptop)
        let hex = try await ada.store.addMine(content("Old", links: 20), at: start)
        try await exchange((ada, laptop), at: 1)
        _ = try await ada.store.change([hex], .delete, at: start + 2)
        try await exchange((ada, laptop), at: 3)
        _ = try await laptop.store.emptyTrash()
        let rows = try laptop.test.read { try $0.all("SELECT via FROM node WHERE state = 1") { $0.optionalInt64(0) } }
        #expect(rows.count == 21 && rows.allSatisfy { $0 == nil || $0 == SQLListStorage.severalReplicas })
        // They are sent and merged as before.
        try await laptop.store.repairList(try ada.test.read { try $0.mineList() }, with: ada.peer.id)
        try await exchange((ada, laptop), at: 4)
        let digests = try [ada, laptop].map { person in try person.test.read { try ListRecord(on: $0).digest } }
        #expect(digests[0] == digests[1])
    }
}
