public import HexlistModel

/// An event of a discovery service. Its content is only a hint, because only a Hello proves the identity of a peer.
public enum DiscoveryEvent: Sendable, Equatable {
    case appeared(Record, interfaceName: String?)
    /// The network withdrew the record, by a goodbye packet or because its TTL expired.
    case withdrawn(Record)
    /// A resolver's result, repeated whenever it changes.
    case resolved(Record, Resolution)
    /// A resolver found nothing (the text is for the user). It continues until it is closed.
    case resolveFailed(Record, String)
    /// The state of avahi-daemon changed. `unavailable` removes all records and resolvers of local links without a `withdrawn` event; after
    /// `running`, existing records appear again.
    case backend(BackendState)
    /// The state of browsing a domain by unicast DNS. With `unavailable`, the records of the domain stay valid.
    case domain(String, BackendState)
    /// The addresses of this machine. Sent when discovery starts, then after each change.
    case interfaces([InterfaceAddress])
    /// The machine woke from sleep.
    case woke
}

/// The state of a discovery service, for local links or for a domain. The texts name the problem and a remedy.
public enum BackendState: Sendable, Equatable {
    case running
    /// Other peers are visible, but this node cannot be announced. For a domain: the server responds, but lists no services.
    case degraded(String)
    case unavailable(String)
    /// Disabled by the configuration.
    case off
}

/// Announces this node and finds others: `AvahiDiscovery` on the network, `InMemoryDiscovery` in tests.
public protocol PeerDiscovery: Sendable {
    /// Starts publishing and browsing. Further calls have no effect.
    /// - Parameters:
    ///   - announcement: the announcement to publish; `nil` for none.
    ///   - events: called on any thread, one event at a time, in order, until `stop()` returns. Must not block.
    func start(publishing announcement: ServiceAnnouncement?, events: @escaping @Sendable (DiscoveryEvent) -> Void)

    /// Replaces the announcement, for example with another name or port; `nil` withdraws it with a goodbye packet.
    func publish(_ announcement: ServiceAnnouncement?)

    /// Opens or closes the resolver of an announced record. Idempotent. Has no effect if the record is not announced; a withdrawal closes
    /// the resolver.
    func resolve(_ record: Record, open: Bool)

    /// Withdraws the announcement with a goodbye packet and stops. No effect if it was not started or has stopped.
    func stop() async
}
