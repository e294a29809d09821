import HexlistModel
import TestSupport

@testable import HexlistLists

typealias Transaction = ListTransaction<MemoryStorage>

/// One machine's copy of a list, as the store has it: rows, clock, digest, and a cursor for each other replica. A copy of the value is a
/// backup of it.
struct Replica {
    private(set) var storage: MemoryStorage
    private(set) var number: ReplicaNumber
    private(set) var clock = HybridClock()
    private(set) var digest = ListDigest()
    /// The replica number and the last sequence number that were received, by index of the other machine.
    private(set) var cursors: [Int: (replica: ReplicaNumber, sequence: Int64)] = [:]
    private(set) var projection = Projection()
    var generator: SeededGenerator

    init(list: ListNode.ID, seed: UInt64) {
        storage = MemoryStorage(list: list)
        generator = SeededGenerator(seed: seed)
        number = ReplicaNumber(generator.next() | 1)
    }

    var list: ListNode.ID { storage.list }
    var text: String { storage.shownText }

    /// Draws a new replica number, as a store does after the restore of a backup. Other replicas then request all rows again.
    mutating func renewNumber() { number = ReplicaNumber(generator.next() | 1) }

    mutating func restore(_ backup: Replica) {
        (storage, clock, digest, cursors) = (backup.storage, backup.clock, backup.digest, backup.cursors)
        projection = backup.projection
        renewNumber()
    }

    /// Makes local changes in one transaction, and returns them.
    @discardableResult
    mutating func change(at now: Int64, _ body: (inout Transaction, inout SeededGenerator) throws -> Void) throws -> [ListChange] {
        storage.source = nil
        var transaction = Transaction(storage: storage, replica: number, clock: clock, digest: digest, now: now)
        try body(&transaction, &generator)
        try commit(&transaction)
        return transaction.changes
    }

    private mutating func commit(_ transaction: inout Transaction) throws {
        let changes = try transaction.deriveTree()
        (storage, clock, digest) = (transaction.storage, transaction.clock, transaction.digest ?? digest)
        projection.update(changes, storage)
    }

    /// Returns the rows after a cursor, without those that came unaltered from `asker`.
    mutating func page(to asker: ReplicaNumber, after cursor: (replica: ReplicaNumber, sequence: Int64)?, limit: Int) -> ListPage {
        var after = cursor?.replica == number ? cursor?.sequence ?? 0 : 0
        if after > storage.sequence {  // an old copy of this store is running
            renewNumber()
            after = 0
        }
        let changed = storage.numbers.filter { $0.value.sequence > after }.sorted { $0.value.sequence < $1.value.sequence }
        let sent = changed.prefix(limit)
        let isLast = sent.count == changed.count
        var page = ListPage(
            list: list, replica: number, after: after, through: isLast ? storage.sequence : sent.last?.value.sequence ?? after,
            isLast: isLast)
        page.nodes = sent.filter { $0.value.source != asker }.compactMap { storage.row($0.key)?.node }
        return page
    }

    /// Stores rows and cursor in one transaction.
    /// - Parameter isRolledBack: whether the transaction is undone before its commit, as by a crash.
    /// - Returns: whether the list changed.
    @discardableResult
    mutating func receive(_ page: ListPage, from machine: Int, at now: Int64, isRolledBack: Bool = false) throws -> Bool {
        let before = self
        storage.source = page.replica
        var transaction = Transaction(storage: storage, replica: number, clock: clock, digest: digest, now: now)
        for node in page.nodes { try transaction.merge(node, isReceived: true) }
        try commit(&transaction)
        cursors[machine] = (page.replica, page.through)
        if isRolledBack { self = before }
        return !isRolledBack && !transaction.changes.isEmpty
    }
}

/// The shown tree, of which each transaction updates only the parts that it reports as changed. The store keeps its tables for hexes and
/// links in the same way.
struct Projection: Equatable {
    private var hexes: [ListNode.ID: ListRow] = [:]
    private var links: [ListNode.ID: [ListNode]] = [:]
    private var root: ListNode?

    init() {}

    /// The projection of all rows.
    init(_ storage: MemoryStorage) {
        update(ListTreeChanges(allOf: storage.hexes().map(\.node.id) + [storage.list]), storage)
    }

