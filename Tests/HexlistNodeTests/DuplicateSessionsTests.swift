import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Sessions of one key")
struct DuplicateSessionsTests {
    private static let answered = DuplicateSessions.Older(isAnswered: true)
    private static let asked = DuplicateSessions.Older(isAnswered: false)
    private static let pairing = DuplicateSessions.Older(isAnswered: false, isPairing: true)

    private static let other = DuplicateSessions.Older(isAnswered: false, isOtherStart: true)

    static let cases: [([DuplicateSessions.Older], [Int])] = [
        ([], []), ([asked], []), ([answered], []),
        // The oldest that did not answer; where all did, the oldest.
        ([asked, asked], [0]), ([answered, asked], [1]), ([asked, answered], [0]), ([answered, answered], [0]),
        ([answered, asked, asked, answered], [1, 2, 0]),
        // Not between the answers of two people.
        ([pairing, asked], [1]), ([pairing, answered], [1]), ([pairing, pairing], [0]),
        // Not the evidence of another start.
        ([other], []), ([other, asked], [1]), ([other, answered], [1]), ([asked, other], [0]), ([other, asked, asked], [1, 2]),
    ]

    @Test("with the newest there are two; what did not answer goes first, then the oldest", arguments: cases)
    func surplus(_ older: [DuplicateSessions.Older], _ ending: [Int]) {
        #expect(DuplicateSessions.surplus(older) == (ending, false))
    }

    @Test("a third start ends itself, so that it is found out whether two others live")
    func thirdStart() {
        #expect(DuplicateSessions.surplus([Self.other, Self.other]) == ([], true))
        #expect(DuplicateSessions.surplus([Self.other, Self.asked, Self.other]) == ([1], true))
    }

    @Test("both sides of a duplicate come to the same end")
    func duplicates() {
        let (low, high) = (PeerID(UUIDBytes(high: 1, low: 0)), PeerID(UUIDBytes(high: 2, low: 0)))
        // Older dialled by low, newer by high: the one the greater dialled stays.
        #expect(DuplicateSessions.verdict(own: high, peer: low, olderDialledHere: false, newerDialledHere: true) == .endOlder)
        #expect(DuplicateSessions.verdict(own: low, peer: high, olderDialledHere: true, newerDialledHere: false) == .endOlder)
        // The other way round.
        #expect(DuplicateSessions.verdict(own: high, peer: low, olderDialledHere: true, newerDialledHere: false) == .endNewer)
        #expect(DuplicateSessions.verdict(own: low, peer: high, olderDialledHere: false, newerDialledHere: true) == .endNewer)
        // One dialler: it says Bye to the older.
        #expect(DuplicateSessions.verdict(own: low, peer: high, olderDialledHere: true, newerDialledHere: true) == .endOlder)
        #expect(DuplicateSessions.verdict(own: high, peer: low, olderDialledHere: false, newerDialledHere: false) == .leaveToPeer)
    }
}
