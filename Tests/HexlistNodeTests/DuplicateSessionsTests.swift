import Testing

@testable import HexlistNode

@Suite("Sessions of one key")
struct DuplicateSessionsTests {
    private static let answered = DuplicateSessions.Older(isAnswered: true)
    private static let asked = DuplicateSessions.Older(isAnswered: false)
    private static let pairing = DuplicateSessions.Older(isAnswered: false, isPairing: true)

    static let cases: [([DuplicateSessions.Older], [Int])] = [
        ([], []), ([asked], []), ([answered], []),
        // The oldest that did not answer; where all did, the oldest.
        ([asked, asked], [0]), ([answered, asked], [1]), ([asked, answered], [0]), ([answered, answered], [0]),
        ([answered, asked, asked, answered], [1, 2, 0]),
        // Not between the answers of two people.
        ([pairing, asked], [1]), ([pairing, answered], [1]), ([pairing, pairing], [0]),
    ]

    @Test("with the newest there are two; what did not answer goes first, then the oldest", arguments: cases)
    func surplus(_ older: [DuplicateSessions.Older], _ ending: [Int]) {
        #expect(DuplicateSessions.surplus(older) == ending)
    }
}
