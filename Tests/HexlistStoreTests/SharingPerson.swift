import HexlistLists
import HexlistModel
import TestSupport
import Testing

@testable import HexlistStore

/// A machine of one person, with the pages that it requests of others.
final class SharingPerson {
    enum Failure: Error { case noOffer }

    let test: TestStore
    let peer: TestPeer
    private var rejections: [SharingChange] = []

    var store: HexStore { test.store }

    init(_ number: UInt8) throws {
        test = try TestStore()
        peer = try TestPeer(number)
    }

    func trust(_ others: SharingPerson...) throws { for other in others { _ = try test.trust(other.peer) } }

    func add(_ other: SharingPerson) async throws {
        try trust(other)
        _ = try await store.addOwnMachine(other.peer.id, at: start)
    }

    /// Requests the lists of another machine as a node does.
    /// - Returns: the changes that the overview announced, and rejected changes of this machine.
    @discardableResult
    func request(from other: SharingPerson, at now: Int64 = start) async throws -> [SharingChange] {
        let json = try other.test.read { try $0.listOverview(for: self.peer.id, at: now) }.json
        let overview = try ListOverview(decoding: json)
        if overview.clockDifference(at: now) == nil { _ = try await store.correctVersions(inListsOf: other.peer.id, at: now) }
        let changes = try await store.applyOverview(overview, from: other.peer.id, at: now)
        for entry in overview.lists where entry.access != .ended {
            let state = try test.read { try $0.localListState(with: other.peer.id) }
            guard state.lists.contains(where: { $0.id == entry.list && $0.receives && $0.epoch == entry.epoch }) else { continue }
            try await pages(of: entry.list, from: other, at: now)
        }
        defer { rejections = [] }
        return changes + rejections
    }

    /// Requests pages until the last one without rows.
    func pages(of list: ListNode.ID, from other: SharingPerson, at now: Int64 = start) async throws {
        for _ in 0..<100 {
            guard let page = try await page(of: list, from: other, at: now), !page.isLast || !page.nodes.isEmpty else { return }
        }
        Issue.record("the exchange does not end")
    }

    func page(of list: ListNode.ID, from other: SharingPerson, at now: Int64 = start) async throws -> ListPage? {
        let request = try test.read { try $0.listPageRequest(of: list, from: other.peer.id) }
        guard case .page(let json) = try other.store.listPageSync(list, request, for: peer.id, at: now) else { return nil }
        let isOwn = try test.read { try $0.isOwnMachine(other.peer.id) }
        let isShared = try test.read { try ListRecord(list, on: $0)?.isShared ?? false }
        let page = try ListPage(decoding: json, from: isOwn ? .ownMachine : .otherPerson, isShared: isShared, now: now)
        let result = try await store.mergeListPage(
            page, answering: request, from: other.peer.id, as: isOwn ? .ownMachine : .otherPerson, at: now, diskReserve: 0)
        if let rejection = result.rejection { rejections.append(rejection) }
        return page
    }

    /// The titles of the hexes at the top level, in order, each with its links and the sorted titles inside.
    var hexes: [String] {
        get throws {
            try test.read { reader in
                try reader.hexPage(HexFilter(location: .mine)).items.map { item in
                    guard let content = try reader.hex(item.id)?.content else { return "?" }
                    func text(_ slice: TextSlice) -> String { String(decoding: content.bytes(slice), as: UTF8.self) }
                    return text(content.hexDescription) + content.links.map { " " + text($0.url) }.joined()
                        + content.children.map { " [\(text($0.hexDescription))]" }.sorted().joined()
                }
            }
        }
    }

    func hex(_ title: String) throws -> Int64 {
        try #require(try test.read { try $0.hexPage(HexFilter(location: .mine)).items.first { $0.subject == title } }).id
    }

    /// Adds rows of deleted links to the shared list.
    func addDeletedRows(_ count: Int) async throws {
        try await store.onWritingConnection {
            try $0.execute(
                sql: """
                    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(count))
                    INSERT INTO node (uuid, kind, url, service, state, leaves, seq, list, goneClock, goneBy)
                    SELECT randomblob(16), 2, '', '', 1, 0, 10000 + n, (SELECT max(id) FROM list), 1, 1 FROM numbers
                    """)
            try $0.execute(sql: "UPDATE list SET seq = 110000 WHERE id <> 1")
        }
    }

    /// Whether the rows show the nodes of all lists, and digests and counters are right.
    func isConsistent() throws -> Bool {
        try test.read { reader in
            for row in try reader.all("SELECT id FROM list", read: { $0.int64(0) }) {
                let list = try ListRecord(on: reader, row: row)
                var digest = ListDigest()
                for node in try SQLListStorage(list, on: reader).nodes() { digest.toggle(node, in: list.id) }
                #expect(list.digest == nil || list.digest == digest)
            }
        }
        return try MyHexlistNodeTests().rowsShowTheNodes(store) && test.countersAreRight()
    }
}

/// Common steps of tests with several persons.
protocol SharingScenario {}

extension SharingScenario {
    func link(_ name: String) -> MineEdit.Link { MineEdit.Link(url: "https://\(name).example/") }

