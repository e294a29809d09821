public import HexlistModel

/// The durable queue of the hexes that this machine sends.
///
/// Completions are called on any thread. All times are milliseconds since 1970.
public protocol OutboxStore: Sendable {
    /// Reads the next queued rows of a peer, in ascending order.
    /// - Parameters:
    ///   - row: the id of the row after which to start; 0 to start with the first row.
    ///   - limit: maximum number of rows.
    ///   - maxBytes: maximum bytes of all bodies together. If the first row is longer, it is returned alone.
    ///   - longest: maximum bytes of a body. Longer rows are skipped.
    func nextBatch(
        for peer: PeerID, after row: Int64, limit: Int, maxBytes: Int, longest: Int,
        completion: @escaping @Sendable (Result<OutgoingBatch, any Error>) -> Void)

    /// Records the results of rows, in one transaction.
    /// - Parameters:
    ///   - next: the time of the next attempt for rows that were refused temporarily.
    ///   - isAwaited: whether a caller waits for the commit. Otherwise the write may be deferred, to share a transaction with others.
    ///   - completion: called with the rows whose state changed. If the write fails, no row has changed.
    func settle(
        _ results: [RowResult], of peer: PeerID, next: Int64?, at now: Int64, isAwaited: Bool,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void)

    /// Records a failed attempt to send a row.
    /// - Parameters:
    ///   - row: the row that was in flight, to which the failure is attributed; `nil` for the first queued row.
    ///   - counts: whether the failure is counted for the row. The row fails permanently after five counted failures.
    ///   - next: the time of the next attempt.
    ///   - error: the reason as a text for users.
    ///   - completion: called with the rows whose state changed. If the write fails, no row has changed.
    func transferFailed(
        to peer: PeerID, blaming row: Int64?, counts: Bool, next: Int64, error: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void)

    /// Rejects the oldest queued rows of a peer.
    /// - Parameter completion: called with the rejected rows. If their number is `rejectLimit`, more rows may be queued.
    func rejectQueued(
        of peer: PeerID, code: String, message: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void)

    /// Maximum number of rows that one call of `rejectQueued` rejects.
    var rejectLimit: Int { get }
}
