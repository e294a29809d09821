import GRDB
import HexlistModel
import Testing

@testable import HexlistStore

@Suite struct ReceiveTests {
    @Test(arguments: [
        (Trust.trusted, StrangerHexPolicy.held, DeliveryResult.stored),
        (.trusted, .everyone, .stored),
        (.trusted, .trusted, .stored),
        (.stranger, .held, .held),
        (.stranger, .everyone, .stored),
        (.stranger, .trusted, .refused(.notAccepting, retryAfter: 3_600)),
        (.blocked, .held, .refused(.blocked)),
        (.blocked, .everyone, .refused(.blocked)),
        (.blocked, .trusted, .refused(.blocked)),
    ])
    func trustAndPolicyDecide(_ trust: Trust, _ policy: StrangerHexPolicy, _ outcome: DeliveryResult) throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        if trust != .stranger { _ = try test.trust(peer, trust) }
        #expect(try test.receive([hex(1)], from: peer, policy: policy) == [outcome])
        #expect(try test.countersAreRight())
        let events = try test.read { try $0.eventPage(since: 0, limit: 10).items }
        switch outcome {
        case .stored:
            #expect(events == [EventRow(number: 1, at: start, type: .hexReceived, peer: peer.id, hex: 1)])
        case .held:
            #expect(events == [EventRow(number: 1, at: start, type: .hexHeld, peer: peer.id, hex: 1)])
        case .duplicate, .refused, .delivered, .undelivered:
            #expect(events.isEmpty)
        }
    }

    @Test("a guest is invited: its invitation decides, not `receiveFrom`; its name follows") func guest() throws {
        let test = try TestStore()
        let id = PeerID(MessageID.random().uuid)
        func receive(_ number: UInt64, name: String, policy: StrangerHexPolicy) throws -> DeliveryResult? {
            let sender = Sender(peer: id, kind: .guest, fingerprint: nil, name: name, address: "10.0.0.7")
            return try test.write {
                try $0.receive([hex(number)], from: sender, at: start, policy: policy, quotas: HeldQuotas(), diskReserve: 0)
            }.first
        }
        #expect(try receive(1, name: "\"Anna\" 10.0.0.7", policy: .everyone) == .stored)
        #expect(try receive(1, name: "\"Bert\" 10.0.0.7", policy: .held) == .held)
        let record = try #require(try test.read { try $0.peer(id) })
        #expect(record.kind == .guest && record.trust == .stranger && record.fingerprint == nil)
        #expect(record.label.text() == "\"Bert\" 10.0.0.7 (guest)")
        let listed = try #require(try test.read { try $0.hex(1) }?.summary.peerLabel)
        #expect(listed.trust == "guest")
        #expect(try test.countersAreRight())
        #expect(throws: HexlistError.self) { try test.write { try $0.setTrust(id, .trusted, at: start) } }
    }

    @Test("a hex and its files are stored together or not at all") func withFiles() throws {
        let test = try TestStore()
        let id = PeerID(MessageID.random().uuid)
        let sender = Sender(peer: id, kind: .guest, fingerprint: nil, name: "10.0.0.7", address: "10.0.0.7")
        let digest = [UInt8](repeating: 7, count: 32)
        func finish(_ number: UInt64, _ file: ArrivalInPool, _ quotas: HeldQuotas = HeldQuotas()) throws -> Int64? {
            try test.store.finishArrivals(
                of: nil, as: hex(number), [file], from: sender, at: start, policy: .everyone, quotas: quotas, diskReserve: 0)
        }
        let file = ArrivalInPool(sha256: digest, name: "a.txt", size: 3, identity: "1 2 3 4 5")
        #expect(throws: HexlistError.self) { try finish(1, file, HeldQuotas(inboxHexes: 0)) }
        #expect(try test.read { try $0.pooled([digest]) }.isEmpty)
        #expect(try finish(1, file) == 1)
        let kept = try #require(try test.read { try $0.pooled([digest], from: id) }.first)
        #expect(kept.place == .kept && kept.hex == 1 && kept.name == "a.txt")
        #expect(try test.read { try $0.misplacedPooled() }.isEmpty && test.read { try $0.keepsFiles() })
        // The same file arrives with another hex: it is not stored again, and both hexes keep it.
        #expect(try finish(2, ArrivalInPool(sha256: digest, name: "b.txt", size: 3, identity: nil)) == 2)
        #expect(try test.read { try $0.pooled([digest]) }.map(\.name) == ["a.txt"])
    }

    @Test func anUnknownPeerWhoseHexesAreRefusedGetsNoRow() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        try test.receive([hex(1)], from: peer, policy: .trusted)
        #expect(try test.read { try $0.peer(peer.id) } == nil)
        try test.receive([hex(1)], from: peer)
        let record = try #require(try test.read { try $0.peer(peer.id) })
        #expect(record.fingerprint == peer.fingerprint && record.name == peer.name && record.trust == .stranger && record.held == 1)
    }

    /// Trust is in the key: the UUID alone, or with another key, opens nothing.
    @Test func trustNeedsTheKey() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let other = try TestPeer(2)
        _ = try test.trust(peer)
        let unproven = Sender(peer: peer.id, fingerprint: nil, name: "", address: "10.0.0.1")
        let wrong = Sender(peer: peer.id, fingerprint: other.fingerprint, name: "", address: "10.0.0.1")
        for (sender, outcome) in [
            (unproven, DeliveryResult.held), (wrong, .refused(.notAccepting, retryAfter: 3_600)),
        ] {
            let outcomes = try test.write {
                try $0.receive([hex(1)], from: sender, at: start, policy: .held, quotas: HeldQuotas(), diskReserve: 0)
            }
            #expect(outcomes == [outcome])
        }
    }

    // MARK: - Together

    /// A batch gives the same rows as its hexes one by one, with any number of links and any duplicates.
    @Test(arguments: [[], [3], [0, 7, 8, 30], Array(0..<40)])
    func hexesThatComeTogetherAreKeptAsEachAlone(_ earlier: [Int]) throws {
        let counts = [5, 0, 1, 7, 8, 9, 40, 41, 47, 48, 3, 80, 81, 500] + [Int](repeating: 5, count: 26)
        var hexes = zip(UInt64(1)..., counts).map { number, links in
            IncomingHex(content: content("Hex \(number)", links: links), messageID: message(number), weight: 500 + Int(number))
        }
        let parent = hexes[20].content.add(child: ChildContent(parent: nil))
        hexes[20].content.add(child: ChildContent(parent: parent))
        hexes[10].messageID = nil
        hexes[35].messageID = hexes[33].messageID
        let peer = try TestPeer(1)
        let stores = [try TestStore(), try TestStore()]
        for test in stores {
            _ = try test.trust(peer)
            for index in earlier { try test.receive([hexes[index]], from: peer, at: start - 1) }
        }
        let outcomes = try stores[0].receive(hexes, from: peer)
        #expect(try outcomes == hexes.map { try stores[1].receive([$0], from: peer)[0] })
        // One hex has the message id of another. The hex without a message id is stored once more each time.
        let kept = earlier.contains(10) ? 40 : 39
        let pages = try stores.map { try $0.read { try $0.hexPage(limit: 1_000) } }
        #expect(pages[0].items == pages[1].items && pages[0].items.count == kept)
        for item in pages[0].items {
            let contents = try stores.map { try #require(try $0.read { try $0.hex(item.id) }).content }
            #expect(contents[0].texts == contents[1].texts && contents[0].children == contents[1].children)
            let sent = try #require(hexes.first { $0.content.string($0.content.hexDescription) == item.description }).content
            #expect(contents[0].texts == sent.texts && contents[0].links.count == item.linkCount)
        }
        #expect(try stores[0].countersAreRight())
        #expect(try stores.map { try $0.read { try $0.counts() } }.allSatisfy { $0.inbox == kept })
        #expect(try stores[0].read { try String.fetchOne($0.db, sql: "PRAGMA integrity_check") } == "ok")
    }

    @Test func ofHexesOfWhichOneIsThereNoneIsInserted() throws {
        let test = try TestStore()
        _ = try test.trust(try TestPeer(1))
        try test.write { writer in
            func count(_ table: String) throws -> Int? { try Int.fetchOne(writer.db, sql: "SELECT count(*) FROM \(table)") }
            func row(_ id: Int64) throws -> HexInserter.Row {
                let peer = try Int64.fetchOne(writer.db, sql: "SELECT id FROM peer")
                return HexInserter.Row(
                    id: id, location: .inbox, inboxNumber: id, peer: peer, isProven: true, byteCount: 0, receivedAt: start)
            }
            let inserter = try writer.inserter()
            let (first, second) = ((1...8).map { hex($0) }, [9, 10, 11, 3, 12, 13, 14, 15].map { hex($0) })
            #expect(try inserter.insert(first[...], from: row(1)))
            let links = try count("link")
            #expect(try !inserter.insert(second[...], from: row(9)))
            #expect(try count("hex") == 8 && count("link") == links)
            #expect(try Int64.fetchOne(writer.db, sql: "SELECT max(id) FROM hex") == 8)
        }
    }

    /// Refusals, a full disk and tombstones apply to single hexes of a batch.
    @Test func eightHexesWithSomethingToDecide() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try test.receive((1...8).map { hex($0) }, from: peer)
        var batch = (11...18).map { hex($0) }
        batch[5] = IncomingHex(content: content(links: 5_001), messageID: message(16), weight: 500)
        var outcomes = try test.receive(batch, from: peer)
        let seven = [DeliveryResult](repeating: .stored, count: 7)
        func ids() throws -> [Int64] { try test.read { try Int64.fetchAll($0.db, sql: "SELECT id FROM hex ORDER BY id") } }
        #expect(outcomes.remove(at: 5) == .refused(.tooManyLinks))
        #expect(try outcomes == seven && ids() == Array(1...15))
        outcomes = try test.receive((21...28).map { hex($0) }, from: peer, diskReserve: 1 << 50)
        #expect(outcomes == [DeliveryResult](repeating: .refused(.storageFull, retryAfter: RetryAfter.storageFull), count: 8))
        _ = try test.write { try $0.delete([4], at: start) }
        outcomes = try test.receive([31, 32, 33, 4, 34, 35, 36, 37].map { hex($0) }, from: peer)
        #expect(outcomes.remove(at: 3) == .duplicate(of: .stored))
        #expect(try outcomes == seven && ids() == [1, 2, 3] + Array(5...22))
        #expect(try test.countersAreRight())
    }

    @Test func noMoreGoIntoTheInboxTogetherThanItHasRoomFor() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        var quotas = HeldQuotas()
        quotas.inboxHexes = 11
        let outcomes = try test.receive((1...20).map { hex($0) }, from: peer, quotas: quotas)
        #expect(outcomes.prefix(11).allSatisfy { $0 == .stored })
        #expect(outcomes.dropFirst(11).allSatisfy { $0 == .refused(.storageFull, retryAfter: RetryAfter.storageFull) })
        #expect(try test.countersAreRight())
    }

    // MARK: - Duplicates

    @Test func aRepeatIsNotStoredAgain() throws {
        let test = try TestStore()
        let (trusted, stranger) = (try TestPeer(1), try TestPeer(2))
        _ = try test.trust(trusted)
        #expect(try test.receive([hex(1), hex(1), hex(2)], from: trusted) == [.stored, .duplicate(of: .stored), .stored])
        #expect(try test.receive([hex(2), hex(3)], from: trusted) == [.duplicate(of: .stored), .stored])
        // A hex of another sender with the same message id is not a duplicate.
        #expect(try test.receive([hex(1), hex(1)], from: stranger) == [.held, .duplicate(of: .held)])
        #expect(try test.receive([hex(1)], from: stranger, policy: .everyone) == [.duplicate(of: .held)])
        #expect(try test.receive([hex(1)], from: stranger, policy: .trusted) == [.duplicate(of: .held)])
        #expect(try test.countersAreRight())
        #expect(try test.read { try $0.counts() }.lastEvent == 4)
    }

    @Test func idsThatReachedTheInboxAreRememberedForSixtyDays() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try test.receive([hex(1), hex(2)], from: peer)
        #expect(try test.write { try $0.delete([1, 2, 99], at: start) } == 2)
        #expect(try test.receive([hex(1)], from: peer, at: start + 59 * day) == [.duplicate(of: .stored)])
        // The id is still remembered when the sender is a stranger again.
        _ = try test.trust(peer, .stranger)
        #expect(try test.receive([hex(1)], from: peer, at: start + 59 * day) == [.duplicate(of: .stored)])
        _ = try test.trust(peer)
        #expect(try test.write { try $0.maintain(at: start + 59 * day) }.idsForgotten == 0)
        #expect(try test.write { try $0.maintain(at: start + 61 * day) }.idsForgotten == 2)
        #expect(try test.receive([hex(1)], from: peer, at: start + 61 * day) == [.stored])
        // The days begin with the deletion, however long the hex was there.
        try test.write(lived: start + 200 * day) { _ = try $0.delete([3], at: start) }
        #expect(try test.receive([hex(1)], from: peer, at: start + 259 * day) == [.duplicate(of: .stored)])
        #expect(try test.write { try $0.maintain(at: start + 261 * day) }.idsForgotten == 1)
    }

    @Test func theIdOfAHeldHexIsForgottenWithIt() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        try test.receive([hex(1)], from: peer)
        #expect(try test.write { try $0.delete([1], at: start) } == 1)
        #expect(try test.receive([hex(1)], from: peer) == [.held])
        // Once accepted, the hex counts as one of the inbox.
        #expect(try test.write { try $0.accept([2], at: start) } == [2])
        #expect(try test.receive([hex(1)], from: peer) == [.duplicate(of: .stored)])
        try test.write { _ = try $0.delete([2], at: start) }
        #expect(try test.receive([hex(1)], from: peer) == [.duplicate(of: .stored)])
        #expect(try test.countersAreRight())
    }

    @Test func withoutProofNothingIsARepeat() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        #expect(try test.receive([hex(1), hex(1)], from: peer, isProven: false) == [.held, .held])
        #expect(try test.receive([hex(1)], from: peer) == [.held])
        let anonymous = IncomingHex(content: content(), messageID: nil, weight: 10)
        #expect(try test.receive([anonymous, anonymous], from: peer) == [.held, .held])
        #expect(try test.read { try $0.hex(1) }?.summary.messageID == message(1))
        #expect(try test.read { try $0.hex(4) }?.summary.messageID == nil)
        // Trusting the peer accepts hexes with a proven key; the user accepts the others one by one.
        #expect(try test.trust(peer).moved == [3, 4, 5])
        #expect(try test.write { try $0.accept([1, 2], at: start) } == [1, 2])
        #expect(try test.countersAreRight())
    }

    // MARK: - Quotas

    @Test func oneStrangerIsHeldToItsQuota() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let quotas = HeldQuotas(hexesPerPeer: 3, bytesPerPeer: 1_000)
        #expect(try test.receive([hex(1, bytes: 600)], from: peer, quotas: quotas) == [.held])
        #expect(try test.receive([hex(2, bytes: 401)], from: peer, quotas: quotas) == [.refused(.quotaExceeded, retryAfter: 3_600)])
        #expect(try test.receive([hex(2, bytes: 400)], from: peer, quotas: quotas) == [.held])
        try test.write { _ = try $0.delete([1], at: start) }
        #expect(try test.receive([hex(3, bytes: 1), hex(4, bytes: 1)], from: peer, quotas: quotas) == [.held, .held])
        #expect(try test.receive([hex(5, bytes: 1)], from: peer, quotas: quotas) == [.refused(.quotaExceeded, retryAfter: 3_600)])
        #expect(try test.receive([hex(4)], from: peer, quotas: quotas) == [.duplicate(of: .held)])
        #expect(try test.countersAreRight())
    }

    /// A held hex was acknowledged, so hexes from 220 other sources do not displace it.
    @Test func whatIsHeldGivesWayToNobody() throws {
        let test = try TestStore()
        let honest = try TestPeer(1)
        let results = try test.receive((1...5).map { hex($0) }, from: honest, address: "10.0.0.1")
        #expect(results == [DeliveryResult](repeating: .held, count: 5))
        var held = 0
        for number in 0..<220 {
            let outcomes = try test.receive(
                (1...20).map { hex($0) }, from: try TestPeer(UInt8(2 + number)), address: "10.1.\(number).1", quotas: HeldQuotas())
            held += outcomes.count { if case .held = $0 { true } else { false } }
            #expect(outcomes.allSatisfy { if case .duplicate = $0 { false } else { true } })
        }
        #expect(held == 145)  // with the honest peer's five hexes three quarters of 200
        #expect(try test.read { try $0.hexPage(HexFilter(location: .held, peer: honest.id)) }.items.map(\.id) == [5, 4, 3, 2, 1])
        #expect(try test.read { try $0.peers() }.count == 9)  // a refused sender leaves no row
        #expect(try test.countersAreRight())
    }

    @Test(arguments: [
        // Addresses that are one source: a /64, an IPv4 address in two spellings, a link, this machine.
        ["2001:db8::1", "2001:db8::2:3", "2001:db8::ffff"], ["10.0.0.7", "::ffff:10.0.0.7", "10.0.0.7"],
        ["fe80::1%eth0", "fe80::2%eth0", "fe80::3%eth0"], ["169.254.1.1", "169.254.2.2", "169.254.3.3"], ["127.0.0.1", "127.3.2.1", "::1"],
    ])
    func oneSourceHasAQuarter(_ addresses: [String]) throws {
        let test = try TestStore()
        let quotas = HeldQuotas(hexesPerPeer: 20, bytesPerPeer: 1 << 20, hexes: 12, bytes: 20_000)
        let full = DeliveryResult.refused(.quotaExceeded, retryAfter: 3_600)
        for (number, address) in addresses.enumerated() {
            let peer = try TestPeer(UInt8(1 + number))
            #expect(try test.receive([hex(1)], from: peer, address: address, quotas: quotas) == [.held])
        }
        #expect(try test.receive([hex(1), hex(2)], from: try TestPeer(50), address: addresses[0], quotas: quotas) == [full, full])
        // The link of another interface is another source. All sources together leave a quarter of the quota.
        #expect(
            try test.receive([hex(1), hex(2), hex(3), hex(4)], from: try TestPeer(51), address: "fe80::1%eth1", quotas: quotas) == [
                .held, .held, .held, full,
            ])
        #expect(
            try test.receive((1...4).map { hex($0) }, from: try TestPeer(52), address: "10.9.9.9", quotas: quotas) == [
                .held, .held, .held, full,
            ])
        #expect(try test.receive([hex(1)], from: try TestPeer(53), address: "10.9.9.8", quotas: quotas) == [full])
        #expect(try test.countersAreRight())
    }

    @Test func aQuarterIsKeptForPeersWithAnAlias() throws {
        let test = try TestStore()
        let (named, other) = (try TestPeer(1), try TestPeer(2))
        let quotas = HeldQuotas(hexesPerPeer: 20, bytesPerPeer: 1 << 20, hexes: 8, bytes: 1 << 20)
        let full = DeliveryResult.refused(.quotaExceeded, retryAfter: 3_600)
        try test.write { try $0.setAlias(named.id, "Ada") }
        // Strangers use up their share of the quota, also from the address of the peer with an alias.
        for number in 0..<6 {
            try test.receive([hex(1), hex(2)], from: try TestPeer(UInt8(10 + number)), address: "10.0.\(number).1", quotas: quotas)
        }
        #expect(try test.read { try $0.counts() }.held == 6)
        #expect(try test.receive([hex(1)], from: other, address: "10.0.9.1", quotas: quotas) == [full])
        #expect(
            try test.receive([hex(1), hex(2), hex(3)], from: named, address: "10.0.0.1", quotas: quotas) == [.held, .held, full])
        // The hexes of the peer with an alias do not reduce the share of the others.
        _ = try test.write { try $0.delete([1], at: start) }
        #expect(try test.receive([hex(1)], from: other, address: "10.0.9.1", quotas: quotas) == [.held])
        // After the user deleted some, refused hexes are accepted when they are sent again.
        _ = try test.write { try $0.accept([7], at: start) }
        #expect(try test.receive([hex(3)], from: named, address: "10.0.0.1", quotas: quotas) == [.held])
        #expect(try test.countersAreRight())
    }

    @Test func bytesAreSharedAsHexesAre() throws {
        let test = try TestStore()
        let quotas = HeldQuotas(hexesPerPeer: 20, bytesPerPeer: 5_000, hexes: 100, bytes: 8_000)
        let full = DeliveryResult.refused(.quotaExceeded, retryAfter: 3_600)
        let (one, two, three, named) = (try TestPeer(1), try TestPeer(2), try TestPeer(3), try TestPeer(4))
        try test.write { try $0.setAlias(named.id, "Ada") }
        #expect(try test.receive([hex(1, bytes: 2_001)], from: one, address: "10.0.0.1", quotas: quotas) == [full])
        #expect(
            try test.receive([hex(1, bytes: 1_500), hex(2, bytes: 501)], from: one, address: "10.0.0.1", quotas: quotas) == [
                .held, full,
            ])
        #expect(try test.receive([hex(1, bytes: 500)], from: two, address: "10.0.0.1", quotas: quotas) == [.held])
        #expect(try test.receive([hex(2, bytes: 1)], from: two, address: "10.0.0.1", quotas: quotas) == [full])
        #expect(try test.receive([hex(1, bytes: 2_000)], from: three, address: "10.0.0.3", quotas: quotas) == [.held])
        #expect(try test.receive([hex(2, bytes: 2_000)], from: two, address: "10.0.0.4", quotas: quotas) == [.held])
        #expect(try test.receive([hex(3, bytes: 1)], from: two, address: "10.0.0.5", quotas: quotas) == [full])
        #expect(
            try test.receive([hex(1, bytes: 2_000), hex(2, bytes: 1)], from: named, address: "10.0.0.5", quotas: quotas) == [
                .held, full,
            ])
        #expect(try test.countersAreRight())
    }

    @Test(arguments: [0, 1, 2, 3, 4, 5, 7]) func smallTraysHaveRoomForSomebody(_ hexes: Int) throws {
        let test = try TestStore()
        let quotas = HeldQuotas(hexesPerPeer: 20, bytesPerPeer: 1 << 20, hexes: hexes, bytes: 1 << 20)
        let outcomes = try test.receive([hex(1)], from: try TestPeer(1), address: "10.0.0.1", quotas: quotas)
        #expect(outcomes == [hexes > 0 ? .held : .refused(.quotaExceeded, retryAfter: 3_600)])
    }

    @Test func everyoneIsHeldToTheSameQuotaADay() throws {
        let test = try TestStore()
        let (one, two) = (try TestPeer(1), try TestPeer(2))
        let quotas = HeldQuotas(hexesPerPeer: 2, bytesPerPeer: 1_000, hexes: 3, bytes: 10_000)
        let noon = start / day * day + day / 2
        #expect(try test.receive([hex(1), hex(2)], from: one, at: noon, policy: .everyone, quotas: quotas) == [.stored, .stored])
        #expect(
            try test.receive([hex(3)], from: one, at: noon, policy: .everyone, quotas: quotas) == [
                .refused(.quotaExceeded, retryAfter: 3_600)
            ])
        #expect(try test.receive([hex(2)], from: one, at: noon, policy: .everyone, quotas: quotas) == [.duplicate(of: .stored)])
        #expect(try test.receive([hex(1)], from: two, at: noon, policy: .everyone, quotas: quotas) == [.stored])
        // All strangers together have one quota for a day.
        let late = start / day * day + day - 90_000
        #expect(
            try test.receive([hex(2)], from: two, at: late, policy: .everyone, quotas: quotas) == [.refused(.quotaExceeded, retryAfter: 90)]
        )
        // A trusted peer's hexes do not count, and each day has a new quota.
        _ = try test.trust(two)
        #expect(try test.receive([hex(2)], from: two, at: late, policy: .everyone, quotas: quotas) == [.stored])
        #expect(try test.receive([hex(3)], from: one, at: noon + day, policy: .everyone, quotas: quotas) == [.stored])
        #expect(try test.countersAreRight())
    }

    @Test func aFullInboxRefuses() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        let quotas = HeldQuotas(inboxHexes: 2)
        let outcomes = try test.receive([hex(1), hex(2), hex(1), hex(3)], from: peer, quotas: quotas)
        #expect(outcomes == [.stored, .stored, .duplicate(of: .stored), .refused(.storageFull, retryAfter: RetryAfter.storageFull)])
    }

    // MARK: - Order

    /// After a temporary refusal later hexes are refused, too, until a refused one is sent again (Docs/Protocol.md, "Refusals").
    @Test func nothingOvertakesARefusedHex() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let quotas = HeldQuotas(hexesPerPeer: 20, bytesPerPeer: 1_000)
        let refused = DeliveryResult.refused(.quotaExceeded, retryAfter: 3_600)
        let outcomes = try test.receive(
            [hex(1, bytes: 500), hex(2, bytes: 600), hex(3, bytes: 10), hex(1, bytes: 500), hex(3, bytes: 10), hex(2, bytes: 600)],
            from: peer, quotas: quotas)
        // The repeated hex 1 is refused, because it does not fit; so is hex 3 until it is repeated, which shows that its sender has seen
        // the refusal.
        #expect(outcomes == [.held, refused, refused, refused, .held, refused])
        // The refusal of a hex without a message id does not cause later hexes to be refused.
        let anonymous = IncomingHex(content: content(), messageID: nil, weight: 600)
        #expect(try test.receive([anonymous, hex(4, bytes: 10)], from: peer, quotas: quotas) == [refused, .held])
    }

    @Test func tooManyLinksAreRefusedForGood() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        let many = IncomingHex(content: content(links: 5_001), messageID: message(1), weight: 1)
        let most = IncomingHex(content: content(links: 5_000), messageID: message(2), weight: 1)
        #expect(try test.receive([many, most], from: peer) == [.refused(.tooManyLinks), .held])
        #expect(try test.read { try $0.hex(1) }?.content.links.count == 5_000)
        try test.write { _ = try $0.delete([1], at: start) }
        #expect(try test.countersAreRight())
    }

    // MARK: - Content

    @Test func everyTextComesBackByteForByte() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        var content = HexContent(frame: Array("xx{\"a\":1}Größe אבג 中文 👩‍👩‍👧 e\u{301}\u{0}\"'\\yy".utf8))
        let text = Array("xx{\"a\":1}".utf8).count..<content.frame.count - 2
        content.hexDescription = TextSlice(frame: text)
        content.extra = TextSlice(frame: 2..<9)
        content.senderUUID = content.add("no uuid at all")
        content.senderName = content.add("\u{FEFF}\u{202E}name\n")
        content.hexColor = TextSlice(frame: 0..<0)
        content.links = [
            LinkContent(
                url: TextSlice(frame: text), linkDescription: content.add(""), service: content.add("Unknown"),
                extra: TextSlice(frame: 2..<9)),
            LinkContent(
                url: content.add(String(repeating: "ü", count: 32_768)), linkDescription: TextSlice(arena: 0..<2),
                service: content.add("Box")),
            // A slice outside of its buffer is an empty text.
            LinkContent(url: TextSlice(frame: 0..<4_000_000), linkDescription: TextSlice(arena: 4_000_000..<4_000_001), service: .empty),
        ]
        let incoming = IncomingHex(content: content, messageID: message(1), weight: content.frame.count)
        try test.receive([incoming], from: peer)
        let detail = try #require(try test.read { try $0.hex(1) })
        #expect(detail.content.texts.map { Array($0.utf8) } == content.texts.map { Array($0.utf8) })
        #expect(detail.summary.linkCount == 3 && detail.summary.peer == peer.id && detail.summary.peerName == peer.name)
        #expect(detail.summary.location == .held && detail.summary.unread && detail.summary.receivedAt == start)
        #expect(Array(detail.summary.description.utf8) == Array(content.string(content.hexDescription).utf8))
    }

    @Test func aRunOfHexesIsOneRowOfEventsAndReadAsMany() throws {
        let test = try TestStore()
        let peer = try TestPeer(1)
        _ = try test.trust(peer)
        try test.receive((1...5).map { hex($0) }, from: peer)
        try test.receive([hex(5), hex(6), hex(5), hex(7)], from: peer, at: start + 1)
        #expect(try test.read { try Int.fetchOne($0.db, sql: "SELECT count(*) FROM event") } == 2)
        let events = try test.read { try $0.eventPage(since: 0, limit: 100).items }
        #expect(events.map(\.number) == Array(1...7))
        #expect(events.map(\.hex) == (1...7).map(Optional.init))
        #expect(events.map(\.at) == [Int64](repeating: start, count: 5) + [start + 1, start + 1])
    }

    @Test(arguments: [
        ("10.1.2.3", "10.1.2.3"), ("::ffff:10.1.2.3", "10.1.2.3"), ("2001:db8:1:2:3:4:5:6", "20010db800010002/64"),
        ("2001:db8:1:2::", "20010db800010002/64"), ("fe80::1%eth0", "link-local%eth0"), ("FEBF::2%3", "link-local%3"),
        ("fe80::1", "link-local"), ("169.254.7.8", "169.254.0.0/16"), ("::1", "loopback"), ("127.9.9.9", "loopback"),
        ("::ffff:127.0.0.1", "loopback"), ("", ""), ("not an address", "not an address"),
    ])
    func heldHexesAreCountedBySource(_ address: String, _ source: String) {
        #expect(HeldSource.of(address) == source)
        #expect(HeldSource.of(String(repeating: "x", count: 1_000)).utf8.count == 64)
    }
}
