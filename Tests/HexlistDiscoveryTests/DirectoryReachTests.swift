import HexlistModel
import Testing

@testable import HexlistDiscovery

@Suite struct DirectoryReachTests {
    let peer = Stage.peer(1)
    let place = Endpoint(host: "192.168.7.20", port: 24391, interface: "eth0", via: .mdns)

    /// A directory with a session that the peer opened.
    private func visited(_ trust: Trust = .trusted) -> (stage: Stage, session: SessionInfo) {
        var stage = Stage()
        stage.tell(.knownPeer(KnownPeer(id: peer, name: "K", trust: trust)))
        let session = SessionInfo(
            peer: peer, boot: BootNonce(1), name: "K", endpoint: Endpoint(host: "192.168.7.20", port: 50_000, via: .inbound))
        stage.tell(.sessionUp(session))
        return (stage, session)
    }

    @Test("a trusted peer that dialled in is probed at its announced endpoint, which is remembered once its key is proved there")
    func learnsThePlace() throws {
        var (stage, session) = visited()
        #expect(stage.probes.isEmpty)
        stage.announce(peer)
        let check = try #require(stage.probes.first)
        #expect(check.isCheck && check.endpoints == [place] && check.expecting == peer)
        stage.end(.reached(place))
        #expect(stage.directory.answeredEndpoints(of: peer).map(\.host) == ["192.168.7.20"])
        // Another announcement causes no second probe.
        stage.announce(peer, name: "again", address: "192.168.7.21")
        stage.pass(.seconds(600))
        #expect(stage.begun.count == 1)
        // After the session ends, that endpoint is dialled.
        stage.tell(.sessionDown(session, .lost))
        #expect(stage.probes.first?.endpoints.first?.host == "192.168.7.20" && stage.probes.first?.isCheck == false)
    }

    @Test("endpoints of another start, or with another key, are not remembered") func forged() {
        var (stage, _) = visited()
        stage.announce(peer, name: "other start", boot: BootNonce(9), address: "192.168.7.66")
        #expect(!stage.probes.contains { $0.isCheck })
        stage.probes = []
        stage.announce(peer, name: "forged", address: "192.168.7.67")
        #expect(stage.probes.map(\.isCheck) == [true])
        stage.end(.otherIdentity(Stage.peer(2), Endpoint(host: "192.168.7.67", port: 24391, interface: "eth0", via: .mdns)))
        stage.pass(.seconds(3_600))
        #expect(stage.begun.count <= 6)
        #expect(stage.directory.answeredEndpoints(of: peer).isEmpty)
    }

    @Test("strangers are not probed; a peer that becomes trusted is") func trust() {
        var (stage, _) = visited(.stranger)
        stage.announce(peer)
        #expect(stage.probes.isEmpty)
        stage.tell(.trustChanged(peer, .trusted))
        #expect(stage.probes.map(\.isCheck) == [true])
    }

    @Test("at start, remembered endpoints of trusted peers are dialled within the budget") func start() {
        var stage = Stage()
        for number in 1...8 {
            let endpoint = Endpoint(host: "192.168.7.\(100 + number)", port: 24391, via: .lastKnown)
            stage.tell(.knownPeer(KnownPeer(id: Stage.peer(UInt64(number)), name: "K", trust: .trusted, endpoints: [endpoint])))
        }
        #expect(stage.probes.count == 8 && stage.now == Stage.start)
    }
}
