import HexlistModel
import HexlistSystem

/// Chooses the IP addresses of this machine that guests can probably reach.
enum GuestAddresses {
    /// Returns addresses, best first: private IPv4 addresses of the interface with the default route, other private IPv4 addresses, other
    /// IPv4 addresses, IPv6 addresses. This order prefers addresses that a phone in the same network can reach, which is often not the case
    /// for global IPv6 addresses and those of VPNs. Excludes loopback, link-local and container addresses.
    /// - Parameters:
    ///   - route: the name of the interface with the default route; `nil` if there is none.
    ///   - listen: the configured addresses on which the daemon listens; empty for all addresses.
    static func list(_ interfaces: [MachineInterface], route: String?, listen: [String]) -> [IPAddress] {
        let listen = ListenAddresses(listen)
        let usable = interfaces.filter { $0.isUp && $0.isRunning && !$0.isLoopback && !$0.isVirtual }.flatMap(\.addresses)
            .filter { !$0.address.isLinkLocal && listen.contains($0.address) }
        let ranked = usable.enumerated().map { position, found in
            let rank =
                switch (found.address.isIPv6, found.address.isPrivate) {
                case (false, true): found.interface == route ? 0 : 1
                case (false, false): 2
                case (true, _): 3
                }
            return (rank: rank, position: position, address: found.address)
        }
        return ranked.sorted { ($0.rank, $0.position) < ($1.rank, $1.position) }.map(\.address)
    }

    /// Returns all addresses of this machine, without IPv6 scopes.
    static func own(_ interfaces: [MachineInterface] = MachineInterface.all()) -> [IPAddress] {
        interfaces.flatMap(\.addresses).map { $0.address.with(scope: 0) }
    }

    /// Returns the hosts for the URLs of guests and shortcuts, best first; at least one.
    /// - Parameters:
    ///   - wanted: an address of this machine that is to be the first host; `nil` for the automatic choice.
    ///   - hostName: the name of this machine in mDNS, without `.local`. This name precedes the automatically chosen addresses. Empty to
    ///     use addresses only.
    /// - Throws: `badRequest` if `wanted` is not an address of this machine, or if there is no suitable address.
    static func hosts(_ wanted: String?, listen: [String], hostName: String = "") throws(HexlistError) -> [String] {
        let interfaces = MachineInterface.all()
        let found = list(interfaces, route: DefaultRoute.interface(), listen: listen)
        let names = hostName.isEmpty ? [] : ["\(hostName).local"]
        guard let wanted else {
            guard !found.isEmpty else {
                throw HexlistError(
                    .badRequest, "This machine has no address that others can reach.",
                    hint: "Connect it to a network, or name an address with `--address`.")
            }
            return names + found.map(\.description)
        }
        guard let address = IPAddress(wanted), own(interfaces).contains(address) else {
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(wanted, columns: 60)) is not an address of this machine.",
                hint: found.isEmpty ? nil : "It has \(found.map(\.description).joined(separator: ", ")).")
        }
        return [address.description] + names + found.filter { $0 != address }.map(\.description)
    }
}
