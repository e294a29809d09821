import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite(.timeLimit(.minutes(5))) struct PeerTests {
    private func contact(_ peer: TestPeer, name: String? = nil, at now: Int64 = start, host: String? = nil) -> PeerContact {
        PeerContact(
            peer: peer.id, fingerprint: peer.fingerprint, name: name ?? peer.name, version: "1.2", boot: BootNonce(7), seenAt: now,
            endpoints: host.map { [PeerEndpoint(host: $0, port: 24_391, interface: "eth0", via: "mdns", lastOKAt: now)] } ?? [])
    }

    @Test func onlyPeersThatMatterAreRemembered() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let seen = contact(peer, host: "10.0.0.1")
        #expect(try test.write { try $0.upsertPeer(seen) } == false)
        #expect(try test.read { try $0.peers() }.isEmpty)
        _ = try test.trust(peer)
        #expect(try test.write { try $0.upsertPeer(seen) })
        let record = try #require(try test.read { try $0.peer(peer.id) })
        #expect(record.trust == .trusted && record.version == "1.2" && record.boot == BootNonce(7) && record.lastSeenAt == start)
        #expect(record.endpoints == [PeerEndpoint(host: "10.0.0.1", port: 24_391, interface: "eth0", via: "mdns", lastOKAt: start)])
        let other = contact(try TestPeer(2))
        #expect(try test.write { try $0.upsertPeer(other, creating: true) })
        #expect(try test.read { try $0.peers() }.map(\.peer) == [peer.id, other.peer])
    }

    @Test(
        "a reinstalled machine takes over alias, settings, groups, shares and waiting rows with their files, and the old key is forgotten")
    func takeOver() async throws {
        let test = try TestStore()
        let (old, new) = (try TestPeer(1, name: "tom"), try TestPeer(2, name: "tom"))
        _ = try test.trust(old)
        _ = try test.trust(new)
        try await test.store.change(
            PeerChange(alias: .set("Tommy"), receive: .held, notify: false, fetchLimit: 9, fetchTo: .downloads, openLinks: 2),
            of: contact(old), at: start)
        _ = try test.write { try $0.addToGroup("home", [old.id]) }
        let offer = OfferRow(
            id: Array(repeating: 1, count: 16), path: "/a", identity: "1 2 3 4 5", name: "a", size: 3,
            sha256: Array(repeating: 9, count: 32),
            mediaType: nil, modified: 4, ends: start + 1_000_000)
        try await test.store.offer([offer], to: [old.id])
        try test.write { [id = old.id] writer in
            var hexes = PreparedHexes()
            hexes.bodies = Array("{}".utf8)
            hexes.add(messageID: message(9), digest: nil, offers: [offer.id])
            let recipient = PeerContact(peer: id, fingerprint: nil, name: "", version: nil, boot: nil, seenAt: start)
            _ = try writer.enqueue([hexes], EnqueueOptions(recipients: [recipient], now: start, lifetime: 1_000_000))
        }
        let rows = try test.write { writer in try (1...3).map { try writer.enqueue(outgoing(UInt64($0), to: old)).id } }
        try test.write { [id = old.id] writer in
            _ = try writer.settle([Settlement(id: rows[0], state: .stored, code: nil, message: nil)], of: id, at: start)
        }
        #expect(try await test.store.takeOver(from: old.id, by: new.id) == 3)
        let after = try #require(try test.read { try $0.peer(new.id) })
        #expect(after.alias == "Tommy" && after.groups == ["home"] && after.queued == 3)
        #expect(after.receive == .held && !after.notify && after.fetchLimit == 9 && after.fetchTo == .downloads && after.openLinks == 2)
        let before = try test.read { try $0.peer(old.id) }
        #expect(before?.trust == .stranger && before?.alias == nil && before?.queued == 0 && before?.groups == [])
        let batch = try test.read { try $0.outboxBatch(new.id, after: 0, limit: 9, maxBytes: 1_000) }
        #expect(batch.items.count == 3)
        #expect(try test.read { try $0.offer(offer.id, to: new.id) } != nil)
        #expect(try test.read { try $0.outboxPage(OutboxFilter(peer: old.id)) }.items.map(\.id) == [rows[0]])
        #expect(try test.countersAreRight())
        #expect(try await test.store.takeOver(from: try TestPeer(3).id, by: new.id) == 0)
    }

    @Test("trust in one kind of peer does not count for another", arguments: [PeerKind.hexlist, .localsend])
    func kinds(_ kind: PeerKind) async throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let other = kind == .hexlist ? PeerKind.localsend : .hexlist
        func contact(_ kind: PeerKind, name: String) -> PeerContact {
            PeerContact(
                peer: peer.id, kind: kind, fingerprint: peer.fingerprint, name: name, version: nil, boot: nil, seenAt: start,
                endpoints: [PeerEndpoint(host: "10.0.0.1", port: 53_317, interface: nil, via: "mdns", lastOKAt: start)])
        }
        try await test.store.setTrust(.trusted, of: contact(kind, name: "Pixel 9"), name: nil, at: start)
        let before = try #require(try test.read { try $0.peer(peer.id) })
        #expect(before.kind == kind && before.trust == .trusted && before.alias == "Pixel 9")

        func results(_ kind: PeerKind, policy: StrangerHexPolicy) throws -> [DeliveryResult] {
            let sender = Sender(peer: peer.id, kind: kind, fingerprint: peer.fingerprint, name: "Pixel 9", address: "10.0.0.1")
            return try test.write {
                try $0.receive([hex(1)], from: sender, at: start, policy: policy, quotas: HeldQuotas(), diskReserve: 0)
            }
        }
        let refused = DeliveryResult.refused(.notAccepting, retryAfter: RetryAfter.notAccepting)
        for policy in StrangerHexPolicy.allCases { #expect(try results(other, policy: policy) == [refused]) }
        #expect(try results(kind, policy: .trusted) == [.stored])

        for trust in Trust.allCases {
            await #expect(throws: HexlistError.self) {
                try await test.store.setTrust(trust, of: contact(other, name: "Mallory"), name: nil, at: start)
            }
        }
        let foreign = contact(other, name: "Mallory")
        _ = try test.write { try $0.upsertPeer(foreign, creating: true) }
        let after = try #require(try test.read { try $0.peer(peer.id) })
        #expect(after.kind == kind && after.trust == .trusted && after.name == "Pixel 9" && after.endpoints == before.endpoints)
    }

    @Test func endpointsAreBoundedAndTheLastGoodOneIsFirst() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        for number in 0..<40 {
            let seen = contact(peer, at: start + Int64(number), host: "10.0.0.\(number)")
            try test.write(lived: seen.seenAt) { _ = try $0.upsertPeer(seen) }
        }
        let again = contact(peer, at: start + 100, host: "10.0.0.30")
        try test.write(lived: again.seenAt) { _ = try $0.upsertPeer(again) }
        let endpoints = try #require(try test.read { try $0.peer(peer.id) }).endpoints
        #expect(endpoints.count == 16)
        #expect(endpoints.first?.host == "10.0.0.30" && endpoints.dropFirst().first?.host == "10.0.0.39")
    }

    @Test func trustingMakesTheNameTheAlias() throws {
        let test = try TestStore()
        let peers = try [("Anna", 1), ("anna", 2), ("\u{C9}va", 3), ("E\u{301}VA", 4), ("cafe", 5), ("", 6)].map {
            try TestPeer($1, name: $0)
        }
        for peer in peers {
            _ = try test.write { try $0.setTrust(peer.id, .trusted, fingerprint: peer.fingerprint, name: peer.name, at: start) }
        }
        func alias(_ peer: TestPeer) throws -> String? { try test.read { try $0.peer(peer.id) }?.alias }
        let short = peers.map(\.id.shortID)
        #expect(
            try peers.map(alias) == ["Anna", "anna \(short[1])", "\u{C9}va", "E\u{301}VA \(short[3])", "cafe \(short[4])", "Peer 6"])
        // A later name changes nothing, nor do a block, the end of trust, and renewed trust.
        let renamed = contact(peers[0], name: "Mallory", at: start + 1)
        try test.write { _ = try $0.upsertPeer(renamed) }
        for trust in [Trust.blocked, .stranger, .trusted] {
            _ = try test.trust(peers[0], trust)
            #expect(try alias(peers[0]) == "Anna")
        }
        #expect(try test.read { try $0.peer(peers[0].id) }?.name == "Mallory")
        // An alias set by the user stays. Forgetting the peer frees it.
        try test.write { try $0.setAlias(peers[1].id, "desk") }
        _ = try test.trust(peers[1])
        #expect(try alias(peers[1]) == "desk")
        _ = try test.write { try $0.forgetPeer(peers[0].id) }
        let next = try TestPeer(7, name: "ANNA")
        _ = try test.trust(next)
        #expect(try alias(next) == "ANNA")
        // The alias comes from the name that the user was shown. If that is empty, the alias has the short UUID instead.
        let nameless = try TestPeer(10, name: "Eva")
        let named = contact(nameless)
        try test.write { _ = try $0.upsertPeer(named, creating: true) }
        _ = try test.write { try $0.setTrust(nameless.id, .trusted, fingerprint: nameless.fingerprint, name: "", at: start) }
        #expect(try alias(nameless) == "peer \(nameless.id.shortID)")
        // Blocked and merely present peers get no alias.
        let (enemy, stranger) = (try TestPeer(8), try TestPeer(9))
        _ = try test.trust(enemy, .blocked)
        try test.receive([hex(1)], from: stranger)
        #expect(try alias(enemy) == nil && alias(stranger) == nil)
    }

    @Test func aPeerThatIsHeldTakesItsNameAlong() throws {
        let test = try TestStore()
        let (bob, stranger) = (try TestPeer(1, name: "Bob"), try TestPeer(2, name: "Bob"))
        _ = try test.trust(bob)
        try test.receive([hex(1)], from: bob)
        try test.receive([hex(1)], from: stranger)
        _ = try test.write { try $0.accept([2], at: start) }
        _ = try test.write { try $0.insertMine(content("Mine"), at: start) }
        let labels = try test.read { try $0.hexes([1, 2, 3]).map { $0.summary.peerLabel?.text() } }
        #expect(labels == ["Bob", "Bob \(stranger.id.shortID) (stranger)", nil])
    }

    @Test func trustingTakesInWhatIsHeldInOrder() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        try test.receive([hex(1), hex(2)], from: one)
        try test.receive([hex(1)], from: two)
        try test.receive([hex(3)], from: one)
        try test.write { _ = try $0.setRead([2]) }
        #expect(try test.trust(one, at: start + 5) == TrustChange(moved: [1, 2, 4], deleted: 0))
        let items = try test.read { try $0.hexPage() }.items
        #expect(items.map(\.id) == [4, 2, 1] && items.map(\.inboxNumber) == [3, 2, 1])
        #expect(items.map(\.unread) == [true, false, true] && items.allSatisfy { $0.receivedAt == start })
        let events = try test.read { try $0.eventPage(since: 4, limit: 100).items }
        #expect(events.map(\.hex) == [1, 2, 4] && events.allSatisfy { $0.type == .hexReceived && $0.peer == one.id && $0.at == start + 5 })
        #expect(events.map(\.number) == [5, 6, 7])
        #expect(try test.trust(one) == TrustChange(moved: [], deleted: 0))
        #expect(try test.receive([hex(3), hex(4)], from: one) == [.duplicate(of: .stored), .stored])
        #expect(try test.countersAreRight())
    }

    @Test func blockingDeletesWhatIsHeldAndForgetsIt() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try test.receive([hex(1)], from: peer)
        _ = try test.trust(peer, .stranger)
        try test.receive([hex(2)], from: peer)
        try test.receive([hex(3)], from: peer, isProven: false)
        #expect(try test.trust(peer, .blocked) == TrustChange(moved: [], deleted: 2))
        #expect(try test.read { try $0.hexPage() }.items.map(\.id) == [1])
        #expect(try test.trust(peer, .stranger) == TrustChange(moved: [], deleted: 0))
        #expect(try test.receive([hex(2)], from: peer) == [.held])
        #expect(try test.countersAreRight())
    }

    @Test func aPeerIsTrustedByItsKeyOnly() throws {
        let test = try TestStore()
        let (peer, other) = (try TestPeer(1), try TestPeer(2))
        for (id, fingerprint) in [(peer.id, nil), (peer.id, other.fingerprint)] as [(PeerID, Fingerprint?)] {
            let error = #expect(throws: HexlistError.self) {
                try test.write { try $0.setTrust(id, .trusted, fingerprint: fingerprint, at: start) }
            }
            #expect(error?.code == .badRequest)
        }
        #expect(try test.read { try $0.peers() }.isEmpty)
        #expect(throws: (any Error).self) {  // the schema enforces it too
            try test.write { try $0.run("INSERT INTO peer (uuid, trust) VALUES (?, 'trusted')", peer.id.uuid) }
        }
        // A UUID can be blocked alone, and its key can be added later.
        _ = try test.write { try $0.setTrust(peer.id, .blocked, at: start) }
        _ = try test.write { try $0.setTrust(peer.id, .trusted, fingerprint: peer.fingerprint, at: start) }
        #expect(try test.read { try $0.peer(peer.id) }?.fingerprint == peer.fingerprint)
        _ = try test.write { try $0.setTrust(peer.id, .stranger, at: start) }
        _ = try test.write { try $0.setTrust(peer.id, .trusted, at: start) }
        #expect(try test.read { try $0.peer(peer.id) }?.trust == .trusted)
    }

    @Test func anAliasNamesOnePeer() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        try test.write { try $0.setAlias(one.id, "desk") }
        try test.write { try $0.setAlias(one.id, "desk") }
        for other in ["desk", "DESK", " De\u{200D}sk"] {
            let error = #expect(throws: HexlistError.self) { try test.write { try $0.setAlias(two.id, other) } }
            #expect(error?.code == .badRequest && error?.message.contains(one.id.description) == true)
        }
        try test.write { try $0.setAlias(one.id, "Desk") }
        #expect(throws: (any Error).self) {  // the schema enforces it too
            try test.write { try $0.run("INSERT INTO peer (uuid, alias) VALUES (?, 'DESK')", two.id.uuid) }
        }
        try test.write { try $0.setAlias(one.id, nil) }
        try test.write { try $0.setAlias(two.id, "desk") }
        #expect(try test.read { try $0.peer(two.id) }?.alias == "desk")
        #expect(try test.read { try $0.peer(one.id) }?.alias == nil)
    }

    @Test func aForgottenPeersHexesStay() throws {
        let test = try TestStore()
        let (peer, empty) = (try TestPeer(1), try TestPeer(2))
        _ = try test.trust(peer)
        _ = try test.trust(empty)
        try test.receive([hex(1)], from: peer)
        let seen = contact(peer, host: "10.0.0.1")
        try test.write { _ = try $0.upsertPeer(seen) }
        try test.write { try $0.setPIN(peer.id, "1234") }
        #expect(try test.write { try $0.forgetPeer(peer.id) } == false)
        #expect(try test.read { try $0.pin(of: peer.id) } == nil)
        #expect(try test.write { try $0.forgetPeer(empty.id) })
        #expect(try test.write { try $0.forgetPeer(try TestPeer(3).id) })
        let record = try #require(try test.read { try $0.peer(peer.id) })
        #expect(record.trust == .stranger && record.endpoints.isEmpty && record.lastSeenAt == nil && record.hexes == 1)
        #expect(try test.read { try $0.hex(1) }?.summary.peer == peer.id)
        // Without data left, the next maintenance removes the peer once its ids are forgotten too.
        try test.write { _ = try $0.delete([1], at: start) }
        #expect(try test.write { try $0.maintain(at: start + 59 * day) }.peersDropped == 0)
        #expect(try test.write { try $0.maintain(at: start + 61 * day) }.peersDropped == 1)
        #expect(try test.read { try $0.peers() }.isEmpty)
    }
}
