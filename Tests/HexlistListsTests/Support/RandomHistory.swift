import TestSupport

@testable import HexlistLists

/// A history of several machines, determined by its seed.
struct RandomHistory {
    private var world: World
    private let restores: Bool
    private var connections: [(Int, Int)] = []
    private var isAway: [Bool]
    private var backups: [Replica?]
    private var expected = IndependentTree()
    /// Links that were added, without those that were lost because their machine was restored before it had sent them.
    private var added: Set<ListNode.ID> = []
    private var lost: Set<ListNode.ID> = []
    private var counter = 0
    /// The last changes of each machine, for undo.
    private var lastChanges: [[ListChange]]

    init(seed: UInt64, restores: Bool, machines: Int? = nil) {
        world = World(machines: machines ?? 3 + Int(seed / 4 % 3), seed: seed)
        self.restores = restores
        let count = world.machines.count
        (isAway, backups) = (Array(repeating: false, count: count), Array(repeating: nil, count: count))
        lastChanges = Array(repeating: [], count: count)
        for index in 0..<count { world.skews[index] = Int64(world.random(12 * 3_600_000)) - 6 * 3_600_000 }
        // All machines are connected, but not each one with each other one.
        for index in 1..<count { connections.append((world.random(index), index)) }
        for _ in 0..<count {
            let (left, right) = (world.random(count), world.random(count))
            if left != right, world.random(3) == 0 { connections.append((left, right)) }
        }
    }

    mutating func run(operations: Int) throws {
        for _ in 0..<operations {
            world.now += Int64(world.random(10) == 0 ? world.random(7 * 86_400_000) : world.random(600_000))
            let machine = world.random(world.machines.count)
            switch world.random(100) {
            case ..<70: try changeSomething(machine)
            case ..<92:
                var (left, right) = connections[world.random(connections.count)]
                if isAway[left] || isAway[right] { continue }
                if world.random(2) == 0 { swap(&left, &right) }
                try world.pull(left, from: right, limit: 1 + world.random(40), pages: 1 + world.random(6), crashes: true)
            case ..<95: isAway[machine].toggle()
            case ..<96: world.skews[machine] -= Int64(world.random(3 * 3_600_000))
            case ..<98: if restores { backups[machine] = world.machines[machine] }
            default: if restores, world.random(2) == 0, let backup = backups[machine] { restore(machine, backup) }
            }
        }
        try finish()
    }

    private mutating func restore(_ machine: Int, _ backup: Replica) {
        let before = world.machines[machine].storage.rows.keys
        world.machines[machine].restore(backup)
        for id in before where !world.machines.contains(where: { $0.storage.rows[id] != nil }) { lost.insert(id) }
    }