    func shared(_ access: ListOverview.Access = .write) async throws -> (ada: SharingPerson, bob: SharingPerson, hex: Int64) {
        let (ada, bob) = (try SharingPerson(1), try SharingPerson(2))
        try ada.trust(bob)
        try bob.trust(ada)
        let hex = try await ada.store.addMine(content("Reading", links: 0), at: start)
        try await ada.store.editMine(hex, MineEdit(links: [link("a"), link("b")]), at: start)
        _ = try await ada.store.shareMine(hex, with: [bob.peer.id: access], at: start + 1)
        try await join(bob, ada)
        try await ada.request(from: bob)
        return (ada, bob, hex)
    }

    func join(_ member: SharingPerson, _ owner: SharingPerson) async throws {
        try await member.request(from: owner)
        // That of a hex that the user has left counts as declined.
        let offer = try member.test.read {
            try $0.first("SELECT max(id) FROM listOffer WHERE peer = ?", owner.peer.id.uuid) { $0.optionalInt64(0) }
        }
        guard let offer = offer ?? nil else { throw SharingPerson.Failure.noOffer }
        _ = try await member.store.joinOffer(offer, at: start + 2)
        try await member.request(from: owner)
        try await member.request(from: owner)
    }

    func pair(_ first: SharingPerson, _ second: SharingPerson) async throws {
        try await first.add(second)
        try await second.add(first)
        for (first, second) in [(first, second), (second, first)] {
            let list = try first.test.read { try $0.mineList() }
            let other = try second.test.read { try $0.mineList() }
            guard list != other, ListNode.ID.remaining(list, other) == list else { continue }
            try await second.pages(of: list, from: first)
            let sequence = try #require(try second.test.read { try ListRecord(on: $0).sequence })
            _ = try await second.store.joinList(list, with: first.peer.id, ifStillAt: sequence, at: start, diskReserve: 0)
        }
    }

    /// Adds a link to the shared hex "Reading".
    func add(_ name: String, by person: SharingPerson, at offset: Int64 = 3) async throws {
        let hex = try person.hex("Reading")
        let count = try #require(try person.test.read { try $0.hex(hex) }).content.links.count
        let links = (0..<count).map { MineEdit.Link(from: $0) } + [link(name)]
        try await person.store.editMine(hex, MineEdit(links: links), at: start + offset)
    }

    /// Lets each machine of the pairs request the lists of the other one.
    func exchange(_ pairs: (SharingPerson, SharingPerson)..., at offset: Int64, rounds: Int = 3) async throws {
        for _ in 0..<rounds {
            for (first, second) in pairs {
                try await first.request(from: second, at: start + offset)
                try await second.request(from: first, at: start + offset)
            }
        }
    }

    /// The digest of the shared list.
    func digest(_ person: SharingPerson) throws -> Int64? {
        try person.test.read { try $0.first("SELECT digest FROM list WHERE id <> 1") { $0.int64(0) } }
    }

    /// The hexes with changes that were not accepted.
    func rejected(_ person: SharingPerson) throws -> [String] { try person.hexes.filter { $0.contains("(not accepted)") } }

    func list(_ person: SharingPerson) throws -> ListNode.ID {
        try #require(try person.test.read { try $0.sharedHexes() }.first).list
    }

    func node(_ kind: ListNode.Kind, in list: ListNode.ID, _ title: String, _ version: ListVersion) -> ListNode {
        var random = SystemRandomNumberGenerator()
        var node = ListNode(id: ListNode.ID(kind: kind, time: start, using: &random))
        node.place = ListNode.Place(version: version, parent: list, key: OrderKey(bytes: [1, 1, 1, 1, 1, 1, 1, 1]))
        node.title = ListNode.Register(version: version, value: UTF8Text(title))
        if kind == .link { node.url = UTF8Text("https://x.example/\(UInt64.random(in: .min ... .max))") }
        return node
    }

    /// A page of a hostile peer.
    @discardableResult
    func send(
        _ nodes: [ListNode], of list: ListNode.ID, to victim: SharingPerson, from peer: SharingPerson,
        as sender: ListPage.Peer = .otherPerson, replica: UInt64 = 7,
        at now: Int64 = start + 9
    ) async throws -> ListPageResult {
        let request = try victim.test.read { try $0.listPageRequest(of: list, from: peer.peer.id) }
        let same = request.cursor?.replica == ReplicaNumber(replica)
        let after = same ? request.cursor?.sequence ?? 0 : 0
        var page = ListPage(list: list, replica: ReplicaNumber(replica), after: after, through: after + Int64(nodes.count), isLast: true)
        page.nodes = nodes
        return try await victim.store.mergeListPage(page, answering: request, from: peer.peer.id, as: sender, at: now, diskReserve: 0)
    }

    func version(_ offset: Int64 = 9, _ replica: UInt64 = 7) -> ListVersion {
        ListVersion(clock: HybridClock.time(milliseconds: start + offset), replica: ReplicaNumber(replica))
    }

    /// - Parameter offset: the milliseconds between `start` and the time at which the owner set the access.
    func overview(_ list: ListNode.ID, _ access: ListOverview.Access, title: String = "X", at offset: Int64 = 9) -> ListOverview {
        var overview = ListOverview(now: start, isOwnMachine: false)
        var entry = ListOverview.Entry(
            list: list, role: .shared, access: access, replica: ReplicaNumber(7), sequence: 1, digest: ListDigest())
        entry.title = UTF8Text(title)
        entry.accessAt = HybridClock.time(milliseconds: start + offset)
        overview.lists = [entry]
        return overview
    }
}
