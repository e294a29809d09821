import Foundation
import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistStore
import TestSupport
import Testing

@testable import HexlistWire
@testable import HexlistNode

extension Node {
    /// Sends `Pair` frames like a peer that ignores the order of the protocol.
    fileprivate func sendRaw(_ frames: [Pairing], to peer: PeerID) {
        for frame in frames { links[peer]?.sending?.act { $1.append(.send(.pair(frame))) } }
    }

    fileprivate var isComparingSessions: Bool { duplicates.isAsking }

    fileprivate func cutSessions() { for session in sessions.values { session.connection.abort() } }

    fileprivate func count(of peer: PeerID) -> Int { links[peer]?.sessions.count ?? 0 }

    fileprivate func frameLimit(toldBy peer: PeerID) -> Int { links[peer]?.sending?.machine.peerHello?.maxFrameBytes ?? 0 }

    fileprivate func isDialler(of peer: PeerID) -> Bool { links[peer]?.sending?.connection.role == .dialer }

    /// Forgets failed pairings, as if ten minutes had passed.
    fileprivate func forgetFailures() {
        var fresh = PairingCoordinator(own: identity.fingerprint)
        fresh.lastNumber = pairingDriver.coordinator.lastNumber
        fresh.outcomes = pairingDriver.coordinator.outcomes
        pairingDriver.coordinator = fresh
    }

    /// Puts the node in the state after the peer's request, while the answer is under way.
    /// - Returns: whether the exchange has begun.
    fileprivate func takeRequest(of peer: PeerID) -> Bool {
        guard let session = links[peer]?.sending, let key = session.connection.peerFingerprint else { return false }
        var random = SystemRandomNumberGenerator()
        let nonce = PairingNonce(using: &random)
        pairingDriver.coordinator.limits.timing.step = .seconds(600)
        let commit = Pairing(step: "commit", commitment: "dzxNRkEIm9SUOS2rf5DpVyi3T5IRYpQ3js0UQ2C9rYA=")
        _ = pairingDriver.coordinator.received(
            commit, from: key, on: ObjectIdentifier(session), canAnswer: true, freshNonce: nonce, now: .now)
        return pairingDriver.coordinator.hasExchange(on: ObjectIdentifier(session))
    }

    /// Whether there is exactly one session, with none pending or about to end.
    fileprivate func isSettled(with peer: PeerID) -> Bool { count(of: peer) == 1 && !finder.isProbing && !duplicates.isAsking }

    fileprivate func dialAgain(_ peer: PeerID) { dial(peer, finder.directory.endpoints(of: peer)) { _, _ in } }
}

extension TestNode {
    /// Waits until `look` finds a value in the pairings, beginning with their current state.
    fileprivate func pairing<Value>(_ look: (PairingOverview) -> Value?) async throws -> Value {
        var found: Value?
        try await until { node in
            found = look(await node.pairing.overview())
            return found != nil
        }
        return try #require(found)
    }

    fileprivate func digits() async throws -> (number: Int, digits: String) {
        try await pairing { overview in
            for item in overview.items { if case .comparing(let digits) = item.stage { return (item.id, digits) } }
            return nil
        }
    }

    /// Confirms or rejects the digits of the pairings with this peer, from this number on, until the last one has ended.
    fileprivate func answer(_ peer: PeerID, from number: Int, yes: Bool) async throws -> PairingView.Stage {
        while true {
            let item = try await pairing { overview in
                // The newest item of the peer: after a failed exchange, the request goes on as a new item.
                overview.items.last { $0.peer == peer && $0.id >= number }.flatMap { $0.isAnswerable ? $0 : nil }
            }
            guard case .comparing(let digits) = item.stage else { return item.stage }
            // The exchange may have ended in between.
            if yes {
                _ = try? await node.pairing.confirm(with: peer, digits: digits, number: item.id)
            } else {
                _ = try? await node.pairing.reject(with: peer)
            }
        }
    }

    fileprivate func pair(_ peer: PeerID, yes: Bool = true) async throws -> PairingView.Stage {
        let asked = try await node.pairing.request(with: peer)
        return try await answer(peer, from: asked.id, yes: yes)
    }

    fileprivate func trust(of other: TestNode) async throws -> Trust? {
        try await node.peers.all().first { $0.uuid == other.id }?.trust.known
    }

