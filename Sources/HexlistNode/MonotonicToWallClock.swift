import HexlistEventLoop

/// Converts instants of the monotonic clock to wall-clock times.
///
/// The offset is fixed, so that an instant has the same time in every report; it changes only when the wall clock is set.
struct MonotonicToWallClock: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Milliseconds by which the two clocks may drift apart before the offset changes.
    private static let tolerance: Int64 = 500

    private var wall: Int64
    private var steady: Instant

    /// - Parameter wall: the milliseconds since 1970 at `steady`.
    init(wall: Int64, steady: Instant) { (self.wall, self.steady) = (wall, steady) }

    /// Updates the offset if the wall clock was set.
    mutating func update(wall: Int64, steady: Instant) {
        if abs(wall - milliseconds(of: steady)) > Self.tolerance { self = MonotonicToWallClock(wall: wall, steady: steady) }
    }

    /// The milliseconds since 1970 at an instant.
    func milliseconds(of instant: Instant) -> Int64 { wall + (instant - steady).milliseconds }
}
