import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Alerts that repeat")
struct AlertRepetitionsTests {
    private let start = ContinuousClock.Instant.now
    private let peer = PeerID(UUIDBytes(high: 1, low: 2))
    private final class Session {}
    private let one = Session()
    private let other = Session()

    /// A second alert: its text, whether it comes on another session, seconds from the first alert to that session's beginning and to the
    /// alert, seconds of the life of a session in between, and whether it is recorded.
    private static let cases: [(text: String, isOther: Bool, opened: Int, at: Int, between: Int?, isNews: Bool)] = [
        ("a", true, -60, 0, nil, false),  // two sessions lived when the person blocked
        ("a", true, 60, 60, nil, false),  // the next dial
        ("a", true, 60, 69, nil, false),
        ("a", true, 60, 70, nil, true),  // unblocked, and blocked again
        ("a", true, 60, 60, 9, false),
        ("a", true, 60, 60, 10, true),  // a session that lived
        ("b", true, 60, 60, nil, true),
        ("a", false, -60, 0, nil, true),  // a program that alerts twice
    ]

    @Test("the same text on another session is recorded once, until a session has lived", arguments: cases.indices)
    func again(_ index: Int) {
        let test = Self.cases[index]
        var alerts = AlertRepetitions()
        let isFirst = alerts.isNews("a", from: peer, on: ObjectIdentifier(one), openedAt: start - .seconds(60), now: start)
        #expect(isFirst)
        if let between = test.between {
            alerts.sessionEnded(of: peer, openedAt: start + .seconds(20), now: start + .seconds(20 + between))
        }
        let session = test.isOther ? other : one
        let isNews = alerts.isNews(
            test.text, from: peer, on: ObjectIdentifier(session), openedAt: start + .seconds(test.opened), now: start + .seconds(test.at))
        #expect(isNews == test.isNews)
        let stranger = PeerID(UUIDBytes(high: 3, low: 4))
        let isOfAnother = alerts.isNews("a", from: stranger, on: ObjectIdentifier(other), openedAt: start, now: start)
        #expect(isOfAnother)
        alerts.forget(peer)
        let isForgotten = alerts.isNews(test.text, from: peer, on: ObjectIdentifier(one), openedAt: start, now: start + .seconds(61))
        #expect(isForgotten)
    }
}
