import HexlistModel

/// Rate limits for events that peers cause, per minute and per day. Further events are omitted and counted, and one event per minute
/// reports their number.
///
/// A state machine without a clock. The caller calls `takeDue` at `nextDeadline`.
struct EventAllowance: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// A cause of events that are counted together.
    enum Source: Hashable, Sendable {
        /// All strangers and announcements have one common count, because anyone can create any number of keys and names.
        case strangers
        case alerts(of: PeerID)
        /// Arrivals and departures of a trusted peer, and identity conflicts that the peer has or reports.
        case peerPresence(of: PeerID)
        /// Announcements with a trusted peer's UUID at whose address another key answers. Counted separately, so that the first ones are
        /// always recorded.
        case impostors(of: PeerID)
        /// Files that a trusted peer fetched.
        case fetches(of: PeerID)
        /// Changes of lists by an own machine or a member, and offers, ends and failures of lists.
        case lists(of: PeerID)
        /// Large deletions in lists. Counted separately, so that a member cannot cause the event to be omitted by offers.
        case deletions(of: PeerID)
    }

    struct OmittedEvents: Equatable, Sendable {
        var source: Source
        var count: Int
    }

    private struct Count: Sendable {
        var minute: Instant
        var day: Instant
        var ofMinute = 0
        var ofDay = 0
        var omitted = 0
    }

    private static let minute = Duration.seconds(60)
    private static let day = Duration.seconds(86_400)

    /// The counts by source: one for strangers, and up to six for each trusted peer that caused events within a day.
    private var counts: [Source: Count] = [:]

    var sources: Int { counts.count }

    /// The instant at which omitted events are to be reported; `nil` if there are none.
    var nextDeadline: Instant? { counts.values.lazy.filter { $0.omitted > 0 }.map { $0.minute + Self.minute }.min() }

    /// Counts one more event.
    /// - Returns: whether it may be recorded; otherwise it counts as omitted.
    mutating func take(_ source: Source, now: Instant) -> Bool {
        var count = count(of: source, now: now)
        let isAllowed = count.ofMinute < source.aMinute && count.ofDay < source.aDay
        if isAllowed {
            count.ofMinute += 1
            count.ofDay += 1
        } else {
            count.omitted += 1
        }
        counts[source] = count
        return isAllowed
    }

    /// Counts events as omitted that were allowed but could not be recorded.
    mutating func omitted(_ events: Int, _ source: Source, now: Instant) {
        var count = count(of: source, now: now)
        count.omitted += events
        counts[source] = count
    }

    /// Removes and returns the counts of omitted events whose minute is over.
    mutating func takeDue(now: Instant) -> [OmittedEvents] { takeOmittedEvents { now - $0.minute >= Self.minute } }

    /// Removes and returns all counts of omitted events.
    mutating func takeAll() -> [OmittedEvents] { takeOmittedEvents { _ in true } }

    private mutating func takeOmittedEvents(where isDue: (Count) -> Bool) -> [OmittedEvents] {
        let due = counts.filter { $0.value.omitted > 0 && isDue($0.value) }
        for source in due.keys { counts[source]?.omitted = 0 }
        return due.map { OmittedEvents(source: $0.key, count: $0.value.omitted) }.sorted { $0.count > $1.count }
    }

    /// Returns the count of a source, reset if its minute or day is over. A minute with omitted events continues until `takeOmittedEvents`
    /// has returned their number.
    private mutating func count(of source: Source, now: Instant) -> Count {
        guard var count = counts[source] else {
            counts = counts.filter { $0.value.omitted > 0 || now - $0.value.day < Self.day }
            return Count(minute: now, day: now)
        }
        if count.omitted == 0, now - count.minute >= Self.minute {
            count.minute = now
            count.ofMinute = 0
        }
        if now - count.day >= Self.day {
            count.day = now
            count.ofDay = 0
        }
        return count
    }
}

extension EventAllowance.Source {
    /// Maximum events recorded per minute, in addition to the one that reports omitted events.
    var aMinute: Int {
        switch self {
        case .strangers: 20
        case .alerts: 10
        case .peerPresence: 20
        case .impostors: 5
        case .fetches, .lists, .deletions: 20
        }
    }

    /// Maximum events recorded per day. The maximum is so low that 30 days of such events do not displace older ones from the log
    /// (`EventLog.bytes`). An alert takes at most 3 KiB, an event of a stranger 1 KiB.
    var aDay: Int {
        switch self {
        case .strangers: 2_000
        case .alerts: 500
        case .peerPresence: 1_000
        case .impostors: 100
        case .fetches, .lists, .deletions: 1_000
        }
    }

    /// The peer that the events are about; `nil` for strangers.
    var peer: PeerID? {
        switch self {
        case .strangers: nil
        case .alerts(let peer), .peerPresence(let peer), .impostors(let peer), .fetches(let peer), .lists(let peer),
            .deletions(let peer):
            peer
        }
    }

    /// The name of this kind of event in the member `of` of an `events.omitted` event.
    var word: String {
        switch self {
        case .strangers: "strangers"
        case .alerts: "alerts"
        case .peerPresence: "comings"
        case .impostors: "impostors"
        case .fetches: "fetches"
        case .lists: "lists"
        case .deletions: "deletions"
        }
    }
}
