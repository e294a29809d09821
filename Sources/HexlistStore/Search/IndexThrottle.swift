/// Decides when the next batch of the search index may run, so that indexing does not slow down writes. If the store is idle, batches run
/// immediately. During continuous writes the first batch runs after five seconds; then small batches take at most a twentieth of the time.
///
/// Required by a benchmark bound (Docs/Decisions/0027-optimisations-pay-rent.md): without the throttle, the rate of a bulk send is 0.65
/// times that of two plain C++ processes that do the same work (minimum 0.8).
struct IndexThrottle {
    /// Time without a write after which the store counts as idle.
    static let idleAfter = Duration.milliseconds(300)
    /// Time of continuous writes before the first batch.
    private static let busyDelay = Duration.seconds(5)
    /// Batches during writes take at most 1/20 of the time.
    private static let timeShare = 20

    private var lastWrite: ContinuousClock.Instant?
    private var busySince: ContinuousClock.Instant?
    private var notBefore: ContinuousClock.Instant?

    mutating func wrote(at now: ContinuousClock.Instant) {
        if lastWrite.map({ now - $0 >= Self.idleAfter }) ?? true { busySince = now }
        lastWrite = now
    }

    mutating func ranBatch(from start: ContinuousClock.Instant, to end: ContinuousClock.Instant) {
        notBefore = end + (end - start) * (Self.timeShare - 1)
    }

    /// Whether something was written within the last `idleAfter`. If so, batches have to be small, because further writes wait for them.
    func isBusy(at now: ContinuousClock.Instant) -> Bool { lastWrite.map { now - $0 < Self.idleAfter } ?? false }

    /// Returns the time until the next batch may run if no write happens meanwhile.
    func delay(at now: ContinuousClock.Instant) -> Duration {
        guard let lastWrite, let busySince else { return .zero }
        let untilIdle = lastWrite + Self.idleAfter - now
        let untilShare = max(busySince + Self.busyDelay, notBefore ?? busySince) - now
        return max(.zero, min(untilIdle, untilShare))
    }
}
