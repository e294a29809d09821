public import HexlistDiscovery
internal import HexlistModel
internal import Synchronization

/// Discovery over an `InMemoryLink`: announces, browses and resolves as Avahi does, without a network.
public final class InMemoryDiscovery: PeerDiscovery {
    private let link: InMemoryLink
    private let addresses: [Bool: String]

    private struct State: Sendable {
        var node: InMemoryLink.NodeNumber?
        /// Whether `start` or `stop` was called.
        var isOver = false
    }
    private let state = Mutex(State())

    /// - Parameters:
    ///   - ipv4: the address of the IPv4 record; `nil` for no such record.
    ///   - ipv6: the address of the IPv6 record; `nil` for no such record.
    public init(link: InMemoryLink, ipv4: String? = "127.0.0.1", ipv6: String? = "::1") {
        self.link = link
        var addresses: [Bool: String] = [:]
        addresses[false] = ipv4
        addresses[true] = ipv6
        self.addresses = addresses
    }

    public func start(publishing announcement: ServiceAnnouncement?, events: @escaping @Sendable (DiscoveryEvent) -> Void) {
        let number = link.number()
        let isFirst = state.withLock { state in
            guard !state.isOver else { return false }
            state = State(node: number, isOver: true)
            return true
        }
        // The node's number is set before the first event, because the handler may call `resolve`.
        if isFirst { link.join(number, announcement, addresses: addresses, events: events) }
    }

    public func publish(_ announcement: ServiceAnnouncement?) {
        guard let node = state.withLock({ $0.node }) else { return }
        link.publish(announcement, by: node)
    }

    public func resolve(_ record: Record, open: Bool) {
        guard let node = state.withLock({ $0.node }) else { return }
        link.resolve(record, open: open, by: node)
    }

    public func stop() async { await leave(withdrawing: true) }

    /// Leaves without a goodbye: the announcement stays on the link.
    public func crash() async { await leave(withdrawing: false) }

    /// Makes the node's discovery service go away (`unavailable`) or come back (`running`).
    public func setBackend(_ backend: BackendState) {
        guard let node = state.withLock({ $0.node }) else { return }
        link.setBackend(backend, of: node)
    }

    private func leave(withdrawing: Bool) async {
        let node = state.withLock { state in
            defer { state = State(node: nil, isOver: true) }
            return state.node
        }
        guard let node else { return }
        await link.leave(node, withdrawing: withdrawing)
    }
}
