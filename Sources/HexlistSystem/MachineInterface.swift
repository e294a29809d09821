public import HexlistModel

#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// A network interface of this machine. The daemon uses it to decide which addresses it may dial; `hexlist doctor` uses it to check Avahi
/// and the firewall.
public struct MachineInterface: Sendable, Equatable {
    public var name: String
    public var index: Int32
    public var isUp: Bool
    /// Whether the interface is connected, for example to a cable or an access point.
    public var isRunning: Bool
    public var isLoopback: Bool
    public var hasMulticast: Bool
    /// The addresses, sorted: IPv4 first, then by address and prefix.
    public var addresses: [InterfaceAddress]

    public init(
        name: String, index: Int32, isUp: Bool, isRunning: Bool, isLoopback: Bool, hasMulticast: Bool, addresses: [InterfaceAddress] = []
    ) {
        self.name = name
        self.index = index
        self.isUp = isUp
        self.isRunning = isRunning
        self.isLoopback = isLoopback
        self.hasMulticast = hasMulticast
        self.addresses = addresses
    }

    /// Whether the interface is a virtual one that belongs to containers or virtual machines on this machine. Detected by the name.
    public var isVirtual: Bool {
        ["docker", "virbr", "veth", "br-", "lxc", "lxdbr", "cni", "flannel", "podman", "vmnet", "vboxnet"].contains { name.hasPrefix($0) }
    }

    /// Whether avahi-daemon uses the interface for mDNS.
    public var isUsed: Bool { isUp && !isLoopback && hasMulticast && !addresses.isEmpty }

    /// The reason why avahi-daemon does not use the interface; `nil` if it does.
    public var why: String? {
        switch true {
        case isUsed: nil
        case !isUp: "down"
        case isLoopback: "this machine only"
        case !hasMulticast: "without multicast (a tunnel?)"
        default: "without an address"
        }
    }

    /// Returns all interfaces of this machine, sorted by index. Empty if they cannot be read.
    public static func all() -> [MachineInterface] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [String: MachineInterface] = [:]
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            let name = String(cString: entry.ifa_name)
            let has = { (flag: Int) in entry.ifa_flags & UInt32(flag) != 0 }
            guard let index = Int32(exactly: if_nametoindex(entry.ifa_name)), index > 0 else { continue }  // the interface is gone
            var interface =
                found[name]
                ?? MachineInterface(
                    name: name, index: index, isUp: has(Int(IFF_UP)), isRunning: has(Int(IFF_RUNNING)),
                    isLoopback: has(Int(IFF_LOOPBACK)), hasMulticast: has(Int(IFF_MULTICAST)))
            if let raw = entry.ifa_addr, let mask = entry.ifa_netmask {
                let family = Int32(raw.pointee.sa_family)
                if let address = bytes(raw, family).flatMap({ IPAddress(bytes: $0) }), let mask = bytes(mask, family) {
                    let prefixLength = mask.reduce(0) { $0 + $1.nonzeroBitCount }
                    interface.addresses.append(
                        InterfaceAddress(interface: name, index: index, address: address, prefixLength: prefixLength))
                }
            }
            found[name] = interface
        }
        for name in found.keys {
            found[name]?.addresses.sort {
                ($0.address.isIPv6 ? 1 : 0, $0.address, $0.prefixLength) < ($1.address.isIPv6 ? 1 : 0, $1.address, $1.prefixLength)
            }
        }
        return found.values.sorted { $0.index < $1.index }
    }

    private static func bytes(_ address: UnsafeMutablePointer<sockaddr>, _ family: Int32) -> [UInt8]? {
        let raw = UnsafeRawPointer(address)
        return switch family {
        case AF_INET: withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
        case AF_INET6: withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
        default: nil
        }
    }
}