    /// Waits for a number of sessions by polling, because a node's watchers are not notified of sessions.
    fileprivate func untilSessions(_ count: Int, with other: TestNode) async throws {
        try await eventually("\(count) sessions") { await node.count(of: other.id) == count }
    }

    /// Waits until the node has decided which of two sessions to end.
    fileprivate func untilCompared() async throws {
        try await eventually("one session is kept") { await !node.isComparingSessions }
    }

    fileprivate func events(_ type: EventType) async throws -> [EventRow] {
        try await node.store.read { try $0.eventPage(since: 0, limit: 10_000).items }.filter { $0.type == type }
    }
}

extension PairingView {
    fileprivate var isAnswerable: Bool {
        switch stage {
        case .waiting, .confirmed: false
        case .comparing, .paired, .ended: true
        }
    }
}

@Suite("Pairing of two nodes", .serialized, .timeLimit(LongTests.areWanted ? .minutes(15) : .minutes(5)))
struct PairingNodesTests {
    @Test("same digits, two confirmations: trust by fingerprint on both sides, held hexes in the inbox, larger frames")
    func agreement() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            #expect(try await one.send(to: two, description: "held").state == .held)
            _ = await two.node.pairing.open()
            let asked = try await one.node.pairing.request(with: two.id)
            let (here, there) = (try await one.digits(), try await two.digits())
            #expect(here.digits == there.digits && here.digits.utf8.count == 6)
            #expect(try await two.node.pairing.overview().items.last?.fingerprint == one.node.identity.fingerprint)

