import HexlistModel

/// How many events peers may cause. The log is the person's: what others do as often as they like is recorded so many times a minute
/// and a day, and the rest is counted, for one event a minute that says how many were left out.
///
/// A state machine without a clock; `nextDeadline` says when `takeDue` has something to tell.
struct EventAllowance: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Whose events are counted together.
    enum Source: Hashable, Sendable {
        /// Everything strangers and announcements cause: a key and a name cost nothing.
        case strangers
        case alerts(of: PeerID)
        /// A trusted peer coming and going.
        case comings(of: PeerID)
    }

    struct Omission: Equatable, Sendable {
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

    /// One for strangers, two at most for each trusted peer that did something within a day.
    private var counts: [Source: Count] = [:]

    var sources: Int { counts.count }

    /// When events that were left out are to be told; `nil` where there are none.
    var nextDeadline: Instant? { counts.values.lazy.filter { $0.omitted > 0 }.map { $0.minute + Self.minute }.min() }

    /// - Returns: whether one more event may be recorded; otherwise it is counted.
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

    /// Events that may have been recorded and could not be.
    mutating func omitted(_ events: Int, _ source: Source, now: Instant) {
        var count = count(of: source, now: now)
        count.omitted += events
        counts[source] = count
    }

    /// What was left out in minutes that are over. It is told once.
    mutating func takeDue(now: Instant) -> [Omission] { takeOmissions { now - $0.minute >= Self.minute } }

    /// What was left out so far.
    mutating func takeAll() -> [Omission] { takeOmissions { _ in true } }

    private mutating func takeOmissions(where isDue: (Count) -> Bool) -> [Omission] {
        let due = counts.filter { $0.value.omitted > 0 && isDue($0.value) }
        for source in due.keys { counts[source]?.omitted = 0 }
        return due.map { Omission(source: $0.key, count: $0.value.omitted) }.sorted { $0.count > $1.count }
    }

    /// A minute with something to tell goes on until that is taken.
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
    /// In a minute, beside the one event that counts the rest.
    var aMinute: Int {
        switch self {
        case .strangers: 20
        case .alerts: 10
        case .comings: 20
        }
    }

    /// In a day: so many that in 30 days of nothing else the log (`EventLog.bytes`) does not lose what is older. An alert takes 3 KiB at
    /// most, 1 KiB of a stranger.
    var aDay: Int {
        switch self {
        case .strangers: 2_000
        case .alerts: 500
        case .comings: 1_000
        }
    }

    /// Whom it is about; `nil` for strangers.
    var peer: PeerID? {
        switch self {
        case .strangers: nil
        case .alerts(let peer), .comings(let peer): peer
        }
    }

    /// `of` in the data of `events.omitted`.
    var word: String {
        switch self {
        case .strangers: "strangers"
        case .alerts: "alerts"
        case .comings: "comings"
        }
    }
}
