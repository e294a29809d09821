import HexlistModel

/// Decides which announced addresses may be dialled. Anyone on the link can announce anything, and must not be able to make this machine
/// connect to a server elsewhere, to a host behind a router or tunnel, or to one of its own services.
struct DialPolicy: Sendable {
    /// The addresses of this machine's interfaces, each with its prefix length in bits.
    private let networks: [(address: IPAddress, length: Int)]
    /// Indices of the interfaces with a loopback address.
    private let loopbacks: Set<Int32>

    init(_ interfaces: [InterfaceAddress] = []) {
        networks = interfaces.map { ($0.address, $0.prefixLength) }
        loopbacks = Set(interfaces.filter(\.address.isLoopback).map(\.index))
    }

    /// The reason why an announced address must not be dialled.
    enum Refusal: Sendable {
        case lowPort, noHost, loopback, foreignNetwork
    }

    /// The reason why the address must not be dialled; `nil` if it may.
    func refusal(address: IPAddress, port: UInt16, interface: Int32) -> Refusal? {
        guard port >= 1_024 else { return .lowPort }
        guard !address.isNoHost else { return .noHost }
        guard !address.isLoopback || loopbacks.contains(interface) else { return .loopback }
        guard address.isLinkLocal || isOnOwnNetwork(address) else { return .foreignNetwork }
        return nil
    }

    /// Whether an address is in the network of one of this machine's interfaces.
    func isOnOwnNetwork(_ address: IPAddress) -> Bool {
        networks.contains { address.isInside($0.address, length: $0.length) }
    }
}

extension DialPolicy.Refusal {
    /// The end of a sentence that begins "its announcement is not usable: ".
    func text(_ endpoint: Endpoint) -> String {
        switch self {
        case .lowPort: "its port \(endpoint.port) is below 1024"
        case .noHost: "its address is not a host address"
        case .loopback: "its address is a loopback address"
        case .foreignNetwork: "its address is not on a network of this machine"
        }
    }
}
