public import HexlistModel

/// What discovery reports. Everything in it is a hint: nothing is proved before a Hello.
public enum DiscoveryEvent: Sendable, Equatable {
    case appeared(Record, interfaceName: String?)
    /// The network says so: a goodbye, or its time ran out.
    case withdrawn(Record)
    /// A standing resolver's answer; comes again whenever something in it changes.
    case resolved(Record, Resolution)
    /// A standing resolver found nothing (the text is for people). It goes on trying while it is open.
    case resolveFailed(Record, String)
    /// `unavailable` ends every record and resolver of the own links without withdrawing one: what is there is told anew after `running`.
    case backend(BackendState)
    /// How browsing a domain by unicast DNS is doing. `unavailable` withdraws nothing.
    case domain(String, BackendState)
    /// The addresses of this machine, whenever they change, and once at the start.
    case interfaces([InterfaceAddress])
    /// The machine woke from sleep.
    case woke
}

/// How discovery itself is doing, on the own links or in a domain. The texts say what is wrong and what to do.
public enum BackendState: Sendable, Equatable {
    case running
    /// Others are seen, but the own announcement cannot be made; of a domain: it answers, and lists nobody.
    case degraded(String)
    case unavailable(String)
    /// Not used, as configured.
    case off
}

/// Announces this node and finds others. `AvahiDiscovery` does it on the network, `InMemoryDiscovery` inside one process.
public protocol PeerDiscovery: Sendable {
    /// Begins publishing and browsing. To be called once; a second call does nothing.
    /// - Parameters:
    ///   - announcement: `nil` publishes nothing.
    ///   - events: called on any thread, one event at a time, in order, until `stop()` returns. It must not block.
    func start(publishing announcement: ServiceAnnouncement?, events: @escaping @Sendable (DiscoveryEvent) -> Void)

    /// Replaces what is published: another name, another port; `nil` withdraws it with a goodbye.
    func publish(_ announcement: ServiceAnnouncement?)

    /// Opens or closes the standing resolver of an announced record. Idempotent; a record that is not announced is ignored, and its
    /// withdrawal closes its resolver.
    func resolve(_ record: Record, open: Bool)

    /// Withdraws the announcement with a goodbye and ends. Harmless when it was never started or is stopped already.
    func stop() async
}
