/// What moments of the steady clock are by the wall clock, for people.
///
/// The same moment has the same time whenever it is asked for, so that what is told can be compared with what was told before: two
/// clocks read one after the other would differ by a millisecond each time. Only when the wall clock was set do all times move.
struct WallTimes: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Milliseconds by which the clocks may part, as they do a little by themselves.
    private static let tolerance: Int64 = 500

    private var wall: Int64
    private var steady: Instant

    /// - Parameter wall: milliseconds since 1970, at `steady`.
    init(wall: Int64, steady: Instant) { (self.wall, self.steady) = (wall, steady) }

    /// What both clocks say now.
    mutating func look(wall: Int64, steady: Instant) {
        if abs(wall - milliseconds(of: steady)) > Self.tolerance { self = WallTimes(wall: wall, steady: steady) }
    }

    /// Since 1970.
    func milliseconds(of instant: Instant) -> Int64 { wall + (instant - steady).milliseconds }
}
