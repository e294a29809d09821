import HexlistModel
import Testing

@testable import HexlistDiscovery

/// Strangers that come and go without leaving a hex: no event, no state.
@Suite("Directory: passing strangers")
struct DirectoryPassingTests {
    private let peer = Stage.peer(1)
    private let inbound = SessionInfo(
        peer: Stage.peer(1), boot: BootNonce(1), name: "P", endpoint: Endpoint(host: "192.168.7.20", port: 51_000, via: .inbound))

    @Test(
        "a stranger without a hex is forgotten at once, however its session ended", arguments: [SessionEnd.idle, .lost, .other, .shutdown])
    func cameIn(_ end: SessionEnd) {
        var stage = Stage()
        stage.tell(.sessionUp(inbound))
        #expect(stage.row(peer)?.state == .verified)
        stage.tell(.sessionDown(inbound, end))
        #expect(stage.rows.isEmpty && !stage.directory.contains(peer) && stage.events.isEmpty)
        #expect(stage.directory.nextDeadline == nil && stage.directory.schedules.isEmpty)
    }

    @Test("nine thousand of them leave no state")
    func many() {
        var stage = Stage()
        for number in 1...9_000 {
            var info = inbound
            info.peer = Stage.peer(UInt64(number))
            stage.tell(.sessionUp(info))
            stage.tell(.sessionDown(info, .lost))
        }
        #expect(stage.directory.peers.isEmpty && stage.directory.schedules.isEmpty && stage.events.isEmpty)
        #expect(stage.directory.reportedUp.isEmpty && stage.directory.listed.isEmpty && stage.directory.unattended.isEmpty)
    }

    @Test("an announced stranger stays while announced, then as long as it answers")
    func announced() {
        var stage = Stage()
        let record = stage.verified(peer)
        #expect(stage.row(peer)?.state == .verified && stage.events.isEmpty)
        stage.tell(.discovery(.withdrawn(record)))
        #expect(stage.row(peer) != nil && stage.probes.count == 1)  // a probe checks whether it still answers
        let session = stage.prove(peer)
        stage.tell(.sessionDown(session, .idle))
        #expect(stage.row(peer)?.state == .verified)
        stage.tell(.sessionUp(session))
        stage.tell(.sessionDown(session, .lost))
        stage.end(.refused)
        #expect(stage.rows.isEmpty && stage.events.isEmpty)
    }

    @Test("an absent, announced stranger is forgotten with the announcement")
    func away() {
        var stage = Stage()
        let record = stage.announce(peer)
        let session = stage.prove(peer)
        stage.tell(.sessionDown(session, .shutdown))
        #expect(stage.row(peer)?.state == .away)
        stage.tell(.discovery(.withdrawn(record)))
        #expect(stage.rows.isEmpty && !stage.directory.contains(peer))
    }

    @Test("a stranger that left a hex is reported and stays; one that remains is not reported as gone")
    func remembered() {
        var stage = Stage()
        stage.tell(.sessionUp(inbound))
        #expect(stage.events.isEmpty)
        stage.tell(.remembered([peer, Stage.peer(2)]))
        #expect(stage.events == [.up(peer)])
        stage.tell(.remembered([Stage.peer(2)]))  // the store has no hex of `peer` any more
        #expect(stage.events == [.up(peer)] && stage.row(peer) != nil)
        stage.tell(.remembered([peer]))
        stage.tell(.sessionDown(inbound, .shutdown))
        #expect(stage.events == [.up(peer), .down(peer)] && stage.row(peer)?.state == .away)
        stage.tell(.remembered([]))
        #expect(stage.rows.isEmpty && stage.events.count == 2)
    }

    @Test("a stranger that asked for pairing stays, and so does a configured one")
    func ofNote() {
        var stage = Stage()
        stage.tell(.sessionUp(inbound))
        stage.tell(.pairingAsked(peer))
        stage.tell(.sessionDown(inbound, .shutdown))
        #expect(stage.events == [.up(peer), .down(peer)] && stage.row(peer)?.state == .away)

        let other = Stage.peer(2)
        stage.tell(.staticPeers([StaticAddress(host: "192.168.7.30", port: 24_391)]))
        let session = stage.prove(other)
        stage.tell(.sessionDown(session, .shutdown))
        #expect(Array(stage.events.suffix(2)) == [.up(other), .down(other)] && stage.row(other)?.state == .away)
    }

    @Test("two machines of one stranger are a conflict for its duration, then forgotten")
    func conflict() {
        var stage = Stage()
        var second = inbound
        second.boot = BootNonce(2)
        stage.tell(.sessionUp(inbound))
        stage.tell(.sessionUp(second))
        stage.tell(.identityConflict(peer, BootNonce(1), BootNonce(2)))
        stage.tell(.sessionDown(inbound, .other))
        stage.tell(.sessionDown(second, .other))
        #expect(stage.ghosts(peer).map(\.reason) == [.conflict])
        stage.pass(.seconds(241))
        #expect(stage.rows.isEmpty && !stage.directory.contains(peer))
    }

    @Test("strangers in conflict displace no other peer and are bounded")
    func conflictsThatFill() {
        var limits = DirectoryLimits()
        limits.instances = 32
        var stage = Stage(limits: limits)
        for number in 1...100 {
            var (one, other) = (inbound, inbound)
            one.peer = Stage.peer(UInt64(number))
            (other.peer, other.boot) = (one.peer, BootNonce(2))
            stage.tell(.sessionUp(one))
            stage.tell(.sessionUp(other))
            stage.tell(.identityConflict(one.peer, one.boot, other.boot))
            stage.tell(.sessionDown(one, .other))
            stage.tell(.sessionDown(other, .other))
            #expect(stage.directory.peers.count <= limits.instances)
        }
        #expect(stage.ghosts().count > limits.instances / 2)
        let newcomer = Stage.peer(200)
        stage.announce(newcomer)
        #expect(stage.directory.contains(newcomer))
    }
}
