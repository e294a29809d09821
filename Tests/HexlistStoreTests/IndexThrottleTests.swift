import Testing

@testable import HexlistStore

@Suite("When indexing may run") struct IndexPaceTests {
    @Test func atOnceWhileNothingIsWritten() {
        var pace = IndexThrottle()
        let start = ContinuousClock.now
        #expect(pace.wait(at: start) == .zero)
        pace.tookTurn(from: start, to: start + .seconds(5))
        #expect(pace.wait(at: start + .seconds(5)) == .zero)
    }

    @Test func afterThreeTenthsOfASecondOfQuiet() {
        var pace = IndexThrottle()
        let start = ContinuousClock.now
        pace.wrote(at: start)
        #expect(pace.wait(at: start) == .milliseconds(300))
        #expect(pace.wait(at: start + .milliseconds(100)) == .milliseconds(200))
        #expect(pace.wait(at: start + .milliseconds(300)) == .zero)
        #expect(pace.isBusy(at: start + .milliseconds(299)))
        #expect(!pace.isBusy(at: start + .milliseconds(300)))
    }

    @Test func aTwentiethOfTheTimeWhileMuchIsWritten() {
        var pace = IndexThrottle()
        let start = ContinuousClock.now
        var now = start
        var taken = Duration.zero
        while now < start + .seconds(20) {
            pace.wrote(at: now)
            if pace.wait(at: now) == .zero {
                #expect(now >= start + .seconds(5) && pace.isBusy(at: now))
                pace.tookTurn(from: now, to: now + .milliseconds(30))
                taken += .milliseconds(30)
                now += .milliseconds(30)
            }
            now += .milliseconds(10)
        }
        #expect(taken <= .milliseconds(800) && taken >= .milliseconds(500), "\(taken)")
    }
}
