import HexlistModel
import Testing

@testable import HexlistDiscovery

/// `announce: false`: strangers' announcements are seen and not dialled; trusted peers and configured addresses are.
@Suite struct DirectoryHidingTests {
    let peer = Stage.peer(1)

    private func hiding() -> Stage {
        var stage = Stage()
        stage.tell(.hiding(true))
        return stage
    }

    @Test("a stranger's announcement is shown as unverified, says why, and is not dialled, whatever it announces and however long")
    func strangerIsNotAsked() {
        var stage = hiding()
        let record = stage.announce(peer)
        stage.announce(peer, name: "again", boot: BootNonce(2), address: "192.168.7.21")
        stage.pass(.seconds(600))
        stage.tell(.discovery(.woke))
        stage.tell(.discovery(.interfaces(Stage.interfaces.dropLast())))
        stage.tell(.discovery(.withdrawn(record)))
        #expect(stage.begun.isEmpty)
        #expect(stage.ghosts(peer).map(\.reason) == [.unverified])
        #expect(stage.ghosts(peer).first?.why.contains("announce: false") == true)
        // A person may still ask for it: pairing and doctor dial these.
        #expect(stage.directory.endpoints(of: peer).map(\.host) == ["192.168.7.21"])
    }

    @Test("a trusted peer's announcement is dialled; so is one that becomes trusted; one that is no longer is left alone")
    func trustedIsAsked() {
        var stage = hiding()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        stage.announce(peer)
        #expect(stage.probes.map(\.expecting) == [peer])
        let other = Stage.peer(2)
        stage.announce(other, address: "192.168.7.30")
        #expect(stage.probes.count == 1)
        stage.tell(.knownPeer(KnownPeer(id: other, name: "O", trust: .trusted)))
        #expect(stage.probes.map(\.expecting) == [peer, other])
        let session = stage.prove(peer)
        stage.tell(.trustChanged(peer, .stranger))
        stage.tell(.sessionDown(session, .idle))
        stage.probes = []
        stage.pass(.seconds(600))
        #expect(!stage.probes.contains { $0.expecting == peer })
        #expect(stage.row(peer)?.state == .away)
    }

    @Test("a configured address is dialled, and only that: not what its peer announces elsewhere") func configured() throws {
        var stage = hiding()
        let address = StaticAddress(host: "192.168.7.40", port: 24391)
        stage.tell(.staticPeers([address]))
        let probe = try #require(stage.probes.first)
        #expect(probe.endpoints == [address.endpoint] && probe.expecting == nil)
        let session = stage.prove(peer)
        stage.tell(.sessionDown(session, .idle))
        stage.announce(peer, boot: BootNonce(2), address: "192.168.7.66")
        stage.pass(.seconds(120))
        #expect(!stage.probes.isEmpty)
        #expect(stage.probes.allSatisfy { $0.endpoints.map(\.host) == ["192.168.7.40"] })
        #expect(stage.row(peer)?.state == .verified)
    }

    @Test("hiding later leaves strangers alone at once; showing again asks them") func live() {
        var stage = Stage(remembers: [peer])
        let stranger = Stage.peer(2)
        _ = stage.verified(peer)
        stage.announce(stranger, address: "192.168.7.31")
        stage.probes = []
        let before = stage.begun.count
        stage.tell(.hiding(true))
        stage.pass(.seconds(600))
        #expect(stage.begun.count == before)
        #expect(stage.row(peer)?.state == .away && stage.row(peer)?.why.contains("announce: false") == true)
        #expect(stage.events.last == .down(peer))
        stage.tell(.hiding(false))
        #expect(Set(stage.probes.compactMap(\.expecting)) == [peer, stranger])
    }

