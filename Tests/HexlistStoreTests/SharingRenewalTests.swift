import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

/// The replacement of a shared list by a copy without its deleted rows.
@Suite(.timeLimit(.minutes(5))) struct SharingRenewalTests: SharingScenario {
    /// The nodes of a list, without deleted ones if `isShown`.
    private func rows(of list: ListNode.ID, _ person: Person, isShown: Bool = false) throws -> [ListNode] {
        try person.test.read { reader in
            guard let record = try ListRecord(list, on: reader) else { return [] }
            let storage = try SQLListStorage(record, on: reader)
            return try storage.nodes().filter { try !isShown || storage.row($0.id)?.state != .deleted }
        }
    }

    private func trash(_ person: Person) throws -> [TrashedItem] {
        try person.test.read { try $0.trashPage(limit: 100, before: nil).items }
    }

    private func log(_ person: Person) throws -> [MyHexlistChange] {
        try person.test.read { try $0.mineChanges(limit: 100, before: nil) }.items
    }

    /// Adds links and deletes them again.
    private func addDeletedLinks(_ count: Int, to hex: Int64, of person: Person) async throws {
        let links = try #require(try person.test.read { try $0.hex(hex) }).content.links.indices.map { MineEdit.Link(from: $0) }
        let new = (0..<count).map { MineEdit.Link(url: "https://gone.example/\($0)") }
        try await person.store.editMine(hex, MineEdit(links: links + new), at: start + 3)
        try await person.store.editMine(hex, MineEdit(links: links), at: start + 3)
    }

    @Test("the copy has what is shown, with all values, numbers and members; the old list ends") func renewal() async throws {
        let (ada, bob, hex) = try await shared()
        let others = try (3...5).map { try Person($0) }
        for other in others {
            try ada.trust(other)
            try other.trust(ada)
            _ = try await ada.store.shareMine(hex, with: [other.peer.id: .read], at: start + 2)
            try await join(other, ada)
            try await ada.request(from: other)
        }
        let (carol, dan, eve) = (others[0], others[1], others[2])
        _ = try await dan.store.change([dan.hex("Reading")], .delete, at: start + 3)
        try await ada.request(from: dan)
        _ = try await ada.store.shareMine(hex, with: [eve.peer.id: .ended], at: start + 3)
        for other in [dan, eve] { try await other.request(from: ada) }

        let inner = try await ada.store.addMine(content("Inner", links: 1, extra: #","note":"n""#), into: hex, at: start + 3)
        let innermost = try await ada.store.addMine(content("Innermost", links: 1), into: inner, at: start + 3)
        let gone = try await ada.store.addMine(content("Gone", links: 4), into: hex, at: start + 3)
        _ = try await ada.store.addMine(content("Last"), at: start + 3)
        try await ada.store.editMine(
            hex, MineEdit(color: "#00ff00", tags: ["t"], links: [.init(from: 1, tags: ["x", "y"]), .init(from: 0)]), at: start + 3)
        _ = try await ada.store.change([gone], .delete, at: start + 3)
        try await addDeletedLinks(7, to: hex, of: ada)
        let old = try list(ada)
        let link = try #require(try rows(of: old, ada, isShown: true).first { $0.id.kind == .link }).id
        try ada.test.write { writer in
            let row = try #require(try ListRecord(old, on: writer)).row
            try writer.changeMine(at: start + 3, in: row) { try $0.nodes.setRegister("read", of: link, to: "1") }
        }
        try await exchange((bob, ada), (carol, ada), at: 4, rounds: 2)
        let copies = (bob: try bob.hex("Reading"), carol: try carol.hex("Reading"))
        let (hexes, oldRows, oldLog) = (try ada.hexes, try rows(of: old, ada), try log(ada).map(\.number))
        let shown = try rows(of: old, ada, isShown: true)
        #expect(try trash(ada).count == 8 && oldRows.count == shown.count + 12)

        let renewal = try await ada.store.renewShared(hex, at: start + 5)
        #expect(renewal.removed == 12 && renewal.shared.hex == hex && renewal.shared.links == 4 && renewal.shared.hexes == 2)
        #expect(renewal.shared.list != old && renewal.shared.isOwned)
        #expect(renewal.shared.peers.map(\.peer) == [bob, carol].map(\.peer.id) && renewal.shared.peers.map(\.access) == [.write, .read])
        #expect(renewal.shared.peers.allSatisfy { $0.state == .offered })
        #expect(try ada.hexes == hexes && ada.isConsistent())
        for (number, title) in [(hex, "Reading"), (inner, "Inner"), (innermost, "Innermost")] {
            #expect(try ada.test.read { try $0.hex(number) }?.summary.description == title)
        }
        #expect(try ada.hex("Reading") == hex)

        // The rows of the new list are the shown ones, with new ids.
        let new = try rows(of: renewal.shared.list, ada)
        func values(_ nodes: [ListNode]) -> [String] {
            nodes.map { node in
                let registers = node.registers.filter { !$1.value.isEmpty }.map { "\($0)=\($1.value)" }.sorted()
                return "\(node.title?.value ?? "") \(node.url) \(node.service) \(registers) \(node.place?.key.bytes ?? [])"
            }.sorted()
        }
        #expect(values(new) == values(shown) && values(new).contains { $0.contains("read=1") })
        #expect(new.allSatisfy { $0.deletion == nil } && Set(new.map(\.id)).isDisjoint(with: oldRows.map(\.id)))
        #expect(try rows(of: old, ada).isEmpty)

        // Nothing is in the trash or the log.
        #expect(try trash(ada).isEmpty && log(ada).map(\.number) == oldLog)
        let last = try #require(oldLog.first)
        await #expect(throws: HexlistError.self) { try await ada.store.undoMine([last], at: start + 5) }

        // The members keep the old hex as it is, and are asked to join the new one.
        for (member, copy, access) in [(bob, copies.bob, ListOverview.Access.write), (carol, copies.carol, .read)] {
            let changes = try await member.request(from: ada, at: start + 6)
            let offer = try #require(changes.compactMap { if case .offered(let offer) = $0 { offer } else { nil } }.first)
            #expect(changes.count == 2 && changes.contains { if case .ended(let ended) = $0 { ended.hex == copy } else { false } })
            #expect(offer.title == "Reading" && offer.access == access && offer.links == 4 && offer.list == renewal.shared.list)
            await #expect(throws: HexlistError.self) {
                try await member.store.editMine(copy, MineEdit(description: "Mine"), at: start + 6)
            }
            _ = try await member.store.joinOffer(offer.number, at: start + 6)
            try await exchange((member, ada), at: 7, rounds: 2)
            let contents = try #require(hexes.first { $0.hasPrefix("Reading") })
            #expect(try member.hexes == [contents, contents] && member.hex("Reading") != copy && member.isConsistent())
            let rows = try rows(of: renewal.shared.list, member)
            #expect(rows.allSatisfy { $0.registers["read"] == nil } && rows.count == new.count)
        }
        #expect(try ada.test.read { try $0.sharedHex(hex) }?.peers.map(\.state) == [.joined, .joined])
        for former in [dan, eve] { #expect(try await former.request(from: ada, at: start + 8).isEmpty) }

        // Changes are exchanged as before.
        let copy = try bob.hex("Reading")
        try await bob.store.editMine(copy, MineEdit(description: "Books"), at: start + 9)
        try await exchange((bob, ada), (carol, ada), at: 10, rounds: 2)
        #expect(try ada.hex("Books") == hex && carol.hexes.contains { $0.hasPrefix("Books") })
        #expect(try ada.isConsistent() && bob.isConsistent() && carol.isConsistent())
    }

    @Test("only a shared hex of the user is renewed, as a whole") func refusals() async throws {
        let (ada, bob, hex) = try await shared(.read)
        let inner = try await ada.store.addMine(content("Inner"), into: hex, at: start + 3)
        let other = try await ada.store.addMine(content("Other"), at: start + 3)
        for (person, hex, message) in [
            (ada, other, "is not shared"), (ada, inner, "is inside the shared hex “Reading”"), (ada, 99, "There is no hex 99"),
            (bob, try bob.hex("Reading"), "belongs to another person"),
        ] {
            let (hexes, lists) = (try person.hexes, try person.test.read { try $0.sharedHexes() })
            await #expect {
                _ = try await person.store.renewShared(hex, at: start + 4)
            } throws: {
                ($0 as? HexlistError)?.message.contains(message) ?? false
            }
            #expect(try person.hexes == hexes && person.test.read { try $0.sharedHexes() } == lists)
        }
    }

    @Test("a hex without members, and an empty one, are renewed; several times") func again() async throws {
        let (ada, bob, hex) = try await shared()
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: .ended], at: start + 3)
        try await ada.store.editMine(hex, MineEdit(links: []), at: start + 4)
        let before = try ada.hexes
        for (step, removed) in [2, 0, 0].enumerated() {
            let renewal = try await ada.store.renewShared(hex, at: start + 5 + Int64(step))
            #expect(renewal.removed == removed && renewal.shared.peers.isEmpty && renewal.shared.hex == hex)
            #expect(try ada.hexes == before && ada.isConsistent() && trash(ada).isEmpty)
        }
        #expect(try ada.test.read { try $0.sharedHexes() }.map(\.hex) == [hex])
        // It can be deleted and restored.
        _ = try await ada.store.change([hex], .delete, at: start + 9)
        #expect(try ada.hexes.isEmpty)
        #expect(try await ada.store.restoreMine(hex, at: start + 10) == hex)
        #expect(try ada.hexes == before && ada.isConsistent())
    }

    @Test("the other machines of the owner show the new hex with the same number, and nothing in the trash or as deleted")
    func ownMachine() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(4)
        try await pair(ada, laptop)
        let inner = try await ada.store.addMine(content("Inner", links: 120), into: hex, at: start + 3)
        try await addDeletedLinks(150, to: hex, of: ada)
        _ = try await laptop.store.addMine(content("Here"), at: start + 4)
        try await exchange((laptop, ada), at: 5, rounds: 2)
        let (number, before) = (try laptop.hex("Reading"), try log(laptop).count)
        #expect(try laptop.hexes == ada.hexes)
        let renewal = try await ada.store.renewShared(hex, at: start + 6)
        try await exchange((laptop, ada), at: 7, rounds: 2)
        #expect(try laptop.hexes == ada.hexes && laptop.hexes.count { $0.hasPrefix("Reading") } == 1)
        #expect(try laptop.hex("Reading") == number && ada.hex("Reading") == hex)
        #expect(try ada.test.read { try $0.hex(inner) }?.summary.description == "Inner")
        for person in [ada, laptop] {
            #expect(try trash(person).isEmpty && person.isConsistent())
            let shared = try #require(try person.test.read { try $0.sharedHexes() }.first)
            #expect(shared.list == renewal.shared.list && shared.peers.map(\.peer) == [bob.peer.id])
        }
        let news = try log(laptop).dropLast(before)
        #expect(news.allSatisfy { $0.links.deleted == 0 && $0.hexes.deleted == 0 })
        // The member joins, and a change reaches both machines. The rows of the old list are removed with age.
        try await bob.request(from: ada, at: start + 8)
        try await join(bob, ada)
        let copy = try bob.hex("Reading")
        try await bob.store.editMine(copy, MineEdit(description: "Books"), at: start + 9)
        try await exchange((bob, ada), (laptop, ada), at: 10, rounds: 2)
        #expect(try laptop.hex("Books") == number && ada.hex("Books") == hex)
        let old = try ada.test.read { try $0.first("SELECT count(*) FROM node WHERE list = 2") { $0.int(0) } }
        #expect(old == 0)
        _ = try laptop.test.write(lived: .max) { try $0.purgeTrash(limit: 1_000) }
        let lists = try laptop.test.read { try $0.all("SELECT DISTINCT list FROM node") { $0.int(0) } }
        #expect(lists.count == 2)
        #expect(try laptop.isConsistent() && laptop.hex("Books") == number)
    }

    @Test("a machine of the owner with changes of its own keeps the old hex in its trash") func unsentChanges() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(4)
        try await pair(ada, laptop)
        try await exchange((laptop, ada), at: 3, rounds: 2)
        let old = try list(ada)
        try await laptop.store.editMine(
            laptop.hex("Reading"), MineEdit(links: [.init(from: 0), .init(from: 1), link("unsent")]), at: start + 4)
        let renewal = try await ada.store.renewShared(hex, at: start + 5)
        try await exchange((laptop, ada), at: 6, rounds: 2)
        #expect(try laptop.hexes == ada.hexes && ada.hexes == ["Reading https://a.example/ https://b.example/"])
        #expect(try trash(ada).isEmpty)
        let item = try #require(try trash(laptop).first)
        #expect(try trash(laptop).count == 1 && item.subject == "Reading" && item.links == 3)
        _ = try await laptop.store.restoreMine(numbers: [item.number], at: start + 7)
        try await exchange((laptop, ada), (bob, ada), at: 8, rounds: 2)
        let expected = [
            "Reading https://a.example/ https://b.example/", "Reading https://a.example/ https://b.example/ https://unsent.example/",
        ]
        for person in [ada, laptop] {
            #expect(try person.hexes.sorted() == expected && person.isConsistent())
            let shared = try person.test.read { try $0.sharedHexes() }
            #expect(shared.first { $0.list == old }?.peers.map(\.access) == [.ended])
            #expect(shared.first { $0.list == renewal.shared.list }?.peers.map(\.access) == [.write])
        }
        #expect(try laptop.hexes == ada.hexes)
    }

    @Test("two machines of the owner that renew apart both show two hexes, and lose nothing") func twice() async throws {
        let (ada, bob, hex) = try await shared()
        let laptop = try Person(4)
        try await pair(ada, laptop)
        try laptop.trust(bob)
        try await exchange((laptop, ada), at: 3, rounds: 2)
        let number = try laptop.hex("Reading")
        _ = try await ada.store.renewShared(hex, at: start + 4)
        _ = try await laptop.store.renewShared(number, at: start + 5)
        try await exchange((laptop, ada), at: 6, rounds: 2)
        for (person, number) in [(ada, hex), (laptop, number)] {
            #expect(try person.hexes == Array(repeating: "Reading https://a.example/ https://b.example/", count: 2))
            #expect(try person.test.read { try $0.sharedHexes() }.contains { $0.hex == number })
            #expect(try trash(person).isEmpty && person.isConsistent())
        }
    }

    @Test("a hex with too many deleted rows is to be renewed, and receives changes again afterwards") func full() async throws {
        let (ada, bob, hex) = try await shared()
        let old = try list(ada)
        #expect(try ada.test.read { try $0.sharedHex(hex) }?.needsRenewal == false)
        try await ada.addDeletedRows(74_997)
        #expect(try ada.test.read { try $0.sharedHex(hex) }?.needsRenewal == true)
        #expect(try bob.test.read { try $0.sharedHexes() }.first?.needsRenewal == false)
        await #expect(throws: ListFault.full) { try await send([node(.link, in: old, "x", version())], of: old, to: ada, from: bob) }
        let renewal = try await ada.store.renewShared(hex, at: start + 3)
        #expect(renewal.removed == 74_997 && !renewal.shared.needsRenewal)
        try await join(bob, ada)
        let new = renewal.shared.list
        try await send([node(.link, in: new, "x", version())], of: new, to: ada, from: bob, replica: 8)
        #expect(try ada.test.read { try $0.sharedHex(hex) }?.links == 3)
    }

    @Test("the texts of members that stay count to the maximum of the new list") func texts() async throws {
        let (ada, bob, hex) = try await shared()
        let old = try list(ada)
        var (long, deleted) = (node(.link, in: old, "x", version()), node(.link, in: old, "y", version()))
        let note = ListNode.Register(version: version(), value: UTF8Text(String(repeating: "x", count: 20_000)))
        (long.registers["note"], deleted.registers["note"]) = (note, note)
        deleted.deletion = DeletionMark(version: version())
        try await send([long, deleted], of: old, to: ada, from: bob)
        func textBytes(_ list: ListNode.ID) throws -> Int {
            try #require(try ada.test.read { try $0.first("SELECT textBytes FROM list WHERE uuid = ?", list.uuid) { $0.int(0) } })
        }
        #expect(try textBytes(old) > 40_000)
        let new = try await ada.store.renewShared(hex, at: start + 10).shared.list
        #expect(try (20_000..<21_000).contains(textBytes(new)))
        // Texts of the owner do not count.
        try await ada.store.onWritingConnection { try $0.execute(sql: "UPDATE list SET textBytes = 7 WHERE id <> 1") }
        let third = try await ada.store.renewShared(hex, at: start + 11).shared.list
        #expect(try textBytes(third) == 7)
    }

    @Test("a link without a place, and one whose hex is unknown, are copied into the root") func strays() async throws {
        let (ada, bob, hex) = try await shared()
        let old = try list(ada)
        var (homeless, stray) = (node(.link, in: old, "homeless", version()), node(.link, in: old, "stray", version()))
        homeless.place = nil
        var random = SystemRandomNumberGenerator()
        stray.place?.parent = ListNode.ID(kind: .hex, time: start, using: &random)
        try await send([homeless, stray], of: old, to: ada, from: bob)
        let links = try #require(try ada.test.read { try $0.hex(hex) }).content.links.count
        let before = try ada.hexes
        let renewal = try await ada.store.renewShared(hex, at: start + 10)
        #expect(links == 4 && renewal.removed == 0)
        #expect(try ada.hexes == before && ada.isConsistent())
        #expect(try rows(of: renewal.shared.list, ada).allSatisfy { $0.id == renewal.shared.list || $0.place != nil })
    }

    @Test("the entry names the old list and its digest, as Docs/Lists.md describes") func register() async throws {
        let (ada, bob, hex) = try await shared()
        let old = try list(ada)
        let digest = try #require(try ada.test.read { try ListRecord(old, on: $0)?.digest })
        let new = try await ada.store.renewShared(hex, at: start + 3).shared.list
        let entries = try ada.test.read { try $0.sharedListEntries() }
        let entry = try #require(entries.first { $0.list == new })
        #expect(entry.node.registers["renewed"]?.value == UTF8Text("\(old.uuid) \(digest)"))
        #expect(entry.node.registers[SharedListEntry.member(bob.peer.id)]?.value == "write" && entry.node.registers["copied"] == nil)
        #expect(entry.renewed.map { $0.list == old && $0.digest == digest } == true && entry.isShown)
        let former = try #require(entries.first { $0.list == old })
        #expect(!former.isShown && former.members.mapValues(\.access) == [bob.peer.id: .ended])
        for text in ["", "x y", "\(old.uuid)", "\(old.uuid) \(digest) 1", "\(old.uuid) zz"] {
            var node = entry.node
            node.registers["renewed"]?.value = UTF8Text(text)
            #expect(SharedListEntry(ListRow(node: node))?.renewed == nil)
        }
    }
}
