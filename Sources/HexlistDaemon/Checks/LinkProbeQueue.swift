import HexlistAPI

/// Decides which probe sends its next request: one request at a time to each host, with a pause between two, and the host that has waited
/// longest first. Time is passed in.
struct LinkProbeQueue {
    typealias Instant = ContinuousClock.Instant

    /// A probe, with the number by which the caller identifies its URL.
    struct Entry: Sendable, Equatable {
        var id: Int
        var probe: LinkProbe
    }

    enum Next: Sendable, Equatable {
        case request(Entry)
        /// No request may be sent before this time.
        case wait(until: Instant)
        /// No probe waits, or all that wait are for hosts with a request in flight.
        case none
    }

    private struct Host {
        /// The waiting probes of the host. The last one is sent next.
        var waiting: [Entry] = []
        var readyAt: Instant
        /// Whether a request to the host is in flight.
        var isInUse = false
        /// Number of requests in a row that got no response.
        var failures = 0
        /// The reason why the host gets no more requests; `nil` if it gets them.
        var closed: LinkCheckReason?
    }

    /// Number of requests in a row without a response after which a host is closed.
    static let maximumFailures = 3

    /// Time between the end of a request to a host and the next request to it.
    let pause: Duration
    private var hosts: [String: Host] = [:]
    /// Number of waiting probes.
    private(set) var count = 0

    init(pause: Duration) { self.pause = pause }

    /// Adds a probe.
    /// - Returns: the reason if its host is closed; then it is not added.
    mutating func add(_ entry: Entry, now: Instant) -> LinkCheckReason? {
        let name = entry.probe.target.host
        if let reason = hosts[name]?.closed { return reason }
        hosts[name, default: Host(readyAt: now)].waiting.append(entry)  // in place, because a host may have many
        count += 1
        return nil
    }

    /// Takes the next probe whose host may get a request.
    mutating func next(now: Instant) -> Next {
        let first = hosts.filter { !$0.value.waiting.isEmpty && !$0.value.isInUse }
            .min { ($0.value.readyAt, $0.key) < ($1.value.readyAt, $1.key) }
        guard let (name, host) = first else { return .none }
        guard host.readyAt <= now, let entry = host.waiting.last else { return .wait(until: host.readyAt) }
        hosts[name]?.waiting.removeLast()
        hosts[name]?.isInUse = true
        count -= 1
        return .request(entry)
    }

    /// Handles the end of a request to a host. The next request to the host may be sent after the pause.
    /// - Parameters:
    ///   - wait: a longer pause that the host asked for.
    ///   - failure: the reason if the request got no response that says anything about the page.
    /// - Returns: the waiting probes of the host if it is closed: immediately if the host is busy or has no address, otherwise after
    ///   `maximumFailures` failures.
    mutating func ended(_ name: String, now: Instant, wait: Duration = .zero, failure: LinkCheckReason? = nil) -> [Entry] {
        guard var host = hosts[name] else { return [] }
        host.isInUse = false
        host.readyAt = now + max(pause, wait)
        host.failures = failure == nil ? 0 : host.failures + 1
        var waiting: [Entry] = []
        if let failure, host.failures >= Self.maximumFailures || [.busy, .noAddress].contains(failure) {
            host.closed = failure
            swap(&waiting, &host.waiting)
        }
        hosts[name] = host
        count -= waiting.count
        return waiting
    }

    /// Drops the state of hosts without waiting probes that had no failure and may get a request now.
    mutating func forgetIdleHosts(now: Instant) {
        hosts = hosts.filter {
            !$0.value.waiting.isEmpty || $0.value.isInUse || $0.value.closed != nil || $0.value.failures > 0 || $0.value.readyAt > now
        }
    }
}
