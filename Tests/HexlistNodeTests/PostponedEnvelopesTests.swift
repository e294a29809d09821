import Testing

@testable import HexlistNode

@Suite("Postponed envelopes") struct PostponedEnvelopesTests {
    private let start = ContinuousClock.now

    @Test("each postponement doubles the pause, from 30 s to an hour") func pauses() {
        var envelopes = PostponedEnvelopes()
        var now = start
        for seconds in [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
            #expect(!envelopes.contains("a", now: now))
            envelopes.postpone("a", now: now)
            #expect(envelopes.contains("a", now: now + .seconds(seconds) - .milliseconds(1)))
            #expect(envelopes.next(after: now) == now + .seconds(seconds))
            now += .seconds(seconds)
        }
        envelopes.removed("a")
        envelopes.postpone("a", now: now)
        #expect(!envelopes.contains("a", now: now + .seconds(30)))
    }

    @Test("no more than 10 000 are remembered, and those that are gone are forgotten") func bound() {
        var envelopes = PostponedEnvelopes()
        for number in 0..<PostponedEnvelopes.limit { envelopes.postpone("\(number)", now: start) }
        var isPostponed = envelopes.postpone("one more", now: start)
        #expect(envelopes.isFull && !isPostponed)
        isPostponed = envelopes.postpone("7", now: start)
        #expect(isPostponed)
        isPostponed = envelopes.postpone("one more", now: start + .seconds(4 * 3_600))
        #expect(isPostponed && !envelopes.isFull)
    }
}
