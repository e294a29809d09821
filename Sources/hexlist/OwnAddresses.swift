import HexlistModel
import HexlistSystem

/// The addresses under which others may reach this machine.
enum OwnAddresses {
    /// More make the QR code larger than most terminals.
    private static let most = 2

    /// `host:port`, IPv4 first; without those of this machine alone, of one link, and of containers.
    static func list(port: Int, _ interfaces: [MachineInterface] = MachineInterface.all()) -> [String] {
        let addresses: [IPAddress] = interfaces.filter { $0.isUp && $0.isRunning && !$0.isLoopback && !$0.isVirtual }.flatMap(\.addresses)
            .map(\.address)
        let useful = addresses.filter { !$0.isLinkLocal }
        let ordered: [IPAddress] = useful.filter { !$0.isIPv6 } + useful.filter { $0.isIPv6 }
        return ordered.prefix(most).map { HostPort.text($0.description, port) }
    }
}