    mutating func update(_ changes: ListTreeChanges, _ storage: MemoryStorage) {
        for id in changes.hexes {
            if id == storage.list { root = storage.row(id)?.node }
            var row = storage.row(id)
            row?.leaves = 0
            hexes[id] = row?.state == .deleted ? nil : row
        }
        for (hex, changed) in changes.contents {
            let shown = storage.contents(of: hex).map(\.node).filter { $0.id.kind == .link }
            let links = update(links[hex] ?? [], changed, shown)
            self.links[hex] = links.isEmpty ? nil : links
        }
    }

    /// Replaces only the links at the positions that changed.
    private func update(_ links: [ListNode], _ changes: LeafChanges, _ shown: [ListNode]) -> [ListNode] {
        var result = links
        if let start = changes.start {
            result = links.filter { LeafPosition($0) < start } + shown.filter { LeafPosition($0) >= start }
        }
        guard let values = changes.values else { return result }
        return result.map { link in values.contains(LeafPosition(link)) ? shown.first { $0.id == link.id } ?? link : link }
    }
}

/// Several machines with one list, and the time.
struct World {
    var machines: [Replica] = []
    /// Milliseconds that each machine's clock is ahead.
    var skews: [Int64] = []
    /// Milliseconds since 1970.
    var now: Int64 = 1_800_000_000_000
    var generator: SeededGenerator
    let list: ListNode.ID
    /// Rows that were sent in all.
    private(set) var sent = 0

    init(machines count: Int, seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        list = ListNode.ID(kind: .hex, time: 1_700_000_000_000, using: &generator)
        for _ in 0..<count {
            machines.append(Replica(list: list, seed: generator.next()))
            skews.append(0)
        }
    }

    mutating func random(_ bound: Int) -> Int { Int(generator.next() % UInt64(max(bound, 1))) }

    @discardableResult
    mutating func change(_ machine: Int, _ body: (inout Transaction, inout SeededGenerator) throws -> Void) throws -> [ListChange] {
        try machines[machine].change(at: now + skews[machine], body)
    }

    /// One machine requests pages of another.
    /// - Parameters:
    ///   - pages: maximum pages.
    ///   - crashes: whether a transaction may be rolled back.
    mutating func pull(_ machine: Int, from other: Int, limit: Int = 1_000, pages: Int = .max, crashes: Bool = false) throws {
        for _ in 0..<pages {
            let asker = machines[machine].number
            var page = machines[other].page(to: asker, after: machines[machine].cursors[other], limit: limit)
            sent += page.nodes.count
            if crashes, random(8) == 0 { page = try encoded(page, for: machine) }
            let isRolledBack = crashes && random(12) == 0
            try machines[machine].receive(page, from: other, at: now + skews[machine], isRolledBack: isRolledBack)
            if page.isLast || isRolledBack { return }
        }
    }

    /// Encodes and decodes a page, as it is sent over the network.
    private func encoded(_ page: ListPage, for machine: Int) throws -> ListPage {
        var encoder = ListPageEncoder(list: list, receiver: .ownMachine)
        for node in page.nodes where !encoder.append(node) { throw Failure("the page is full") }
        let json = encoder.encoded(replica: page.replica, after: page.after, through: page.through, isLast: page.isLast)
        let decoded = try ListPage(decoding: json, from: .ownMachine, isShared: false, now: now + skews[machine])
        guard decoded == page else { throw Failure("the page is different after decoding: \(String(decoding: json, as: UTF8.self))") }
        return decoded
    }

    /// Exchanges along all connections until nothing is sent and nothing changes.
    mutating func exchange(_ connections: [(Int, Int)]) throws {
        for _ in 0..<200 {
            let (before, digests) = (sent, machines.map(\.digest))
            for (left, right) in connections {
                try pull(left, from: right)
                try pull(right, from: left)
            }
            if sent == before, digests == machines.map(\.digest) { return }
        }
        throw Failure("the exchange does not end")
    }

    /// Machines whose digests differ exchange everything once.
    mutating func repair(_ connections: [(Int, Int)]) throws {
        for (left, right) in connections where machines[left].digest != machines[right].digest {
            machines[left].renewNumber()
            machines[right].renewNumber()
            try pull(left, from: right)
            try pull(right, from: left)
        }
    }
}

/// A condition of a simulation that does not hold.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
