/// Instants one second apart, the same for all callers, so that deferrable work is coalesced and wakes the process once.
enum WholeSeconds {
    private static let first = ContinuousClock.now

    /// - Returns: the first of these instants that is not before `instant`.
    static func next(from instant: ContinuousClock.Instant) -> ContinuousClock.Instant {
        let fraction = (instant - first).components.attoseconds
        guard fraction != 0 else { return instant }
        let isBefore = fraction < 0
        return instant + Duration(secondsComponent: isBefore ? 0 : 1, attosecondsComponent: -fraction)
    }
}

/// The sessions with a tick at each whole second, for one shared timer: a timer for each would take most of the memory of an idle session.
///
/// Sessions are not removed; each checks whether its tick is still due.
struct CoalescedTimers {
    typealias Instant = ContinuousClock.Instant

    /// The sessions that tick at each instant. There is at most one entry per second until the latest tick.
    private var sessions: [Instant: Set<ObjectIdentifier>] = [:]

    /// The instant at which to call `take` next.
    var next: Instant? { sessions.keys.min() }

    /// - Parameter second: an instant of `WholeSeconds`.
    mutating func add(_ session: ObjectIdentifier, at second: Instant) { sessions[second, default: []].insert(session) }

    /// Removes and returns the sessions that are due.
    mutating func take(now: Instant) -> [(session: ObjectIdentifier, at: Instant)] {
        let due = sessions.filter { $0.key <= now }
        for second in due.keys { sessions[second] = nil }
        return due.sorted { $0.key < $1.key }.flatMap { second, sessions in sessions.map { ($0, second) } }
    }
}
