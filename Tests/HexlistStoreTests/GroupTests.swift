import CSQLite
import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite(.timeLimit(.minutes(5))) struct GroupTests {
    @Test func aGroupIsMadeByItsFirstPeerAndFoundInAnyCase() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1, name: "Zoe"), try TestPeer(2, name: "Ada"))
        for peer in [one, two] { _ = try test.trust(peer) }
        #expect(try test.write { try $0.addToGroup("Team", [one.id]) } == PeerGroup(name: "Team", peers: [one.id]))
        #expect(try test.write { try $0.addToGroup("TEAM", [two.id, one.id]) } == PeerGroup(name: "Team", peers: [two.id, one.id]))
        _ = try test.write { try $0.addToGroup("Éva", [two.id]) }
        #expect(try test.read { try $0.groups() }.map(\.name) == ["Team", "Éva"])
        #expect(try test.read { try $0.peer(two.id) }?.groups == ["Team", "Éva"])
        #expect(try test.read { try $0.peers() }.map(\.groups) == [["Team", "Éva"], ["Team"]])

        #expect(try test.write { try $0.removeFromGroup("team", [two.id]) }.peers == [one.id])
        let stays = #expect(throws: HexlistError.self) { try test.write { try $0.removeFromGroup("team", [one.id, two.id]) } }
        #expect(stays?.code == .notFound)
        #expect(try test.read { try $0.groups() }[0].peers == [one.id])
        _ = try test.write { try $0.removeFromGroup("team", [one.id]) }
        #expect(try test.read { try $0.groups() }[0] == PeerGroup(name: "Team", peers: []))
        #expect(try test.write { try $0.deleteGroup("e\u{301}va") }.peers == [two.id])
        #expect(try test.read { try $0.groups() }.map(\.name) == ["Team"])
        let near = #expect(throws: HexlistError.self) { try test.write { try $0.deleteGroup("Taem") } }
        #expect(near?.code == .notFound && near?.hint?.contains("@Team") == true)
    }

    @Test(arguments: ["", " ", "@", "@x", "\u{200D}", "a\u{1B}[2J", "a\nb", String(repeating: "x", count: 65)])
    func aNameIsShortAndPrintable(_ name: String) throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        let error = #expect(throws: HexlistError.self) { try test.write { try $0.addToGroup(name, [peer.id]) } }
        #expect(error?.code == .badRequest)
        #expect(try test.read { try $0.groups() }.isEmpty)
    }

    @Test func groupsAndTheirMembersAreBounded() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try test.write { writer in
            try writer.change {
                for number in 1..<PeerGroup.limit { try writer.run("INSERT INTO peerGroup (name) VALUES (?)", "g\(number)") }
            }
            _ = try writer.addToGroup("last", [peer.id])
        }
        #expect(throws: HexlistError.self) { try test.write { try $0.addToGroup("one more", [peer.id]) } }
        #expect(try test.read { try $0.groups() }.count == PeerGroup.limit)
        try test.write { writer in
            try writer.change {
                try writer.run(
                    """
                    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
                    INSERT INTO peer (uuid, name) SELECT CAST(printf('%016d', i) AS BLOB), 'n' FROM n
                    """, PeerGroup.memberLimit)
                try writer.run(
                    "INSERT OR IGNORE INTO groupMember SELECT (SELECT id FROM peerGroup WHERE name = 'g1'), id FROM peer WHERE name = 'n'")
            }
        }
        #expect(throws: HexlistError.self) { try test.write { try $0.addToGroup("g1", [peer.id]) } }
        #expect(try test.read { try $0.groups() }.first { $0.name == "g1" }?.peers.count == PeerGroup.memberLimit)
    }

    @Test func aStrangerInAGroupIsRememberedUntilItIsForgotten() throws {
        let test = try TestStore()
        let stranger = try TestPeer(1)
        let seen = PeerContact(peer: stranger.id, fingerprint: stranger.fingerprint, name: "S", version: nil, boot: nil, seenAt: start)
        try test.write { writer in
            _ = try writer.upsertPeer(seen, creating: true)
            _ = try writer.addToGroup("g", [stranger.id])
            #expect(try writer.change { try writer.dropPeers() } == 0)
        }
        #expect(try test.read { try $0.roster() }.map(\.groups) == [["g"]])
        #expect(try test.write { try $0.forgetPeer(stranger.id) })
        #expect(try test.read { try $0.groups() } == [PeerGroup(name: "g", peers: [])])
    }

    @Test func aRosterAddsToGroupsAndTakesNobodyOut() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        _ = try test.trust(one)
        _ = try test.write { try $0.addToGroup("here", [one.id]) }
        func imported(_ entry: RosterEntry) throws -> RosterOutcome {
            try test.write { writer in
                var (aliases, groups) = (AliasOwners?.none, try GroupSizes(writer))
                return try writer.importPeer(entry, at: start, &aliases, &groups)
            }
        }
        let entry = RosterEntry(fingerprint: one.fingerprint, name: "", trust: .stranger, groups: ["There", "HERE"])
        #expect(try imported(entry) == .changed)
        #expect(try imported(entry) == .unchanged)
        #expect(try test.read { try $0.peer(one.id) }?.groups == ["here", "There"])
        #expect(try imported(RosterEntry(fingerprint: two.fingerprint, name: "Two", trust: .stranger, groups: ["there"])) == .changed)
        #expect(try test.read { try $0.groups() }.map(\.peers.count) == [1, 2])
        #expect(try test.read { try $0.peer(two.id) }?.fingerprint == two.fingerprint)
        // The same name in two spellings is one group. An existing group keeps its spelling.
        let twice = RosterEntry(fingerprint: one.fingerprint, name: "", trust: .stranger, groups: ["new", "NEW", "tHERE"])
        #expect(try imported(twice) == .changed)
        #expect(try test.read { try $0.groups() }.map(\.name) == ["here", "new", "There"])
    }

    @Test("the cost of an import is proportional to peers times groups")
    func importIsLinear() async throws {
        /// Thousands of SQLite VM steps for an import into an empty store, and for the same import again.
        func steps(peers: Int, groups: Int) async throws -> (first: Int, again: Int) {
            let test = try TestStore()
            let names = (0..<groups).map { "group \($0)" }
            let entries = try (0..<peers).map { number in
                let bytes = (0..<32).map { UInt8(truncatingIfNeeded: number >> ($0 % 2 * 8)) }
                return RosterEntry(fingerprint: try #require(Fingerprint(bytes: bytes)), name: "", trust: .trusted, groups: names)
            }
            func counted() async throws -> Int {
                let counter = StepCounter()
                try test.store.onWritingConnection { counter.begin(on: $0) }
                let own = try TestPeer(255).id
                let outcomes = try await test.store.importRoster(entries[...], own: own, proven: [:], at: start)
                try test.store.onWritingConnection { counter.end(on: $0) }
                #expect(outcomes.allSatisfy { $0 == outcomes[0] })
                return counter.count
            }
            let steps = (first: try await counted(), again: try await counted())
            #expect(try test.read { try $0.groups() }.map(\.peers.count) == Array(repeating: peers, count: groups))
            return steps
        }
        let (few, morePeers, moreGroups) = (
            try await steps(peers: 60, groups: 25), try await steps(peers: 240, groups: 25), try await steps(peers: 60, groups: 100)
        )
        for (more, less) in [
            (morePeers.first, few.first), (morePeers.again, few.again), (moreGroups.first, few.first), (moreGroups.again, few.again),
        ] { #expect(more < 6 * less, "four times as many took \(more) instead of \(less) thousand steps") }
    }
}

/// Counts VM steps of a connection's statements, in thousands.
private final class StepCounter {
    private(set) var count = 0

    func begin(on db: Database) {
        sqlite3_progress_handler(
            db.sqliteConnection, 1_000,
            { counter in
                if let counter { Unmanaged<StepCounter>.fromOpaque(counter).takeUnretainedValue().count += 1 }
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    func end(on db: Database) { sqlite3_progress_handler(db.sqliteConnection, 0, nil, nil) }
}

@Suite struct PeerPolicyTests {
    private func set(_ test: TestStore, _ peer: TestPeer, _ receive: PeerReceiveSetting?, notify: Bool? = nil) throws {
        try test.write { try $0.setPolicy(peer.id, receive: receive, notify: notify, at: start + 9) }
    }

    @Test(
        "a peer's policy narrows the permissions of trust and receiveFrom, and never widens them",
        arguments: [
            (Trust.trusted, StrangerHexPolicy.held, PeerReceiveSetting.inbox, "inbox"), (.trusted, .held, .held, "held"),
            (.trusted, .held, .nothing, "no"), (.trusted, .everyone, .held, "held"), (.trusted, .trusted, .held, "held"),
            (.stranger, .held, .inbox, "held"), (.stranger, .held, .held, "held"), (.stranger, .held, .nothing, "no"),
            (.stranger, .everyone, .inbox, "inbox"), (.stranger, .everyone, .held, "held"), (.stranger, .everyone, .nothing, "no"),
            (.stranger, .trusted, .inbox, "no"), (.stranger, .trusted, .held, "no"), (.blocked, .held, .inbox, "blocked"),
            (.blocked, .held, .nothing, "blocked"),
        ])
    func table(trust: Trust, policy: StrangerHexPolicy, receive: PeerReceiveSetting, way: String) throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        if trust == .stranger {
            try test.receive([hex(7)], from: peer)  // creates a record of the stranger
        } else {
            _ = try test.trust(peer, trust)
        }
        try set(test, peer, receive)
        let outcome = try test.receive([hex(1)], from: peer, policy: policy)[0]
        switch outcome {
        case .stored: #expect(way == "inbox")
        case .held: #expect(way == "held")
        case .refused(.blocked, _, nil): #expect(way == "blocked")
        case .refused(.notAccepting, _, RetryAfter.notAccepting): #expect(way == "no")
        default: Issue.record("\(outcome)")
        }
        #expect(try test.countersAreRight())
    }

    @Test func whatIsHeldOfATrustedPeerStaysHeldUntilTheInboxTakesIt() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try set(test, peer, .held)
        #expect(try test.receive([hex(1), hex(2)], from: peer) == [.held, .held])
        #expect(try test.receive([hex(1)], from: peer) == [.duplicate(of: .held)])
        #expect(try test.trust(peer).moved == [])  // trusting again changes no policy
        try set(test, peer, nil, notify: false)
        #expect(try test.read { try $0.hexPage() }.items.isEmpty)
        let record = try #require(try test.read { try $0.peer(peer.id) })
        #expect(record.receive == .held && !record.notify && record.held == 2)
        try set(test, peer, .inbox)
        #expect(try test.read { try $0.hexPage() }.items.map(\.id) == [2, 1])
        #expect(try test.read { try $0.eventPage(since: 0, limit: 100).items }.suffix(2).map(\.type) == [.hexReceived, .hexReceived])
        #expect(try test.countersAreRight())
        // Forgetting the peer removes its policy.
        try set(test, peer, .nothing)
        try test.write { _ = try $0.forgetPeer(peer.id) }
        let forgotten = try #require(try test.read { try $0.peer(peer.id) })
        #expect(forgotten.receive == .inbox && forgotten.notify)
    }

    @Test func aStrangerOfWhomNothingIsTakenIsRemembered() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        try set(test, peer, .nothing)
        #expect(try test.write { writer in try writer.change { try writer.dropPeers() } } == 0)
        #expect(try test.receive([hex(1)], from: peer)[0] == .refused(.notAccepting, retryAfter: RetryAfter.notAccepting))
        try set(test, peer, .inbox)
        #expect(try test.write { writer in try writer.change { try writer.dropPeers() } } == 1)
    }
}
