#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// One network interface of this machine, as `hexlist doctor` looks at it: the daemon at what it does there, the command line at what a
/// firewall keeps out of it.
public struct MachineInterface: Sendable, Equatable {
    public var name: String
    public var index: UInt32
    public var isUp: Bool
    /// Has a carrier: a cable, an access point.
    public var isRunning: Bool
    public var isLoopback: Bool
    public var hasMulticast: Bool
    /// Numeric; those of IPv4 first.
    public var addresses: [String]

    public init(
        name: String, index: UInt32, isUp: Bool, isRunning: Bool, isLoopback: Bool, hasMulticast: Bool, addresses: [String] = []
    ) {
        self.name = name
        self.index = index
        self.isUp = isUp
        self.isRunning = isRunning
        self.isLoopback = isLoopback
        self.hasMulticast = hasMulticast
        self.addresses = addresses
    }

    /// Made by containers and virtual machines: nobody else is behind it.
    public var isVirtual: Bool {
        ["docker", "virbr", "veth", "br-", "lxc", "lxdbr", "cni", "flannel", "podman", "vmnet", "vboxnet"].contains { name.hasPrefix($0) }
    }

    /// avahi-daemon announces and browses there.
    public var isUsed: Bool { isUp && !isLoopback && hasMulticast && !addresses.isEmpty }

    /// Why it is not used; `nil` for one that is.
    public var why: String? {
        switch true {
        case isUsed: nil
        case !isUp: "down"
        case isLoopback: "this machine only"
        case !hasMulticast: "without multicast (a tunnel?)"
        default: "without an address"
        }
    }

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
            var interface =
                found[name]
                ?? MachineInterface(
                    name: name, index: if_nametoindex(entry.ifa_name), isUp: has(Int(IFF_UP)), isRunning: has(Int(IFF_RUNNING)),
                    isLoopback: has(Int(IFF_LOOPBACK)), hasMulticast: has(Int(IFF_MULTICAST)))
            if let address = entry.ifa_addr.flatMap(text) { interface.addresses.append(address) }
            found[name] = interface
        }
        return found.values.sorted { $0.index < $1.index }
    }

    private static func text(_ address: UnsafeMutablePointer<sockaddr>) -> String? {
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let length: socklen_t
        switch Int32(address.pointee.sa_family) {
        case AF_INET: length = socklen_t(MemoryLayout<sockaddr_in>.size)
        case AF_INET6: length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        default: return nil
        }
        guard getnameinfo(address, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 && $0 != 0x25 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
