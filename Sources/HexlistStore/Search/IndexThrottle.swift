/// Decides when an index batch may run, so that indexing does not slow down writes. Without writes a batch runs at once; during writes,
/// after five seconds of them, and then in a twentieth of the time, in small batches.
///
/// Stays because of a bound: without it a bulk send falls to 0.65 of the floor (at least 0.8,
/// Docs/Decisions/0027-optimisations-pay-rent.md).
struct IndexThrottle {
    /// Time without a write after which the store counts as idle.
    static let idleAfter = Duration.milliseconds(300)
    /// Time of continuous writes before the first batch.
    private static let busyDelay = Duration.seconds(5)
    /// Batches during writes take 1/20 of the time.
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

    /// Whether a batch has to be small, because writes would wait for it.
    func isBusy(at now: ContinuousClock.Instant) -> Bool { lastWrite.map { now - $0 < Self.idleAfter } ?? false }

    /// Time until the next batch, provided that nothing is written meanwhile.
    func delay(at now: ContinuousClock.Instant) -> Duration {
        guard let lastWrite, let busySince else { return .zero }
        let untilIdle = lastWrite + Self.idleAfter - now
        let untilShare = max(busySince + Self.busyDelay, notBefore ?? busySince) - now
        return max(.zero, min(untilIdle, untilShare))
    }
}
