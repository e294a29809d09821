internal import DequeModule
public import HexlistDiscovery
public import HexlistModel
internal import Synchronization

/// A link inside one process. Each node that joined sees the link's announcements, as on a network with one interface. Tests add network
/// faults: forged announcements, crashes without a goodbye, a discovery service that goes away.
public final class InMemoryLink: Sendable {
    typealias NodeNumber = Int

    /// The interfaces reported to every node of the link.
    public let interfaces: [InterfaceAddress]
    private let name: String?
    private let index: Int32
    private let state = Mutex(State())

    struct Item: Sendable {
        var key: InstanceKey
        /// The addresses by IP version (`true` for IPv6); each is announced as a record.
        var addresses: [Bool: String]
        var port: UInt16
        var txt: [[UInt8]]

        func resolution(ipv6: Bool) -> Resolution {
            Resolution(host: "host.local", address: addresses[ipv6] ?? "", port: port, txt: txt)
        }
    }

    private struct Node: Sendable {
        var events: @Sendable (DiscoveryEvent) -> Void
        var announcement: ServiceAnnouncement?
        var addresses: [Bool: String]
        /// The number of the node's announcement on the link; `nil` if it has none.
        var item: Int?
        var open: Set<Record> = []
        var backend = BackendState.running
    }

    private struct State: Sendable {
        var nodes: [NodeNumber: Node] = [:]
        var items: [Int: Item] = [:]
        var lastNumber = 0
        var pending: Deque<(NodeNumber, DiscoveryEvent)> = []
        var isDelivering = false
        var waitingForDelivery: [CheckedContinuation<Void, Never>] = []
    }

    /// - Parameter interfaces: one loopback interface by default, so that nodes can really dial each other.
    public init(interfaces: [InterfaceAddress] = InMemoryLink.loopback) {
        self.interfaces = interfaces
        name = interfaces.first?.interface
        index = interfaces.first?.index ?? 1
    }

    public static let loopback = [("127.0.0.1", 8), ("::1", 128)].compactMap { address, prefixLength in
        IPAddress(address).map { InterfaceAddress(interface: "lo", index: 1, address: $0, prefixLength: prefixLength) }
    }

    // MARK: - For tests

    /// Puts an announcement on the link that belongs to no node.
    /// - Returns: the number that `withdraw` takes.
    public func forge(_ instance: String, ipv4: String? = "127.0.0.1", ipv6: String? = nil, port: UInt16, txt: [[UInt8]]) -> Int {
        change { state in
            var addresses: [Bool: String] = [:]
            addresses[false] = ipv4
            addresses[true] = ipv6
            return self.add(Item(key: self.key(instance), addresses: addresses, port: port, txt: txt), &state)
        }
    }

    public func withdraw(_ announcement: Int) {
        change { self.remove(announcement, &$0) }
    }

    // MARK: - For nodes

