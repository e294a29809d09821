public import HexlistDiscovery
import HexlistModel
import Synchronization

/// Multicast on the own links and unicast DNS in configured domains, as one.
public final class JoinedDiscovery: PeerDiscovery {
    private let multicast: (any PeerDiscovery)?
    private let unicast: DNSDiscovery
    /// Held while an event is told: two sources, one at a time.
    private let telling = Mutex(())
    private let knowsInterfaces = Mutex(false)

    /// - Parameter multicast: `nil` where `local` is not among the domains: nothing is announced then.
    public init(multicast: (any PeerDiscovery)?, unicast: DNSDiscovery) {
        self.multicast = multicast
        self.unicast = unicast
    }

    public func start(publishing announcement: ServiceAnnouncement, events: @escaping @Sendable (DiscoveryEvent) -> Void) {
        if multicast == nil { events(.backend(.off)) }
        multicast?.start(publishing: announcement) { [self] event in
            telling.withLock { _ in events(event) }
            guard case .interfaces = event else { return }
            // The first is told at the start, when everything is asked anyway.
            let isFirst = knowsInterfaces.withLock { knows in
                defer { knows = true }
                return !knows
            }
            if !isFirst { unicast.networkChanged() }
        }
        unicast.start { [self] event in telling.withLock { _ in events(event) } }
    }

    public func publish(_ announcement: ServiceAnnouncement) { multicast?.publish(announcement) }

    public func resolve(_ record: Record, open: Bool) {
        if record.unicast == nil { multicast?.resolve(record, open: open) } else { unicast.resolve(record, open: open) }
    }

    public func stop() async {
        unicast.stop()
        await multicast?.stop()
    }
}
