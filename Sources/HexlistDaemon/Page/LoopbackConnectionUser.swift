import HexlistModel
import HexlistSystem
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Identifies the user at the other end of a loopback TCP connection, by a query to the kernel (sock_diag).
enum LoopbackConnectionUser {
    /// Looks up the user of the process at the other end of a connection.
    /// - Returns: `nil` if no process of this machine has the other end.
    /// - Throws: `SystemError` if the look-up fails.
    static func user(of channel: any Channel) throws(SystemError) -> uid_t? {
        guard let own = end(channel.localAddress), let other = end(channel.remoteAddress) else { return nil }
        return try TCPConnection(local: other, remote: own).user()
    }

    private static func end(_ address: SocketAddress?) -> (address: IPAddress, port: UInt16)? {
        guard let address, let port = address.port.flatMap(UInt16.init(exactly:)) else { return nil }
        let bytes: [UInt8]? =
            switch address {
            case .v4(let address): withUnsafeBytes(of: address.address.sin_addr) { Array($0) }
            case .v6(let address): withUnsafeBytes(of: address.address.sin6_addr) { Array($0) }
            case .unixDomainSocket: nil
            }
        return bytes.flatMap { IPAddress(bytes: $0) }.map { ($0, port) }
    }
}
