import HexlistModel

/// Decides which addresses may be dialled because of an announcement alone. Anyone on the link can announce anything, and must not be able
/// to aim this machine at a server elsewhere, at a host behind a router or a tunnel, or at a service of its own.
struct DialPolicy: Sendable {
    /// The addresses of this machine's interfaces, each with the length of its prefix in bits.
    private let networks: [(address: IPAddress, length: Int)]
    /// The indexes of the interfaces with a loopback address.
    private let loopbacks: Set<Int32>

    init(_ interfaces: [InterfaceAddress] = []) {
        networks = interfaces.map { ($0.address, $0.prefixLength) }
        loopbacks = Set(interfaces.filter(\.address.isLoopback).map(\.index))
    }

    /// The reason why an announced address is not dialled.
    enum Refusal: Sendable {
        case lowPort, noHost, loopback, foreignNetwork
    }

    /// The reason not to dial; `nil` if the address may be dialled.
    func refusal(address: IPAddress, port: UInt16, interface: Int32) -> Refusal? {
        guard port >= 1_024 else { return .lowPort }
        guard !address.isNoHost else { return .noHost }
        guard !address.isLoopback || loopbacks.contains(interface) else { return .loopback }
        guard address.isLinkLocal || isOnOwnNetwork(address) else { return .foreignNetwork }
        return nil
    }

    /// Whether an address is inside the prefix of one of this machine's interfaces.
    func isOnOwnNetwork(_ address: IPAddress) -> Bool {
        networks.contains { address.isInside($0.address, length: $0.length) }
    }
}

extension DialPolicy.Refusal {
    /// The reason as the end of a sentence that begins "its announcement is not usable: ".
    func text(_ endpoint: Endpoint) -> String {
        switch self {
        case .lowPort: "its port \(endpoint.port) is below 1024"
        case .noHost: "its address is no host's"
        case .loopback: "its address is a loopback address"
        case .foreignNetwork: "its address is on no network of this machine"
        }
    }
}
