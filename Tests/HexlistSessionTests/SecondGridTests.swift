import Testing

@testable import HexlistSession

@Suite struct WholeSecondsTests {
    @Test("deferrable deadlines are rounded up to whole seconds") func rounding() {
        let some = SecondGrid.next(from: .now)
        for milliseconds in stride(from: -2_500, through: 2_500, by: 125) {
            let instant = some + .milliseconds(milliseconds)
            let next = SecondGrid.next(from: instant)
            #expect(next >= instant && next - instant < .seconds(1))
            #expect((next - some).components.attoseconds == 0)
        }
    }

    @Test("sessions of one second are returned together, each once") func shared() {
        final class Some {}
        let (one, other, late) = (Some(), Some(), Some())
        let second = SecondGrid.next(from: .now)
        var ticks = CoalescedTicks()
        #expect(ticks.next == nil && ticks.take(now: second).isEmpty)
        ticks.add(ObjectIdentifier(late), at: second + .seconds(2))
        ticks.add(ObjectIdentifier(one), at: second)
        ticks.add(ObjectIdentifier(one), at: second)
        ticks.add(ObjectIdentifier(other), at: second)
        #expect(ticks.next == second)
        #expect(ticks.take(now: second - .nanoseconds(1)).isEmpty)
        let taken = ticks.take(now: second + .milliseconds(3))
        #expect(taken.count == 2 && Set(taken.map(\.session)) == [ObjectIdentifier(one), ObjectIdentifier(other)])
        #expect(taken.allSatisfy { $0.at == second })
        #expect(ticks.next == second + .seconds(2))
        ticks.add(ObjectIdentifier(one), at: second + .seconds(1))
        #expect(ticks.take(now: second + .seconds(5)).map(\.session) == [ObjectIdentifier(one), ObjectIdentifier(late)])
        #expect(ticks.next == nil)
    }
}
