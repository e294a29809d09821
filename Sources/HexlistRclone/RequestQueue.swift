import DequeModule
import HexlistModel

/// The number of a request, never used again by one queue.
struct RequestID: Hashable, Sendable {
    let value: UInt64
}

/// The subject of a request to a service: a request with the same key is the same one, for the pause after failures.
enum RequestKey: Hashable, Sendable {
    case list(path: PathKey)
    case entry(path: PathKey)
    case link(path: PathKey)
    case revoke(path: PathKey)

    /// A path's bytes; `String ==` is slow on some texts.
    struct PathKey: Hashable, Sendable {
        let bytes: [UInt8]
        init(_ text: String) { bytes = Array(text.utf8) }
    }
}

/// Which requests to one service run, which wait, and which are tried again: a state machine.
///
/// Performs no IO and has no clock. The caller begins the requests that a method returns, and tells the end of each.
///
/// - At most `places` run at once, in the order in which they were added. One that failed gives its place up before it is tried again.
/// - A request is attempted up to `attempts` times while its failures may pass. Then its key pauses: the same is not taken again meanwhile
///   except by force.
/// - What is told of a request that was cancelled is dropped.
struct RequestQueue: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Admission: Equatable, Sendable {
        case taken(RequestID)
        case paused(until: Instant)
        case full
    }

    enum Outcome: Equatable, Sendable {
        case done
        /// The service's own fault, which may pass.
        case mayPass
        /// There is no use in trying again.
        case final
    }

    /// What becomes of a request whose attempt ended.
    enum Verdict: Equatable, Sendable {
        /// The request is over, with the result of the attempt.
        case over
        /// `ready` is to be called after this time.
        case again(after: Duration)
        /// Nobody waits for it any more.
        case dropped
    }

    static let places = 4
    static let attempts = 3
    /// The most requests in the queue.
    static let most = 10_000
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(10))

    private struct Entry: Sendable {
        let key: RequestKey
        var failures = 0
    }

    private var entries: [RequestID: Entry] = [:]
    private var waiting: Deque<RequestID> = []
    private var running: Set<RequestID> = []
    private var pauses = FailureBackoff<RequestKey>()
    private var last: UInt64 = 0

    var count: Int { entries.count }
    /// Whether a request is neither over nor cancelled.
    func contains(_ id: RequestID) -> Bool { entries[id] != nil }
    var runningCount: Int { running.count }
    /// Everything that is kept, for tests of its bound.
    var remembered: Int { entries.count + waiting.count + running.count + pauses.count }

    /// Takes a request in.
    mutating func add(_ key: RequestKey, force: Bool, now: Instant) -> (admission: Admission, begin: [RequestID]) {
        if let until = pauses.end(of: key, now: now), !force { return (.paused(until: until), []) }
        pauses.lift(key)
        guard entries.count < Self.most else { return (.full, []) }
        last += 1
        let id = RequestID(value: last)
        entries[id] = Entry(key: key)
        waiting.append(id)
        return (.taken(id), settle())
    }

    /// An attempt ended.
    mutating func ended(_ id: RequestID, _ outcome: Outcome, now: Instant) -> (verdict: Verdict, begin: [RequestID]) {
        guard running.remove(id) != nil, var entry = entries[id] else { return (.dropped, []) }
        switch outcome {
        case .done, .final: break
        case .mayPass:
            entry.failures += 1
            if entry.failures < Self.attempts {
                entries[id] = entry
                return (.again(after: Self.backoff.pause(after: entry.failures)), settle())
            }
            pauses.begin(entry.key, now: now)
        }
        entries[id] = nil
        return (.over, settle())
    }

    /// The time before the next attempt is over.
    mutating func ready(_ id: RequestID) -> [RequestID] {
        guard entries[id] != nil, !running.contains(id), !waiting.contains(id) else { return [] }
        waiting.append(id)
        return settle()
    }

    /// Takes a request out, wherever it stands.
    mutating func cancel(_ id: RequestID) -> [RequestID] {
        guard entries.removeValue(forKey: id) != nil else { return [] }
        if running.remove(id) == nil { waiting.removeAll { $0 == id } }
        return settle()
    }

    private mutating func settle() -> [RequestID] {
        var begin: [RequestID] = []
        while running.count < Self.places, let id = waiting.popFirst() {
            running.insert(id)
            begin.append(id)
        }
        return begin
    }
}