            _ = try await two.node.pairing.confirm(with: one.id, digits: there.digits)
            #expect(try await two.trust(of: one) == .stranger, "one yes is not enough")
            #expect(try await one.answer(two.id, from: asked.id, yes: true) == .paired)
            #expect(try await two.answer(one.id, from: there.number, yes: true) == .paired)
            for (node, other) in [(one, two), (two, one)] {
                let peer = try #require(try await node.node.peers.all().first { $0.uuid == other.id })
                #expect(peer.trust == .trusted && peer.fingerprint == other.node.identity.fingerprint)
                try await eventually("the frame limit of a trusted peer") { await node.node.frameLimit(toldBy: other.id) == 1 << 20 }
                try await node.until { _ in try await node.events(.pairingCompleted).count == 1 }
                #expect(await node.node.pairing.overview().openUntil == nil)
            }
            #expect(try await two.events(.pairingRequested).map(\.peer) == [one.id])
            #expect(try await one.events(.pairingRequested).isEmpty, "who asked is not told that somebody asks")
            let counts = try await two.node.store.read { try $0.counts() }
            #expect((counts.held, counts.inbox) == (0, 1))
            #expect(try await one.send(to: two).state == .stored)
        }
    }

    @Test("a no, or wrong digits, of either user: no trust, and both are notified", arguments: [true, false], [true, false])
    func no(askerSaysNo: Bool, byWrongCode: Bool) async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = await two.node.pairing.open()
            _ = try await one.node.pairing.request(with: two.id)
            let (here, there) = (try await one.digits(), try await two.digits())
            let (naysayer, other, number) = askerSaysNo ? (one, two, there.number) : (two, one, here.number)
            _ = try await other.node.pairing.confirm(with: naysayer.id, digits: here.digits)
            let answer =
                byWrongCode
                ? try await naysayer.node.pairing.confirm(with: other.id, digits: here.digits == "000000" ? "000001" : "000000")
                : try await naysayer.node.pairing.reject(with: other.id)
            #expect(answer.stage == .ended(byWrongCode ? .wrongCode : .rejected))
            #expect(try await other.answer(naysayer.id, from: number, yes: true) == .ended(.refused))
            #expect(try await one.trust(of: two) == .stranger)
            #expect(try await two.trust(of: one) == .stranger)
            try await naysayer.until { _ in try await naysayer.events(.pairingFailed).count == 1 }
        }
    }

    @Test("while pairing is off a flood of requests causes no event, prompt or pairing")
    func off() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = try await two.node.peers.setTrust(one.id, .trusted)  // so that its frames are read without a rate limit
            try await two.until { _ in try await two.events(.peerUp).count == 1 }
            let before = try await two.node.store.read { try $0.eventPage(since: 0, limit: 1_000).items }.count
            let commit = Pairing(step: "commit", commitment: "dzxNRkEIm9SUOS2rf5DpVyi3T5IRYpQ3js0UQ2C9rYA=")
            for step in ["commit", "nonce", "reveal", "confirm", "cancel", "else"] {
                let frame = Pairing(step: step, commitment: commit.commitment, nonce: commit.commitment, message: "\u{1B}[2J")
                await one.node.sendRaw(Array(repeating: frame, count: 500), to: two.id)
            }
            // This hex follows the requests on the same session, so all of them were handled before it.
            #expect(try await one.send(to: two).state == .stored)
            let overview = await two.node.pairing.overview()
            #expect(overview.items.isEmpty && overview.openUntil == nil)
            let events = try await two.node.store.read { try $0.eventPage(since: 0, limit: 1_000).items }.dropFirst(before)
            #expect(events.map(\.type) == [.hexReceived])
        }
    }

    @Test("a request made while the peer is not pairing is answered once it is")
    func anyOrder() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            async let first = one.pair(two.id)
            _ = try await one.pairing { overview in overview.items.first { $0.message?.contains("is not pairing yet") == true } }
            _ = await two.node.pairing.open()
            let there = try await two.digits()
            #expect(try await two.answer(one.id, from: there.number, yes: true) == .paired)
            #expect(try await first == .paired)
        }
    }

    @Test("a request survives its session: it redials and shows new digits; the old ones are no longer accepted")
    func sessionDies() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = await two.node.pairing.open()
            let asked = try await one.node.pairing.request(with: two.id)
            let (old, oldThere) = (try await one.digits(), try await two.digits())
            await one.node.cutSessions()
            let new = try await one.pairing { overview -> (Int, String)? in
                for item in overview.items where item.id > old.number {
                    if case .comparing(let digits) = item.stage { return (item.id, digits) }
                }
                return nil
            }
            #expect(new.1 != old.digits)
            #expect(try await two.pairing { $0.items.first { $0.id == oldThere.number } }.stage == .ended(.lost))
            await #expect { try await one.node.pairing.confirm(with: two.id, digits: old.digits, number: old.number) } throws: {
                ($0 as? HexlistError)?.code == .gone
            }
            // Each exchange that ends after the nonce was sent is reported, although the request continues.
            try await one.until { _ in
                try await one.events(.pairingFailed).map(\.data) == [#"{"reason":"lost"}"#]
            }
            #expect(try await one.pairing { $0.items.first { $0.id == old.number } }.stage == .ended(.lost))
            async let there = two.answer(one.id, from: oldThere.number + 1, yes: true)
            #expect(try await one.answer(two.id, from: asked.id, yes: true) == .paired)
            #expect(try await there == .paired)
        }
    }

    @Test("a second session does not end an exchange while users compare; afterwards one session remains")
    func duplicates() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            try await one.untilSessions(1, with: two)
            try await two.untilSessions(1, with: one)
            _ = await two.node.pairing.open()
            let asked = try await one.node.pairing.request(with: two.id)
            let (here, there) = (try await one.digits(), try await two.digits())
            // The side that dialled both sessions would end the older one.
            let dialler = await one.node.isDialler(of: two.id) ? one : two
            let other = dialler.id == one.id ? two : one
            await dialler.node.dialAgain(other.id)
            try await dialler.untilSessions(2, with: other)
            try await dialler.untilCompared()
            #expect(await dialler.node.count(of: other.id) == 2)
            #expect(try await one.send(to: two).state == .held, "the newer one is used meanwhile")
            #expect(await one.node.count(of: two.id) == 2)

            #expect(try await one.node.pairing.confirm(with: two.id, digits: here.digits, number: here.number).id == here.number)
            _ = try await two.node.pairing.confirm(with: one.id, digits: there.digits, number: there.number)
            #expect(try await one.answer(two.id, from: asked.id, yes: true) == .paired)
            #expect(try await two.answer(one.id, from: there.number, yes: true) == .paired)
            try await one.untilSessions(1, with: two)
            try await two.untilSessions(1, with: one)
        }
    }

    @Test(
        "a second session does not end an exchange that has just begun: the other side sees the digits first, and its answer would be lost")
    func duplicateOfTheFirstStep() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            // Both nodes dial at the start.
            try await eventually("one session is left") {
                guard await one.node.isSettled(with: two.id) else { return false }
                return await two.node.isSettled(with: one.id)
            }
            let dialler = await one.node.isDialler(of: two.id) ? one : two
            let other = dialler.id == one.id ? two : one
            _ = await dialler.node.pairing.open()
            #expect(await dialler.node.takeRequest(of: other.id))
            await dialler.node.dialAgain(other.id)
            try await dialler.untilSessions(2, with: other)
            try await dialler.untilCompared()
            // Without a pairing on the older session, the other node would have ended that session before it sent this hex.
            #expect(try await other.send(to: dialler).state == .held)
            #expect(await dialler.node.count(of: other.id) == 2)
            _ = await dialler.node.pairing.close()
            try await dialler.untilSessions(1, with: other)
        }
    }

    @Test("both ask at once, with and without a session, both confirm or one refuses: the same result on both sides")
    func races() async throws {
        let rounds = LongTests.areWanted ? 500 : 50
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            var paired = 0
            for round in 0..<rounds {
                if round % 5 == 4 {
                    await one.node.cutSessions()
                    await two.node.cutSessions()
                }
                let (oneSaysYes, twoSaysYes) = (round % 7 != 3, round % 11 != 5)
                async let first = one.pair(two.id, yes: oneSaysYes)
                async let second = two.pair(one.id, yes: twoSaysYes)
                let (here, there) = (try await first, try await second)
                let isPaired = oneSaysYes && twoSaysYes
                #expect((here == .paired) == isPaired && (there == .paired) == isPaired, "round \(round): \(here), \(there)")
                let (left, right) = (try await one.trust(of: two), try await two.trust(of: one))
                #expect(left == right && left == (isPaired ? .trusted : .stranger), "round \(round)")
                if isPaired { paired += 1 }
                _ = try await one.node.peers.setTrust(two.id, .stranger)
                _ = try await two.node.peers.setTrust(one.id, .stranger)
                await one.node.forgetFailures()
                await two.node.forgetFailures()
            }
            #expect(paired > rounds / 2)
            try await one.untilSessions(1, with: two)
            try await two.untilSessions(1, with: one)
        }
    }

    @Test("of any number of sessions that two peers open at once, one stays")
    func manySessions() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            for _ in 0..<10 {
                await one.node.dialAgain(two.id)
                await two.node.dialAgain(one.id)
                await one.node.dialAgain(two.id)
                #expect(try await one.send(to: two, wait: .seconds(1)).state == .held)
                try await one.untilSessions(1, with: two)
                try await two.untilSessions(1, with: one)
            }
        }
    }

    @Test("pairing strangers keep their session; blocking the peer ends the pairing")
    func blocked() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            _ = await two.node.pairing.open()
            let asked = try await one.node.pairing.request(with: two.id)
            _ = try await one.digits()
            #expect(await one.node.hasWork(for: two.id))
            #expect(await two.node.hasWork(for: one.id))
            _ = try await one.node.peers.setTrust(two.id, .blocked)
            #expect(try await one.pairing { $0.items.first { $0.id >= asked.id } }.stage == .ended(.rejected))
            #expect(await !one.node.hasWork(for: two.id))
            await #expect { try await one.node.pairing.request(with: two.id) } throws: { ($0 as? HexlistError)?.code == .badRequest }
            #expect(try await two.trust(of: one) == .stranger)
        }
    }

    @Test("invalid requests and answers are reported, and change nothing")
    func wrong() async throws {
        try await withTwoNodes { (one: TestNode, two: TestNode) async throws in
            for (expected, body) in [
                (HexlistError.Code.badRequest, { _ = try await one.node.pairing.request(with: one.id) }),
                (.notFound, { _ = try await one.node.pairing.request(with: PeerID(.nil)) }),
                (.notFound, { _ = try await one.node.pairing.confirm(with: two.id, digits: "123456") }),
                (.notFound, { _ = try await one.node.pairing.reject(with: two.id) }),
            ] as [(HexlistError.Code, () async throws -> Void)] {
                await #expect { try await body() } throws: { ($0 as? HexlistError)?.code == expected }
            }
            for _ in 0..<3 {
                _ = await two.node.pairing.open()
                _ = try await one.node.pairing.request(with: two.id)
                _ = try await two.digits()
                _ = try await two.node.pairing.reject(with: one.id)
                try await one.until { await $0.pairing.overview().items.allSatisfy { if case .ended = $0.stage { true } else { false } } }
                _ = await two.node.pairing.close()
            }
            await #expect { try await one.node.pairing.request(with: two.id) } throws: { ($0 as? HexlistError)?.code == .recentlyFailed }
        }
    }
}
