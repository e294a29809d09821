import HexlistModel
import TestSupport
import Testing

@testable import HexlistDiscovery

@Suite struct DirectoryHistoryTests {
    @Test("long random histories keep all invariants", .offPool, arguments: 1...6) func histories(_ seed: Int) {
        var limits = DirectoryLimits()
        limits.instances = 48
        limits.resolvers = 12
        var remembered = Set((1...3).map { Stage.peer($0) })
        var stage = Stage(limits: limits, remembers: remembered)
        var generator = SeededGenerator(seed: UInt64(seed))
        var proven: Set<PeerID> = []
        var sessions: [SessionInfo] = []
        var announced: [Record] = []
        var model = PeerModel()
        var dials = DialModel()

        func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }
        func somebody() -> PeerID { chance(10) ? Stage.own : Stage.peer(UInt64.random(in: 1...(chance(80) ? 6 : 500), using: &generator)) }
        func someBoot() -> BootNonce { BootNonce(UInt64.random(in: 1...3, using: &generator)) }

        for step in 0..<1_500 {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<30:
                let hosts = [
                    "192.168.7.\(Int.random(in: 2...9, using: &generator))", "fe80::\(Int.random(in: 2...9, using: &generator))", "8.8.8.8",
                    "127.0.0.1", "x",
                ]
                let peer = somebody()
                let record = stage.announce(
                    peer, name: chance(70) ? nil : "n\(Int.random(in: 0...5, using: &generator))", boot: chance(90) ? someBoot() : nil,
                    address: hosts.randomElement(using: &generator) ?? "", port: chance(90) ? 2_000 : 80,
                    interface: chance(80) ? 2 : 3)
                announced.append(record)
            case 30..<42:
                guard !announced.isEmpty else { continue }
                let record = announced.remove(at: Int.random(in: announced.indices, using: &generator))
                stage.tell(.discovery(.withdrawn(record)))
            case 42..<46:
                guard let record = announced.randomElement(using: &generator) else { continue }
                stage.tell(.discovery(.resolveFailed(record, "Timeout reached")))
            case 46..<52:
                let peer = somebody()
                guard peer != Stage.own, sessions.count < 12 else { continue }
                let session = SessionInfo(peer: peer, boot: someBoot(), name: "s")
                sessions.append(session)
                proven.insert(peer)
                model.proved(peer)
                stage.tell(.sessionUp(session))
            case 52..<60:
                guard !sessions.isEmpty else { continue }
                let session = sessions.remove(at: Int.random(in: sessions.indices, using: &generator))
                let ends: [SessionEnd] = [.shutdown, .idle, .lost, .other]
                stage.tell(.sessionDown(session, ends.randomElement(using: &generator) ?? .lost))
            case 60..<80:
                guard let probe = stage.probes.randomElement(using: &generator) else { continue }
                stage.probes.removeAll { $0.id == probe.id }
                let endpoint = probe.endpoints.randomElement(using: &generator) ?? probe.endpoints[0]
                switch Int.random(in: 0..<6, using: &generator) {
                case 0, 1:
                    let peer = probe.expecting ?? Stage.peer(3)
                    guard !probe.isCheck else {
                        stage.tell(.probeEnded(probe.id, .reached(endpoint)))
                        continue
                    }
                    guard peer != Stage.own else { continue }
                    proven.insert(peer)
                    model.proved(peer)
                    let boot = someBoot()
                    if chance(70), sessions.count < 12 {
                        let session = SessionInfo(peer: peer, boot: boot, name: "s", endpoint: endpoint)
                        sessions.append(session)
                        stage.tell(.sessionUp(session))
                    }
                    stage.tell(.probeEnded(probe.id, .proved(peer, boot, endpoint)))
                case 2:
                    model.failed(probe.id)
                    stage.tell(.probeEnded(probe.id, .refused))
                case 3:
                    model.failed(probe.id)
                    stage.tell(.probeEnded(probe.id, .noAnswer))
                case 4: stage.tell(.probeEnded(probe.id, .otherIdentity(somebody(), endpoint)))
                default: stage.tell(.probeEnded(probe.id, .ownIdentity(sameBoot: chance(50), endpoint)))
                }
            case 80..<82:
                let trusts = Trust.allCases
                let trust = trusts.randomElement(using: &generator) ?? .stranger
                let peer = somebody()
                if chance(50) {
                    stage.tell(.knownPeer(KnownPeer(id: peer, name: "k", trust: trust)))
                } else {
                    stage.tell(.trustChanged(peer, trust))
                }
                if peer != Stage.own { proven.insert(peer) }  // known from the store: listed as away
            case 82..<83:
                let peer = somebody()
                model.conflicts[peer] = nil
                if remembered.remove(peer) != nil { stage.tell(.remembered(remembered)) }
                stage.tell(.forget(peer))
            case 86..<88:
                guard let session = sessions.randomElement(using: &generator), chance(30) else { continue }
                model.conflicts[session.peer] = stage.now
                stage.tell(.identityConflict(session.peer, session.boot, BootNonce(4)))
            case 83..<84: stage.tell(.staticPeers(chance(50) ? [] : [StaticAddress(host: "192.168.7.200", port: 99)]))
            case 84..<85: stage.tell(chance(50) ? .discovery(.woke) : .hiding(chance(50)))
            case 85..<86:
                stage.tell(.discovery(.backend(.unavailable("gone"))))
                announced = []
            default: stage.pass(.milliseconds(Int.random(in: 1...20_000, using: &generator)))
            }

