#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A numeric IP address, for prefix arithmetic. An IPv4 address written as IPv6 (`::ffff:1.2.3.4`) is the IPv4 address.
enum IPAddress: Hashable, Sendable {
    case v4(UInt32)
    case v6(high: UInt64, low: UInt64)

    /// `nil` unless the text is exactly one numeric address, without a scope.
    init?(_ text: String) {
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self = .v4(UInt32(bigEndian: v4.s_addr))
        } else if inet_pton(AF_INET6, text, &v6) == 1 {
            let words = withUnsafeBytes(of: &v6) { bytes in
                (0..<2).map { word in bytes[(word * 8)..<(word * 8 + 8)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
            }
            if words[0] == 0, words[1] >> 32 == 0xFFFF {
                self = .v4(UInt32(truncatingIfNeeded: words[1]))
            } else {
                self = .v6(high: words[0], low: words[1])
            }
        } else {
            return nil
        }
    }

    /// Of an endpoint, which may have a scope.
    init?(ofHost host: String) {
        guard let address = host.utf8.contains(UInt8(ascii: "%")) ? host.split(separator: "%").first.map(String.init) : host else {
            return nil
        }
        self.init(address)
    }

    func isInside(_ prefix: IPAddress, length: Int) -> Bool {
        switch (self, prefix) {
        case (.v4(let address), .v4(let network)):
            // A shift by the whole width or more gives 0 in Swift: a prefix of 0 bits holds every address.
            (0...32).contains(length) && (address ^ network) >> UInt32(32 - length) == 0
        case (.v6(let high, let low), .v6(let networkHigh, let networkLow)):
            (0...128).contains(length) && (high ^ networkHigh) >> UInt64(max(0, 64 - length)) == 0
                && (length <= 64 || (low ^ networkLow) >> UInt64(128 - length) == 0)
        case (.v4, .v6), (.v6, .v4): false
        }
    }

    var isLoopback: Bool {
        switch self {
        case .v4(let address): address >> 24 == 127
        case .v6(let high, let low): high == 0 && low == 1
        }
    }

    var isLinkLocal: Bool {
        switch self {
        case .v4(let address): address >> 16 == 0xA9FE
        case .v6(let high, _): high >> 54 == 0xFE80 >> 6
        }
    }

    /// Routed inside an organization and not on the Internet: 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7.
    var isPrivate: Bool {
        switch self {
        case .v4(let address):
            address >> 24 == 10 || address >> 20 == 0xAC1 || address >> 16 == 0xC0A8 || address >> 22 == 0x6440 >> 6
        case .v6(let high, _): high >> 57 == 0xFC >> 1
        }
    }

    /// No single host: unspecified, multicast, broadcast.
    var isNoHost: Bool {
        switch self {
        case .v4(let address): address >> 24 == 0 || address >> 28 == 0xE || address == .max
        case .v6(let high, let low): high >> 56 == 0xFF || (high == 0 && low == 0)
        }
    }
}

/// Which addresses may be dialled on nothing but the word of an announcement: anyone on the link can announce anything, and must
/// not be able to aim this machine at a server elsewhere, at a host behind a router or a tunnel, or at a service of its own.
struct DialPolicy: Sendable {
    private var networks: [(index: Int32, address: IPAddress, length: Int)] = []
    private var loopbacks: Set<Int32> = []

    init(_ interfaces: [InterfaceAddress] = []) {
        for interface in interfaces {
            guard let address = IPAddress(interface.address) else { continue }
            networks.append((interface.index, address, interface.prefixLength))
            if address.isLoopback { loopbacks.insert(interface.index) }
        }
    }

    /// Why an announced address is not dialled.
    enum Refusal: Sendable {
        case lowPort, noHost, loopback, foreignNetwork
    }

    /// `nil` where it may be dialled.
    func refusal(address: IPAddress, port: UInt16, interface: Int32) -> Refusal? {
        guard port >= 1_024 else { return .lowPort }
        guard !address.isNoHost else { return .noHost }
        guard !address.isLoopback || loopbacks.contains(interface) else { return .loopback }
        guard address.isLinkLocal || isOnOwnNetwork(address) else { return .foreignNetwork }
        return nil
    }

    /// Inside a prefix of an own interface.
    func isOnOwnNetwork(_ address: IPAddress) -> Bool {
        networks.contains { address.isInside($0.address, length: $0.length) }
    }
}

extension DialPolicy.Refusal {
    /// Follows "its announcement is not usable: ".
    func text(_ endpoint: Endpoint) -> String {
        switch self {
        case .lowPort: "its port \(endpoint.port) is below 1024"
        case .noHost: "its address is no host's"
        case .loopback: "its address is a loopback address"
        case .foreignNetwork: "its address is on no network of this machine"
        }
    }
}
