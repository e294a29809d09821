import Testing

@testable import HexlistNode

@Suite("Dials that a peer asked for, to be served files on") struct RequestedDialsTests {
    @Test("so many in a while, and a rest after one that led nowhere")
    func bounds() {
        let start = ContinuousClock.now
        var dials = RequestedDials()
        for _ in 0..<RequestedDials.most {
            #expect(dials.begin(now: start))
            dials.ended(true, now: start)
        }
        #expect(!dials.begin(now: start + .seconds(9)) && !dials.isOver(now: start + .seconds(9)))
        #expect(dials.isOver(now: start + RequestedDials.window))
        #expect(dials.begin(now: start + RequestedDials.window) && dials.underWay == 1)
        #expect(!dials.isOver(now: start + .seconds(100)))
        dials.ended(false, now: start + .seconds(13))
        #expect(!dials.begin(now: start + .seconds(22)) && !dials.isOver(now: start + .seconds(22)))
        #expect(dials.isOver(now: start + .seconds(23)) && dials.begin(now: start + .seconds(23)))
    }
}
