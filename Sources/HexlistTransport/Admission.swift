import HexlistModel

/// Decides which accepted TCP connections are let in, before a byte of them is read. Performs no IO.
struct Admission {
    /// The place of one connection that was let in; given back by `release`.
    struct Place {
        fileprivate let counted: IPAddress
        /// From the last address of a trusted peer.
        let isReserved: Bool
        fileprivate var isIdentified = false
    }

    enum Refusal: String, Error {
        case connections, perAddress, unidentified
    }

    /// For connections to come; those let in stay.
    var limits: TransportLimits
    /// The last addresses of trusted peers.
    private var reserved: Set<IPAddress> = []
    /// IPv6 prefixes of own interfaces.
    private var links: [(prefix: IPAddress, length: Int)] = []
    private var perAddress: [IPAddress: Int] = [:]
    private(set) var connections = 0
    private(set) var unidentified = 0

    init(limits: TransportLimits) { self.limits = limits }

    mutating func reserve(_ addresses: some Sequence<IPAddress>) {
        reserved = Set(addresses.map(\.withoutScope))
    }

    /// A prefix shorter than a subscriber's is no link, but a network of many.
    mutating func setLinks(_ prefixes: some Sequence<(prefix: IPAddress, length: Int)>) {
        links = prefixes.filter { $0.prefix.isIPv6 && $0.length >= 64 }
    }

    /// What counts as one: an IPv6 address of an own link, where each is a host's, or the subscriber of one from beyond it.
    func network(of address: IPAddress) -> IPAddress {
        links.contains { address.isInside($0.prefix, length: $0.length) } ? address : address.subscriber
    }

    /// - Throws: the limit that was reached.
    mutating func admit(_ address: IPAddress) throws(Refusal) -> Place {
        let isReserved = reserved.contains(address.withoutScope)
        // A trusted peer does not answer for its neighbours in the same /64.
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

    /// The connection has said who it is; once or more often.
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
