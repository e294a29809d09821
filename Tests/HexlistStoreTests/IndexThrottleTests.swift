import Testing

@testable import HexlistStore

@Suite("When indexing may run") struct IndexThrottleTests {
    @Test func atOnceWhileNothingIsWritten() {
        var throttle = IndexThrottle()
        let start = ContinuousClock.now
        #expect(throttle.delay(at: start) == .zero)
        throttle.ranBatch(from: start, to: start + .seconds(5))
        #expect(throttle.delay(at: start + .seconds(5)) == .zero)
    }

    @Test func afterThreeTenthsOfASecondOfQuiet() {
        var throttle = IndexThrottle()
        let start = ContinuousClock.now
        throttle.wrote(at: start)
        #expect(throttle.delay(at: start) == .milliseconds(300))
        #expect(throttle.delay(at: start + .milliseconds(100)) == .milliseconds(200))
        #expect(throttle.delay(at: start + .milliseconds(300)) == .zero)
        #expect(throttle.isBusy(at: start + .milliseconds(299)))
        #expect(!throttle.isBusy(at: start + .milliseconds(300)))
    }

    @Test func aTwentiethOfTheTimeWhileMuchIsWritten() {
        var throttle = IndexThrottle()
        let start = ContinuousClock.now
        var now = start
        var taken = Duration.zero
        while now < start + .seconds(20) {
            throttle.wrote(at: now)
            if throttle.delay(at: now) == .zero {
                #expect(now >= start + .seconds(5) && throttle.isBusy(at: now))
                throttle.ranBatch(from: now, to: now + .milliseconds(30))
                taken += .milliseconds(30)
                now += .milliseconds(30)
            }
            now += .milliseconds(10)
        }
        #expect(taken <= .milliseconds(800) && taken >= .milliseconds(500), "\(taken)")
    }
}
