import Glibc

/// A local TCP port that refuses connections until it is closed: bound, without a listener. A port that is merely unused may be given to
/// another test at any time.
public struct RefusingPort: Sendable {
    public let port: UInt16
    private let descriptor: Int32

    /// - Parameters:
    ///   - port: 0 for any.
    ///   - isIPv6: whether the address is `::1` instead of `127.0.0.1`.
    /// - Returns: `nil` if it cannot be bound.
    public init?(_ port: UInt16 = 0, isIPv6: Bool = false) {
        let descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        // Earlier connections of this port may not have ended yet.
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        guard let bound = isIPv6 ? Self.bindIPv6(descriptor, port) : Self.bindIPv4(descriptor, port) else {
            Glibc.close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        self.port = bound
    }

    public func close() { Glibc.close(descriptor) }

    private static func bindIPv4(_ descriptor: Int32, _ port: UInt16) -> UInt16? {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return bind(descriptor, &address) ? UInt16(bigEndian: address.sin_port) : nil
    }

    private static func bindIPv6(_ descriptor: Int32, _ port: UInt16) -> UInt16? {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_addr = in6addr_loopback
        return bind(descriptor, &address) ? UInt16(bigEndian: address.sin6_port) : nil
    }

    /// Binds the socket, and sets `address` to its actual address.
    private static func bind<Address>(_ descriptor: Int32, _ address: inout Address) -> Bool {
        var length = socklen_t(MemoryLayout<Address>.size)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
    }
}
