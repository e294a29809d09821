import HexlistModel
import TestSupport
import Testing

@testable import HexlistLists

@Suite("New versions after the clock was wrong") struct VersionRenewalTests {
    private static let day: Int64 = 86_400_000

    /// Makes random changes on one machine, the later half of them with a clock that is three days ahead.
    private func world(seed: UInt64) throws -> World {
        var world = World(machines: 2, seed: seed)
        for number in 0..<60 {
            world.skews[0] = number < 30 ? 0 : 3 * Self.day
            world.now += 1_000
            let rows = world.machines[0].storage.rows.values.map(\.node.id).sorted()
            let node = rows.randomElement(using: &world.generator)
            let parent = rows.filter { $0.kind == .hex }.randomElement(using: &world.generator) ?? world.list
            let choice = world.random(8)
            try world.change(0) { list, generator in
                func key() throws -> OrderKey { try list.keys(at: .last, in: parent, using: &generator)[0] }
                switch choice {
                case 0...1: _ = try list.add(.hex, in: parent, key: key(), title: "H", using: &generator)
                case 2...3: _ = try list.add(.link, in: parent, key: key(), title: "L", url: "u", using: &generator)
                case 4: if let node, node != parent { try list.move(node, to: parent, key: key()) }
                case 5: if let node { try list.setRegister("color", of: node, to: "#123456") }
                case 6: if let node { try list.delete(node) }
                default: if let node { try list.restore(node) }
                }
            }
        }
        world.skews[0] = 0
        return world
    }

    private func renew(_ world: inout World) throws -> Int {
        var count = 0
        let latest = HybridClock.latest(milliseconds: world.now + ListLimits.clockAhead)
        world.machines[0].renewNumber()
        try world.change(0) { list, _ in count = try list.renewVersions(after: latest) }
        return count
    }

    @Test("the tree stays, later versions are near the present, and others accept all nodes", arguments: 1...20 as ClosedRange<UInt64>)
    func renewal(seed: UInt64) throws {
        var world = try world(seed: seed)
        let before = world.machines[0]
        #expect(HybridClock.milliseconds(of: before.clock.last) > world.now + 2 * Self.day)
        #expect(try renew(&world) > 0)
        let after = world.machines[0]
        #expect(after.text == before.text)
        #expect(after.clock.last < HybridClock.time(milliseconds: world.now + 1_000))
        #expect(after.storage.nodes().allSatisfy { $0.latestTime <= after.clock.last })
        var digest = ListDigest()
        for node in after.storage.nodes() { digest.toggle(node, in: world.list) }
        #expect(after.digest == digest)
        // Derived from all rows, the tree is the same, too.
        #expect(try after.storage.derivedAgain(using: &world.generator).shownText == before.text)

        try world.exchange([(0, 1)])
        #expect(world.machines[1].text == before.text)
        #expect(world.machines[1].digest == after.digest)
        #expect(try renew(&world) == 0)
    }

    @Test("versions of all registers keep their order") func order() throws {
        var world = World(machines: 1, seed: 1)
        world.skews[0] = 3 * Self.day
        var link: ListNode.ID?
        try world.change(0) { list, generator in
            let key = try list.keys(at: .last, in: list.list, using: &generator)[0]
            link = try list.add(.link, in: list.list, key: key, title: "L", url: "u", registers: ["note": "n"], using: &generator)
        }
        let id = try #require(link)
        for name in ["b", "a"] { try world.change(0) { list, _ in try list.setRegister(UTF8Text(name), of: id, to: "x") } }
        try world.change(0) { list, _ in try list.delete(id) }
        world.skews[0] = 0
        #expect(try renew(&world) == 1)
        let node = try #require(world.machines[0].storage.row(id)?.node)
        let place = try #require(node.place?.version)
        #expect(node.title?.version == place && node.registers["note"]?.version == place)
        let (a, b) = (try #require(node.registers["a"]?.version), try #require(node.registers["b"]?.version))
        #expect(place < b && b < a)
        #expect(node.deletion?.version == a && node.isMarkedDeleted)
    }

    @Test("versions that others accept stay") func accepted() throws {
        var world = World(machines: 1, seed: 1)
        world.skews[0] = ListLimits.clockAhead
        var before: [ListNode] = []
        try world.change(0) { list, generator in
            let key = try list.keys(at: .last, in: list.list, using: &generator)[0]
            _ = try list.add(.hex, in: list.list, key: key, title: "H", using: &generator)
            before = try list.storage.nodes()
        }
        world.skews[0] = 0
        #expect(try renew(&world) == 0)
        #expect(world.machines[0].storage.nodes() == before)
    }
}
