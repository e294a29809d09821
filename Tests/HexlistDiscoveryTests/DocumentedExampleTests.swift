import HexlistDiscovery
import HexlistModel
import Testing

@Suite struct DocumentedExampleTests {
    @Test("the example in HexlistDiscovery's page dials an announced peer") func probe() throws {
        let now = ContinuousClock.Instant.now
        let peer = PeerID(UUIDBytes(high: 1, low: 2).with(version: 8))
        var directory = PeerDirectory(own: PeerID(UUIDBytes(high: 3, low: 4).with(version: 8)), boot: BootNonce(7), now: now)
        let key = InstanceKey(name: "desk", type: ProtocolLimits.serviceType, domain: "local")
        let record = Record(key: key, interface: 2, ipv6: false)
        let announcement = ServiceAnnouncement(displayName: "desk", peer: peer, boot: BootNonce(8), port: 24391)
        let resolution = Resolution(host: "desk.local", address: "192.168.7.20", port: 24391, txt: announcement.strings)
        let address = try #require(IPAddress("192.168.7.1"))
        let interfaces = [InterfaceAddress(interface: "eth0", index: 2, address: address, prefixLength: 24)]
        var dialled: [PeerID?] = []
        func dial(_ probe: ProbeID, _ endpoints: [Endpoint], expecting peer: PeerID?) { dialled.append(peer) }

        func carryOut(_ outputs: [PeerDirectory.Output]) {
            for case .probe(let probe, let endpoints, let peer) in outputs { dial(probe, endpoints, expecting: peer) }
        }
        carryOut(directory.handle(.discovery(.interfaces(interfaces)), now: now))
        carryOut(directory.handle(.discovery(.appeared(record, interfaceName: "eth0")), now: now))
        carryOut(directory.handle(.discovery(.resolved(record, resolution)), now: now))
        #expect(dialled == [peer])
    }
}
