import Testing

@testable import HexlistStore

@Suite("Write requests that share a transaction") struct WaitingPiecesTests {
    private let start = ContinuousClock.now
    private var pending = PendingWrites()

    private mutating func add(_ rows: Int, isDeferrable: Bool = false, after time: Duration = .zero) {
        pending.add(WriteRequest(rows: rows, isDeferrable: isDeferrable, work: { _ in }, finish: { _ in }), at: start + time)
    }

    private mutating func takeBatch(after time: Duration) -> [Int] { pending.takeBatch(at: start + time).map(\.rows) }

    @Test mutating func smallRequestsGoFirstAndOneLargeRequestAlways() {
        for rows in [300, 20_000, 1, 9_000, 256] { add(rows) }
        for batch in [[1, 256, 300], [20_000], [9_000]] {
            #expect(pending.areDue && pending.deadline == nil)
            #expect(takeBatch(after: .zero) == batch)
        }
        #expect(pending.isEmpty && !pending.areDue && takeBatch(after: .zero).isEmpty)
    }

    @Test mutating func deferrableRequestsShareTheFirstTransactionAfterThreeMilliseconds() {
        add(1, isDeferrable: true)
        #expect(!pending.areDue && !pending.isEmpty)
        add(2)
        #expect(takeBatch(after: .milliseconds(2)) == [2])
        add(3, isDeferrable: true, after: .milliseconds(2))
        add(4, after: .milliseconds(3))
        #expect(takeBatch(after: .milliseconds(3)) == [4, 1, 3])
        #expect(pending.isEmpty)
    }

    @Test mutating func withoutOtherRequestsTheyAreDueAfterTwentyMilliseconds() {
        add(1, isDeferrable: true)
        add(1, isDeferrable: true, after: .milliseconds(10))
        #expect(pending.deadline == start + .milliseconds(20) && !pending.areDue)
        #expect(takeBatch(after: .milliseconds(20)) == [1, 1])
        add(1, isDeferrable: true, after: .milliseconds(30))
        #expect(pending.deadline == start + .milliseconds(50))
    }

    @Test mutating func thoseOfABulkSendAreDueAtOnce() {
        add(64, isDeferrable: true)
        #expect(!pending.areDue && takeBatch(after: .zero).isEmpty)
        add(1, isDeferrable: true)
        #expect(pending.areDue && takeBatch(after: .zero) == [64, 1])
        #expect(pending.isEmpty)
        add(1, isDeferrable: true)
        #expect(!pending.areDue)
        pending.endDeferral()
        #expect(pending.areDue && takeBatch(after: .zero) == [1])
    }
}
