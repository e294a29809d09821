import HexlistDNS
import HexlistDiscovery
import HexlistSystem
import Synchronization

/// Combines the sources of discovery events: multicast DNS on the local links, unicast DNS in configured domains, changes of this machine's
/// addresses, and its wake-up from suspend.
final class CombinedDiscovery: PeerDiscovery {
    private let multicast: (any PeerDiscovery)?
    private let unicast: UnicastDiscovery
    private let watch = AddressAndWakeWatch()
    private let events = Mutex<(@Sendable (DiscoveryEvent) -> Void)?>(nil)

    /// - Parameter multicast: `nil` if `local` is not among the configured domains. Then this machine is not announced.
    init(multicast: (any PeerDiscovery)?, unicast: UnicastDiscovery) {
        self.multicast = multicast
        self.unicast = unicast
    }

    func start(publishing announcement: ServiceAnnouncement?, events: @escaping @Sendable (DiscoveryEvent) -> Void) {
        self.events.withLock { $0 = events }
        // The watch of addresses starts first, because the addresses determine which endpoints are dialled.
        watch.start { [self] change in
            switch change {
            case .addresses(let addresses): report(.interfaces(addresses))
            case .woke: report(.woke)
            }
        }
        if multicast == nil { report(.backend(.off)) }
        multicast?.start(publishing: announcement) { [self] in report($0) }
        unicast.start { [self] in report($0) }
    }

    /// Passes an event of a source to the node, one event at a time. Notifies unicast discovery of changes of the network.
    func report(_ event: DiscoveryEvent) {
        events.withLock { $0?(event) }
        switch event {
        case .interfaces, .woke: unicast.networkChanged()
        case .appeared, .withdrawn, .resolved, .resolveFailed, .backend, .domain: break
        }
    }

    func publish(_ announcement: ServiceAnnouncement?) { multicast?.publish(announcement) }

    func resolve(_ record: Record, open: Bool) {
        if record.unicast == nil { multicast?.resolve(record, open: open) } else { unicast.resolve(record, open: open) }
    }

    func stop() async {
        watch.stop()
        unicast.stop()
        await multicast?.stop()
        events.withLock { $0 = nil }
    }
}
