package import HexlistModel

/// Finds the addresses by which other machines may reach this one.
package enum OwnAddresses {
    /// Maximum number of addresses. With more, the QR code would be larger than most terminals.
    private static let most = 2

    /// Returns addresses as `host:port`, IPv4 first. Excludes loopback, link-local and container addresses, and those on which the daemon
    /// does not listen.
    package static func list(
        port: Int, listen: ListenAddresses, _ interfaces: [MachineInterface] = MachineInterface.all()
    ) -> [String] {
        let addresses: [IPAddress] = interfaces.filter { $0.isUp && $0.isRunning && !$0.isLoopback && !$0.isVirtual }.flatMap(\.addresses)
            .map(\.address)
        let useful = addresses.filter { !$0.isLinkLocal && listen.contains($0) }
        let ordered: [IPAddress] = useful.filter { !$0.isIPv6 } + useful.filter { $0.isIPv6 }
        return ordered.prefix(most).map { HostPort.text($0.description, port) }
    }
}
