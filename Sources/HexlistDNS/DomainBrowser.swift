import HexlistDiscovery
import HexlistModel

/// Browses one domain by repeating queries when their TTL expires. Performs no IO: the caller sends the query `next` at its time and passes
/// in the response, and receives discovery events.
///
/// A server that does not respond withdraws nothing: its last response stays in effect. Whether a peer is online is decided by its session
/// or a probe.
struct DomainBrowser: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Question: Hashable, Sendable {
        case browse
        case resolve(InstanceKey)
    }

    /// Bounds of the interval between two queries in seconds. They limit the load if the TTL is short, and the delay of new peers if it is
    /// long.
    static let refreshInterval: ClosedRange<Int> = 5...300
    /// Interval between two queries while the domain has no services.
    static let emptyRefreshInterval: Duration = .seconds(60)
    /// Delay after a network change before the domain is browsed a second time: routes and resolv.conf are often written shortly after an
    /// interface comes up.
    static let secondBrowseDelay: Duration = .seconds(5)
    /// Back-off after consecutive failures: 5, 10, 20, 40, 60 s.
    fileprivate static let backoff = Backoff(from: .seconds(5), to: .seconds(60))

    let domain: String
    /// The name of `_hexlist._tcp` in the domain.
    let services: DNSName
    private let serviceType: String

    private struct Instance {
        var label: [UInt8]
        /// The open resolvers, by the `unicast` number of their record.
        var open: Set<Int> = []
        var reported: [Resolution] = []
        /// The time at which the last response expires; `nil` before the first one.
        var validUntil: Instant?
        var failures = 0
        var retryAt: Instant?

        /// The time of the next query; `nil` while no resolver is open.
        func dueAt(_ start: Instant) -> Instant? { open.isEmpty ? nil : retryAt ?? validUntil ?? start }

        mutating func networkChanged(now: Instant) {
            failures = 0
            retryAt = nil
            if validUntil != nil { validUntil = now }
        }

        mutating func failed(_ record: Record, _ text: String, now: Instant) -> [DiscoveryEvent] {
            failures += 1
            retryAt = now + DomainBrowser.backoff.pause(after: failures)
            return [.resolveFailed(record, text)]
        }
    }

    private var instances: [InstanceKey: Instance] = [:]
    private let start: Instant
    private var browseAt: Instant
    private var failures = 0
    private var changedAt: Instant?
    private var state: BackendState?

    /// - Returns: `nil` if the domain is not a valid name.
    init?(domain: String, serviceType: String = ProtocolLimits.serviceType, now: Instant) {
        let types = serviceType.utf8.split(separator: UInt8(ascii: ".")).map(Array.init)
        guard let name = DNSName(domain), let services = name.prefixed(by: types) else { return nil }
        self.domain = domain.hasSuffix(".") ? String(domain.dropLast()) : domain
        self.services = services
        self.serviceType = serviceType
        start = now
        browseAt = now
    }

    /// The next query and its time.
    var next: (question: Question, at: Instant) {
        var next = (question: Question.browse, at: browseAt)
        for (key, instance) in instances {
            if let dueAt = instance.dueAt(start), dueAt < next.at { next = (.resolve(key), dueAt) }
        }
        return next
    }

    /// The DNS name of an instance; `nil` if it no longer exists.
    func name(of key: InstanceKey) -> DNSName? { instances[key].flatMap { services.prefixed(by: [$0.label]) } }

    /// Makes all queries due, because the network or the server may have changed.
    mutating func networkChanged(now: Instant) {
        changedAt = now
        browseAt = now
        failures = 0
        for key in instances.keys { instances[key]?.networkChanged(now: now) }
    }

    /// Whether a query was sent before the network changed, so that its failure says nothing about the current network.
    private func isOutdated(_ asked: Instant) -> Bool { changedAt.map { asked < $0 } ?? false }

    /// Handles the result of a query for the instances of the domain.
    /// - Parameter asked: the time the query was sent.
    mutating func browsed(_ outcome: DNSOutcome<[[UInt8]]>, asked: Instant, now: Instant) -> [DiscoveryEvent] {
        if case .failed = outcome, isOutdated(asked) { return [] }
        defer {
            if let again = changedAt.map({ $0 + Self.secondBrowseDelay }), asked < again { browseAt = min(browseAt, max(again, now)) }
        }
        switch outcome {
        case .failed(let text):
            failures += 1
            browseAt = now + Self.backoff.pause(after: failures)
            return report(.unavailable("DNS does not answer for \(domain): \(text). Its last answer stays in effect."))
        case .none:
            failures = 0
            browseAt = now + Self.emptyRefreshInterval
            return report(.degraded("DNS lists no machine in \(domain): there is no PTR record at \(services.text).")) + update([])
        case .found(let labels, let seconds):
            failures = 0
            browseAt = now + Self.lifetime(seconds)
            return report(.running) + update(labels)
        }
    }

    /// Handles the result of a query for the addresses, port and TXT of an instance.
    /// - Parameter asked: the time the query was sent.
    mutating func resolved(_ key: InstanceKey, _ outcome: DNSOutcome<[Resolution]>, asked: Instant, now: Instant) -> [DiscoveryEvent] {
        guard var instance = instances[key] else { return [] }
        if case .failed = outcome, isOutdated(asked) { return [] }
        defer { if instances[key] != nil { instances[key] = instance } }
        switch outcome {
        case .failed(let text): return instance.failed(record(key, 0), "DNS does not answer: \(text)", now: now)
        case .none: return instance.failed(record(key, 0), "DNS has no SRV record or no address for it", now: now)
        case .found(let resolutions, let seconds):
            instance.failures = 0
            instance.retryAt = nil
            // If the network changed after the query, the response is used but queried again immediately: the previous server may have
            // other records.
            instance.validUntil = isOutdated(asked) ? now : now + Self.lifetime(seconds)
            let before = instance.reported.count
            instance.reported = resolutions
            var events: [DiscoveryEvent] = []
            for (number, resolution) in resolutions.enumerated() {
                if number >= max(1, before) { events.append(.appeared(record(key, number), interfaceName: nil)) }
                events.append(.resolved(record(key, number), resolution))
            }
            for number in stride(from: resolutions.count, to: max(before, 0), by: 1) where number > 0 {
                instance.open.remove(number)
                events.append(.withdrawn(record(key, number)))
            }
            return events
        }
    }

    /// Opens or closes a resolver. An instance is queried repeatedly while at least one of its resolvers is open.
    /// - Returns: the resolution if it is already known.
    mutating func resolve(_ record: Record, open: Bool, now: Instant) -> [DiscoveryEvent] {
        guard let number = record.unicast, instances[record.key] != nil else { return [] }
        if open { instances[record.key]?.open.insert(number) } else { instances[record.key]?.open.remove(number) }
        guard open, let reported = instances[record.key]?.reported, reported.indices.contains(number) else { return [] }
        return [.resolved(record, reported[number])]
    }

    // MARK: - Helpers

    private mutating func update(_ labels: [[UInt8]]) -> [DiscoveryEvent] {
        var events: [DiscoveryEvent] = []
        var present: Set<InstanceKey> = []
        for label in labels {
            let key = InstanceKey(name: String(decoding: label, as: UTF8.self), type: serviceType, domain: domain)
            present.insert(key)
            guard instances[key] == nil else { continue }
            instances[key] = Instance(label: label)
            events.append(.appeared(record(key, 0), interfaceName: nil))
        }
        for (key, instance) in instances where !present.contains(key) {
            instances[key] = nil
            for number in 0..<max(1, instance.reported.count) { events.append(.withdrawn(record(key, number))) }
        }
        return events
    }

    private mutating func report(_ state: BackendState) -> [DiscoveryEvent] {
        guard state != self.state else { return [] }
        self.state = state
        return [.domain(domain, state)]
    }

    private func record(_ key: InstanceKey, _ number: Int) -> Record { Record(key: key, interface: 0, ipv6: false, unicast: number) }

    private static func lifetime(_ seconds: Int) -> Duration {
        .seconds(min(max(seconds, refreshInterval.lowerBound), refreshInterval.upperBound))
    }
}
