import Testing

@testable import HexlistTransfers

@Suite struct LaneBatchesTests {
    @Test("items that arrive meanwhile are the lane's next batch; other lanes do not wait")
    func lanes() {
        var batches = LaneBatches<String, Int>()
        #expect(batches.begin(1, in: "a") && !batches.begin(2, in: "a") && !batches.begin(3, in: "a"))
        #expect(batches.begin(4, in: "b") && batches.next(in: "b") == [])
        #expect(batches.next(in: "a") == [2, 3] && !batches.begin(5, in: "a"))
        #expect(batches.next(in: "a") == [5] && batches.next(in: "a") == [])
        #expect(batches.begin(6, in: "a") && batches.begin(7, in: "b"))
    }
}
