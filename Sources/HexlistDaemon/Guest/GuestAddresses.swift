import HexlistModel
import HexlistSystem

/// Chooses the addresses of this machine that guests can probably reach.
enum GuestAddresses {
    /// Returns addresses, best first: the private IPv4 addresses of the interface with the default route, other private IPv4 addresses, other
    /// IPv4 addresses, IPv6. Global IPv6 addresses and those of VPNs often cannot be reached from a phone in the same network. Excludes
    /// loopback, link-local and container addresses.
    /// - Parameters:
    ///   - route: the interface of the default route.
    ///   - listen: the configured addresses of the peer port; empty for all.
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

    /// All addresses of this machine, without scopes.
    static func own(_ interfaces: [MachineInterface] = MachineInterface.all()) -> [IPAddress] {
        interfaces.flatMap(\.addresses).map { $0.address.with(scope: 0) }
    }

    /// The hosts in the URLs for guests and shortcuts, best first; at least one.
    /// - Parameters:
    ///   - wanted: the first host, an address of this machine; `nil` for the automatic choice.
    ///   - hostName: the name of this machine in mDNS, without `.local`, which is the best host; empty to use addresses only.
    /// - Throws: `badRequest` for an address of another machine, and if there is no host.
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
