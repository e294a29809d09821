import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

/// SQLite's query plans: no scan of a table that grows, and no sorting of a page.
@Suite(.timeLimit(.minutes(5))) struct PlanTests {
    /// A store with rows of each kind.
    private func filled() throws -> (test: TestStore, trusted: TestPeer, stranger: TestPeer) {
        let test = try TestStore()
        let (trusted, stranger) = (try TestPeer(1), try TestPeer(2))
        _ = try test.trust(trusted)
        try test.receive((1...50).map { hex($0) }, from: trusted)
        try test.receive((1...5).map { hex($0) }, from: stranger)
        _ = try test.write { try $0.insertMine(content(), at: start) }
        var tree = content()
        tree.add(child: ChildContent(parent: tree.add(child: ChildContent(parent: nil))))
        _ = try test.write { [tree] in try $0.insertMine(tree, at: start) }
        _ = try test.write { try $0.enqueue((1...9).map { outgoing($0, to: trusted) }) }
        return (test, trusted, stranger)
    }

    @Test func namedValuesWithAPrefixAreFoundByTheKey() async throws {
        let test = try TestStore()
        try await test.store.setMeta(["a.1": "x", "a.2": "y", "a": "1", "a-1": "2", "a/1": "3", "b.1": "4"])
        #expect(try test.read { try $0.meta(withPrefix: "a.").map { [$0.name, $0.value] } } == [["1", "x"], ["2", "y"]])
        let plan = try test.read { reader in try plans(reader) { _ = try reader.meta(withPrefix: "a.") } }
        #expect(!plan.isEmpty && plan.allSatisfy { !$0.contains("SCAN") }, "\(plan)")
    }

    @Test("log, trash and undo of My Hexlist read neither all nodes nor all changes") func historyOfMyHexlist() async throws {
        let (test, _, _) = try filled()
        let hex = try await test.store.addMine(content("a", links: 3), at: start)
        let inner = try await test.store.addMine(content("b", links: 3), into: hex, at: start)
        let pages = try test.read { reader in
            try plans(reader) {
                _ = try reader.trashPage(limit: 9, before: nil)
                _ = try reader.trashPage(limit: 9, before: 7, hexesOnly: true)
                _ = try reader.trashNumber(ofHex: hex)
                _ = try reader.mineChanges(limit: 9, before: 7)
            }
        }
        // Bounded by the number of lists.
        let unused = "list USING INDEX listUnusedReplica"
        for step in pages where !step.hasPrefix("SCAN replica") && !step.hasPrefix("SCAN \(unused)") {
            #expect(!step.contains("TEMP B-TREE") && !step.contains("SCAN"), "\(step)")
        }
        #expect(pages.count { $0.contains("INDEX nodeTrash (") } == 2)
        let changes = try test.write { writer in
            try plans(writer) {
                _ = try writer.change {
                    try writer.editMine(hex, MineEdit(description: "x", links: [.init(from: 1, linkDescription: "y")]), at: start)
                    let links = try #require(try writer.mineLinkIDs(of: hex)).ids
                    let edits: [MineNodeEdit.Change] = [
                        .set(links[0], MineNodeEdit.Values(url: "a:b", title: "z")),
                        .add(MineNodeEdit.NewLink(url: "a:c"), after: links[0]),
                        .move(links[0], after: nil),
                    ]
                    try writer.editMine(hex, by: MineNodeEdit(changes: edits), at: start)
                    try writer.changeMine(at: start) { try $0.delete([inner, hex]) }
                    _ = try writer.restoreMine(numbers: [writer.trashNumber(ofHex: hex) ?? 0], at: start)
                    _ = try writer.undoMine([writer.mineChanges(limit: 1, before: nil).items[0].number], at: start)
                    _ = try writer.purgeTrash(limit: 9)
                }
            }
        }
        // A change of the tree reads all hexes, because each may be in a cycle or in a deleted hex (`ListStructure`).
        // A subquery counts the links before a changed one, at most those that a hex shows.
        let bounded = [
            "(subquery-1)", "item", "inside", "outer", "json_each", "wanted", "replica", "peer", "node USING INDEX nodeHexes", unused,
        ]
        for step in changes where step.hasPrefix("SCAN") {
            #expect(bounded.contains { step.hasPrefix("SCAN \($0) ") }, "\(step)")
        }
        #expect(pages.count > 4 && changes.count > 20)
    }

    @Test("the sharing of the hexes of a page is found by the lists") func sharingOfHexes() throws {
        let (test, _, _) = try filled()
        let plan = try test.read { reader in try plans(reader) { _ = try reader.sharing(of: [1, 2]) } }
        #expect(plan.contains { $0.hasPrefix("SEARCH node") } && !plan.contains { $0.hasPrefix("SCAN node") }, "\(plan)")
    }

    @Test("a request for a file reads its offer and links to it, and a check of offers only those that are due") func offersOfLists() throws
    {
        let (test, trusted, _) = try filled()
        let id = [UInt8](repeating: 1, count: 16)
        let requests = try test.read { reader in try plans(reader) { _ = try reader.offer(id, to: trusted.id) } }
        #expect(requests.contains { $0.contains("INDEX nodeOffer (list=? AND <expr>=? AND state=?)") }, "\(requests)")
        #expect(requests.allSatisfy { !$0.hasPrefix("SCAN") }, "\(requests)")
        let checks = try test.write { writer in
            try plans(writer) {
                let offer = OfferRow(
                    id: id, path: "/a", identity: "1 2 3 4 5", name: "a", size: 3, sha256: Array(repeating: 9, count: 32), mediaType: nil,
                    modified: 4, ends: start)
                try writer.offer([offer], toListOf: nil)
                writer.lived += OffersOfLists.unlinkedTime
                _ = try writer.change { try writer.checkOffersOfLists(10) }
            }
        }
        // `OfferRow.limit` is checked by counting.
        for step in checks where !step.contains("SELECT count(*) FROM offer") { #expect(!step.hasPrefix("SCAN"), "\(step)") }
        #expect(checks.contains { $0.contains("INDEX offerListChecks") } && checks.contains { $0.contains("INDEX nodeOffer") }, "\(checks)")
    }

    @Test("new links of shared hexes are counted in their index") func newLinksOfSharedHexes() async throws {
        let (test, trusted, _) = try filled()
        let hex = try await test.store.addMine(content("a", links: 3), at: start)
        _ = try await test.store.shareMine(hex, with: [trusted.id: .write], at: start)
        let plan = try test.read { reader in
            try plans(reader, beginningWith: ["WITH"]) {
                _ = try reader.newLinkCounts(of: [2, 3])
                _ = try reader.newLinkCount()
                _ = try reader.newLinks(in: try #require(try reader.hex(hex)))
            }
        }
        #expect(
            plan.contains { $0.hasPrefix("SEARCH node USING COVERING INDEX nodeAdded (list=? AND addedBy=? AND addedClock>?)") }, "\(plan)")
        for step in plan {
            #expect(!step.hasPrefix("SCAN node") && !step.hasPrefix("SCAN replica") && !step.contains("TEMP B-TREE"), "\(step)")
        }
        let marks = try test.write { writer in
            try plans(writer, beginningWith: ["WITH", "SELECT", "UPDATE", "DELETE"]) { _ = try writer.markSeen(hex, through: 7, at: start) }
        }
        for step in marks { #expect(!step.hasPrefix("SCAN node"), "\(step)") }
    }

    @Test("the links of a hex are ordered by an index alone, in the root of a shared hex, too") func linksOfHexes() async throws {
        let (test, trusted, _) = try filled()
        let shared = try await test.store.addMine(content("a", links: 3), at: start)
        _ = try await test.store.shareMine(shared, with: [trusted.id: .write], at: start)
        let hex = try await test.store.addMine(content("b", links: 3), at: start)
        for hex in [shared, hex] {
            let plan = try test.read { reader in try plans(reader) { _ = try reader.mineLinkIDs(of: hex) } }
            #expect(plan.contains { $0.hasPrefix("SEARCH node USING COVERING INDEX nodeContents (container=?)") }, "\(plan)")
            for step in plan { #expect(!step.hasPrefix("SCAN node") && !step.contains("TEMP B-TREE"), "\(step)") }
        }
    }

    @Test func everyPageHasAnIndexInItsOrder() throws {
        let (test, trusted, _) = try filled()
        let filters = [
            HexFilter(), HexFilter(unread: true), HexFilter(peer: trusted.id), HexFilter(unread: true, peer: trusted.id),
            HexFilter(location: .held), HexFilter(location: .mine), HexFilter(location: .mine, unread: true),
            HexFilter(location: .mine, peer: trusted.id), HexFilter(location: .held, peer: trusted.id),
        ]
        for filter in filters {
            let plan = try test.read { reader in
                try plans(reader) {
                    _ = try reader.hexPage(filter)
                    _ = try reader.hexPage(filter, after: 57)
                    _ = try reader.hexPage(filter, after: HexCursor(number: 57, orderKey: filter.location == .mine ? [1] : nil))
                    _ = try reader.hexIDs(.list(filter))
                }
            }
            #expect(!plan.isEmpty && plan.allSatisfy { !$0.contains("TEMP B-TREE") && !$0.contains("SCAN") }, "\(filter): \(plan)")
            if filter.location == .mine { #expect(plan.contains { $0.contains("INDEX hexOrder (orderKey>") }, "\(plan)") }
            if filter.location == .inbox, filter.unread { #expect(plan.contains { $0.contains("hexUnread") }, "\(plan)") }
        }
    }

    @Test func noReadLooksThroughATable() throws {
        let (test, trusted, _) = try filled()
        let plan = try test.read { reader in
            try plans(reader) {
                _ = try reader.outboxPage(OutboxFilter(peer: trusted.id, states: [.queued]))
                _ = try reader.outboxPage(OutboxFilter(states: OutboxFilter.undelivered))
                _ = try reader.outboxPage(OutboxFilter(peer: trusted.id, states: [.queued]), newestFirst: true)
                _ = try reader.outboxPage(OutboxFilter(states: OutboxFilter.undelivered), newestFirst: true)
                _ = try reader.outboxBatch(trusted.id, after: 0, limit: 10, maxBytes: 1)
                _ = try reader.outboxRows([1, 2])
                _ = try reader.failed(of: trusted.id, in: 0...1)
                _ = try reader.eventPage(since: 5, limit: 10).items
                _ = try reader.hexes([1, 2])
                _ = try reader.hexes([57, 58])
                _ = try reader.subjects(of: [1, 2])
                for location in [nil, HexLocation.inbox, .held, .mine] {
                    for peer in [nil, trusted.id] { _ = try reader.hexIDs(.ids(3...40, in: location, of: peer)) }
                }
                _ = try reader.counts()
            }
        }
        #expect(plan.count > 9)
        for step in plan { #expect(!step.contains("SCAN") || step.contains("json_each") || step.contains("wanted"), "\(step)") }
    }

    @Test func noChangeLooksThroughATable() throws {
        let (test, trusted, stranger) = try filled()
        let sender = Sender(peer: stranger.id, fingerprint: stranger.fingerprint, name: "", address: "10.9.9.9")
        let plan = try test.write { writer in
            try plans(writer) {
                _ = try writer.receive(
                    [hex(77), hex(1)], from: sender, at: start, policy: .held, quotas: HeldQuotas(hexes: 5), diskReserve: 0)
                _ = try writer.setRead([11, 12])
                _ = try writer.accept([52], at: start)
                _ = try writer.delete([1, 53], at: start)
                _ = try writer.setTrust(trusted.id, .trusted, at: start)
                _ = try writer.setTrust(stranger.id, .blocked, at: start)
                try writer.note([FailedAttempt(id: 3, failures: 1)])
                _ = try writer.settle([Settlement(id: 1, state: .stored), Settlement(id: 2, state: .failed)], of: trusted.id, at: start)
                _ = try writer.rejectQueued(trusted.id, code: "blocked", message: nil, limit: 2, at: start)
                _ = try writer.cancel([5], at: start)
                _ = try writer.retry([2], lifetime: 1)
                _ = try writer.enqueue(outgoing(99, to: trusted))
                _ = try writer.maintain(at: start + 100 * day)
            }
        }
        #expect(plan.count > 30)
        for step in plan {
            // Peers, replicas and lists are few, and the event log is read from its oldest row, so at most this many rows.
            let isBounded = ["peer", "replica", "list", "json_each", "event"].contains { step.hasPrefix("SCAN \($0)") }
            #expect(!step.contains("SCAN") || isBounded, "\(step)")
        }
    }
}

/// The query plan of each statement that `work` runs.
private func plans(
    _ reader: StoreReader, beginningWith verbs: [String] = ["SELECT", "UPDATE", "DELETE"], _ work: () throws -> Void
) throws -> [String] {
    var statements: Set<String> = []
    reader.db.trace { statements.insert("\($0)") }
    defer { reader.db.trace(options: []) }
    try work()
    reader.db.trace(options: [])
    let planned = statements.filter { statement in verbs.contains { statement.hasPrefix($0) } }
    return try planned.sorted().flatMap { sql in
        try reader.all("EXPLAIN QUERY PLAN \(sql)") { $0.text(3) }.map { "\($0)   of   \(sql)" }
    }
}
