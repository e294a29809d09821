import HexlistModel
import Testing

@Suite struct RefusalOrderTests {
    private func id(_ number: UInt64) -> MessageID { MessageID(UUIDBytes(high: 1, low: number)) }

    @Test("after a refusal all hexes are refused for its reason until a refused one is resent") func order() {
        var order = RefusalOrder<String>()
        #expect(order.reason(toRefuse: id(1)) == nil)
        order.refused(id(1), for: "full")
        order.refused(id(2), for: "later")
        #expect(order.reason(toRefuse: id(3)) == "full")
        #expect(order.reason(toRefuse: nil) == "full")
        #expect(order.reason(toRefuse: id(3)) == nil)
        #expect(order.reason(toRefuse: id(1)) == nil)
    }

    @Test("the memory of refused hexes is bounded") func bound() {
        var order = RefusalOrder<String>()
        order.refused(id(0), for: "full")
        for number in 1...5_000 as ClosedRange<UInt64> { #expect(order.reason(toRefuse: id(number)) == "full") }
        #expect(order.reason(toRefuse: id(5_000)) == "full", "beyond the bound")
        #expect(order.reason(toRefuse: id(4_000)) == nil)
    }
}
