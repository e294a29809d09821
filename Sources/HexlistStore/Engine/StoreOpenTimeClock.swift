/// The clock for ages and deadlines in the store: the milliseconds for which a daemon has had the store open, over all runs.
///
/// It advances with the monotonic clock and is saved with the counters (`StoreCounters.lived`), so neither a change of the wall clock nor
/// the time between two runs ages records. If the daemon is killed, the time since the last save is lost, at most one hour (`StoreMaintenance`).
/// Migration 14 set the clock to the newest wall time in the store, so that existing rows needed no change. Only differences between two
/// values are meaningful.
public final class StoreOpenTimeClock: Sendable {
    /// The value of the clock at `start`, in milliseconds.
    private let saved: Int64
    private let start: ContinuousClock.Instant
    private let steady: @Sendable () -> ContinuousClock.Instant

    /// - Parameters:
    ///   - saved: the saved value, in milliseconds. The clock continues from it.
    ///   - steady: the monotonic clock.
    init(from saved: Int64, steady: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.saved = saved
        self.steady = steady
        start = steady()
    }

    public var now: Int64 { saved &+ Self.milliseconds(steady() - start) }

    /// Returns the instant of the monotonic clock at which this clock reads `lived`, so that stored deadlines can be displayed.
    public func instant(of lived: Int64) -> ContinuousClock.Instant { start + .milliseconds(lived &- saved) }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        duration.components.seconds &* 1_000 &+ duration.components.attoseconds / 1_000_000_000_000_000
    }
}
