import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

private typealias Person = SharingPerson

@Suite(.timeLimit(.minutes(5))) struct DeletionCycleTests: SharingScenario {
    @Test("hexes that two machines moved into each other and deleted are in the trash of both", arguments: [false, true])
    func movedIntoEachOther(isLaterFirst: Bool) async throws {
        let (desktop, laptop) = (try Person(1), try Person(2))
        try await pair(desktop, laptop)
        var hexes: [Int64] = []
        for title in ["A", "B"] {
            let hex = try await desktop.store.addMine(content(title, links: 0), at: start + Int64(hexes.count))
            try await desktop.store.editMine(hex, MineEdit(links: [link(title)]), at: start + 2)
            hexes.append(hex)
        }
        try await exchange((desktop, laptop), at: 3)
        let before = try desktop.hexes
        #expect(try before.count == 2 && laptop.hexes == before)

        for (machine, (inner, outer)) in [(desktop, ("A", "B")), (laptop, ("B", "A"))] {
            let time = start + ((machine === desktop) == isLaterFirst ? 5 : 4)
            let (inner, outer) = (try machine.hex(inner), try machine.hex(outer))
            try await machine.store.moveMine(inner, into: outer, at: time)
            _ = try await machine.store.change([outer], .delete, at: time)
        }
        try await exchange((desktop, laptop), at: 6)
        for machine in [desktop, laptop] {
            #expect(try machine.hexes.isEmpty && machine.isConsistent())
            let items = try machine.test.read { try $0.trashPage(limit: 9, before: nil).items }
            #expect(items.reduce(0) { $0 + ($1.url == nil ? 1 : 0) + $1.hexesInside } == 2, "\(items)")
            #expect(items.reduce(0) { $0 + ($1.url == nil ? 0 : 1) + $1.links } == 2, "\(items)")
        }
        #expect(try mineDigest(desktop) == mineDigest(laptop))

        let numbers = try laptop.test.read { try $0.trashPage(limit: 9, before: nil).items.map(\.number) }
        _ = try await laptop.store.restoreMine(numbers: numbers, at: start + 7)
        try await exchange((desktop, laptop), at: 8)
        for machine in [desktop, laptop] {
            let hexes = try machine.hexes
            #expect(hexes.count == 1 && hexes[0].contains("["), "\(hexes)")
            let links = try machine.test.read { try $0.first("SELECT count(*) FROM node WHERE kind = 2 AND state = 0") { $0.int(0) } }
            #expect(links == 2)
            #expect(try machine.isConsistent())
        }
        #expect(try desktop.hexes == laptop.hexes && mineDigest(desktop) == mineDigest(laptop))
    }

    private func mineDigest(_ person: Person) throws -> Int64? {
        try person.test.read { try $0.first("SELECT digest FROM list WHERE id = 1") { $0.int64(0) } }
    }

    @Test("a long cycle of deletions is found, and removed from the trash as a whole") func long() async throws {
        let (desktop, laptop) = (try Person(1), try Person(2))
        try await pair(desktop, laptop)
        var hexes: [String: Int64] = [:]
        for title in ["A", "B"] {
            let hex = try await desktop.store.addMine(content(title, links: 0), at: start)
            try await desktop.store.editMine(hex, MineEdit(links: [link(title)]), at: start + 2)
            hexes[title] = hex
        }
        try await exchange((desktop, laptop), at: 3)
        for (machine, inner, outer) in [(desktop, "A", "B"), (laptop, "B", "A")] {
            var container = try machine.hex(outer)
            for number in 0..<6 {
                container = try await machine.store.addMine(content("\(outer)\(number)", links: 1), into: container, at: start + 4)
            }
            try await machine.store.moveMine(machine.hex(inner), into: container, at: start + 5)
            _ = try await machine.store.change([machine.hex(outer)], .delete, at: start + 6)
        }
        try await exchange((desktop, laptop), at: 7)
        for machine in [desktop, laptop] {
            #expect(try machine.hexes.isEmpty && machine.isConsistent())
            let items = try machine.test.read { try $0.trashPage(limit: 99, before: nil).items }
            // The hexes that the other machine added arrived deleted.
            #expect(items.reduce(0) { $0 + ($1.url == nil ? 1 : 0) + $1.hexesInside } == 8, "\(items)")
            _ = try await machine.store.emptyTrash()
            let texts = try machine.test.read { try $0.first("SELECT count(*) FROM node WHERE kind = 2 AND url <> ''") { $0.int(0) } }
            #expect(texts == 0)
        }
        try await exchange((desktop, laptop), at: 8)
        #expect(try mineDigest(desktop) == mineDigest(laptop))
    }

    @Test("marks of a member that name each other are the same on the machines of the owner and of a reader") func hostile() async throws {
        let (ada, bob, hex) = try await shared()
        let carol = try Person(3)
        try carol.trust(ada)
        try ada.trust(carol)
        _ = try await ada.store.shareMine(hex, with: [carol.peer.id: .read], at: start + 3)
        try await join(carol, ada)
        let list = try list(bob)
        var (first, second) = (node(.hex, in: list, "X", version()), node(.hex, in: list, "Y", version()))
        first.deletion = DeletionMark(version: version(), with: second.id)
        second.deletion = DeletionMark(version: version(), with: first.id)
        try await send([first, second], of: list, to: ada, from: bob)
        for _ in 0..<3 { try await carol.request(from: ada, at: start + 10) }
        #expect(try digest(ada) == digest(carol))
        #expect(try ada.isConsistent() && carol.isConsistent())
    }
}
