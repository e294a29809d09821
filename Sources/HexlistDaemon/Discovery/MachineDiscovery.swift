import HexlistDNS
import HexlistDiscovery
import HexlistSystem
import Synchronization

/// Combines the sources of discovery: multicast on the local links, unicast DNS in configured domains, and changes of this machine's
/// addresses and sleep.
final class MachineDiscovery: PeerDiscovery {
    private let multicast: (any PeerDiscovery)?
    private let unicast: UnicastDiscovery
    private let watch = MachineWatch()
    private let events = Mutex<(@Sendable (DiscoveryEvent) -> Void)?>(nil)

    /// - Parameter multicast: `nil` if `local` is not among the domains; nothing is announced then.
    init(multicast: (any PeerDiscovery)?, unicast: UnicastDiscovery) {
        self.multicast = multicast
        self.unicast = unicast
    }

    func start(publishing announcement: ServiceAnnouncement?, events: @escaping @Sendable (DiscoveryEvent) -> Void) {
        self.events.withLock { $0 = events }
        // The watch of addresses starts first, because the addresses decide which endpoints are dialled.
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

    /// Passes an event of one of the sources on to the node. Only one event is passed on at a time.
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
