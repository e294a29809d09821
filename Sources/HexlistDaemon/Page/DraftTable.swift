import HexlistAPI
import HexlistModel
import Synchronization

/// The drafts of the page, in memory: files and folders that the command line named. The page must not name paths, so it offers a draft by
/// its id.
struct DraftTable {
    /// Maximum number of drafts. A further draft replaces the oldest one.
    static let capacity = 16
    static let lifetime = Duration.seconds(600)

    private struct Entry {
        var draft: Draft
        var paths: [String]
        var end: ContinuousClock.Instant
    }

    private var entries: [Entry] = []

    /// Adds a draft.
    /// - Parameters:
    ///   - id: a random id, with which a page may offer the files.
    ///   - paths: absolute paths.
    mutating func add(_ paths: [String], id: String, now: ContinuousClock.Instant, time: Timestamp) -> Draft {
        removeEnded(now)
        if entries.count == Self.capacity { entries.removeFirst() }
        let names = paths.map { path in path.split(separator: "/").last.map(String.init) ?? "/" }
        let until = Timestamp(milliseconds: time.milliseconds + Self.lifetime.components.seconds * 1_000)
        let draft = Draft(id: id, names: names, until: until)
        entries.append(Entry(draft: draft, paths: paths, end: now + Self.lifetime))
        return draft
    }

    /// Returns the draft with this id and its paths; `nil` if there is none, or if its lifetime is over.
    mutating func find(_ id: String, now: ContinuousClock.Instant) -> (draft: Draft, paths: [String])? {
        removeEnded(now)
        return entries.first { PeerTextComparison.areEqual($0.draft.id, id) }.map { ($0.draft, $0.paths) }
    }

    private mutating func removeEnded(_ now: ContinuousClock.Instant) { entries.removeAll { $0.end <= now } }
}

/// The drafts of the daemon, protected by a mutex.
final class PageDrafts: Sendable {
    private let table = Mutex(DraftTable())

    func withLock<Result: Sendable>(_ body: (inout sending DraftTable) -> sending Result) -> Result { table.withLock(body) }
}
