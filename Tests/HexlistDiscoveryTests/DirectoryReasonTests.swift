import HexlistModel
import Testing

@testable import HexlistDiscovery

@Suite struct DirectoryReasonTests {
    let peer = Stage.peer(1)

    @Test func announcedResolvedProvedListed() throws {
        var stage = Stage(remembers: [peer])
        let record = stage.announce(peer)
        #expect(stage.open == [record])
        #expect(stage.ghosts().map(\.reason) == [.unverified])
        #expect(stage.row(peer) == nil && stage.events.isEmpty)
        // The first resolution starts a probe.
        let probe = try #require(stage.probes.first)
        #expect(probe.expecting == peer)
        #expect(probe.endpoints == [Endpoint(host: "192.168.7.20", port: 24391, interface: "eth0", via: .mdns)])
        #expect(stage.begun == [Stage.start])

        stage.prove(peer, name: "Ada")
        let row = try #require(stage.row(peer))
        #expect(row.state == .verified && row.reason == nil && row.name == "Ada" && row.hasSession)
        #expect(row.boot == BootNonce(1) && row.version == "1.0.0" && row.lastSeen == Stage.start)
        #expect(row.endpoints.map(\.lastOK) == [Stage.start])
        #expect(stage.events == [.up(peer)])
        #expect(stage.open.isEmpty)  // a peer with a session needs no resolver
        #expect(stage.ghosts().isEmpty)
    }

