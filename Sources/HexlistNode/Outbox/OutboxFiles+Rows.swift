import HexlistAPI
import HexlistModel
import HexlistStore

extension OutboxFiles {
    /// - Parameters:
    ///   - state: the state of the outbox row.
    ///   - now: a time of `StoreOpenTimeClock`.
    init(_ row: OutboxFilesRow, of state: OutboxState, now: Int64) {
        let offer: State =
            switch state {
            case _ where row.fetched >= row.count: .fetched
            case .expired: .expired
            case .rejected, .failed, .cancelled: .withdrawn
            case .queued, .sending, .stored, .held: row.isWithdrawn ? .withdrawn : row.ends.map { $0 <= now } ?? false ? .expired : .offered
            }
        let hasFailed = row.failed > 0
        self.init(
            state: offer, count: Int(clamping: row.count), bytes: row.bytes, fetched: Int(clamping: row.fetched),
            failed: Int(clamping: row.failed), failedName: hasFailed ? row.failedName : nil,
            problem: hasFailed ? row.failedReason.flatMap(OfferProblem.init(rawValue:)) : nil)
    }
}
