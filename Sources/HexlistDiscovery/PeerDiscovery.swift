public import HexlistModel

/// An event of discovery. Everything in it is a hint: only a Hello proves anything.
public enum DiscoveryEvent: Sendable, Equatable {
    case appeared(Record, interfaceName: String?)
    /// The network withdrew the record: a goodbye came, or its TTL ran out.
    case withdrawn(Record)
    /// A standing resolver's answer. Repeated whenever something in it changes.
    case resolved(Record, Resolution)
    /// A standing resolver found nothing (the text is for people). It continues as long as it is open.
    case resolveFailed(Record, String)
    /// A change of the discovery service. `unavailable` ends all records and resolvers of the own links without withdrawing any; after
    /// `running`, existing records appear anew.
    case backend(BackendState)
    /// The state of browsing a domain by unicast DNS. `unavailable` withdraws nothing.
    case domain(String, BackendState)
    /// The addresses of this machine: once at the start, then after every change.
    case interfaces([InterfaceAddress])
    /// The machine woke from sleep.
    case woke
}

/// The state of discovery itself, on the own links or in a domain. The texts say what is wrong and what to do.
public enum BackendState: Sendable, Equatable {
    case running
    /// Others are seen, but this node cannot be announced. For a domain: it answers, but lists nobody.
    case degraded(String)
    case unavailable(String)
    /// Not used, by configuration.
    case off
}

/// Announces this node and finds others. `AvahiDiscovery` does it on the network, `InMemoryDiscovery` of the tests inside one process.
public protocol PeerDiscovery: Sendable {
    /// Begins publishing and browsing. Called once; a second call does nothing.
    /// - Parameters:
    ///   - announcement: what to publish; `nil` for nothing.
    ///   - events: called on any thread, one event at a time, in order, until `stop()` returns. Must not block.
    func start(publishing announcement: ServiceAnnouncement?, events: @escaping @Sendable (DiscoveryEvent) -> Void)

    /// Replaces the announcement, for example with another name or port; `nil` withdraws it with a goodbye.
    func publish(_ announcement: ServiceAnnouncement?)

    /// Opens or closes the standing resolver of an announced record. Idempotent. A record that is not announced is ignored; a record's
    /// withdrawal closes its resolver.
    func resolve(_ record: Record, open: Bool)

    /// Withdraws the announcement with a goodbye and ends. Harmless if it was never started or has stopped already.
    func stop() async
}
