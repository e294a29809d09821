import Testing

@testable import HexlistNode

@Suite("Wall times of monotonic instants")
struct MonotonicToWallClockTests {
    @Test("an instant keeps its wall time until the wall clock is set")
    func stable() {
        let start = ContinuousClock.now
        let moment = start + .seconds(-20)
        var times = MonotonicToWallClock(wall: 1_000_000, steady: start)
        #expect(times.milliseconds(of: moment) == 980_000)
        for (after, apart) in [(1, 1), (2, -1), (60_000, 0), (61_000, 499), (62_000, -500)] as [(Int64, Int64)] {
            times.update(wall: 1_000_000 + after + apart, steady: start + .milliseconds(after))
            #expect(times.milliseconds(of: moment) == 980_000)
        }
        times.update(wall: 1_000_000 + 63_000 + 3_600_000, steady: start + .milliseconds(63_000))
        #expect(times.milliseconds(of: moment) == 4_580_000)
        times.update(wall: 64_000, steady: start + .milliseconds(64_000))
        #expect(times.milliseconds(of: moment) == -20_000)
    }
}
