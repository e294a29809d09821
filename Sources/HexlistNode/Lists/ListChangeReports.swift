import HexlistModel
import HexlistStore

/// Decides which changes by peers are reported, and when. One report per peer, list and minute has the sums of all changes since the
/// last one. A large deletion is reported when the last page with it is stored, or after a minute, so that the user can undo it.
///
/// A state machine without a clock. The caller calls `takeDue` at `nextDeadline`. At most one state for each trusted
/// peer and list.
struct ListChangeReports: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Report: Equatable, Sendable {
        case changed(Source, Sums)
        case deleted(Source, Deletion)
    }

    struct Source: Hashable, Comparable, Sendable {
        var peer: PeerID
        /// The shared hex; `nil` for My Hexlist.
        var sharedHex: Int64?

        static func < (left: Source, right: Source) -> Bool {
            (left.peer, left.sharedHex ?? 0) < (right.peer, right.sharedHex ?? 0)
        }
    }

    /// Numbers of hexes and links.
    struct Sums: Equatable, Sendable {
        /// Added or restored.
        var added = 0
        /// Changed or moved.
        var changed = 0
        var deleted = 0

        init() {}

        init(_ result: ListPageResult) {
            for counts in [result.hexes, result.links] {
                added += counts.added + counts.restored
                changed += counts.changed + counts.moved
                deleted += counts.deleted
            }
        }

        static func += (left: inout Sums, right: Sums) {
            left.added += right.added
            left.changed += right.changed
            left.deleted += right.deleted
        }
    }

    /// Links that a machine deleted within a minute, or in consecutive pages.
    struct Deletion: Equatable, Sendable {
        var links = 0
        /// The number of links in My Hexlist before.
        var linksBefore: Int
        /// The numbers of the first `maximumChanges` changes in the log.
        var changes: [Int64] = []

        var isLarge: Bool { links >= ListChangeReports.largeDeletion && links * 10 >= linksBefore }
    }

    private struct State {
        /// The time of the last report.
        var reported: Instant
        var sums = Sums()
        var deletion: Deletion?
        var deletionBegan: Instant
        /// Whether more pages of the machine follow, so that a deletion is not complete yet.
        var hasMorePages = false

        var hasLargeDeletion: Bool { deletion?.isLarge ?? false }
    }

    /// Minimum number of deleted links for a report. It is also at least a tenth of the list.
    static let largeDeletion = 100
    static let maximumChanges = 50
    private static let interval = Duration.seconds(60)

    private var sources: [Source: State] = [:]

    init() {}

    /// The time at which `takeDue` has to be called; `nil` if nothing is due.
    var nextDeadline: Instant? {
        let changes = sources.values.lazy.filter { $0.sums != Sums() }.map { $0.reported + Self.interval }.min()
        let deletions = sources.values.lazy.filter(\.hasLargeDeletion).map { $0.deletionBegan + Self.interval }.min()
        return [changes, deletions].compactMap(\.self).min()
    }

    /// Adds the effect of a stored page.
    mutating func add(_ result: ListPageResult, from peer: PeerID, isLast: Bool, now: Instant) -> [Report] {
        var reports: [Report] = []
        let source = Source(peer: peer, sharedHex: result.sharedHex)
        var state = sources[source] ?? State(reported: now - Self.interval, deletionBegan: now)
        state.sums += Sums(result)
        if state.sums != Sums(), now >= state.reported + Self.interval {
            reports.append(.changed(source, state.sums))
            (state.sums, state.reported) = (Sums(), now)
        }
        if !state.hasMorePages, now >= state.deletionBegan + Self.interval { state.deletion = nil }
        state.hasMorePages = !isLast
        if result.links.deleted > 0 {
            if state.deletion == nil { state.deletionBegan = now }
            var deletion = state.deletion ?? Deletion(linksBefore: result.linksBefore)
            deletion.links += result.links.deleted
            deletion.changes += result.changes.prefix(max(0, Self.maximumChanges - deletion.changes.count))
            state.deletion = deletion
        }
        if isLast, let deletion = state.deletion, deletion.isLarge {
            reports.append(.deleted(source, deletion))
            state.deletion = nil
        }
        sources[source] = state
        return reports
    }

    /// Returns the reports whose minute is over.
    mutating func takeDue(now: Instant) -> [Report] {
        let changed = sources.filter { $0.value.sums != Sums() && now >= $0.value.reported + Self.interval }
        for source in changed.keys {
            sources[source]?.sums = Sums()
            sources[source]?.reported = now
        }
        let deleted = sources.filter { $0.value.hasLargeDeletion && now >= $0.value.deletionBegan + Self.interval }
        for source in deleted.keys { sources[source]?.deletion = nil }
        return Self.changes(changed) + Self.deletions(deleted)
    }

    /// Removes a peer whose trust has ended, or that became or was an own machine, and returns its remaining reports.
    mutating func remove(_ peer: PeerID) -> [Report] {
        let removed = sources.filter { $0.key.peer == peer }
        for source in removed.keys { sources[source] = nil }
        return Self.changes(removed) + Self.deletions(removed)
    }

    /// Returns all reports.
    mutating func takeAll() -> [Report] {
        defer { sources = [:] }
        return Self.changes(sources) + Self.deletions(sources)
    }

    private static func changes(_ sources: [Source: State]) -> [Report] {
        sources.filter { $0.value.sums != Sums() }.sorted { $0.key < $1.key }.map { .changed($0.key, $0.value.sums) }
    }

    private static func deletions(_ sources: [Source: State]) -> [Report] {
        sources.sorted { $0.key < $1.key }.compactMap { source, state in
            guard let deletion = state.deletion, deletion.isLarge else { return nil }
            return .deleted(source, deletion)
        }
    }
}
