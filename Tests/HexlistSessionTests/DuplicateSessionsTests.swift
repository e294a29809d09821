import HexlistModel
import Testing

@testable import HexlistSession

@Suite("Sessions of one key")
struct DuplicateSessionsTests {
    private static let peers = [1, 2].map { PeerID(UUIDBytes(high: $0, low: 0)) }
    private static let answered = DuplicateSessions.OlderSession(isAnswered: true)
    private static let asked = DuplicateSessions.OlderSession(isAnswered: false)
    private static let pairing = DuplicateSessions.OlderSession(isAnswered: false, isPairing: true)

    private static let other = DuplicateSessions.OlderSession(isAnswered: false, isOtherStart: true)

    static let cases: [([DuplicateSessions.OlderSession], [Int])] = [
        ([], []), ([asked], []), ([answered], []),
        // The oldest unresponsive session ends; if all responded, the oldest.
        ([asked, asked], [0]), ([answered, asked], [1]), ([asked, answered], [0]), ([answered, answered], [0]),
        ([answered, asked, asked, answered], [1, 2, 0]),
        // A session with a pairing in progress stays while another one can end.
        ([pairing, asked], [1]), ([pairing, answered], [1]), ([pairing, pairing], [0]),
        // A session of another start of the peer stays, because it proves that two machines have this identity.
        ([other], []), ([other, asked], [1]), ([other, answered], [1]), ([asked, other], [0]), ([other, asked, asked], [1, 2]),
    ]

    @Test("two sessions remain, including the newest; unresponsive ones end first, then the oldest", arguments: cases)
    func surplus(_ older: [DuplicateSessions.OlderSession], _ ending: [Int]) {
        #expect(DuplicateSessions.surplus(older) == (ending, false))
    }

    @Test("a session of a third start ends, so that the comparison of the two others can be completed")
    func thirdStart() {
        #expect(DuplicateSessions.surplus([Self.other, Self.other]) == ([], true))
        #expect(DuplicateSessions.surplus([Self.other, Self.asked, Self.other]) == ([1], true))
    }

    @Test("both sides decide alike about a duplicate")
    func duplicates() {
        let (low, high) = (Self.peers[0], Self.peers[1])
        // The peer with the lesser UUID dialled the older session, the one with the greater UUID the newer one: the newer one stays.
        #expect(DuplicateSessions.resolution(own: high, peer: low, olderDialledHere: false, newerDialledHere: true) == .endOlder)
        #expect(DuplicateSessions.resolution(own: low, peer: high, olderDialledHere: true, newerDialledHere: false) == .endOlder)
        // The peer with the greater UUID dialled the older session: it stays.
        #expect(DuplicateSessions.resolution(own: high, peer: low, olderDialledHere: true, newerDialledHere: false) == .endNewer)
        #expect(DuplicateSessions.resolution(own: low, peer: high, olderDialledHere: false, newerDialledHere: true) == .endNewer)
        // If one side dialled both, that side ends the older one.
        #expect(DuplicateSessions.resolution(own: low, peer: high, olderDialledHere: true, newerDialledHere: true) == .endOlder)
        #expect(DuplicateSessions.resolution(own: high, peer: low, olderDialledHere: false, newerDialledHere: false) == .leaveToPeer)
    }

    /// One side's view: the order in which the two sessions opened there, and the sessions that it dialled.
    private struct Side {
        var own: PeerID
        var peer: PeerID
        var order: [Int]
        var dialledHere: [Bool]

        /// The session that this side ends; `nil` if it leaves that to the other side.
        var ends: Int? {
            let (older, newer) = (order[0], order[1])
            switch DuplicateSessions.resolution(
                own: own, peer: peer, olderDialledHere: dialledHere[older], newerDialledHere: dialledHere[newer])
            {
            case .endOlder: return older
            case .endNewer: return newer
            case .leaveToPeer: return nil
            }
        }
    }

    @Test("for any dialler and any order on either side, exactly one session ends")
    func verdicts() throws {
        let peers = try ["00000000-0000-8000-8000-000000000001", "F0000000-0000-8000-8000-000000000001"].map {
            try #require(PeerID($0))
        }
        let orders = [[0, 1], [1, 0]]
        for own in peers {
            let peer = own == peers[0] ? peers[1] : peers[0]
            for dialledHere in [[true, true], [true, false], [false, true], [false, false]] {
                for (here, there) in orders.flatMap({ here in orders.map { (here, $0) } }) {
                    let ended = [
                        Side(own: own, peer: peer, order: here, dialledHere: dialledHere).ends,
                        Side(own: peer, peer: own, order: there, dialledHere: dialledHere.map { !$0 }).ends,
                    ].compactMap(\.self)
                    #expect(Set(ended).count == 1, "\(own) \(dialledHere) \(here) \(there): \(ended)")
                }
            }
        }
    }
}
