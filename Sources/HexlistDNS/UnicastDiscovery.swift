import Dispatch
public import HexlistDiscovery
public import HexlistModel
import HexlistSystem
import Synchronization

/// Unicast DNS-SD discovery: browses domains through the DNS servers of the machine. Publishes nothing, because services are listed in the
/// zone.
///
/// Queries block, so they run one after the other on a dedicated queue. This also limits their rate for large domains.
public final class UnicastDiscovery: Sendable {
    /// Minimum time between two queries, so that short TTLs do not cause a high load.
    private static let minimumInterval: Duration = .milliseconds(20)
    /// Maximum bytes of a DNS response.
    private static let responseBytes = 65_535

    private let queue = DispatchQueue(label: "hexlist.dns")
    private let query: @Sendable (DNSName, DNSType) -> DNSOutcome<DNSMessage>
    private struct State: Sendable {
        var domains: [DomainBrowser]
        var events: (@Sendable (DiscoveryEvent) -> Void)?
        var isStopped = false
        /// The number of the current timer. Earlier timers have no effect when they fire.
        var wait: UInt64 = 0
    }
    private let state: Mutex<State>

    /// - Parameter domains: the domains to browse; invalid names are ignored.
    public convenience init(domains: [String], serviceType: String = ProtocolLimits.serviceType) {
        self.init(domains: domains, serviceType: serviceType, query: UnicastDiscovery.askSystem)
    }

    /// - Parameter query: sends one query; may block.
    init(
        domains: [String], serviceType: String = ProtocolLimits.serviceType,
        query: @escaping @Sendable (DNSName, DNSType) -> DNSOutcome<DNSMessage>
    ) {
        self.query = query
        let browsers = domains.compactMap { DomainBrowser(domain: $0, serviceType: serviceType, now: .now) }
        state = Mutex(State(domains: browsers))
    }

    /// Starts browsing.
    /// - Parameter events: called on any thread, one event at a time, until `stop()` returns. Must not block.
    public func start(events: @escaping @Sendable (DiscoveryEvent) -> Void) {
        state.withLock { $0.events = events }
        scheduleNextQuery()
    }

    public func resolve(_ record: Record, open: Bool) {
        state.withLock { state in
            for index in state.domains.indices where state.domains[index].domain == record.key.domain {
                send(state.domains[index].resolve(record, open: open, now: .now), &state)
            }
        }
        scheduleNextQuery()
    }

    /// Repeats all queries. No effect before `start`.
    public func networkChanged() {
        state.withLock { state in
            guard state.events != nil else { return }
            for index in state.domains.indices { state.domains[index].networkChanged(now: .now) }
        }
        scheduleNextQuery()
    }

    /// Stops browsing. The response of a query in flight is dropped.
    public func stop() {
        state.withLock { state in
            state.isStopped = true
            state.events = nil
        }
    }

    private func send(_ events: [DiscoveryEvent], _ state: inout State) {
        for event in events { state.events?(event) }
    }

    /// Schedules the next query for the time when it is due, at least `minimumInterval` from now.
    private func scheduleNextQuery() {
        let (wait, delay) = state.withLock { state -> (UInt64, Duration?) in
            guard !state.isStopped, state.events != nil, let next = state.domains.map(\.next.at).min() else { return (0, nil) }
            state.wait += 1
            return (state.wait, max(Self.minimumInterval, next - .now))
        }
        guard let delay else { return }
        let nanoseconds = Int(clamping: Int64((delay / .nanoseconds(1)).rounded(.up)))
        queue.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { [self] in
            let next = state.withLock { state -> (index: Int, question: DomainBrowser.Question, name: DNSName)? in
                guard !state.isStopped, state.wait == wait else { return nil }
                let first = state.domains.indices.min { state.domains[$0].next.at < state.domains[$1].next.at }
                guard let first else { return nil }
                let (question, at) = state.domains[first].next
                guard at <= .now else { return nil }
                switch question {
                case .browse: return (first, question, state.domains[first].services)
                case .resolve(let key): return state.domains[first].name(of: key).map { (first, question, $0) }
                }
            }
            if let next { ask(next.index, next.question, next.name) }
            if state.withLock({ $0.wait == wait }) || next != nil { scheduleNextQuery() }
        }
    }

    private func ask(_ index: Int, _ question: DomainBrowser.Question, _ name: DNSName) {
        let lookup = ServiceLookup(ask: query)
        let asked = ContinuousClock.now
        switch question {
        case .browse:
            let outcome = lookup.browse(name)
            state.withLock { send($0.domains[index].browsed(outcome, asked: asked, now: .now), &$0) }
        case .resolve(let key):
            let outcome = lookup.resolve(name)
            state.withLock { send($0.domains[index].resolved(key, outcome, asked: asked, now: .now), &$0) }
        }
    }

    /// Queries the system's resolver. Blocks, up to three seconds for each server that does not answer.
    static func askSystem(_ name: DNSName, _ type: DNSType) -> DNSOutcome<DNSMessage> {
        do {
            let bytes = try SystemResolver.ask(name.description, type: type.rawValue, atMost: responseBytes)
            guard let message = DNSMessage(bytes) else { return .failed("its answer is malformed") }
            return .found(message, seconds: message.seconds)
        } catch {
            switch error {
            case .nothing: return .none
            case .serverFailed: return .failed("the server failed to answer the query for \(name.text) (SERVFAIL)")
            case .serverRefused: return .failed("the server refuses the query for \(name.text) (REFUSED)")
            case .noAnswer: return .failed("no server of resolv.conf answers the query for \(name.text)")
            }
        }
    }
}
