import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A numeric address, with the interface of an IPv6 link-local one. An IPv4 address inside IPv6 (`::ffff:…`) is the IPv4 address.
struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// 4 bytes of IPv4 or 16 of IPv6, network order.
    let bytes: [UInt8]
    /// Index of the interface of a link-local address, 0 otherwise.
    let scope: UInt32

    private init(bytes: [UInt8], scope: UInt32) {
        if bytes.count == 16, bytes.starts(with: Self.mappedPrefix) {
            self.bytes = Array(bytes.suffix(4))
            self.scope = 0
        } else {
            self.bytes = bytes
            self.scope = scope
        }
    }

    private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    /// A dotted quad or an IPv6 address, which may name its interface: `fe80::1%eth0`, `fe80::1%2`.
    /// - Parameter interface: the interface of a link-local address that names none.
    /// - Returns: `nil` for anything else: a name, an interface this machine does not have.
    init?(_ text: String, interface: String? = nil) {
        guard text.utf8.count <= 128, !text.utf8.contains(0) else { return nil }
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = parts.first else { return nil }
        var four = in_addr()
        if parts.count == 1, inet_pton(AF_INET, String(host), &four) == 1 {
            self.init(bytes: withUnsafeBytes(of: four) { Array($0) }, scope: 0)
            return
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, String(host), &six) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: six) { Array($0) }
        guard Self.isLinkLocal(bytes), let zone = parts.count == 2 ? String(parts[1]) : interface else {
            self.init(bytes: bytes, scope: 0)
            return
        }
        guard let scope = Self.interfaceIndex(zone) else { return nil }
        self.init(bytes: bytes, scope: scope)
    }

    init?(_ address: SocketAddress) {
        switch address {
        case .v4(let address):
            self.init(bytes: withUnsafeBytes(of: address.address.sin_addr) { Array($0) }, scope: 0)
        case .v6(let address):
            let bytes = withUnsafeBytes(of: address.address.sin6_addr) { Array($0) }
            self.init(bytes: bytes, scope: Self.isLinkLocal(bytes) ? address.address.sin6_scope_id : 0)
        case .unixDomainSocket:
            return nil
        }
    }

    var isIPv6: Bool { bytes.count == 16 }
    /// fe80::/10
    var isLinkLocal: Bool { Self.isLinkLocal(bytes) }

    /// Without its interface: one host's link-local address, wherever it was seen.
    var withoutScope: IPAddress { IPAddress(bytes: bytes, scope: 0) }

    /// What one subscriber of a network can hold many of, as one: the /64 of an IPv6 address. A link-local address stays
    /// whole, for all hosts of a link share one prefix.
    var subscriber: IPAddress {
        guard isIPv6, !isLinkLocal else { return self }
        return IPAddress(bytes: Array(bytes.prefix(8)) + [UInt8](repeating: 0, count: 8), scope: 0)
    }

    /// Whether the first `length` bits are those of `prefix`. Never across IP versions.
    func isInside(_ prefix: IPAddress, length: Int) -> Bool {
        guard bytes.count == prefix.bytes.count, (0...8 * bytes.count).contains(length) else { return false }
        let (whole, rest) = (length / 8, length % 8)
        guard bytes.prefix(whole).elementsEqual(prefix.bytes.prefix(whole)) else { return false }
        return rest == 0 || (bytes[whole] ^ prefix.bytes[whole]) >> UInt8(8 - rest) == 0
    }

    func socketAddress(port: UInt16) -> SocketAddress? {
        guard let address = try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: Int(port)) else { return nil }
        guard case .v6(let six) = address, scope != 0 else { return address }
        var raw = six.address
        raw.sin6_scope_id = scope
        return SocketAddress(raw, host: description)
    }

    var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = isIPv6 ? AF_INET6 : AF_INET
        let isText = bytes.withUnsafeBytes { inet_ntop(family, $0.baseAddress, &text, socklen_t(INET6_ADDRSTRLEN)) != nil }
        guard isText else { return "?" }
        let host = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard scope != 0 else { return host }
        return "\(host)%\(Self.interfaceName(scope) ?? String(scope))"
    }

    private static func isLinkLocal(_ bytes: [UInt8]) -> Bool {
        bytes.count == 16 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
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
