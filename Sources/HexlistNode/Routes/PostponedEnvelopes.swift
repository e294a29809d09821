import HexlistModel

/// The envelopes that stay in this machine's mailbox and are not read for 30 s to 1 h: those that may be incomplete or cannot be removed,
/// and those whose hexes or receipts cannot be handled yet. Without the pause, each round would read them again and have less room for
/// other envelopes.
struct PostponedEnvelopes: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Maximum number of envelopes.
    static let limit = 10_000
    private static let pauses = Backoff(from: .seconds(30), to: .seconds(3_600))
    /// If an envelope is not postponed again within this time after its pause, it is assumed to be deleted.
    private static let forgetTime = Duration.seconds(7_200)

    private static let pruneInterval = Duration.seconds(60)

    private var entries: [String: (until: Instant, count: Int)] = [:]
    /// The earliest time at which entries of deleted envelopes may be removed again while the set is full.
    private var pruneAt: Instant?

    /// Postpones an envelope, each time for longer.
    /// - Returns: whether the envelope is postponed; `false` if there are too many.
    @discardableResult
    mutating func postpone(_ envelope: String, now: Instant) -> Bool {
        if entries[envelope] == nil, entries.count >= Self.limit {
            guard pruneAt.map({ now >= $0 }) ?? true else { return false }
            pruneAt = now + Self.pruneInterval
            entries = entries.filter { now < $0.value.until + Self.forgetTime }
            guard entries.count < Self.limit else { return false }
        }
        let count = (entries[envelope]?.count ?? 0) + 1
        entries[envelope] = (now + Self.pauses.pause(after: count), count)
        return true
    }

    func contains(_ envelope: String, now: Instant) -> Bool { entries[envelope].map { now < $0.until } ?? false }

    var isFull: Bool { entries.count >= Self.limit }

    mutating func removed(_ envelope: String) { entries[envelope] = nil }

    /// The earliest end of a pause after `now`; `nil` if there is none.
    func next(after now: Instant) -> Instant? { entries.values.map(\.until).filter { $0 > now }.min() }
}
