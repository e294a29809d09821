import Testing

@testable import HexlistDelivery

@Suite("A set of rows")
struct RowSetTests {
    @Test("agrees with a Set over random rows in any order")
    func model() {
        var random = SystemRandomNumberGenerator()
        for around in [60, 65_536, 1 << 40] as [Int64] {
            var rows = RowSet()
            var model: Set<Int64> = []
            for _ in 0..<400 {
                let id = Int64.random(in: max(1, around - 130)...around + 130, using: &random)
                let (isNew, isNewInModel) = (rows.insert(id), model.insert(id).inserted)
                #expect(isNew == isNewInModel)
            }
            #expect((around - 131...around + 131).filter { rows.contains($0) } == model.sorted())
            #expect(rows.count == model.count)
            for _ in 0..<100 {
                let first = Int64.random(in: max(0, around - 140)...around + 140, using: &random)
                let ids = first...first + Int64.random(in: 0...200, using: &random)
                #expect(rows.count(in: ids) == model.count { ids.contains($0) })
            }
            #expect(rows.ranges.flatMap { Array($0) } == model.sorted())
            #expect(zip(rows.ranges, rows.ranges.dropFirst()).allSatisfy { $0.upperBound + 1 < $1.lowerBound })
        }
    }
}
