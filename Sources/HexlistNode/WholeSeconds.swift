/// Instants a second apart, the same ones for all that ask: what may be late by that much happens together, and wakes the process once.
enum WholeSeconds {
    private static let first = ContinuousClock.now

    /// - Returns: at most a second later.
    static func next(from instant: ContinuousClock.Instant) -> ContinuousClock.Instant {
        let fraction = (instant - first).components.attoseconds
        guard fraction != 0 else { return instant }
        let isBefore = fraction < 0
        return instant + Duration(secondsComponent: isBefore ? 0 : 1, attosecondsComponent: -fraction)
    }
}
