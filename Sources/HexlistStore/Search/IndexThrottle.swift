/// Decides when the index gets a turn, so that it gives way to receiving: at once while nothing is written; while something is, after five
/// seconds of that, and then a twentieth of the time, in short turns.
struct IndexThrottle {
    /// The time without a write after which nothing is.
    static let quiet = Duration.milliseconds(300)
    private static let patience = Duration.seconds(5)
    /// The turns' share of a busy time is 1 to this.
    private static let share = 20

    private var lastWrite: ContinuousClock.Instant?
    private var busySince: ContinuousClock.Instant?
    private var notBefore: ContinuousClock.Instant?

    mutating func wrote(at now: ContinuousClock.Instant) {
        if lastWrite.map({ now - $0 >= Self.quiet }) ?? true { busySince = now }
        lastWrite = now
    }

    mutating func tookTurn(from start: ContinuousClock.Instant, to end: ContinuousClock.Instant) {
        notBefore = end + (end - start) * (Self.share - 1)
    }

    /// Whether a turn has to be short, because something is written and would wait for it.
    func isBusy(at now: ContinuousClock.Instant) -> Bool { lastWrite.map { now - $0 < Self.quiet } ?? false }

    /// The time until the next turn, if nothing is written meanwhile; zero for now.
    func wait(at now: ContinuousClock.Instant) -> Duration {
        guard let lastWrite, let busySince else { return .zero }
        let untilQuiet = lastWrite + Self.quiet - now
        let untilShare = max(busySince + Self.patience, notBefore ?? busySince) - now
        return max(.zero, min(untilQuiet, untilShare))
    }
}
