import HexlistModel
import Testing

@testable import HexlistDiscovery

@Suite struct DirectoryTimerTests {
    let peer = Stage.peer(1)

    @Test("an announced endpoint that does not answer is probed after 5, 10, 20 … 300 s") func backoff() {
        var stage = Stage()
        stage.announce(peer)
        var waits: [Duration] = []
        for _ in 0..<9 {
            let ended = stage.now
            stage.end(.noAnswer)
            while stage.probes.isEmpty { stage.pass(.seconds(1)) }
            waits.append(stage.now - ended)
        }
        #expect(waits == [5, 10, 20, 40, 80, 160, 300, 300, 300].map { .seconds($0) })
    }

    @Test(
        "a lost session is probed at once; the peer is away after the second failure or the first refusal",
        arguments: [
            (ProbeResult.noAnswer, false), (.failed("no"), false), (.refused, true),
        ]) func lostSession(_ result: ProbeResult, atOnce: Bool)
    {
        var stage = Stage(remembers: [peer])
        stage.announce(peer)
        let session = stage.prove(peer)
        stage.tell(.sessionDown(session, .lost))
        #expect(stage.probes.count == 1)
        #expect(stage.row(peer)?.state == .verified)  // the peer stays verified until the probe has ended
        stage.end(result)
        guard !atOnce else {
            #expect(stage.row(peer)?.state == .away && stage.row(peer)?.why == "refuses the connection")
            return
        }
        #expect(stage.row(peer)?.state == .verified && stage.probes.isEmpty)
        stage.pass(.milliseconds(4_990))
        #expect(stage.probes.isEmpty)
        stage.pass(.milliseconds(20))
        #expect(stage.probes.count == 1)
        stage.end(result)
        #expect(stage.row(peer)?.state == .away)
        #expect(stage.events == [.up(peer), .down(peer)])
    }

    @Test("a withdrawn announcement triggers a probe, whose failure counts at once") func withdrawn() {
        var stage = Stage(remembers: [peer])
        let record = stage.verified(peer)
        stage.tell(.discovery(.withdrawn(record)))
        #expect(stage.row(peer)?.state == .verified)
        #expect(stage.probes.count == 1)
        stage.end(.noAnswer)
        #expect(stage.row(peer)?.state == .away)
    }

    @Test func withdrawalLeavesALiveSessionAlone() {
        var stage = Stage()
        let record = stage.announce(peer)
        stage.prove(peer)
        stage.tell(.discovery(.withdrawn(record)))
        #expect(stage.probes.isEmpty && stage.row(peer)?.state == .verified)
    }

    @Test func discoveryGoneWithdrawsNothing() {
        var stage = Stage()
        _ = stage.verified(peer)
        let session = SessionInfo(peer: Stage.peer(2), boot: BootNonce(1), name: "Q")
        stage.tell(.sessionUp(session))
        stage.announce(Stage.peer(3))
        stage.end(.noAnswer)
        stage.tell(.discovery(.backend(.unavailable("avahi-daemon is gone"))))
        #expect(stage.open.isEmpty)
        #expect(stage.row(peer)?.state == .verified && stage.row(Stage.peer(2))?.state == .verified)
        #expect(stage.probes.isEmpty)
        stage.pass(.seconds(66))
        #expect(stage.probes.count == 1)  // the remembered endpoint, on the regular schedule
        stage.pass(.seconds(24))
        #expect(stage.ghosts().isEmpty)  // the unverified peer is dropped after 90 s without an announcement
        // The peers are announced again.
        stage.tell(.discovery(.backend(.running)))
        stage.end(.noAnswer)
        stage.announce(peer)
        #expect(stage.rows.filter { $0.peer == peer }.count == 1)
    }

    @Test func byeShutdownIsAwayAtOnce() {
        var stage = Stage(remembers: [peer])
        let record = stage.announce(peer)
        let session = stage.prove(peer)
        stage.tell(.sessionDown(session, .shutdown))
        #expect(stage.row(peer)?.state == .away && stage.row(peer)?.why == "announced that it is shutting down")
        #expect(stage.events == [.up(peer), .down(peer)])
        #expect(stage.probes.isEmpty)
        // The peer restarts on another port before its goodbye was seen: the reopened resolver reports the port, which is probed at once.
        #expect(stage.open == [record])
        stage.resolve(record, Stage.txt(peer, boot: BootNonce(2)), port: 30_000)
        #expect(stage.probes.count == 1)
        let endpoint = Endpoint(host: "192.168.7.20", port: 30_000, interface: "eth0", via: .mdns)
        #expect(stage.probes.first?.endpoints.contains(endpoint) == true)
        stage.tell(.sessionUp(SessionInfo(peer: peer, boot: BootNonce(2), name: "P", endpoint: endpoint)))
        stage.end(.proved(peer, BootNonce(2), endpoint))
        #expect(stage.row(peer)?.state == .verified && stage.ghosts().isEmpty)
        #expect(stage.directory.endpoints(of: peer).map(\.port) == [30_000])
    }

    @Test func shutdownOfOneOfTwoSessionsWaitsForTheOther() {
        var stage = Stage()
        stage.announce(peer)
        let first = stage.prove(peer)
        stage.tell(.sessionUp(first))
        stage.tell(.sessionDown(first, .other))
        #expect(stage.row(peer)?.state == .verified && stage.row(peer)?.hasSession == true)
        stage.tell(.sessionDown(first, .shutdown))
        #expect(stage.row(peer)?.state == .away)
        stage.tell(.sessionDown(first, .lost))  // a duplicate is ignored
        #expect(stage.probes.isEmpty)
    }

