import HexlistModel

/// Admission control of accepted TCP connections, before a byte is read. Performs no IO.
struct Admission {
    /// The slot of an admitted connection, to be returned with `release`.
    struct Slot {
        fileprivate let counted: IPAddress
        /// Whether the connection comes from the last address of a trusted peer.
        let isReserved: Bool
        fileprivate var isIdentified = false
    }

    enum Refusal: String, Error {
        case connections, perAddress, unidentified
    }

    /// The limits for new connections. Existing ones are not affected.
    var limits: TransportLimits
    /// The last addresses of trusted peers.
    private var reserved: Set<IPAddress> = []
    /// The IPv6 prefixes of this machine's interfaces.
    private var links: [(prefix: IPAddress, length: Int)] = []
    private var perAddress: [IPAddress: Int] = [:]
    private(set) var connections = 0
    private(set) var unidentified = 0

    init(limits: TransportLimits) { self.limits = limits }

    mutating func reserve(_ addresses: some Sequence<IPAddress>) {
        reserved = Set(addresses.map(\.withoutScope))
    }

    /// Sets the IPv6 prefixes of this machine's links. A prefix shorter than 64 bits is ignored, because it covers many links.
    mutating func setLinks(_ prefixes: some Sequence<(prefix: IPAddress, length: Int)>) {
        links = prefixes.filter { $0.prefix.isIPv6 && $0.length >= 64 }
    }

    /// The unit by which connections are counted: for an IPv6 address on the local link the address itself, because it belongs to one host;
    /// for any other the address of the subscriber (IPv4 address or IPv6 /64).
    func network(of address: IPAddress) -> IPAddress {
        links.contains { address.isInside($0.prefix, length: $0.length) } ? address : address.subscriber
    }

    /// - Throws: the limit that is reached.
    mutating func admit(_ address: IPAddress) throws(Refusal) -> Slot {
        let isReserved = reserved.contains(address.withoutScope)
        // A trusted peer is counted by its address, so that others in the same /64 cannot lock it out.
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

    /// Records that the peer of the connection is authenticated. Idempotent.
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
