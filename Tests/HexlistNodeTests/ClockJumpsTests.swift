import Testing

@testable import HexlistNode

@Suite("Jumps of the wall clock")
struct ClockJumpsTests {
    @Test(
        "an hour and more is a jump; what the steady clock did too, or what is less, is none",
        arguments: [
            (wall: 3_600_000, steady: 3_600_000, jump: 0), (wall: 3_600_000 + 3_599_999, steady: 3_600_000, jump: 0),
            (wall: 3_600_000 + 3_600_000, steady: 3_600_000, jump: 3_600_000), (wall: -3_600_000, steady: 0, jump: -3_600_000),
            (wall: 0, steady: 7_200_000, jump: -7_200_000),
        ] as [(Int64, Int64, Int64)])
    func jump(wall: Int64, steady: Int64, expected: Int64) {
        var jumps = ClockJumps()
        let start = ContinuousClock.now
        #expect(jumps.jump(wall: 50_000_000, steady: start) == 0)
        #expect(jumps.jump(wall: 50_000_000 + wall, steady: start + .milliseconds(steady)) == expected)
        // Seen once: the next look begins from there.
        #expect(jumps.jump(wall: 50_000_000 + wall + 5, steady: start + .milliseconds(steady + 5)) == 0)
    }
}