    func number() -> NodeNumber {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    func join(
        _ node: NodeNumber, _ announcement: ServiceAnnouncement?, addresses: [Bool: String],
        events: @escaping @Sendable (DiscoveryEvent) -> Void
    ) {
        change { state in
            state.nodes[node] = Node(events: events, announcement: announcement, addresses: addresses)
            self.tell(node, .interfaces(self.interfaces), &state)
            self.becomeAvailable(node, &state)
        }
    }

    func publish(_ announcement: ServiceAnnouncement?, by node: NodeNumber) {
        change { state in
            let before = state.nodes[node]?.announcement
            state.nodes[node]?.announcement = announcement
            guard let present = state.nodes[node], present.backend == .running else { return }
            guard let number = present.item, var item = state.items[number], let announcement,
                before?.instanceName == announcement.instanceName
            else {
                if let number = present.item { self.remove(number, &state) }
                state.nodes[node]?.item = nil
                self.announce(node, &state)
                return
            }
            item.port = announcement.port
            item.txt = announcement.strings
            state.items[number] = item
            for (other, present) in state.nodes.sorted(by: { $0.key < $1.key }) {
                for record in self.records(of: item) where present.open.contains(record) {
                    self.tell(other, .resolved(record, item.resolution(ipv6: record.ipv6)), &state)
                }
            }
        }
    }

    func resolve(_ record: Record, open: Bool, by node: NodeNumber) {
        change { state in
            guard open else {
                state.nodes[node]?.open.remove(record)
                return
            }
            let fitting = state.items.filter { $0.value.key == record.key && $0.value.addresses[record.ipv6] != nil }
            guard let item = fitting.min(by: { $0.key < $1.key })?.value else { return }
            guard state.nodes[node]?.open.insert(record).inserted == true else { return }
            self.tell(node, .resolved(record, item.resolution(ipv6: record.ipv6)), &state)
        }
    }

    /// - Parameter withdrawing: whether to send a goodbye; otherwise the announcement stays, as after a power cut.
    func leave(_ node: NodeNumber, withdrawing: Bool) async {
        change { state in
            let item = state.nodes.removeValue(forKey: node)?.item
            if withdrawing, let item { self.remove(item, &state) }
        }
        await withCheckedContinuation { continuation in
            let isQuiet = state.withLock { state in
                if state.isDelivering { state.waitingForDelivery.append(continuation) }
                return !state.isDelivering
            }
            if isQuiet { continuation.resume() }
        }
    }

    /// Makes the node's discovery service go away, together with its announcement, or come back.
    func setBackend(_ backend: BackendState, of node: NodeNumber) {
        change { state in
            guard let present = state.nodes[node], present.backend != backend else { return }
            state.nodes[node]?.backend = backend
            switch backend {
            case .running: self.becomeAvailable(node, &state)
            case .degraded: self.tell(node, .backend(backend), &state)
            case .unavailable, .off:
                state.nodes[node]?.open = []
                state.nodes[node]?.item = nil
                if let item = present.item { self.remove(item, &state) }
                state.pending.append((node, .backend(backend)))
            }
        }
    }

    // MARK: - Implementation

    private func key(_ instance: String) -> InstanceKey { InstanceKey(name: instance, type: "_hexlist._tcp", domain: "local") }

    private func records(of item: Item) -> [Record] {
        [true, false].filter { item.addresses[$0] != nil }.map { Record(key: item.key, interface: index, ipv6: $0) }
    }

    private func becomeAvailable(_ node: NodeNumber, _ state: inout State) {
        tell(node, .backend(.running), &state)
        for item in state.items.sorted(by: { $0.key < $1.key }) {
            for record in records(of: item.value) { tell(node, .appeared(record, interfaceName: name), &state) }
        }
        announce(node, &state)
    }

    private func announce(_ node: NodeNumber, _ state: inout State) {
        guard let present = state.nodes[node], let announcement = present.announcement else { return }
        // A name collision appends a number, as with Avahi.
        var instance = announcement.instanceName
        var number = 2
        while state.items.values.contains(where: { $0.key == key(instance) }) {
            instance = "\(announcement.instanceName) #\(number)"
            number += 1
        }
        let item = Item(key: key(instance), addresses: present.addresses, port: announcement.port, txt: announcement.strings)
        let itemNumber = add(item, &state)
        state.nodes[node]?.item = itemNumber
    }

    private func add(_ item: Item, _ state: inout State) -> Int {
        state.lastNumber += 1
        state.items[state.lastNumber] = item
        for node in state.nodes.keys.sorted() {
            for record in records(of: item) { tell(node, .appeared(record, interfaceName: name), &state) }
        }
        return state.lastNumber
    }

    private func remove(_ number: Int, _ state: inout State) {
        guard let item = state.items.removeValue(forKey: number) else { return }
        for node in state.nodes.keys.sorted() {
            for record in records(of: item) {
                state.nodes[node]?.open.remove(record)
                tell(node, .withdrawn(record), &state)
            }
        }
    }

    private func tell(_ node: NodeNumber, _ event: DiscoveryEvent, _ state: inout State) {
        guard let present = state.nodes[node] else { return }
        switch present.backend {
        case .running, .degraded: state.pending.append((node, event))
        case .unavailable, .off: break
        }
    }

    /// Changes the link, then notifies the nodes: outside the lock and from one thread at a time, so that each node gets events in order.
    private func change<T: Sendable>(_ body: (inout State) -> T) -> T {
        let result = state.withLock { body(&$0) }
        while true {
            let next = state.withLock { state -> ((@Sendable (DiscoveryEvent) -> Void)?, DiscoveryEvent)? in
                guard !state.isDelivering, let (node, event) = state.pending.popFirst() else { return nil }
                state.isDelivering = true
                return (state.nodes[node]?.events, event)
            }
            guard let (events, event) = next else { return result }
            events?(event)
            let waiting = state.withLock { state in
                state.isDelivering = false
                defer { state.waitingForDelivery = [] }
                return state.waitingForDelivery
            }
            for continuation in waiting { continuation.resume() }
        }
    }
}
