import TestSupport
import Testing

@testable import HexlistLists

/// Three machines with one list: A and C are connected through B. Each change is a second after the one before.
struct Scenario {
    var world = World(machines: 3, seed: 42)
    static let connections = [(0, 1), (1, 2)]

    enum Machine: Int {
        case a, b, c
    }

    var list: ListNode.ID { world.list }
    /// The shown tree, which is the same on all machines.
    private(set) var text = ""

    /// Exchanges everything. All machines have to show the same tree.
    mutating func sync(_ location: SourceLocation = #_sourceLocation) throws {
        world.now += 60_000
        try world.exchange(Self.connections)
        text = world.machines[0].text
        for machine in world.machines {
            #expect(machine.text == text, sourceLocation: location)
            #expect(machine.projection == Projection(machine.storage), sourceLocation: location)
            #expect(machine.digest == world.machines[0].digest && machine.storage.fullDigest == machine.digest, sourceLocation: location)
        }
        world.now += 60_000
    }

    /// Exchanges everything and compares the tree.
    mutating func expect(_ lines: String..., location: SourceLocation = #_sourceLocation) throws {
        try sync(location)
        #expect(text == lines.map { $0 + "\n" }.joined(), sourceLocation: location)
    }

    @discardableResult
    mutating func change<Result>(
        _ machine: Machine, _ body: (inout Transaction, inout SeededGenerator) throws -> Result
    ) throws -> Result {
        var result: Result?
        try world.change(machine.rawValue) { result = try body(&$0, &$1) }
        world.now += 1_000
        return try #require(result)
    }

    mutating func hex(_ machine: Machine, _ title: UTF8Text, in parent: ListNode.ID? = nil) throws -> ListNode.ID {
        let parent = parent ?? list
        return try change(machine) { list, generator in
            let key = try list.keys(at: .last, in: parent, using: &generator)[0]
            return try list.add(.hex, in: parent, key: key, title: title, using: &generator)
        }
    }

    /// Adds a link with the title `t` and its URL.
    @discardableResult
    mutating func link(
        _ machine: Machine, _ url: UTF8Text, in parent: ListNode.ID, at position: ListPosition = .last
    ) throws -> ListNode.ID {
        try change(machine) { list, generator in
            let key = try list.keys(at: position, in: parent, using: &generator)[0]
            return try list.add(.link, in: parent, key: key, title: UTF8Text("t\(url)"), url: url, using: &generator)
        }
    }

    mutating func rename(_ machine: Machine, _ id: ListNode.ID, _ title: UTF8Text) throws {
        try change(machine) { list, _ in try list.setTitle(of: id, to: title) }
    }

    mutating func move(_ machine: Machine, _ id: ListNode.ID, to parent: ListNode.ID, at position: ListPosition = .last) throws {
        let isMoved = try change(machine) { list, generator in
            try list.move(id, to: parent, key: list.keys(at: position, in: parent, using: &generator)[0])
        }
        #expect(isMoved)
    }

    mutating func delete(_ machine: Machine, _ id: ListNode.ID) throws {
        try change(machine) { list, _ in _ = try list.delete(id) }
    }

    mutating func restore(_ machine: Machine, _ id: ListNode.ID) throws {
        try change(machine) { list, _ in _ = try list.restore(id) }
    }

    func node(_ id: ListNode.ID, on machine: Machine = .a) -> ListNode? { world.machines[machine.rawValue].storage.row(id)?.node }
}
