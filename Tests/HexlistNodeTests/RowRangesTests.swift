import Testing

@testable import HexlistNode

@Suite("Ranges of rows")
struct RowRangesTests {
    @Test("rows join into ranges from either side, in any order, once each")
    func joining() {
        var rows = RowRanges()
        for id in [5, 6, 9, 7, 1, 3, 2, 8] as [Int64] {
            let isNew = rows.insert(id)
            #expect(isNew)
        }
        #expect(rows.all == [1...3, 5...9])
        let isNew = rows.insert(6)
        #expect(!isNew)
        #expect(rows.count == 8)
        rows.insert(4)
        #expect(rows.all == [1...9])
    }

    @Test("against a set, over random rows")
    func model() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<50 {
            var rows = RowRanges()
            var model: Set<Int64> = []
            for _ in 0..<200 {
                let id = Int64.random(in: 1...120, using: &random)
                let (isNew, isNewInModel) = (rows.insert(id), model.insert(id).inserted)
                #expect(isNew == isNewInModel)
            }
            #expect((0...121).filter { rows.contains($0) } == model.sorted())
            #expect(rows.count == model.count)
            #expect(zip(rows.all, rows.all.dropFirst()).allSatisfy { $0.upperBound + 1 < $1.lowerBound })
        }
    }
}
