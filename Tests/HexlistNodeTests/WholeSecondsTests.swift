import Testing

@testable import HexlistNode

@Suite struct WholeSecondsTests {
    @Test("what may be late falls together, at most a second later") func rounding() {
        let some = WholeSeconds.next(from: .now)
        for milliseconds in stride(from: -2_500, through: 2_500, by: 125) {
            let instant = some + .milliseconds(milliseconds)
            let next = WholeSeconds.next(from: instant)
            #expect(next >= instant && next - instant < .seconds(1))
            #expect((next - some).components.attoseconds == 0)
        }
    }
}
