import HexlistModel
import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

// Addresses with scopes. The scope of a link-local address is the index of an interface of this machine.
extension IPAddress {
    /// Parses an IPv4 or IPv6 address, possibly with an interface, such as `fe80::1%eth0` or `fe80::1%2`.
    /// - Parameter interface: the interface of a link-local address, if the text has none.
    /// - Returns: `nil` for any other text, such as a host name, or if the interface is unknown.
    init?(scoped text: String, interface: String? = nil) {
        guard text.utf8.count <= 128, !text.utf8.contains(0), let (address, named) = Self.withZone(text) else { return nil }
        self = address
        guard address.isIPv6, address.isLinkLocal, let zone = named.map(String.init) ?? interface else { return }
        guard let scope = Self.interfaceIndex(zone) else { return nil }
        self = address.with(scope: scope)
    }

    init?(_ address: SocketAddress) {
        switch address {
        case .v4(let address): self.init(bytes: withUnsafeBytes(of: address.address.sin_addr) { Array($0) })
        case .v6(let address):
            guard let ip = IPAddress(bytes: withUnsafeBytes(of: address.address.sin6_addr) { Array($0) }) else { return nil }
            self = ip.with(scope: address.address.sin6_scope_id)
        case .unixDomainSocket: return nil
        }
    }

    /// The address without its scope, for comparing link-local addresses that were seen on several interfaces.
    var withoutScope: IPAddress { with(scope: 0) }

    func socketAddress(port: UInt16) -> SocketAddress? {
        guard let address = try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: Int(port)) else { return nil }
        guard case .v6(let six) = address, scope != 0 else { return address }
        var raw = six.address
        raw.sin6_scope_id = scope
        return SocketAddress(raw, host: host)
    }

    /// The address as a text that can be dialled, with the name of its interface, such as `fe80::1%eth0`.
    var host: String {
        guard scope != 0, let name = Self.interfaceName(scope) else { return description }
        return "\(withoutScope)%\(name)"
    }

    private static func interfaceIndex(_ zone: String) -> UInt32? {
        if let index = UInt32(zone), index > 0 { return index }
        let index = if_nametoindex(zone)
        return index == 0 ? nil : index
    }

    private static func interfaceName(_ index: UInt32) -> String? {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(index, &name) != nil else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
