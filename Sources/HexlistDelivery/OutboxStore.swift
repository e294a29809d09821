public import HexlistModel

/// The durable queue of hexes for peers. Its schema stays behind it.
///
/// Completions are called on any thread. All times are milliseconds since 1970.
public protocol OutboxStore: Sendable {
    /// Reads the next rows that wait for a peer, in ascending order.
    /// - Parameters:
    ///   - row: the row after which to begin; 0 for the first one.
    ///   - limit: the most rows.
    ///   - maxBytes: the most bytes of bodies; one row of more is returned alone.
    ///   - longest: the bytes of a body above which a row is left out.
    func nextBatch(
        for peer: PeerID, after row: Int64, limit: Int, maxBytes: Int, longest: Int,
        completion: @escaping @Sendable (Result<OutgoingBatch, any Error>) -> Void)

    /// Records the results of rows, in one transaction.
    /// - Parameters:
    ///   - next: the next attempt of rows that were refused for now.
    ///   - isAwaited: whether a caller waits for it; otherwise the write may be deferred to share a transaction.
    ///   - completion: called with the rows whose state changed. A failure leaves all as they were.
    func settle(
        _ results: [RowResult], of peer: PeerID, next: Int64?, at now: Int64, isAwaited: Bool,
        completion: @escaping @Sendable (Result<[OutboxMove], any Error>) -> Void)

    /// Notes an attempt that failed with its courier.
    /// - Parameters:
    ///   - row: the row that was in flight; `nil` for the first one that waits.
    ///   - counts: whether the failure counts against the row, which is given up after five.
    ///   - next: the next attempt.
    ///   - error: the reason, for people.
    ///   - completion: called as that of `settle`.
    func transferFailed(
        to peer: PeerID, blaming row: Int64?, counts: Bool, next: Int64, error: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxMove], any Error>) -> Void)

    /// Rejects the oldest rows that wait for a peer.
    /// - Parameter completion: called with the rejected rows, up to `rejectLimit`: reject again while there are as many.
    func rejectQueued(
        of peer: PeerID, code: String, message: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxMove], any Error>) -> Void)

    /// The most rows that `rejectQueued` rejects at once.
    var rejectLimit: Int { get }
}
