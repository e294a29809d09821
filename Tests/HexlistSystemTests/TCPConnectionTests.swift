import Glibc
import HexlistModel
import Testing

@testable import HexlistSystem

@Suite("The user of a local connection")
struct TCPConnectionTests {
    /// A socket that is closed with the object.
    private final class Socket {
        private(set) var descriptor: CInt

        init(_ descriptor: CInt) { self.descriptor = descriptor }

        deinit { close() }

        func close() {
            if descriptor >= 0 { Glibc.close(descriptor) }
            descriptor = -1
        }

        /// The local port. IPv4 and IPv6 socket addresses have it at the same offset.
        var port: UInt16 {
            var address = sockaddr_in6()
            var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            _ = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            }
            return UInt16(bigEndian: address.sin6_port)
        }

        static func open(_ host: String, _ port: UInt16, _ use: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt) throws -> Socket {
            let isFour = !host.contains(":")
            let socket = Socket(socket(isFour ? AF_INET : AF_INET6, CInt(SOCK_STREAM.rawValue), 0))
            var (four, six) = (sockaddr_in(), sockaddr_in6())
            (four.sin_family, four.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
            (six.sin6_family, six.sin6_port) = (sa_family_t(AF_INET6), port.bigEndian)
            try #require((isFour ? inet_pton(AF_INET, host, &four.sin_addr) : inet_pton(AF_INET6, host, &six.sin6_addr)) == 1)
            func call<Address>(_ address: Address) -> CInt {
                withUnsafePointer(to: address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        use(socket.descriptor, $0, socklen_t(MemoryLayout<Address>.size))
                    }
                }
            }
            try #require((isFour ? call(four) : call(six)) == 0, "\(host): \(SystemError.last)")
            return socket
        }
    }

    @Test(
        "an established connection has a user, by IPv4, IPv6, and IPv4 on an IPv6 socket; closed and unknown ones have none",
        arguments: [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("127.0.0.1", "::ffff:127.0.0.1")])
    func user(listening: String, dialled: String) throws {
        let listener = try Socket.open(listening, 0, bind)
        try #require(listen(listener.descriptor, 4) == 0)
        let client = try Socket.open(dialled, listener.port, connect)
        let accepted = Socket(accept(listener.descriptor, nil, nil))
        let own = try #require(IPAddress(listening))
        let (port, other) = (listener.port, client.port)
        func user(_ local: (IPAddress, UInt16), _ remote: (IPAddress, UInt16)) throws -> UInt32? {
            try TCPConnection(local: local, remote: remote).user()
        }
        #expect(try user((own, other), (own, port)) == geteuid())
        #expect(try user((own, port), (own, other)) == geteuid())
        // The listener itself, an unused port, another address, and the other IP version.
        #expect(try user((own, port), (own, 1)) == nil)
        #expect(try user((own, 1), (own, port)) == nil)
        #expect(try user((try #require(IPAddress("127.0.0.9")), other), (own, port)) == nil)
        #expect(try user((try #require(IPAddress(own.isIPv6 ? "127.0.0.1" : "::1")), other), (own, port)) == nil)
        client.close()
        #expect(try user((own, other), (own, port)) == nil)
        withExtendedLifetime(accepted) {}
    }
}
