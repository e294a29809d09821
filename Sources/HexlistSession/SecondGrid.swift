/// Instants one second apart, shared by all callers. Timers that may fire late fire at these instants, so the process wakes once for
/// several timers.
enum SecondGrid {
    private static let first = ContinuousClock.now

    /// Returns the first of these instants at or after `instant`.
    static func next(from instant: ContinuousClock.Instant) -> ContinuousClock.Instant {
        let fraction = (instant - first).components.attoseconds
        guard fraction != 0 else { return instant }
        let isBefore = fraction < 0
        return instant + Duration(secondsComponent: isBefore ? 0 : 1, attosecondsComponent: -fraction)
    }
}

/// The sessions whose next tick is at a whole second, grouped by instant, for one shared timer. A timer for each session would take most of
/// the memory of an idle session.
///
/// An entry is not removed if its session ends or no longer needs the tick; the session checks that when the tick occurs.
struct CoalescedTicks {
    typealias Instant = ContinuousClock.Instant

    /// The sessions that tick at each instant. There is at most one entry per second until the latest tick.
    private var sessions: [Instant: Set<ObjectIdentifier>] = [:]

    /// The instant at which `take` is to be called next.
    var next: Instant? { sessions.keys.min() }

    /// Adds a tick of a session.
    /// - Parameter second: an instant of `SecondGrid`.
    mutating func add(_ session: ObjectIdentifier, at second: Instant) { sessions[second, default: []].insert(session) }

    /// Removes and returns the sessions that are due.
    mutating func take(now: Instant) -> [(session: ObjectIdentifier, at: Instant)] {
        let due = sessions.filter { $0.key <= now }
        for second in due.keys { sessions[second] = nil }
        return due.sorted { $0.key < $1.key }.flatMap { second, sessions in sessions.map { ($0, second) } }
    }
}
