import HexlistModel
import Testing

@testable import HexlistDiscovery

/// `announce: false`: strangers' announcements are listed but not dialled. Trusted peers and configured addresses are dialled.
@Suite struct DirectoryHidingTests {
    let peer = Stage.peer(1)

    private func hiding() -> Stage {
        var stage = Stage()
        stage.tell(.hiding(true))
        return stage
    }

    @Test("a stranger's announcement is listed as unverified with the reason, and never dialled")
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
        // A user may still ask for a dial: `pair` and `doctor` use these endpoints.
        #expect(stage.directory.endpoints(of: peer).map(\.host) == ["192.168.7.21"])
    }

    @Test("announcements of trusted peers are dialled, also after a change of trust; others are not")
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

    @Test("a configured address is dialled, but not other addresses that its peer announces") func configured() throws {
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

    @Test("hiding takes effect on strangers at once; showing again probes them") func live() {
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

    @Test("a domain's entries of strangers, or of another start with this machine's UUID, are not dialled either")
    func othersAnnouncements() {
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

/// The addresses that an announcement can make this machine dial.
@Suite struct DirectoryForeignNetworkTests {
    let peer = Stage.peer(1)

    @Test("a private address outside own networks is dialled for a trusted peer only, at a port from 1024")
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

    @Test("a public address is never dialled", arguments: ["198.51.100.7", "2001:db8::7"])
    func publicAddress(_ address: String) {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        stage.announce(peer, address: address)
        stage.pass(.seconds(600))
        #expect(stage.begun.isEmpty && stage.directory.endpoints(of: peer).isEmpty)
    }

    @Test("announcements in a trusted peer's name cost at most 3 dials of 8 endpoints at once, then one per 5 s beyond the schedule")
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
        // The announcements cause 3 probes at once and then one per 5 s. The back-off adds probes 5, 10, 20 and 40 s after failures.
        #expect(3...20 ~= stage.begun.count)
    }
}

/// The endpoint that the list shows for a peer.
@Suite struct DirectoryPlaceTests {
    let peer = Stage.peer(1)
    private func inbound(_ boot: BootNonce, _ port: UInt16 = 50_001) -> SessionInfo {
        SessionInfo(peer: peer, boot: boot, name: "P", endpoint: Endpoint(host: "192.168.7.20", port: port, via: .inbound))
    }
    private func ports(_ stage: Stage) -> [UInt16]? { stage.row(peer)?.endpoints.map(\.endpoint.port) }

    @Test("a peer restarted on another port is listed there, even if it dials first, before and after its announcement")
    func newPort() {
        var stage = Stage()
        let record = stage.announce(peer)
        let session = stage.prove(peer)
        #expect(ports(stage) == [24_391])
        stage.tell(.sessionDown(session, .lost))
        stage.probes = []
        // The peer is killed and restarted, and dials before it is announced.
        stage.tell(.sessionUp(inbound(BootNonce(2))))
        #expect(stage.row(peer)?.endpoints.first?.endpoint.host == "192.168.7.20")
        // The record changes without a goodbye.
        stage.resolve(record, Stage.txt(peer, boot: BootNonce(2)), port: 45_777)
        #expect(ports(stage) == [45_777])
        #expect(stage.row(peer)?.endpoints.first?.endpoint.via == .mdns)
    }

    @Test("remembered endpoints of an earlier run are replaced by this start's announcement, and dialled last") func remembered() {
        var stage = Stage()
        let old = Endpoint(host: "192.168.7.20", port: 24_391, via: .lastKnown)
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted, endpoints: [old])))
        stage.tell(.sessionUp(inbound(BootNonce(2))))
        stage.announce(peer, boot: BootNonce(2), port: 45_777)
        #expect(ports(stage) == [45_777])
        #expect(stage.directory.endpoints(of: peer).map(\.port) == [45_777, 24_391])
        // The old endpoint is dropped once the key is proved at the new one.
        #expect(stage.probes.last?.isCheck == true)
        stage.probes = stage.probes.suffix(1)
        stage.end(.reached(Endpoint(host: "192.168.7.20", port: 45_777, interface: "eth0", via: .mdns)))
        #expect(stage.directory.endpoints(of: peer).map(\.port) == [45_777])
    }

    @Test("a forged announcement of an old start removes no remembered endpoint") func forged() {
        var stage = Stage()
        stage.announce(peer)
        stage.prove(peer)
        stage.announce(peer, name: "forged", boot: BootNonce(9), address: "192.168.7.66", port: 45_777)
        #expect(stage.directory.endpoints(of: peer).first == Endpoint(host: "192.168.7.20", port: 24_391, interface: "eth0", via: .mdns))
    }

    @Test("a forged goodbye and many dead endpoints do not prevent a probe of the last good endpoint")
    func forgedAway() {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: .trusted)))
        let record = stage.announce(peer)
        let session = stage.prove(peer)
        stage.tell(.sessionDown(session, .lost))
        stage.tell(.discovery(.withdrawn(record)))
        for number in 100..<120 { stage.announce(peer, name: "dead \(number)", boot: BootNonce(9), address: "192.168.7.\(number)") }
        stage.probes = []
        // Each probe ends by its own deadline, without an answer.
        stage.pass(.seconds(3_600))
        let asked = stage.probes.filter { $0.expecting == peer }
        #expect(asked.count >= 8)
        for probe in asked {
            #expect(probe.endpoints.count == 8 && probe.endpoints.contains { $0.host == "192.168.7.20" })
        }
    }

    @Test("a withdrawn announcement is no longer listed beside a live one; announced again it is") func withdrawn() {
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

    @Test("the address of an incoming session comes first, with the port its host announces") func sessionFirst() {
        var stage = Stage()
        stage.announce(peer, name: "P", address: "192.168.7.19", port: 24_391)
        stage.announce(peer, name: "P2", address: "192.168.7.20", port: 24_391)
        stage.tell(.sessionUp(inbound(BootNonce(1))))
        #expect(stage.row(peer)?.endpoints.first?.endpoint == Endpoint(host: "192.168.7.20", port: 24_391, interface: "eth0", via: .mdns))
        #expect(stage.row(peer)?.endpoints.count == 2)
    }
}
