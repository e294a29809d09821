import HexlistEventLoop

/// Converts instants of the monotonic clock to times of day.
///
/// An instant always has the same time, so that reports can be compared with earlier ones: two clocks read one after another would differ
/// by a millisecond each time. All times move only when the wall clock was set.
struct MonotonicToWallClock: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The milliseconds by which the clocks may drift apart by themselves.
    private static let tolerance: Int64 = 500

    private var wall: Int64
    private var steady: Instant

    /// - Parameter wall: the milliseconds since 1970 at `steady`.
    init(wall: Int64, steady: Instant) { (self.wall, self.steady) = (wall, steady) }

    /// Compares with a new reading of both clocks.
    mutating func look(wall: Int64, steady: Instant) {
        if abs(wall - milliseconds(of: steady)) > Self.tolerance { self = MonotonicToWallClock(wall: wall, steady: steady) }
    }

    /// The milliseconds since 1970 at an instant.
    func milliseconds(of instant: Instant) -> Int64 { wall + (instant - steady).milliseconds }
}
