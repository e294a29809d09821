import DequeModule
import HexlistModel

/// The ID of a request, unique within a queue.
struct RequestID: Hashable, Sendable {
    let value: UInt64
}

/// The operation and path of a request. Repeated failures suspend all requests with the same key.
enum RequestKey: Hashable, Sendable {
    case list(path: PathKey)
    case entry(path: PathKey)
    case link(path: PathKey)
    case revoke(path: PathKey)

    /// The bytes of a path, because comparing strings is slow for some texts.
    struct PathKey: Hashable, Sendable {
        let bytes: [UInt8]
        init(_ text: String) { bytes = Array(text.utf8) }
    }
}

/// The state machine of all requests to one service, which decides which of them run, wait, or are retried.
///
/// Performs no IO and has no clock. The caller starts the requests that a method returns, and reports the end of each attempt.
///
/// - At most `slotCount` requests run at the same time, in the order they were added. A failed request releases its slot until it is
///   retried.
/// - A request has up to `maximumAttempts` attempts while its failures are temporary. Then its key is suspended, and requests with this key
///   are accepted only by force.
/// - Events of cancelled requests are ignored.
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
        /// The request cannot be retried: it is a permanent failure.
        case final
    }

    /// The next step of a request whose attempt ended.
    enum NextStep: Equatable, Sendable {
        /// The request ends with the result of the attempt.
        case finished
        /// Call `ready` after this delay.
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
        let key: RequestKey
        var failures = 0
    }

    private var entries: [RequestID: Entry] = [:]
    private var waiting: Deque<RequestID> = []
    private var running: Set<RequestID> = []
    private var pauses = FailureBackoff<RequestKey>()
    private var last: UInt64 = 0

    var count: Int { entries.count }
    /// Whether a request is in the queue: waiting, running, or delayed before a retry.
    func contains(_ id: RequestID) -> Bool { entries[id] != nil }
    var runningCount: Int { running.count }
    /// Number of all bookkeeping entries. Tests check that it stays bounded.
    var bookkeepingCount: Int { entries.count + waiting.count + running.count + pauses.count }

    /// Adds a request. As for the other methods, `begin` lists the requests to start now.
    mutating func add(_ key: RequestKey, force: Bool, now: Instant) -> (admission: Admission, begin: [RequestID]) {
        if let until = pauses.end(of: key, now: now), !force { return (.paused(until: until), []) }
        pauses.lift(key)
        guard entries.count < Self.maximumCount else { return (.full, []) }
        last += 1
        let id = RequestID(value: last)
        entries[id] = Entry(key: key)
        waiting.append(id)
        return (.accepted(id), startWaiting())
    }

    /// Ends an attempt, and returns the next step of its request.
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

    /// Ends the delay of a request before its next attempt.
    /// - Returns: the requests to start now.
    mutating func ready(_ id: RequestID) -> [RequestID] {
        guard entries[id] != nil, !running.contains(id), !waiting.contains(id) else { return [] }
        waiting.append(id)
        return startWaiting()
    }

    /// Removes a request in any state.
    /// - Returns: the requests to start now.
    mutating func cancel(_ id: RequestID) -> [RequestID] {
        guard entries.removeValue(forKey: id) != nil else { return [] }
        if running.remove(id) == nil { waiting.removeAll { $0 == id } }
        return startWaiting()
    }

    private mutating func startWaiting() -> [RequestID] {
        var begin: [RequestID] = []
        while running.count < Self.slotCount, let id = waiting.popFirst() {
            running.insert(id)
            begin.append(id)
        }
        return begin
    }
}
