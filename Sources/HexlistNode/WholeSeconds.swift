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

/// Which sessions have something to do at which whole second, so that one timer does for all of them: a timer for each is most of what
/// an idle session costs its own process.
///
/// A session is not taken out: it says when it is called whether it still means it.
struct SharedTicks {
    typealias Instant = ContinuousClock.Instant

    /// At most one for each second until the farthest deadline.
    private var sessions: [Instant: Set<ObjectIdentifier>] = [:]

    /// When to call `take` next.
    var next: Instant? { sessions.keys.min() }

    /// - Parameter second: one of `WholeSeconds`.
    mutating func add(_ session: ObjectIdentifier, at second: Instant) { sessions[second, default: []].insert(session) }

    /// Those whose second has come.
    mutating func take(now: Instant) -> [(session: ObjectIdentifier, at: Instant)] {
        let due = sessions.filter { $0.key <= now }
        for second in due.keys { sessions[second] = nil }
        return due.sorted { $0.key < $1.key }.flatMap { second, sessions in sessions.map { ($0, second) } }
    }
}