            model.look(at: stage, sessions: sessions)
            let broken =
                brokenPromise(stage, proven: proven, sessions: sessions, limits: limits) ?? model.brokenPromise(stage)
                ?? dials.brokenPromise(stage)
            if let broken {
                Issue.record("seed \(seed), step \(step): \(broken)")
                return
            }
        }

        // In any interval at most the burst and two probes a second have begun.
        for (index, first) in stage.begun.enumerated() {
            for last in [index + 10, index + 40, index + 200] where last < stage.begun.count {
                let seconds = (stage.begun[last] - first) / .seconds(1)
                #expect(Double(last - index) <= 8 + 2 * seconds + 0.1)
            }
        }
        // Each change is reported exactly once.
        var up: Set<PeerID> = []
        for event in stage.events {
            switch event {
            case .up(let peer): #expect(up.insert(peer).inserted)
            case .down(let peer): #expect(up.remove(peer) != nil)
            case .conflict, .conflictEnded: break
            case .ghost(let ghost): #expect([.stale, .conflict, .impostor, .invalid].contains(ghost.reason))
            }
        }
        let verified = Set(stage.rows.filter { $0.state == .verified }.compactMap(\.peer))
        #expect(up.isSubset(of: verified) && verified.intersection(remembered).isSubset(of: up))
    }

    /// Name of an invariant that is violated after a step; `nil` if all hold.
    private func brokenPromise(_ stage: Stage, proven: Set<PeerID>, sessions: [SessionInfo], limits: DirectoryLimits) -> String? {
        let rows = stage.rows
        let listed = rows.filter { $0.state != .ghost }
        let directory = stage.directory
        guard Set(listed.map(\.peer)).count == listed.count else { return "two rows for a UUID" }
        guard !listed.contains(where: { $0.peer == Stage.own || $0.peer == nil }) else { return "the own UUID is listed" }
        guard listed.allSatisfy({ $0.peer.map(proven.contains) ?? false }) else { return "listed without proof" }
        guard rows.allSatisfy({ ($0.state == .ghost) == ($0.reason != nil) && !$0.why.isEmpty }) else { return "a row without a reason" }
        for session in sessions {
            let isShown = rows.contains { $0.peer == session.peer && ($0.state == .verified || $0.reason == .conflict) }
            guard isShown else { return "a peer with a session is not shown" }
        }
        guard directory.records.count <= limits.records, directory.peers.count <= limits.instances + sessions.count + 3 else {
            return "too much is remembered"
        }
        guard stage.open.count <= limits.resolvers, stage.open.allSatisfy({ directory.resolverSlots.isOpen($0) }) else {
            return "resolvers"
        }
        guard directory.schedules.count <= 4 * limits.instances else { return "schedules pile up" }
        guard directory.timers.count <= 3_000 else { return "timers pile up" }
        if let deadline = directory.nextDeadline, deadline < stage.now - .seconds(1) { return "a deadline passed by" }
        guard stage.probes.allSatisfy({ !$0.endpoints.isEmpty && $0.endpoints.count <= 8 }) else { return "a probe of too much" }
        return nil
    }

    @Test("12 000 forged announcements, then a trusted peer restarts", .offPool, .timeLimit(.minutes(5))) func flood() throws {
        var stage = Stage()
        let friend = Stage.peer(1)
        stage.tell(.knownPeer(KnownPeer(id: friend, name: "F", trust: .trusted)))
        let record = stage.verified(friend)
        for number in 0..<12_000 {
            stage.announce(Stage.peer(UInt64(1_000 + number)), name: "forged \(number)", address: "192.168.7.66")
            if number % 100 == 0 { stage.pass(.milliseconds(10)) }
        }
        #expect(stage.directory.records.count <= 8_192 && stage.directory.peers.count <= 8_192)
        #expect(stage.open.count <= 256)
        #expect(stage.events.count <= 1 + 16 + 2)
        #expect(stage.row(friend)?.state == .verified)
        stage.resolve(record, Stage.txt(friend, boot: BootNonce(2)), port: 40_000)
        let before = stage.now
        while !stage.probes.contains(where: { $0.expecting == friend && $0.endpoints.contains { $0.port == 40_000 } }) {
            stage.pass(.milliseconds(100))
            while stage.probes.count > 0, stage.probes[0].expecting != friend { stage.end(.noAnswer) }
            try #require(stage.now - before < .seconds(10))
        }
        #expect(stage.now - before <= .seconds(2))
        _ = stage.rows
    }

    @Test("strangers that prove a key and leave do not accumulate, and displace no known peer") func passersBy() {
        var limits = DirectoryLimits()
        limits.instances = 200
        var stage = Stage(limits: limits)
        let friend = Stage.peer(1)
        stage.tell(.knownPeer(KnownPeer(id: friend, name: "F", trust: .trusted)))
        _ = stage.verified(friend)
        for number in 0..<2_000 {
            let session = SessionInfo(peer: Stage.peer(UInt64(1_000 + number)), boot: BootNonce(1), name: "s")
            stage.tell(.sessionUp(session))
            stage.tell(.sessionDown(session, .lost))
            #expect(stage.directory.peers.count <= 200 + 1)
        }
        #expect(stage.row(friend)?.state == .verified)
    }

    @Test("however many peers the store knows, the same number of others fits") func moreKnownThanTracked() {
        var limits = DirectoryLimits()
        limits.instances = 50
        var stage = Stage(limits: limits)
        for number in 1...200 { stage.tell(.knownPeer(KnownPeer(id: Stage.peer(UInt64(number)), name: "F", trust: .trusted))) }
        stage.announce(Stage.peer(1_000))
        #expect(stage.directory.peers[Stage.peer(1_000)] != nil)
        for number in 0..<200 {
            let session = SessionInfo(peer: Stage.peer(UInt64(2_000 + number)), boot: BootNonce(1), name: "s")
            stage.tell(.sessionUp(session))
            stage.tell(.sessionDown(session, .lost))
            #expect(stage.directory.peers.count <= 200 + 50)
        }
        // A forgotten peer counts towards the limit again.
        for number in 1...200 { stage.tell(.forget(Stage.peer(UInt64(number)))) }
        #expect(stage.directory.peers.count <= 50)
        stage.announce(Stage.peer(3_000))
        #expect(stage.directory.peers.count <= 50)
    }

    @Test("a claim over the limit of a UUID is ignored, however often it is resolved") func surplusClaims() {
        var stage = Stage()
        let friend = Stage.peer(1)
        let txt = Stage.txt(friend)
        let claims = (0..<80).map { stage.announce(friend, name: "claim \($0)", port: UInt16(2_000 + $0)) }
        let heard = stage.directory.peers[friend]?.records
        #expect(heard?.count == DirectoryLimits.claimsPerPeer)
        for (number, record) in claims.enumerated().prefix(16) { stage.resolve(record, txt, port: UInt16(2_000 + number)) }
        #expect(stage.directory.peers[friend]?.records == heard)
        #expect(stage.ghosts().contains { $0.why.contains("too many announcements") })
    }

    @Test("the full number of tracked peers fits, each announced over IPv4 and IPv6") func bothVersions() {
        var limits = DirectoryLimits()
        limits.instances = 50
        var stage = Stage(limits: limits)
        for number in 1...50 {
            stage.announce(Stage.peer(UInt64(number)), address: "192.168.7.\(number)")
            stage.announce(Stage.peer(UInt64(number)), address: "fe80::\(number)")
        }
        #expect(stage.directory.peers.count == 50 && stage.directory.records.count == 100)
        stage.announce(Stage.peer(51), address: "192.168.7.51")
        #expect(stage.directory.records.count <= 100)
    }

    @Test("2 000 announcements that all claim one trusted UUID", .offPool, .timeLimit(.minutes(5))) func forgedClaims() {
        var stage = Stage()
        let friend = Stage.peer(1)
        stage.tell(.knownPeer(KnownPeer(id: friend, name: "F", trust: .trusted)))
        _ = stage.verified(friend)
        for number in 0..<2_000 {
            stage.announce(
                friend, name: "forged \(number)", boot: BootNonce(1), address: "192.168.7.\(2 + number % 250)", port: UInt16(2_000 + number)
            )
        }
        #expect(stage.row(friend)?.state == .verified)
        #expect(stage.directory.peers[friend]?.records.count ?? 0 <= 64)
        #expect(stage.directory.endpoints(of: friend).first?.host == "192.168.7.20")
        let row = stage.row(friend)
        #expect((row?.endpoints.count ?? 0) <= 72)
    }
}