    @Test("one row for all interfaces, IP versions and instance names") func folding() throws {
        var stage = Stage(remembers: [peer])
        stage.announce(peer)
        stage.announce(peer, address: "fe80::20")
        stage.announce(peer, address: "192.168.8.20", interface: 3)
        stage.announce(peer, name: "another name", address: "192.168.7.20")
        stage.prove(peer)
        #expect(stage.rows.filter { $0.state != .ghost }.count == 1)
        let row = try #require(stage.row(peer))
        #expect(Set(row.endpoints.map(\.endpoint.host)) == ["192.168.7.20", "fe80::20%eth0", "192.168.8.20"])
        #expect(row.endpoints.first?.lastOK != nil)
        // There is one ghost per instance, not one per record.
        let ghosts = stage.ghosts(peer)
        #expect(ghosts.map(\.reason) == [.duplicate, .duplicate])
        #expect(
            Set(ghosts.map(\.why)) == [
                "announced on eth1 over IPv4, eth0 over IPv6 too, already listed through eth0 over IPv4",
                "announced on eth0 over IPv4 too, already listed as P [ABCD0001]",
            ])
        #expect(stage.probes.isEmpty)
        #expect(stage.events == [.up(peer)])
    }

    @Test("the own announcement is a ghost and never dialled") func ownAnnouncement() {
        var stage = Stage()
        stage.announce(Stage.own, boot: Stage.boot, address: "192.168.7.1")
        stage.announce(Stage.own, boot: Stage.boot, address: "fe80::1")
        #expect(stage.rows.map(\.reason) == [.self])
        #expect(stage.rows.first?.peer == Stage.own)
        #expect(stage.rows.first?.why == "this machine's own announcement, on eth0 over IPv4 and IPv6")
        #expect(stage.probes.isEmpty && stage.open.isEmpty && stage.events.isEmpty)
    }

    @Test("another start with this machine's UUID: a ghost until a Hello proves the clone") func clone() {
        var stage = Stage()
        let other = BootNonce(77)
        stage.announce(Stage.own, name: "clone", boot: other, address: "192.168.7.66")
        #expect(stage.rows.map(\.reason) == [.self])
        #expect(stage.probes.map(\.expecting) == [Stage.own])
        stage.end(.ownIdentity(sameBoot: false, Endpoint(host: "192.168.7.66", port: 24391, via: .mdns)))
        #expect(stage.rows.map(\.reason) == [.conflict])
        #expect(stage.events.contains(.conflict(Stage.own)) && stage.directory.isInConflict(Stage.own))
        // Both starts are probed every half minute. A start that did not answer three probes in a row is dropped.
        for _ in 0..<6 {
            stage.pass(DirectoryIntervals.conflictCheck)
            #expect(stage.rows.map(\.reason) == [.conflict])
            stage.end(.ownIdentity(sameBoot: false, Endpoint(host: "192.168.7.66", port: 24391, via: .mdns)))
        }
        for _ in 0..<5 {
            stage.pass(DirectoryIntervals.conflictCheck)
            stage.end(.refused)
        }
        #expect(!stage.directory.isInConflict(Stage.own) && stage.events.last == .conflictEnded(Stage.own))
        #expect(stage.rows.map(\.reason) == [.self])
        #expect(stage.rows.allSatisfy { $0.state == .ghost })
    }

    @Test func ownLeftoverStaysSelf() {
        var stage = Stage()
        stage.announce(Stage.own, name: "left over", boot: BootNonce(77), address: "192.168.7.1")
        stage.end(.refused)
        #expect(stage.rows.map(\.reason) == [.self])
        stage.pass(.seconds(600))
        #expect(stage.probes.isEmpty)  // the start was already probed once
    }

    @Test func cloneThatCallsIn() {
        var stage = Stage()
        stage.tell(.ownIdentityElsewhere(BootNonce(5)))
        #expect(stage.rows.map(\.reason) == [.conflict] && stage.rows.first?.peer == Stage.own)
        stage.tell(.ownIdentityElsewhere(Stage.boot))
        #expect(stage.rows.count == 1)
        stage.pass(.seconds(241))
        #expect(stage.rows.isEmpty)
    }

    @Test(
        "no answer: stale, with the reason in words",
        arguments: [
            (ProbeResult.refused, "announced on eth0 over IPv4, but the connection is refused (192.168.7.20:24391)"),
            (.noAnswer, "announced on eth0 over IPv4, but nobody answers (192.168.7.20:24391)"),
            (.failed("speaks no TLS"), "announced on eth0 over IPv4, but it answers, but speaks no TLS (192.168.7.20:24391)"),
        ]) func stale(_ result: ProbeResult, why: String)
    {
        var stage = Stage()
        stage.announce(peer)
        stage.end(result)
        #expect(stage.ghosts(peer).map(\.reason) == [.stale])
        #expect(stage.ghosts(peer).first?.why == why)
        guard case .ghost(let event)? = stage.events.first else {
            Issue.record("no event")
            return
        }
        #expect(event.reason == .stale && event.peer == peer)
    }

    @Test("an announcement that does not resolve is stale") func unresolvable() {
        var stage = Stage()
        let record = Stage.record("gone")
        stage.tell(.discovery(.appeared(record, interfaceName: "eth0")))
        #expect(stage.rows.map(\.reason) == [.unverified])
        stage.tell(.discovery(.resolveFailed(record, "Timeout reached")))
        #expect(stage.rows.map(\.reason) == [.stale])
        #expect(stage.open == [record])  // the resolver stays open, because a later result may be usable
        stage.resolve(record, Stage.txt(peer))
        #expect(stage.rows.map(\.reason) == [.unverified])
        stage.tell(.discovery(.resolveFailed(record, "Timeout reached")))
        #expect(stage.rows.map(\.peer) == [peer])  // the verified row is unchanged
    }

    @Test(
        "invalid announcements",
        arguments: [
            (["txtvers=1"], "192.168.7.20", UInt16(24391), "its TXT has no UUID in `id`"),
            (["id=hello"], "192.168.7.20", 24391, "its TXT has no UUID in `id`"),
            (["id=\(Stage.peer(1))"], "192.168.7.20", 0, "its port is 0"),
            (["id=\(Stage.peer(1))"], "", 24391, "it has no address"),
            (["id=\(Stage.peer(1))"], "192.168.7.20", 80, "its port 80 is below 1024"),
            (["id=\(Stage.peer(1))"], "8.8.8.8", 24391, "its address is not on a network of this machine"),
        ]) func invalid(_ txt: [String], address: String, port: UInt16, why: String)
    {
        var stage = Stage()
        let record = Stage.record("odd")
        stage.tell(.discovery(.appeared(record, interfaceName: "eth0")))
        stage.resolve(record, txt.map { Array($0.utf8) }, address: address, port: port)
        #expect(stage.rows.map(\.reason) == [.invalid])
        #expect(stage.rows.first?.why == "its announcement is not usable: \(why)")
        #expect(stage.probes.isEmpty)
        // Unknown keys do no harm, and a valid announcement of the same instance is accepted.
        stage.resolve(record, Stage.txt(peer) + [Array("odd".utf8), Array("x=\u{7}".utf8)])
        #expect(stage.rows.map(\.reason) == [.unverified] && stage.probes.count == 1)
    }

    @Test("another identity answers: impostor; the claimed peer is untouched") func impostor() throws {
        var stage = Stage()
        let record = stage.verified(peer)
        let before = try #require(stage.row(peer))
        stage.announce(peer, name: "forged", boot: BootNonce(9), address: "192.168.7.66")
        #expect(stage.row(peer)?.state == .verified)
        #expect(stage.row(peer)?.name == before.name && stage.row(peer)?.boot == before.boot)
        // The new start is probed at once, the known endpoint first.
        let probe = try #require(stage.probes.first)
        #expect(probe.endpoints.map(\.host) == ["192.168.7.20", "192.168.7.66"])
        let other = Stage.peer(2)
        stage.end(.otherIdentity(other, probe.endpoints[1]))
        #expect(stage.row(peer)?.state == .verified)
        #expect(stage.ghosts(peer).map(\.reason) == [.impostor])
        #expect(stage.ghosts(peer).first?.why == "announced with this UUID, but 192.168.7.66:24391 answers as \(other)")
        // The peer is probed again at once, without the impostor's endpoint.
        #expect(stage.probes.map(\.endpoints.count) == [1])
        stage.prove(peer)
        #expect(stage.row(peer)?.state == .verified)
        #expect(stage.directory.endpoints(of: peer).first?.host == "192.168.7.20")
        stage.tell(.discovery(.withdrawn(record)))
        #expect(stage.row(peer)?.state == .verified)
    }

    @Test func impostorAlone() {
        var stage = Stage()
        stage.announce(peer)
        stage.end(.otherIdentity(Stage.peer(2), Endpoint(host: "192.168.7.20", port: 24391, interface: "eth0", via: .mdns)))
        #expect(stage.rows.map(\.reason) == [.impostor])
        #expect(stage.probes.isEmpty)
        stage.pass(.seconds(5))
        #expect(stage.probes.count == 1)  // the endpoint may belong to another peer by now
        stage.prove(peer)
        #expect(stage.row(peer)?.state == .verified && stage.ghosts().isEmpty)
    }

    @Test("an older start of a known peer is stale") func olderStart() {
        var stage = Stage()
        stage.announce(peer, name: "old", boot: BootNonce(1), address: "192.168.7.20", port: 2_000)
        let first = stage.prove(peer, boot: BootNonce(1))
        stage.tell(.sessionDown(first, .lost))
        stage.announce(peer, name: "new", boot: BootNonce(2), address: "192.168.7.20", port: 3_000)
        stage.prove(peer, boot: BootNonce(2))
        #expect(stage.row(peer)?.boot == BootNonce(2))
        #expect(stage.ghosts(peer).map(\.reason) == [.stale])
        #expect(stage.ghosts(peer).map(\.name) == ["old"])
    }

    @Test("a new start announced during a session is dialled once") func restartDuringSession() {
        var stage = Stage()
        let record = stage.announce(peer)
        stage.prove(peer)
        stage.tell(.discovery(.withdrawn(record)))
        let again = stage.announce(peer, boot: BootNonce(2), port: 4_000)
        #expect(stage.row(peer)?.state == .verified && stage.row(peer)?.boot == BootNonce(1))
        #expect(stage.probes.map(\.endpoints) == [[Endpoint(host: "192.168.7.20", port: 4_000, interface: "eth0", via: .mdns)]])
        #expect(stage.open == [again])
        #expect(stage.ghosts(peer).map(\.reason) == [.unverified])
        stage.end(.noAnswer)
        #expect(stage.ghosts(peer).map(\.reason) == [.stale])
        #expect(stage.row(peer)?.state == .verified)
        stage.pass(.seconds(900))
        #expect(stage.probes.isEmpty)
    }

    @Test("two machines with one UUID, detected by a session, or by a start that reappears", arguments: [true, false])
    func conflict(_ isToldBySession: Bool) {
        var stage = Stage(remembers: [peer])
        stage.announce(peer, name: "a", boot: BootNonce(1), address: "192.168.7.20")
        let first = stage.prove(peer, boot: BootNonce(1))
        stage.announce(peer, name: "b", boot: BootNonce(2), address: "192.168.7.21")
        #expect(stage.probes.count == 1)
        let second = stage.prove(peer, boot: BootNonce(2))
        #expect(stage.rows.filter { $0.state == .verified }.count == 1)  // indistinguishable from a restart
        if isToldBySession {
            stage.tell(.identityConflict(peer, BootNonce(1), BootNonce(2)))
            stage.tell(.sessionDown(first, .other))
            stage.tell(.sessionDown(second, .other))
        } else {
            stage.tell(.sessionDown(first, .lost))
            stage.tell(.sessionUp(first))
        }
        #expect(stage.row(peer) == nil)
        #expect(stage.ghosts(peer).map(\.reason) == [.conflict])
        #expect(stage.events.contains(.down(peer)))
        #expect(stage.events.contains { if case .ghost(let event) = $0 { event.reason == .conflict } else { false } })
        #expect(stage.events.contains(.conflict(peer)) && stage.directory.isInConflict(peer))
        if !isToldBySession {
            stage.tell(.sessionDown(second, .other))
            stage.tell(.sessionDown(first, .other))
        }
        // The conflict lasts while both starts prove themselves. Every half minute both addresses are probed.
        var asked: Set<String> = []
        func ask(_ answer: (Endpoint) -> BootNonce?) {
            stage.pass(DirectoryIntervals.conflictCheck + .seconds(1))
            while let probe = stage.probes.first {
                asked.formUnion(probe.endpoints.map(\.host))
                let endpoint = probe.endpoints[0]
                if let boot = answer(endpoint) {
                    let session = SessionInfo(peer: peer, boot: boot, name: "P", endpoint: endpoint)
                    stage.tell(.sessionUp(session))
                    stage.end(.proved(peer, boot, endpoint))
                    stage.tell(.sessionDown(session, .other))
                } else {
                    stage.end(.refused)
                }
            }
        }
        for _ in 0..<5 {
            ask { $0.host == "192.168.7.21" ? BootNonce(2) : BootNonce(1) }
            #expect(stage.row(peer) == nil && stage.directory.isInConflict(peer))
        }
        #expect(asked == ["192.168.7.20", "192.168.7.21"])
        for _ in 0..<5 { ask { $0.host == "192.168.7.21" ? nil : BootNonce(1) } }
        #expect(stage.events.contains(.conflictEnded(peer)) && !stage.directory.isInConflict(peer))
        #expect(stage.row(peer)?.state == .verified)  // one of the two machines remains
    }

    @Test("a reinstalled trusted peer is suggested, and nothing else changes") func installedAnew() throws {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "Desk", trust: .trusted)))
        stage.announce(peer)
        let old = stage.prove(peer, name: "Desk")
        stage.tell(.sessionDown(old, .shutdown))
        let new = Stage.peer(2)
        stage.announce(new, address: "192.168.7.20", port: 24391)
        stage.prove(new, name: "Desk")
        let row = try #require(stage.row(peer))
        #expect(
            row.state == .away && row.why.hasSuffix("\(new.shortID), with the same name and address, may be the same machine, reinstalled"))
        #expect(stage.row(new)?.why.hasSuffix("perhaps reinstalled") == true)
        #expect(stage.directory.peers[new]?.trust == .stranger)
        // A peer with the same name at another address, or with another name at the same address, gets no hint.
        for (name, host) in [("Desk", "192.168.7.21"), ("Other", "192.168.7.20")] {
            var stage = Stage()
            stage.tell(.knownPeer(KnownPeer(id: peer, name: "Desk", trust: .trusted)))
            stage.announce(peer)
            stage.tell(.sessionDown(stage.prove(peer, name: "Desk"), .shutdown))
            stage.announce(new, address: host)
            stage.prove(new, name: name)
            #expect(stage.row(peer)?.why == "announced that it is shutting down")
        }
    }

    @Test("another daemon on the same host is a separate peer") func sameHost() {
        var stage = Stage()
        stage.announce(Stage.own, boot: Stage.boot, address: "192.168.7.1", port: 24391)
        stage.announce(peer, address: "192.168.7.1", port: 24392)
        stage.prove(peer)
        #expect(stage.row(peer)?.state == .verified)
        #expect(stage.ghosts().map(\.reason) == [.self])
    }

    @Test("rename: Hello's name counts, and the new instance is merged") func rename() {
        var stage = Stage(remembers: [peer])
        let old = stage.announce(peer, name: "Old [ABCD0001]")
        stage.prove(peer, name: "Old")
        stage.announce(peer, name: "New [ABCD0001]")
        #expect(stage.row(peer)?.name == "Old")
        #expect(stage.probes.isEmpty)
        stage.tell(.renamed(peer, name: "New"))
        stage.tell(.discovery(.withdrawn(old)))
        #expect(stage.row(peer)?.name == "New" && stage.row(peer)?.state == .verified)
        #expect(stage.ghosts().isEmpty && stage.events == [.up(peer)])
    }

    @Test("a peer that dialled in is verified, without an endpoint") func inbound() {
        var stage = Stage(remembers: [peer])
        let session = SessionInfo(
            peer: peer, boot: BootNonce(1), name: "P", endpoint: Endpoint(host: "192.168.7.20", port: 51_000, via: .inbound))
        stage.tell(.sessionUp(session))
        #expect(stage.row(peer)?.state == .verified)
        #expect(stage.row(peer)?.endpoints.map(\.endpoint.via) == [.inbound])
        #expect(stage.directory.endpoints(of: peer).isEmpty)
        stage.tell(.sessionDown(session, .idle))
        #expect(stage.row(peer)?.state == .verified && stage.row(peer)?.endpoints.isEmpty == true)
        stage.pass(.seconds(90))
        #expect(stage.row(peer)?.state == .away)  // no endpoint to probe
        #expect(stage.begun.isEmpty)
        #expect(stage.events == [.up(peer), .down(peer)])
    }

    @Test func blockedPeersAreNotAsked() {
        var stage = Stage()
        stage.tell(
            .knownPeer(
                KnownPeer(id: peer, name: "B", trust: .blocked, endpoints: [Endpoint(host: "10.0.0.1", port: 2_000, via: .lastKnown)])))
        stage.announce(peer)
        stage.pass(.seconds(600))
        #expect(stage.begun.isEmpty)
        #expect(stage.row(peer)?.state == .away)
        stage.tell(.trustChanged(peer, .stranger))
        #expect(stage.begun.count == 1)
        stage.prove(peer)
        #expect(stage.row(peer)?.state == .verified)
    }

    @Test("configured addresses are probed for their identity, then become endpoints of that peer") func staticAddresses() throws {
        var stage = Stage()
        let address = StaticAddress(host: "peer.example", port: 443)
        stage.tell(.staticPeers([address, StaticAddress(host: "10.9.9.9", port: 2_000)]))
        #expect(stage.rows.map(\.reason) == [.unverified, .unverified])
        #expect(stage.probes.map(\.expecting) == [nil, nil])
        let ours = try #require(stage.probes.firstIndex { $0.endpoints.first?.host == "peer.example" })
        let probe = stage.probes.remove(at: ours)
        stage.tell(.probeEnded(probe.id, .proved(peer, BootNonce(4), probe.endpoints[0])))
        stage.tell(.sessionUp(SessionInfo(peer: peer, boot: BootNonce(4), name: "S", endpoint: probe.endpoints[0])))
        #expect(stage.row(peer)?.endpoints.map(\.endpoint.via) == [.static])
        stage.end(.ownIdentity(sameBoot: true, Endpoint(host: "10.9.9.9", port: 2_000, via: .static)))
        #expect(stage.ghosts().map(\.reason) == [.self])
        // Another machine answers at that address, so the address is probed again.
        stage.tell(.sessionDown(SessionInfo(peer: peer, boot: BootNonce(4), name: "S"), .lost))
        stage.end(.otherIdentity(Stage.peer(2), probe.endpoints[0]))
        stage.pass(.seconds(2))
        #expect(stage.probes.contains { $0.expecting == nil && $0.endpoints.first?.host == "peer.example" })
        // The address is no longer configured.
        stage.tell(.staticPeers([]))
        #expect(stage.ghosts().isEmpty)
    }

    @Test("a configured address that one known peer was last reached at is probed once, as that peer's") func staticAddressOfAKnownPeer()
        throws
    {
        var stage = Stage()
        let address = StaticAddress(host: "10.9.9.9", port: 2_000)
        let endpoint = Endpoint(host: "10.9.9.9", port: 2_000, via: .lastKnown)
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted, endpoints: [endpoint])))
        stage.tell(.staticPeers([address]))
        stage.pass(.seconds(1))
        #expect(stage.begun.count == 1)
        #expect(stage.probes.map(\.expecting) == [peer])
        #expect(stage.row(peer)?.endpoints.map(\.endpoint.via) == [.static])
        // Another machine has this address now: the address is probed for its identity.
        stage.end(.otherIdentity(Stage.peer(2), address.endpoint))
        stage.pass(.seconds(1))
        #expect(stage.probes.contains { $0.expecting == nil && $0.endpoints == [address.endpoint] })

        // Two peers have this address as their last one, so it is probed for its identity.
        var shared = Stage()
        for id in [peer, Stage.peer(2)] {
            shared.tell(.knownPeer(KnownPeer(id: id, name: "K", trust: .trusted, endpoints: [endpoint])))
        }
        shared.tell(.staticPeers([address]))
        shared.pass(.seconds(1))
        #expect(shared.probes.contains { $0.expecting == nil && $0.endpoints == [address.endpoint] })
    }

    @Test func knownPeersAreAwayUntilTheyAnswer() throws {
        var stage = Stage()
        let endpoint = Endpoint(host: "203.0.113.9", port: 443, via: .lastKnown)
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted, endpoints: [endpoint])))
        let row = try #require(stage.row(peer))
        #expect(row.state == .away && row.name == "K" && row.why == "not seen since this daemon started")
        #expect(stage.probes.map(\.endpoints) == [[endpoint]])  // remembered addresses are exempt from the dial policy
        stage.prove(peer, name: "K2")
        #expect(stage.row(peer)?.state == .verified && stage.row(peer)?.name == "K2")
        // An announcement of this peer adds no second row.
        stage.announce(peer)
        #expect(stage.rows.count == 1)
    }

    @Test func forgottenPeers() {
        var stage = Stage(remembers: [peer])
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        stage.tell(.forget(peer))
        #expect(stage.rows.isEmpty)
        let record = stage.verified(peer)
        stage.tell(.forget(peer))
        #expect(stage.ghosts(peer).map(\.reason) == [.unverified])  // the peer is still announced, so it counts as a new one
        #expect(stage.events == [.up(peer), .down(peer)])
        #expect(stage.probes.count == 1)
        stage.tell(.discovery(.withdrawn(record)))
        stage.end(.refused)
        stage.pass(.seconds(90))
        #expect(stage.rows.isEmpty)
    }
}
