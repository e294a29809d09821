/// The clock for ages and deadlines in the store: milliseconds for which hexlistd has run on it, over all starts.
///
/// It advances with the monotonic clock and is saved with the counters (`StoreCounters.lived`), so neither a change of the wall clock nor the time
/// between two runs makes anything older. A run that is killed loses the time since its last save, one hour at most (`Maintenance`). The first
/// value was the newest wall time in the store when it was migrated, so that older rows needed no change; only differences mean anything.
public final class LivedClock: Sendable {
    /// The value at `start`.
    private let saved: Int64
    private let start: ContinuousClock.Instant
    private let steady: @Sendable () -> ContinuousClock.Instant

    /// - Parameters:
    ///   - saved: the value that the store has, which continues from now on.
    ///   - steady: the monotonic clock.
    init(from saved: Int64, steady: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.saved = saved
        self.steady = steady
        start = steady()
    }

    public var now: Int64 { saved &+ Self.milliseconds(steady() - start) }

    /// The instant of the monotonic clock at which `now` has this value, for times that are shown.
    public func instant(of lived: Int64) -> ContinuousClock.Instant { start + .milliseconds(lived &- saved) }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        duration.components.seconds &* 1_000 &+ duration.components.attoseconds / 1_000_000_000_000_000
    }
}