/// Checks the dial policy when a probe begins.
private struct DialModel {
    private var seen: Set<ProbeID> = []
    private var trustedOnce: Set<PeerID> = []

    mutating func brokenPromise(_ stage: Stage) -> String? {
        let peers = stage.directory.peers
        trustedOnce.formUnion(peers.values.filter { $0.trust == .trusted }.map(\.id))
        for probe in stage.probes where seen.insert(probe.id).inserted {
            let isTrusted = probe.expecting.map { peers[$0]?.trust == .trusted } ?? false
            for endpoint in probe.endpoints where endpoint.via != .static {
                let isNear = ["192.168.7.", "192.168.8.", "fe80::"].contains { endpoint.host.hasPrefix($0) }
                // An endpoint proved while the peer was trusted stays one of its endpoints.
                let isRemembered = endpoint.via == .lastKnown && probe.expecting.map(trustedOnce.contains) ?? false
                guard endpoint.port >= 1_024, endpoint.host != "127.0.0.1", isNear || isTrusted || isRemembered else {
                    return "\(endpoint) is dialled"
                }
                guard isTrusted || !stage.directory.isHiding else { return "\(endpoint) of a stranger is dialled while hiding" }
            }
        }
        return nil
    }
}

/// A peer's expected state, derived from outputs only: probes begun, their results, proved keys.
private struct PeerModel {
    /// Instants at which the two starts of a peer last proved themselves.
    var conflicts: [PeerID: ContinuousClock.Instant] = [:]
    /// Failed checks in a row since the last proof.
    private var failures: [PeerID: Int] = [:]
    /// Probes that check a peer: those begun without a session or a conflict.
    private var checks: [ProbeID: PeerID] = [:]
    private var seen: Set<ProbeID> = []

    mutating func proved(_ peer: PeerID) {
        failures[peer] = 0
        checks = checks.filter { $0.value != peer }
    }

    mutating func failed(_ probe: ProbeID) {
        guard let peer = checks.removeValue(forKey: probe) else { return }
        failures[peer, default: 0] += 1
    }

    mutating func look(at stage: Stage, sessions: [SessionInfo]) {
        let busy = Set(sessions.map(\.peer))
        for probe in stage.probes where !probe.isCheck && seen.insert(probe.id).inserted {
            guard let peer = probe.expecting, !busy.contains(peer), conflicts[peer] == nil else { continue }
            checks[probe.id] = peer
        }
        for peer in busy { proved(peer) }
    }

    func brokenPromise(_ stage: Stage) -> String? {
        for row in stage.rows where row.state == .verified {
            guard let peer = row.peer else { continue }
            // A check fails at most twice, and once more for each repetition that an announcement may trigger.
            if !row.hasSession, failures[peer, default: 0] > 5 { return "\(peer) failed its checks and is listed" }
            if let told = conflicts[peer], stage.now - told < DirectoryIntervals.conflict { return "\(peer) is two machines and is listed" }
        }
        return nil
    }
}
