import HexlistModel
import HexlistStore

/// Decides which changes by own machines are reported, and when. One report per machine and minute has the sums of all changes since the
/// last one. A large deletion is reported at once, when the last page with it is stored, so that the user can undo it.
///
/// A state machine without a clock. The caller calls `takeDue` at `nextDeadline`. Bounded by the number of own machines.
struct ListChangeReports: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Report: Equatable, Sendable {
        case changed(PeerID, Sums)
        case deleted(PeerID, Deletion)
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

    private struct Peer {
        /// The time of the last report.
        var reported: Instant
        var sums = Sums()
        var deletion: Deletion?
        var deletionBegan: Instant
        /// Whether more pages of the machine follow, so that a deletion is not complete yet.
        var hasMorePages = false
    }

    /// Minimum number of deleted links for a report. It is also at least a tenth of the list.
    static let largeDeletion = 100
    static let maximumChanges = 50
    private static let interval = Duration.seconds(60)

    private var peers: [PeerID: Peer] = [:]

    init() {}

    /// The time at which `takeDue` has to be called; `nil` if nothing is due.
    var nextDeadline: Instant? { peers.values.lazy.filter { $0.sums != Sums() }.map { $0.reported + Self.interval }.min() }

    /// Adds the effect of a stored page.
    mutating func add(_ result: ListPageResult, from peer: PeerID, isLast: Bool, now: Instant) -> [Report] {
        var reports: [Report] = []
        var state = peers[peer] ?? Peer(reported: now - Self.interval, deletionBegan: now)
        state.sums += Sums(result)
        if state.sums != Sums(), now >= state.reported + Self.interval {
            reports.append(.changed(peer, state.sums))
            (state.sums, state.reported) = (Sums(), now)
        }
        if !state.hasMorePages, now >= state.deletionBegan + Self.interval { state.deletion = nil }
        state.hasMorePages = !isLast
        if result.links.deleted > 0 {
            if state.deletion == nil { state.deletionBegan = now }
            var deletion = state.deletion ?? Deletion(linksBefore: result.linksBefore)
            deletion.links += result.links.deleted
            if let change = result.change, deletion.changes.count < Self.maximumChanges { deletion.changes.append(change) }
            state.deletion = deletion
        }
        if isLast, let deletion = state.deletion, deletion.isLarge {
            reports.append(.deleted(peer, deletion))
            state.deletion = nil
        }
        peers[peer] = state
        return reports
    }

    /// Returns the reports whose minute is over.
    mutating func takeDue(now: Instant) -> [Report] {
        let due = peers.filter { $0.value.sums != Sums() && now >= $0.value.reported + Self.interval }
        for peer in due.keys {
            peers[peer]?.sums = Sums()
            peers[peer]?.reported = now
        }
        return Self.reports(due)
    }

    /// Returns the reports of a machine that is no own machine any more.
    mutating func remove(_ peer: PeerID) -> [Report] { peers.removeValue(forKey: peer).map { Self.reports([peer: $0]) } ?? [] }

    /// Returns all reports.
    mutating func takeAll() -> [Report] {
        defer { peers = [:] }
        return Self.reports(peers)
    }

    private static func reports(_ peers: [PeerID: Peer]) -> [Report] {
        peers.filter { $0.value.sums != Sums() }.sorted { $0.key < $1.key }.map { .changed($0.key, $0.value.sums) }
    }
}
