import HexlistDNS
import HexlistDiscovery
import HexlistSystem
import Synchronization

/// All a machine has to find others with, as one: multicast on the own links, unicast DNS in configured domains, and word of its own
/// interfaces and sleep.
final class MachineDiscovery: PeerDiscovery {
    private let multicast: (any PeerDiscovery)?
    private let unicast: DNSDiscovery
    private let watch = MachineWatch()
    private let events = Mutex<(@Sendable (DiscoveryEvent) -> Void)?>(nil)

    /// - Parameter multicast: `nil` where `local` is not among the domains: nothing is announced then.
    init(multicast: (any PeerDiscovery)?, unicast: DNSDiscovery) {
        self.multicast = multicast
        self.unicast = unicast
    }

    func start(publishing announcement: ServiceAnnouncement?, events: @escaping @Sendable (DiscoveryEvent) -> Void) {
        self.events.withLock { $0 = events }
        // The addresses come first: what they are decides what is dialled.
        watch.start { [self] change in
            switch change {
            case .addresses(let addresses): tell(.interfaces(addresses))
            case .woke: tell(.woke)
            }
        }
        if multicast == nil { tell(.backend(.off)) }
        multicast?.start(publishing: announcement) { [self] in tell($0) }
        unicast.start { [self] in tell($0) }
    }

    /// From several sources, one at a time.
    func tell(_ event: DiscoveryEvent) {
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
