import Testing

@testable import HexlistTransfers

@Suite("Limit of requested file dials") struct DialRequestLimitTests {
    @Test("a number per interval, and a pause after a dial that failed")
    func bounds() {
        let start = ContinuousClock.now
        var dials = DialRequestLimit()
        func begins(_ now: ContinuousClock.Instant) -> Bool { dials.begin(now: now) }
        for _ in 0..<DialRequestLimit.maximumDials {
            #expect(begins(start))
            dials.ended(true, now: start)
        }
        #expect(!begins(start + .seconds(9)))
        #expect(!dials.isOver(now: start + .seconds(9)))
        #expect(dials.isOver(now: start + DialRequestLimit.window))
        #expect(begins(start + DialRequestLimit.window))
        #expect(dials.inProgress == 1)
        #expect(!dials.isOver(now: start + .seconds(100)))
        dials.ended(false, now: start + .seconds(13))
        #expect(!begins(start + .seconds(22)))
        #expect(!dials.isOver(now: start + .seconds(22)))
        #expect(dials.isOver(now: start + .seconds(23)))
        #expect(begins(start + .seconds(23)))
    }
}
