import HexlistModel

/// Decides whether an accepted TCP connection is admitted, before any byte is read. Performs no IO.
struct Admission {
    /// The slot of an admitted connection. It is returned with `release` when the connection ends.
    struct Slot {
        fileprivate let counted: IPAddress
        /// Whether the connection comes from an address at which a trusted peer was last reached.
        let isReserved: Bool
        fileprivate var isIdentified = false
    }

    enum Refusal: String, Error {
        case connections, perAddress, unidentified
    }

    /// The limits. A change applies to new connections only.
    var limits: TransportLimits
    /// The addresses at which trusted peers were last reached.
    private var reserved: Set<IPAddress> = []
    /// The IPv6 prefixes of the links to which this machine is connected.
    private var links: [(prefix: IPAddress, length: Int)] = []
    /// The number of connections from each counted address (`network(of:)`).
    private var perAddress: [IPAddress: Int] = [:]
    private(set) var connections = 0
    private(set) var unidentified = 0

    init(limits: TransportLimits) { self.limits = limits }

    mutating func reserve(_ addresses: some Sequence<IPAddress>) {
        reserved = Set(addresses.map(\.withoutScope))
    }

    /// Sets the IPv6 prefixes of this machine's links. A prefix of fewer than 64 bits is ignored, because it covers more than one link.
    mutating func setLinks(_ prefixes: some Sequence<(prefix: IPAddress, length: Int)>) {
        links = prefixes.filter { $0.prefix.isIPv6 && $0.length >= 64 }
    }

    /// The address under which connections are counted. For an IPv6 address on a link of this machine it is the address itself, because it
    /// belongs to one host. For other addresses it is that of the subscriber: the IPv4 address or the IPv6 /64.
    func network(of address: IPAddress) -> IPAddress {
        links.contains { address.isInside($0.prefix, length: $0.length) } ? address : address.subscriber
    }

    /// Admits a connection, unless a limit is reached.
    /// - Throws: the limit.
    mutating func admit(_ address: IPAddress) throws(Refusal) -> Slot {
        let isReserved = reserved.contains(address.withoutScope)
        // Connections of a trusted peer are counted under its own address, so that other hosts in the same /64 cannot lock it out.
        let counted = isReserved ? address : network(of: address)
        guard perAddress[counted, default: 0] < limits.perAddress else { throw .perAddress }
        let kept = isReserved ? 0 : limits.reserved
        guard connections < limits.connections - kept else { throw .connections }
        let extra = isReserved ? limits.reserved : 0
        guard unidentified < limits.unidentified + extra else { throw .unidentified }
        perAddress[counted, default: 0] += 1
        connections += 1
        unidentified += 1
        return Slot(counted: counted, isReserved: isReserved)
    }

    /// Records that the peer of a connection is authenticated. Further calls for the same slot have no effect.
    mutating func identified(_ slot: inout Slot) {
        guard !slot.isIdentified else { return }
        slot.isIdentified = true
        unidentified -= 1
    }

    mutating func release(_ slot: Slot) {
        connections -= 1
        if !slot.isIdentified { unidentified -= 1 }
        let left = (perAddress[slot.counted] ?? 1) - 1
        perAddress[slot.counted] = left > 0 ? left : nil
    }
}
