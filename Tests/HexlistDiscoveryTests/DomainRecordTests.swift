import HexlistModel
import Testing

@testable import HexlistDiscovery

/// Unicast DNS records of configured domains.
@Suite("Records of DNS domains")
struct DomainRecordTests {
    private static func record(_ number: Int = 0) -> Record {
        Record(key: InstanceKey(name: "ada", type: "_hexlist._tcp", domain: "corp.example"), interface: 0, ipv6: false, unicast: number)
    }

    private static func resolution(_ peer: PeerID, _ address: String, port: UInt16 = 443) -> DiscoveryEvent {
        .resolved(record(), Resolution(host: "ada.corp.example.", address: address, port: port, txt: Stage.txt(peer, boot: nil)))
    }

    @Test("any address and port is dialled, unlike announcements on a link; invalid hosts are not")
    func anyAddress() throws {
        for (address, isDialled) in [
            ("8.8.8.8", true), ("2001:db8::1", true), ("127.0.0.1", true), ("224.0.0.1", false), ("0.0.0.0", false),
        ] {
            var stage = Stage()
            let peer = Stage.peer(1)
            stage.tell(.discovery(.appeared(Self.record(), interfaceName: nil)))
            #expect(stage.open == [Self.record()])
            stage.tell(.discovery(Self.resolution(peer, address)))
            #expect(stage.probes.map(\.endpoints) == (isDialled ? [[Endpoint(host: address, port: 443, via: .dns)]] : []))
            var link = Stage()
            link.announce(peer, address: address, port: 443)
            #expect(link.probes.isEmpty)
        }
    }

    @Test("an end of avahi-daemon removes announcements on links, but not those of domains")
    func backend() throws {
        var stage = Stage()
        let (far, near) = (Stage.peer(1), Stage.peer(2))
        stage.tell(.discovery(.appeared(Self.record(), interfaceName: nil)))
        stage.tell(.discovery(Self.resolution(far, "10.1.0.2")))
        stage.announce(near)
        stage.tell(.discovery(.domain("corp.example", .unavailable("gone"))))
        stage.tell(.discovery(.backend(.unavailable("gone"))))
        #expect(stage.directory.endpoints(of: far) == [Endpoint(host: "10.1.0.2", port: 443, via: .dns)])
        #expect(stage.directory.endpoints(of: near).isEmpty)
    }

    @Test("a peer announced on a link and in a domain is one row; the domain's announcement is a duplicate")
    func both() throws {
        var stage = Stage()
        let peer = Stage.peer(1)
        stage.announce(peer)
        stage.prove(peer)
        stage.tell(.discovery(.appeared(Self.record(), interfaceName: nil)))
        stage.tell(.discovery(Self.resolution(peer, "10.1.0.2")))
        #expect(stage.rows.filter { $0.peer == peer && $0.state != .ghost }.count == 1)
        #expect(stage.ghosts(peer).map(\.reason) == [.duplicate])
        #expect(stage.ghosts(peer).first?.why.contains("DNS in corp.example") == true)
    }

    @Test("a peer dialled by name keeps the resolved address, for when the name cannot be resolved")
    func addressBehindName() throws {
        var stage = Stage()
        let peer = Stage.peer(1)
        stage.tell(.staticPeers([StaticAddress(host: "ada.corp.example", port: 24_391)]))
        let endpoint = try #require(stage.probes.first?.endpoints.first)
        let session = SessionInfo(peer: peer, boot: BootNonce(1), name: "ada", endpoint: endpoint, address: "10.1.0.2")
        stage.tell(.sessionUp(session))
        stage.end(.proved(peer, BootNonce(1), endpoint))
        #expect(
            stage.directory.endpoints(of: peer) == [
                Endpoint(host: "ada.corp.example", port: 24_391, via: .static), Endpoint(host: "10.1.0.2", port: 24_391, via: .lastKnown),
            ])
        #expect(stage.directory.configuredAddresses.map(\.state) == [.answered(peer)])
        // The address still belongs to the peer when the peer is away or blocked.
        stage.tell(.sessionDown(session, .shutdown))
        #expect(
            stage.directory.configuredAddresses.map(\.state) == [
                .away(peer, "ada \(peer.shortID) is away: announced that it is shutting down")
            ])
        stage.tell(.trustChanged(peer, .blocked))
        #expect(
            stage.directory.configuredAddresses.map(\.state) == [
                .away(peer, "ada \(peer.shortID) is away: blocked here, so it is not checked")
            ])
    }

    @Test("doctor's queries: interfaces that show the own announcement, and results of configured addresses")
    func examination() throws {
        var stage = Stage()
        #expect(stage.directory.ownAnnouncements.isEmpty)
        stage.announce(Stage.own, name: "me", boot: BootNonce(77), address: "192.168.7.1")  // an announcement of this node's earlier start
        #expect(stage.directory.ownAnnouncements.isEmpty)
        stage.announce(Stage.own, name: "me now", boot: Stage.boot, address: "192.168.7.1")
        #expect(stage.directory.ownAnnouncements.map(\.interface) == ["eth0"])
        stage.tell(.staticPeers([StaticAddress(host: "10.9.9.9", port: 1)]))
        #expect(stage.directory.configuredAddresses.map(\.state) == [.probing])
        while let probe = stage.probes.first {
            stage.end(probe.endpoints.first?.via == .static ? .refused : .noAnswer)
        }
        #expect(stage.directory.configuredAddresses.map(\.state) == [.failed("the connection is refused")])
        #expect(!stage.directory.isInConflict(Stage.own))
    }
}
