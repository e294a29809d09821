import DequeModule
import HexlistModel

/// The ID of a request, unique within a queue.
struct RequestID: Hashable, Sendable {
    let value: UInt64
}

/// The operation and path of a request. If it fails repeatedly, all requests with the same key are suspended.
enum SuspendedRequestKey: Hashable, Sendable {
    case list(path: PathKey)
    case entry(path: PathKey)
    case link(path: PathKey)
    case revoke(path: PathKey)

    /// The bytes of a path. Strings are not used as keys, because comparing them is slow for some hostile texts.
    struct PathKey: Hashable, Sendable {
        let bytes: [UInt8]
        init(_ text: String) { bytes = Array(text.utf8) }
    }
}

/// The state machine of all requests to one service, which decides which of them run, wait, or are retried.
///
/// Performs no IO and has no clock. The caller starts the requests that a method returns, and reports the end of each attempt.
///
/// - At most `slotCount` requests run at the same time, in the order in which they were added. A request that waits for a retry has no
///   slot.
/// - After a temporary failure, a request is retried, up to `maximumAttempts` attempts. Then its key is suspended for a time
///   (`FailureBackoff`). Meanwhile, requests with this key are accepted only with `force`.
/// - Calls for cancelled requests have no effect.
struct RequestQueue: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Admission: Equatable, Sendable {
        case accepted(RequestID)
        case paused(until: Instant)
        case full
    }

    enum AttemptResult: Equatable, Sendable {
        case done
        /// A temporary failure of the service.
        case temporaryFailure
        /// A permanent failure, so the request is not retried.
        case final
    }

    /// The next step of a request whose attempt ended.
    enum NextStep: Equatable, Sendable {
        /// The request is complete. Its result is that of the attempt.
        case finished
        /// The request waits for a retry. The caller calls `ready` after this delay.
        case retry(after: Duration)
        /// The request was cancelled.
        case dropped
    }

    static let slotCount = 4
    static let maximumAttempts = 3
    /// Maximum number of requests in the queue.
    static let maximumCount = 10_000
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(10))

    private struct Entry: Sendable {
        let key: SuspendedRequestKey
        var failures = 0
        /// Whether its ID is in `waiting`.
        var isWaiting = true
    }

    private var entries: [RequestID: Entry] = [:]
    private var waiting: Deque<RequestID> = []
    private var running: Set<RequestID> = []
    private var pauses = FailureBackoff<SuspendedRequestKey>()
    private var last: UInt64 = 0

    var count: Int { entries.count }
    /// Whether a request is in the queue: waiting, running, or delayed before a retry.
    func contains(_ id: RequestID) -> Bool { entries[id] != nil }
    var runningCount: Int { running.count }
    /// Number of entries in all collections of the queue. Tests check that it stays bounded.
    var bookkeepingCount: Int { entries.count + waiting.count + running.count + pauses.count }

    /// Adds a request. `begin` has the requests that the caller starts now, in all methods.
    mutating func add(_ key: SuspendedRequestKey, force: Bool, now: Instant) -> (admission: Admission, begin: [RequestID]) {
        if let until = pauses.end(of: key, now: now), !force { return (.paused(until: until), []) }
        pauses.lift(key)
        guard entries.count < Self.maximumCount else { return (.full, []) }
        last += 1
        let id = RequestID(value: last)
        entries[id] = Entry(key: key)
        waiting.append(id)
        return (.accepted(id), startWaiting())
    }

    /// Records the end of an attempt.
    /// - Returns: the next step of the request, and the requests that the caller starts now.
    mutating func ended(_ id: RequestID, _ result: AttemptResult, now: Instant) -> (next: NextStep, begin: [RequestID]) {
        guard running.remove(id) != nil, var entry = entries[id] else { return (.dropped, []) }
        switch result {
        case .done, .final: break
        case .temporaryFailure:
            entry.failures += 1
            if entry.failures < Self.maximumAttempts {
                entries[id] = entry
                return (.retry(after: Self.backoff.pause(after: entry.failures)), startWaiting())
            }
            pauses.begin(entry.key, now: now)
        }
        entries[id] = nil
        return (.finished, startWaiting())
    }

    /// Ends the delay before a retry of a request.
    /// - Returns: the requests to start now.
    mutating func ready(_ id: RequestID) -> [RequestID] {
        guard !running.contains(id), entries[id]?.isWaiting == false else { return [] }
        entries[id]?.isWaiting = true
        waiting.append(id)
        return startWaiting()
    }

    /// Removes a request in any state.
    /// - Returns: the requests to start now.
    mutating func cancel(_ id: RequestID) -> [RequestID] {
        guard let entry = entries.removeValue(forKey: id) else { return [] }
        running.remove(id)
        if entry.isWaiting { waiting.removeAll { $0 == id } }
        return startWaiting()
    }

    private mutating func startWaiting() -> [RequestID] {
        var begin: [RequestID] = []
        while running.count < Self.slotCount, let id = waiting.popFirst() {
            entries[id]?.isWaiting = false
            running.insert(id)
            begin.append(id)
        }
        return begin
    }
}
