import Glibc
import HexlistDiscovery

/// The addresses of this machine's interfaces.
enum NetworkInterfaces {
    /// Those that are up, in an order that does not change by itself.
    static func addresses() -> [InterfaceAddress] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [InterfaceAddress] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            if let address = address(of: entry.pointee) { found.append(address) }
        }
        return found.sorted { ($0.index, $0.address, $0.prefixLength) < ($1.index, $1.address, $1.prefixLength) }
    }

    private static func address(of entry: ifaddrs) -> InterfaceAddress? {
        guard entry.ifa_flags & UInt32(IFF_UP) != 0, let address = entry.ifa_addr, let mask = entry.ifa_netmask else { return nil }
        let name = String(cString: entry.ifa_name)
        guard let index = Int32(exactly: if_nametoindex(entry.ifa_name)), index > 0 else { return nil }
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            let bytes = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                withUnsafeBytes(of: $0.pointee.sin_addr, Array.init)
            }
            let bits = mask.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { withUnsafeBytes(of: $0.pointee.sin_addr, Array.init) }
            return make(name, index, AF_INET, bytes, bits)
        case AF_INET6:
            let bytes = address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                withUnsafeBytes(of: $0.pointee.sin6_addr, Array.init)
            }
            let bits = mask.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { withUnsafeBytes(of: $0.pointee.sin6_addr, Array.init) }
            return make(name, index, AF_INET6, bytes, bits)
        default: return nil
        }
    }

    private static func make(_ name: String, _ index: Int32, _ family: Int32, _ address: [UInt8], _ mask: [UInt8]) -> InterfaceAddress? {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(family, address, &text, socklen_t(text.count)) != nil else { return nil }
        let bytes = text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
        return InterfaceAddress(
            interface: name, index: index, address: String(decoding: bytes, as: UTF8.self),
            prefixLength: mask.reduce(0) { $0 + $1.nonzeroBitCount })
    }
}
