import Testing

@testable import HexlistStore

@Suite("Write requests that share a transaction") struct WaitingPiecesTests {
    private let start = ContinuousClock.now
    private var waiting = WaitingPieces()

    private func piece(_ rows: Int, _ turn: WriteQueue.Piece.Turn = .next) -> WriteQueue.Piece {
        WriteQueue.Piece(rows: rows, turn: turn, work: { _ in }, finish: { _ in })
    }

    private mutating func take(after time: Duration) -> [Int] { waiting.take(at: start + time).map(\.rows) }

    @Test mutating func thoseWithFewRowsGoFirstAndOneWithManyAlways() {
        for rows in [300, 20_000, 1, 9_000, 256] { waiting.add(piece(rows), at: start) }
        #expect(waiting.areDue && waiting.patientUntil == nil)
        #expect(take(after: .zero) == [1, 256, 300])
        #expect(take(after: .zero) == [20_000])
        #expect(take(after: .zero) == [9_000])
        #expect(take(after: .zero).isEmpty && waiting.isEmpty && !waiting.areDue)
    }

    @Test mutating func aPatientPieceSharesTheFirstTransactionAfterThreeMilliseconds() {
        waiting.add(piece(1, .patient), at: start)
        #expect(!waiting.areDue && !waiting.isEmpty)
        waiting.add(piece(2), at: start)
        #expect(take(after: .milliseconds(2)) == [2])
        waiting.add(piece(3, .patient), at: start + .milliseconds(2))
        waiting.add(piece(4), at: start + .milliseconds(3))
        #expect(take(after: .milliseconds(3)) == [4, 1, 3])
        #expect(waiting.isEmpty)
    }

    @Test mutating func withoutOneItGoesAfterTwentyMilliseconds() {
        waiting.add(piece(1, .patient), at: start)
        waiting.add(piece(1, .patient), at: start + .milliseconds(10))
        #expect(waiting.patientUntil == start + .milliseconds(20) && !waiting.areDue)
        #expect(take(after: .milliseconds(20)) == [1, 1])
        waiting.add(piece(1, .patient), at: start + .milliseconds(30))
        #expect(waiting.patientUntil == start + .milliseconds(50))
    }

    @Test mutating func thoseOfAStreamWaitForNothing() {
        waiting.add(piece(64, .patient), at: start)
        #expect(!waiting.areDue && take(after: .zero).isEmpty)
        waiting.add(piece(1, .patient), at: start)
        #expect(waiting.areDue && take(after: .zero) == [64, 1])
        #expect(waiting.isEmpty)
        waiting.add(piece(1, .patient), at: start)
        #expect(!waiting.areDue)
        waiting.endPatience()
        #expect(waiting.areDue && take(after: .zero) == [1])
    }
}
