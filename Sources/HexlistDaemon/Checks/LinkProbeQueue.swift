import HexlistAPI

/// Decides which probe sends the next request. Each host gets one request at a time, with a pause between two requests; the host that has
/// been ready longest is next. The current time is passed in.
struct LinkProbeQueue {
    typealias Instant = ContinuousClock.Instant

    /// A probe, with a number that the caller chose for its URL.
    struct Entry: Sendable, Equatable {
        var id: Int
        var probe: LinkProbe
    }

    enum Next: Sendable, Equatable {
        case request(Entry)
        /// No request may be sent before this time.
        case wait(until: Instant)
        /// No probe waits, or all hosts with waiting probes have a request in flight.
        case none
    }

    private struct Host {
        /// The waiting probes of the host. The last element is next.
        var waiting: [Entry] = []
        var readyAt: Instant
        /// Whether a request to the host is in flight.
        var isInUse = false
        /// Number of consecutive requests that failed for a reason that concerns the host.
        var failures = 0
        /// The reason why the host gets no further requests in this check; `nil` if it may get them.
        var closed: LinkCheckReason?
    }

    /// Number of consecutive failed requests after which a host gets no further requests.
    static let maximumFailures = 3

    /// Time between the end of a request to a host and the next request to it.
    let pause: Duration
    private var hosts: [String: Host] = [:]
    /// Number of waiting probes.
    private(set) var count = 0

    init(pause: Duration) { self.pause = pause }

    /// Adds a probe.
    /// - Returns: `nil` if the probe was added; the reason if it was not, because its host gets no further requests.
    mutating func add(_ entry: Entry, now: Instant) -> LinkCheckReason? {
        let name = entry.probe.target.host
        if let reason = hosts[name]?.closed { return reason }
        hosts[name, default: Host(readyAt: now)].waiting.append(entry)  // appends in place, because a host may have many probes
        count += 1
        return nil
    }

    /// Removes and returns the next probe, if its host may get a request now, and marks the host as in use. Otherwise returns the time to
    /// wait for.
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
    ///   - failure: the reason, if the request failed because of the host, and says nothing about the page.
    /// - Returns: the waiting probes of the host, if it gets no further requests. That is after the first failure if the host is busy or
    ///   has no address, otherwise after `maximumFailures` failures.
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

    /// Removes the state of idle hosts: those without waiting probes, requests in flight and failures, whose pause is over.
    mutating func forgetIdleHosts(now: Instant) {
        hosts = hosts.filter {
            !$0.value.waiting.isEmpty || $0.value.isInUse || $0.value.closed != nil || $0.value.failures > 0 || $0.value.readyAt > now
        }
    }
}
