import Foundation
import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

/// A member with a modified program, which sends any rows, also two versions of one row to two machines of the owner.
@Suite("Hostile members of lists") struct HostileMemberTests {
    private static let runs = LongTests.areWanted ? 2_000 : 40
    private static let own = [(0, 1), (0, 2), (1, 2)]

    /// Two machines of the owner (0 and 1) and an honest member (2) with a list, to which a liar sends rows.
    private struct Attack {
        var world: World
        var added: Set<ListNode.ID> = []
        var deleted: Set<ListNode.ID> = []
        /// Rows of the liar that were accepted.
        var forged: Set<ListNode.ID> = []

        init(seed: UInt64) {
            world = World(machines: 3, seed: seed)
            for index in 0..<3 { world.skews[index] = Int64(world.random(3_600_000)) }
        }

        mutating func changeSomething() throws {
            let machine = world.random(3)
            let rows = world.machines[machine].storage.rows.values.filter { $0.state != .deleted }.map(\.node.id).sorted()
            let parent = rows.filter { $0.kind == .hex }.randomElement(using: &world.generator) ?? world.list
            let (node, choice, root) = (rows.randomElement(using: &world.generator), world.random(10), world.list)
            let changes = try world.change(machine) { list, generator in
                func key() throws -> OrderKey { try list.keys(at: .last, in: parent, using: &generator)[0] }
                switch choice {
                case ..<4: _ = try list.add(.link, in: parent, key: key(), title: "t", url: "u", using: &generator)
                case ..<6: _ = try list.add(.hex, in: root, key: key(), title: "H", using: &generator)
                case 6: if let node { try list.setTitle(of: node, to: "new") }
                case 7: if let node { try list.move(node, to: parent, key: key()) }
                case 8: if let node { try list.restore(node) }
                default: if let node { try list.delete(node) }
                }
            }
            for change in changes {
                if change.before == nil { added.insert(change.after.id) }
                if change.after.deletion != nil { deleted.insert(change.after.id) }
            }
        }

        private mutating func version() -> ListVersion {
            let now = HybridClock.time(milliseconds: world.now)
            let clock = [1, now, now + 11 * 3_600_000 << 16, now + 13 * 3_600_000 << 16, now + 90_000_000 << 16, .max][world.random(6)]
            let isOwner = world.random(3) == 0
            return ListVersion(clock: clock, replica: isOwner ? world.machines[0].number : ReplicaNumber(world.generator.next()))
        }

        private mutating func forgedNode() -> ListNode {
            let known = world.machines[0].storage.rows.keys.sorted()
            func any(_ world: inout World) -> ListNode.ID {
                let kind = ListNode.Kind(rawValue: UInt8(world.random(16)))
                guard world.random(4) > 0, let id = known.randomElement(using: &world.generator) else {
                    return ListNode.ID(kind: kind, time: world.now, using: &world.generator)
                }
                return id
            }
            var node = ListNode(id: any(&world))
            if world.random(3) > 0 {
                let parent = world.random(5) == 0 ? node.id : any(&world)
                let key = OrderKey(bytes: Array(repeating: UInt8(world.random(256)), count: 1 + world.random(4)))
                node.place = ListNode.Place(version: version(), parent: parent, key: key, previousParent: any(&world))
            }
            if world.random(2) == 0 { node.title = ListNode.Register(version: version(), value: "Z") }
            if world.random(3) == 0 { node.registers["r\(world.random(3))".utf8Text] = ListNode.Register(version: version(), value: "x") }
            if world.random(3) == 0 {
                let hex = world.random(3) == 0 ? node.id : any(&world)
                node.deletion = DeletionMark(version: version(), with: world.random(2) == 0 ? nil : hex)
            }
            if world.random(4) == 0 { node.url = "http://evil" }
            return node
        }

        mutating func lie() throws {
            var nodes = (0..<8).map { _ in forgedNode() }
            for machine in [0, 1] {
                var encoder = ListPageEncoder(list: world.list, receiver: .ownMachine)
                for node in nodes where !encoder.append(node) { throw Failure("the page is full") }
                let json = encoder.encoded(replica: ReplicaNumber(99), after: 0, through: 1, isLast: false)
                let page = try ListPage(decoding: json, from: .otherPerson, isShared: true, now: world.now + world.skews[machine])
                forged.formUnion(page.nodes.map(\.id))
                try world.machines[machine].receive(page, from: 9, at: world.now + world.skews[machine])
                // The other machine gets different values with the same versions.
                guard world.random(2) == 0 else { return }
                for index in nodes.indices where nodes[index].title != nil { nodes[index].title?.value = "Z!" }
            }
        }

        mutating func check() throws {
            try world.exchange(HostileMemberTests.own)
            let first = world.machines[0]
            for machine in world.machines {
                guard machine.text == first.text, machine.digest == first.digest, machine.storage.fullDigest == first.digest else {
                    throw Failure("machines differ:\n\(machine.text)---\n\(first.text)")
                }
                let again = try machine.storage.derivedAgain(using: &world.generator)
                guard again.rows == machine.storage.rows else { throw Failure("full evaluation differs") }
            }
        }
    }

    @Test("honest machines agree; an owner's later change wins; links are missing only if the liar touched what they depend on", .offPool)
    func liar() throws {
        for seed in 0..<Self.runs {
            var attack = Attack(seed: UInt64(seed))
            for _ in 0..<60 {
                attack.world.now += Int64(attack.world.random(600_000))
                switch attack.world.random(10) {
                case ..<6: try attack.changeSomething()
                case ..<8:
                    let (left, right) = Self.own[attack.world.random(3)]
                    try attack.world.pull(left, from: right, limit: 1 + attack.world.random(40), pages: 3, crashes: true)
                default: try attack.lie()
                }
            }
            try attack.check()
            let rows = attack.world.machines[0].storage.rows
            for id in attack.added.subtracting(attack.deleted).subtracting(attack.forged) where id.kind == .link {
                guard let row = rows[id] else { throw Failure("seed \(seed): a link is unknown") }
                let isVisible = row.state == .present
                #expect(isVisible || row.node.deletion?.with != nil, "seed \(seed): a link is missing")
            }
            // Versions of the liar are at most 12 hours ahead, so the owner's later changes win.
            attack.world.now += 86_400_000
            let links = rows.values.filter { $0.state == .present && $0.node.id.kind == .link }.map(\.node.id)
            try attack.world.change(0) { list, _ in for link in links { try list.setTitle(of: link, to: "owner's") } }
            try attack.check()
            for link in links { #expect(attack.world.machines[2].storage.rows[link]?.node.title?.value == "owner's") }
        }
    }
}

extension String {
    fileprivate var utf8Text: UTF8Text { UTF8Text(self) }
}
