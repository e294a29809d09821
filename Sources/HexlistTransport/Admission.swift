import HexlistModel

/// Decides which accepted TCP connections are admitted, before a byte of them is read. Performs no IO.
struct Admission {
    /// The place of one admitted connection; `release` gives it back.
    struct Place {
        fileprivate let counted: IPAddress
        /// Whether the connection comes from the last address of a trusted peer.
        let isReserved: Bool
        fileprivate var isIdentified = false
    }

    enum Refusal: String, Error {
        case connections, perAddress, unidentified
    }

    /// The limits for later connections. Those already admitted stay.
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

    /// Sets the IPv6 prefixes of own links. A prefix shorter than 64 bits is ignored: it is a network of many links.
    mutating func setLinks(_ prefixes: some Sequence<(prefix: IPAddress, length: Int)>) {
        links = prefixes.filter { $0.prefix.isIPv6 && $0.length >= 64 }
    }

    /// The unit in which connections are counted: the address itself if it is an IPv6 address on an own link, where each is a host's, else
    /// its subscriber.
    func network(of address: IPAddress) -> IPAddress {
        links.contains { address.isInside($0.prefix, length: $0.length) } ? address : address.subscriber
    }

    /// - Throws: the limit that was reached.
    mutating func admit(_ address: IPAddress) throws(Refusal) -> Place {
        let isReserved = reserved.contains(address.withoutScope)
        // A trusted peer must not be shut out because of its neighbours in the same /64.
        let counted = isReserved ? address : network(of: address)
        guard perAddress[counted, default: 0] < limits.perAddress else { throw .perAddress }
        let kept = isReserved ? 0 : limits.reserved
        guard connections < limits.connections - kept else { throw .connections }
        let extra = isReserved ? limits.reserved : 0
        guard unidentified < limits.unidentified + extra else { throw .unidentified }
        perAddress[counted, default: 0] += 1
        connections += 1
        unidentified += 1
        return Place(counted: counted, isReserved: isReserved)
    }

    /// Notes that the peer of the connection is known. Repeated calls do nothing.
    mutating func identified(_ place: inout Place) {
        guard !place.isIdentified else { return }
        place.isIdentified = true
        unidentified -= 1
    }

    mutating func release(_ place: Place) {
        connections -= 1
        if !place.isIdentified { unidentified -= 1 }
        let left = (perAddress[place.counted] ?? 1) - 1
        perAddress[place.counted] = left > 0 ? left : nil
    }
}