    /// Makes a random change of the shown tree on a machine.
    mutating func changeSomething(_ machine: Int) throws {
        counter += 1
        world.now += 1_000
        let (restores, counter, choice) = (restores, counter, world.random(104))
        let storage = world.machines[machine].storage
        let rows = storage.rows.values.filter { $0.state != .deleted }.sorted { $0.node.id < $1.node.id }
        let hexes = rows.map(\.node.id).filter { $0.kind == .hex }
        let links = rows.map(\.node.id).filter { $0.kind == .link }
        let parent = hexes.isEmpty || world.random(5) == 0 ? world.list : hexes[world.random(hexes.count)]
        let hex = hexes.isEmpty ? nil : hexes[world.random(hexes.count)]
        let link = links.isEmpty ? nil : links[world.random(links.count)]
        let inside = storage.contents(of: parent).map(\.node.id)
        let position: ListPosition =
            switch world.random(6) {
            case 0: .first
            case 1: .last
            case _ where inside.isEmpty: .last
            case 2: .after(inside[world.random(inside.count)])
            default: .before(inside[world.random(inside.count)])
            }
        let deleted = storage.rows.values.filter { $0.state == .deleted && $0.node.place != nil }.map(\.node.id).sorted()
        let gone = deleted.isEmpty ? nil : deleted[world.random(deleted.count)]
        let purged = deleted.filter { $0.kind == .link }.prefix(3)
        let (undone, flag) = (lastChanges[machine], world.random(2) == 0)

        var newLinks: [ListNode.ID] = []
        let changes = try world.change(machine) { list, generator in
            func key() throws -> OrderKey { try list.keys(at: position, in: parent, using: &generator)[0] }
            func text(_ prefix: String) -> UTF8Text { UTF8Text("\(prefix)\(counter)") }
            switch choice {
            case ..<26: newLinks.append(try list.add(.link, in: parent, key: key(), title: text("t"), url: text("u"), using: &generator))
            case ..<36: _ = try list.add(.hex, in: parent, key: key(), title: text("H"), using: &generator)
            case ..<40:
                for (index, key) in try list.keys(count: 5, at: position, in: parent, using: &generator).enumerated() {
                    newLinks.append(
                        try list.add(.link, in: parent, key: key, title: text("p"), url: text("u\(index)."), using: &generator))
                }
            case ..<50: if let link { try list.setTitle(of: link, to: text("e")) }
            case ..<55: if let hex { try list.setTitle(of: hex, to: text("E")) }
            case ..<58: if let hex { try list.setRegister("color", of: hex, to: text("#")) }
            case ..<61: if let link { try list.setRegister(flag ? "done" : "tag/x", of: link, to: text("")) }
            case ..<71: if let link { try list.move(link, to: parent, key: key()) }
            case ..<83: if let hex { try list.move(hex, to: parent, key: key()) }
            case ..<90: if let link { try list.delete(link) }
            case ..<94: if let hex { try list.delete(hex) }
            case ..<98: if let gone { try list.restore(gone) }
            case ..<100:
                let new = try link.flatMap { try list.setURL(of: $0, to: text("v"), service: "", using: &generator) }
                if let new { newLinks.append(new) }
            case ..<102: _ = try list.undo(undone)
            default: if restores { for id in purged { try list.purge(id) } }
            }
        }
        added.formUnion(newLinks)
        lastChanges[machine] = changes
        for change in changes { expected.add(change) }
    }

    /// Exchanges everything, and compares the machines.
    mutating func finish() throws {
        try world.exchange(connections)
        let first = world.machines[0]
        let text = first.text
        for (index, machine) in world.machines.enumerated() {
            guard machine.text == text else { throw Failure("machine \(index) has\n\(machine.text)---\n\(text)") }
            guard machine.digest == first.digest, machine.storage.fullDigest == first.digest else { throw Failure("digests") }
            guard machine.projection == Projection(machine.storage) else { throw Failure("machine \(index): a change was not reported") }
            let again = try machine.storage.derivedAgain(using: &world.generator)
            guard again.rows == machine.storage.rows else {
                throw Failure("machine \(index): full evaluation\n\(again.shownText)---\n\(text)")
            }
        }
        var everDeleted = expected.deleted
        if restores {  // values that were written on a machine before it was restored may be lost
            expected = IndependentTree()
            for node in world.machines.flatMap({ $0.storage.nodes() }) { expected.add(node) }
            everDeleted.formUnion(expected.deleted)
        }
        let independent = expected.text(of: world.list)
        guard independent == text else { throw Failure("the definition gives\n\(independent)--- and not\n\(text)") }
        for id in added.subtracting(lost).subtracting(everDeleted) {
            guard first.storage.rows[id]?.state == .present else { throw Failure("a link is missing that nobody deleted") }
        }
        try checkQuiet()
    }

    /// Checks that a further exchange sends nothing, and that receiving all rows again changes nothing.
    private mutating func checkQuiet() throws {
        let sent = world.sent
        try world.exchange(connections)
        guard world.sent == sent else { throw Failure("rows are sent although nothing changed") }
        for (left, right) in connections {
            let before = world.machines[left]
            let page = world.machines[right].page(to: ReplicaNumber(0), after: nil, limit: .max)
            try world.machines[left].receive(page, from: right, at: world.now)
            guard world.machines[left].storage.rows == before.storage.rows, world.machines[left].digest == before.digest else {
                throw Failure("a row that is received again changes the list")
            }
        }
    }
}