    @Test("a verified peer without session is probed every 60 s, or half a second times their number", arguments: [1, 400])
    func routine(_ count: Int) {
        var stage = Stage()
        for number in 1...count {
            let session = SessionInfo(
                peer: Stage.peer(UInt64(number)), boot: BootNonce(1), name: "P",
                endpoint: Endpoint(host: "192.168.7.20", port: UInt16(2_000 + number), via: .lastKnown))
            stage.tell(.sessionUp(session))
            stage.tell(.sessionDown(session, .idle))
        }
        let interval = max(60, Double(count) / 2)
        var asked = 0
        var elapsed = 0.0
        while elapsed < 4 * interval {
            stage.pass(.milliseconds(500))
            elapsed += 0.5
            while let probe = stage.probes.first, let id = probe.expecting {
                stage.end(.proved(id, BootNonce(1), probe.endpoints[0]))
                asked += 1
            }
        }
        #expect(asked >= 3 * count && asked <= 4 * count + 8)
        #expect(stage.events.allSatisfy { if case .up = $0 { true } else { false } })
    }

    @Test func neverVerifiedIsForgottenAfter90Seconds() {
        var stage = Stage()
        let record = stage.announce(peer)
        stage.end(.noAnswer)
        stage.tell(.discovery(.withdrawn(record)))
        #expect(stage.ghosts(peer).isEmpty)  // not announced, so there is no ghost
        stage.pass(.seconds(89))
        #expect(stage.directory.peers[peer] != nil)
        stage.pass(.seconds(1))
        #expect(stage.directory.peers.isEmpty && stage.directory.schedules.isEmpty)
        #expect(stage.directory.nextDeadline == nil)
        #expect(stage.probes.isEmpty)
    }

    @Test func strangersThatLeftAreLeftAlone() {
        var stage = Stage(remembers: [peer])
        let record = stage.verified(peer)
        stage.tell(.discovery(.withdrawn(record)))
        for _ in 0..<3_600 {
            stage.pass(.seconds(1))
            while !stage.probes.isEmpty { stage.end(.noAnswer) }
        }
        #expect(stage.row(peer)?.state == .away)
        #expect(stage.begun.count < 12)
        #expect(stage.directory.nextDeadline == nil)
        // A trusted peer is probed without an end.
        stage.tell(.trustChanged(peer, .trusted))
        stage.tell(.discovery(.woke))
        for _ in 0..<3_600 {
            stage.pass(.seconds(1))
            while !stage.probes.isEmpty { stage.end(.noAnswer) }
        }
        #expect(stage.directory.nextDeadline != nil)
    }

    @Test("waking and network changes probe at once", arguments: [true, false]) func waking(_ isWake: Bool) {
        var stage = Stage()
        _ = stage.verified(peer)
        stage.announce(Stage.peer(2), address: "192.168.7.30")
        for _ in 0..<4 {
            stage.end(.noAnswer)
            stage.pass(.seconds(1))
        }
        let before = stage.begun.count
        stage.pass(.seconds(3))
        if isWake {
            stage.tell(.discovery(.woke))
        } else {
            stage.tell(.discovery(.interfaces([InterfaceAddress(interface: "eth0", index: 2, address: "10.1.1.1", prefixLength: 8)])))
        }
        #expect(stage.begun.count == before + 2)
    }

    @Test("an address of another network is dialled once this machine joins it") func interfacesDecide() {
        var stage = Stage()
        stage.announce(peer, address: "203.0.113.9")
        #expect(stage.rows.map(\.reason) == [.invalid] && stage.probes.isEmpty)
        stage.tell(.discovery(.interfaces([InterfaceAddress(interface: "eth0", index: 2, address: "203.0.113.1", prefixLength: 24)])))
        #expect(stage.probes.count == 1)
        #expect(stage.rows.map(\.reason) == [.unverified])
    }

    @Test("announcements received during a probe are tried as soon as it fails") func secondRecord() {
        var stage = Stage()
        stage.announce(peer, address: "fe80::20")
        stage.announce(peer, address: "192.168.7.20")
        #expect(stage.probes.count == 1)
        stage.end(.noAnswer)
        #expect(stage.probes.count == 1)
        #expect(stage.probes.first?.endpoints.map(\.host) == ["192.168.7.20", "fe80::20%eth0"])  // the silent endpoint comes last
    }

    @Test("flapping announcements cost a peer one probe per 5 s") func flapping() {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        for number in 0..<600 {
            let record = stage.announce(peer, boot: BootNonce(UInt64(1_000 + number)))
            while !stage.probes.isEmpty { stage.end(.refused) }
            stage.pass(.milliseconds(100))
            stage.tell(.discovery(.withdrawn(record)))
        }
        #expect(stage.begun.count <= 3 + 60 / 5 + 2 + 7)  // probes because of announcements, and those of the back-off
    }

    @Test func probesThatNobodyEndsEnd() {
        var stage = Stage()
        stage.announce(peer)
        stage.pass(.seconds(30))
        #expect(stage.ghosts(peer).map(\.reason) == [.stale])
        stage.tell(.probeEnded(ProbeID(number: 1), .refused))  // the result of a probe that has already timed out
        stage.tell(.probeEnded(ProbeID(number: 99), .refused))
        stage.pass(.seconds(5))
        #expect(stage.begun.count == 2)
    }

    @Test func quietWhenNothingHappens() {
        var stage = Stage()
        let record = stage.announce(peer)
        stage.prove(peer)
        #expect(stage.directory.nextDeadline == nil)
        stage.tell(.discovery(.withdrawn(record)))
        #expect(stage.directory.nextDeadline == nil)
    }
}