    @Test("a domain's entries of strangers are not dialled either, nor another start of the own UUID") func othersAnnouncements() {
        var stage = hiding()
        let record = Record(
            key: InstanceKey(name: "d", type: "_hexlist._tcp", domain: "corp.example"), interface: 0, ipv6: false, unicast: 0)
        stage.tell(.discovery(.appeared(record, interfaceName: nil)))
        stage.resolve(record, Stage.txt(peer, boot: nil), address: "10.1.0.2")
        stage.announce(Stage.own, name: "clone", boot: BootNonce(77), address: "192.168.7.50")
        stage.pass(.seconds(600))
        #expect(stage.begun.isEmpty)
        #expect(stage.ghosts(Stage.own).map(\.reason) == [.self])
    }
}

/// The addresses that an announcement may make this machine dial.
@Suite struct DirectoryForeignNetworkTests {
    let peer = Stage.peer(1)

    @Test("a private address of no own network is dialled for a trusted peer only, and its port has to be one from 1024 all the same")
    func trustedOnly() {
        var stage = Stage()
        stage.announce(peer, address: "10.2.0.20")
        stage.pass(.seconds(600))
        #expect(stage.begun.isEmpty)
        #expect(stage.ghosts(peer).map(\.reason) == [.invalid])
        #expect(stage.directory.endpoints(of: peer).isEmpty)

        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        #expect(stage.probes.map(\.endpoints).map { $0.map(\.host) } == [["10.2.0.20"]])
        stage.announce(peer, name: "low", boot: BootNonce(3), address: "10.2.0.21", port: 443)
        #expect(stage.directory.endpoints(of: peer).map(\.host) == ["10.2.0.20"])
        stage.tell(.trustChanged(peer, .stranger))
        #expect(stage.directory.endpoints(of: peer).isEmpty)
    }

    @Test("an address of the Internet is dialled for nobody", arguments: ["198.51.100.7", "2001:db8::7"])
    func publicAddress(_ address: String) {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        stage.announce(peer, address: address)
        stage.pass(.seconds(600))
        #expect(stage.begun.isEmpty && stage.directory.endpoints(of: peer).isEmpty)
    }

    @Test("however much is announced in a trusted peer's name, it costs 3 dials of 8 places at once, and one in 5 s beyond its schedule")
    func bounds() {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        for second in 0..<60 {
            for number in 0..<20 {
                stage.announce(peer, name: "f\(second % 3) \(number)", boot: BootNonce(UInt64(second)), address: "10.\(second).0.\(number)")
            }
            while !stage.probes.isEmpty {
                #expect(stage.probes[0].endpoints.count <= 8)
                stage.end(.noAnswer)
            }
            stage.pass(.seconds(1))
        }
        // 3, one each 5 s, and the schedule's own: 5, 10, 20, 40 s after failures.
        #expect(3...20 ~= stage.begun.count)
    }
}

/// A peer is shown where it is now.
@Suite struct DirectoryPlaceTests {
    let peer = Stage.peer(1)
    private func inbound(_ boot: BootNonce, _ port: UInt16 = 50_001) -> SessionInfo {
        SessionInfo(peer: peer, boot: boot, name: "P", endpoint: Endpoint(host: "192.168.7.20", port: port, via: .inbound))
    }
    private func ports(_ stage: Stage) -> [UInt16]? { stage.row(peer)?.endpoints.map(\.endpoint.port) }

    @Test("started again on another port it is shown there, also where it dials first, before and after its announcement")
    func newPort() {
        var stage = Stage()
        let record = stage.announce(peer)
        let session = stage.prove(peer)
        #expect(ports(stage) == [24_391])
        stage.tell(.sessionDown(session, .lost))
        stage.probes = []
        // Killed, and there again: it dials before it is announced.
        stage.tell(.sessionUp(inbound(BootNonce(2))))
        #expect(stage.row(peer)?.endpoints.first?.endpoint.host == "192.168.7.20")
        // The record changes, with no goodbye.
        stage.resolve(record, Stage.txt(peer, boot: BootNonce(2)), port: 45_777)
        #expect(ports(stage) == [45_777])
        #expect(stage.row(peer)?.endpoints.first?.endpoint.via == .mdns)
    }

