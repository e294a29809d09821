import HexlistAPI
import HexlistModel
import Testing

@testable import HexlistDaemon
@testable import HexlistStore

@Suite("The peer of an event") struct EventTagTests {
    @Test("an event about a ghost does not name the trusted peer whose UUID the announcement claims") func ghosts() throws {
        let peer = PeerID(UUIDBytes(high: 1, low: 2))
        let labels = [peer: PeerDisplayName(peer, name: "Robert", alias: "Bob", trust: .trusted)]
        func tag(_ type: EventType, _ peer: PeerID?) -> PeerSummary? {
            EventJSON(EventRow(number: 1, at: 0, type: type, peer: peer, hex: nil, outboxID: nil, data: nil), labels).tag
        }
        #expect(tag(.peerGhost, peer) == PeerSummary(trust: .stranger))
        #expect(tag(.alertReceived, peer) == PeerSummary(name: "Robert", alias: "Bob", trust: .trusted))
        #expect(tag(.alertReceived, PeerID(UUIDBytes(high: 3, low: 4))) == nil && tag(.peerGhost, nil) == nil)
    }
}
