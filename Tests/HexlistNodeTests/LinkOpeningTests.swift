import Testing

@testable import HexlistNode

@Suite("Reports of hexes whose links may be opened", .timeLimit(.minutes(5)))
struct LinkOpeningTests {
    private func reports(of opening: LinkOpening, _ work: () -> Void) async -> Int {
        let changes = opening.changes()
        work()
        opening.finish()
        return await changes.reduce(into: 0) { count, _ in count += 1 }
    }

    @Test("new hexes are not reported while links of no peer are opened") func off() async {
        let opening = LinkOpening()
        #expect(opening.lastEventBefore == nil)
        let count = await reports(of: opening) {
            opening.hexesArrived()
            opening.set(false, lastEvent: 3)
            opening.hexesArrived()
        }
        #expect(count == 0 && opening.lastEventBefore == nil)
    }

    @Test("the beginning is reported, because hexes may have arrived before the peers were read") func begins() async {
        let opening = LinkOpening()
        #expect(await reports(of: opening) { opening.set(true, lastEvent: 3) } == 1)
        #expect(opening.lastEventBefore == 3)
    }

    @Test("new hexes are reported while links are opened; the position is that of the beginning") func on() async {
        let opening = LinkOpening()
        opening.set(true, lastEvent: 3)
        let count = await reports(of: opening) {
            opening.set(true, lastEvent: 5)
            opening.hexesArrived()
        }
        #expect(count == 1 && opening.lastEventBefore == 3)
        opening.set(false, lastEvent: 6)
        #expect(opening.lastEventBefore == nil)
        opening.set(true, lastEvent: 8)
        #expect(opening.lastEventBefore == 8, "hexes that arrived in between are not considered")
    }
}