    @Test("what was remembered from an earlier run gives way to what this start announces, and is dialled last") func remembered() {
        var stage = Stage()
        let old = Endpoint(host: "192.168.7.20", port: 24_391, via: .lastKnown)
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted, endpoints: [old])))
        stage.tell(.sessionUp(inbound(BootNonce(2))))
        stage.announce(peer, boot: BootNonce(2), port: 45_777)
        #expect(ports(stage) == [45_777])
        #expect(stage.directory.endpoints(of: peer).map(\.port) == [45_777, 24_391])
        // After its key was proved there, nothing of the old place is left.
        #expect(stage.probes.last?.isCheck == true)
        stage.probes = stage.probes.suffix(1)
        stage.end(.reached(Endpoint(host: "192.168.7.20", port: 45_777, interface: "eth0", via: .mdns)))
        #expect(stage.directory.endpoints(of: peer).map(\.port) == [45_777])
    }

    @Test("a forged announcement of an old start takes no remembered place away") func forged() {
        var stage = Stage()
        stage.announce(peer)
        stage.prove(peer)
        stage.announce(peer, name: "forged", boot: BootNonce(9), address: "192.168.7.66", port: 45_777)
        #expect(stage.directory.endpoints(of: peer).first == Endpoint(host: "192.168.7.20", port: 24_391, interface: "eth0", via: .mdns))
    }

    @Test("a goodbye and any number of dead places, all forged, do not keep the place where it answered from being asked")
    func forgedAway() {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        let record = stage.announce(peer)
        let session = stage.prove(peer)
        stage.tell(.sessionDown(session, .lost))
        stage.tell(.discovery(.withdrawn(record)))
        for number in 100..<120 { stage.announce(peer, name: "dead \(number)", boot: BootNonce(9), address: "192.168.7.\(number)") }
        stage.probes = []
        // Each ends by its own deadline, without an answer.
        stage.pass(.seconds(3_600))
        let asked = stage.probes.filter { $0.expecting == peer }
        #expect(asked.count >= 8)
        for probe in asked {
            #expect(probe.endpoints.count == 8 && probe.endpoints.contains { $0.host == "192.168.7.20" })
        }
    }

    @Test("what mDNS withdrew is shown no more beside what stands; announced again it is") func withdrawn() {
        var stage = Stage()
        let first = stage.announce(peer)
        stage.prove(peer)
        stage.announce(peer, name: "P two", address: "192.168.7.21")
        stage.tell(.discovery(.withdrawn(first)))
        #expect(stage.row(peer)?.endpoints.map(\.endpoint.host) == ["192.168.7.20", "192.168.7.21"], "the session is there")
        let session = SessionInfo(
            peer: peer, boot: BootNonce(1), name: "P", endpoint: Endpoint(host: "192.168.7.21", port: 24_391, interface: "eth0", via: .mdns)
        )
        stage.tell(.sessionUp(session))
        #expect(stage.row(peer)?.endpoints.map(\.endpoint.host) == ["192.168.7.21"])
        stage.announce(peer)
        #expect(stage.row(peer)?.endpoints.map(\.endpoint.host) == ["192.168.7.21", "192.168.7.20"])
    }

    @Test("the address of a session that came in is the first, with the port its host is announced with") func sessionFirst() {
        var stage = Stage()
        stage.announce(peer, name: "P", address: "192.168.7.19", port: 24_391)
        stage.announce(peer, name: "P2", address: "192.168.7.20", port: 24_391)
        stage.tell(.sessionUp(inbound(BootNonce(1))))
        #expect(stage.row(peer)?.endpoints.first?.endpoint == Endpoint(host: "192.168.7.20", port: 24_391, interface: "eth0", via: .mdns))
        #expect(stage.row(peer)?.endpoints.count == 2)
    }
}
