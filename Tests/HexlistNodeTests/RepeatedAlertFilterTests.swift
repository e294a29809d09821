import HexlistModel
import Testing

@testable import HexlistNode

@Suite("Repeated alerts")
struct AlertRepetitionsTests {
    private let start = ContinuousClock.Instant.now
    private let peer = PeerID(UUIDBytes(high: 1, low: 2))
    private let one: UInt64 = 1
    private let other: UInt64 = 2

    /// A second alert after an alert with the text `a`, and whether it is recorded (`isNews`). `isOther` is whether it arrives on another
    /// session. `greeted` and `at` are the seconds from the first alert to the Hello of the session of the second alert, and to the second
    /// alert. `between` is the lifetime in seconds of a session between the two; `nil` if there was none.
    private static let cases: [(text: String, isOther: Bool, greeted: Int, at: Int, between: Int?, isNews: Bool)] = [
        ("a", true, -60, 0, nil, false),  // two sessions were open when the user blocked the peer
        ("a", true, 60, 60, nil, false),  // the peer dials again
        ("a", true, 60, 62, nil, false),
        ("a", true, 60, 63, nil, true),  // 3 s are enough to unblock the peer and to block it again
        ("a", true, 60, 60, 2, false),
        ("a", true, 60, 60, 3, true),  // a session stayed open in between
        ("b", true, 60, 60, nil, true),
        ("a", false, -60, 0, nil, true),  // a program that alerts twice
    ]

    @Test("a repeated text on another session is recorded once until a session has stayed open", arguments: cases.indices)
    func again(_ index: Int) {
        let test = Self.cases[index]
        var alerts = RepeatedAlertFilter()
        let isFirst = alerts.isNews("a", from: peer, on: one, greetedAt: start - .seconds(60), now: start)
        #expect(isFirst)
        if let between = test.between {
            alerts.sessionEnded(of: peer, greetedAt: start + .seconds(20), now: start + .seconds(20 + between))
        }
        let session = test.isOther ? other : one
        let isNews = alerts.isNews(
            test.text, from: peer, on: session, greetedAt: start + .seconds(test.greeted), now: start + .seconds(test.at))
        #expect(isNews == test.isNews)
        let stranger = PeerID(UUIDBytes(high: 3, low: 4))
        let isOfAnother = alerts.isNews("a", from: stranger, on: other, greetedAt: start, now: start)
        #expect(isOfAnother)
        alerts.forget(peer)
        let isForgotten = alerts.isNews(test.text, from: peer, on: one, greetedAt: start, now: start + .seconds(61))
        #expect(isForgotten)
    }
}
