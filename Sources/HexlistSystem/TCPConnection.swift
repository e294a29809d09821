internal import CLinux
public import HexlistModel

/// An established TCP connection on this machine, seen from one end.
public struct TCPConnection: Sendable {
    public var local: (address: IPAddress, port: UInt16)
    public var remote: (address: IPAddress, port: UInt16)

    public init(local: (address: IPAddress, port: UInt16), remote: (address: IPAddress, port: UInt16)) {
        self.local = local
        self.remote = remote
    }

    /// The user who owns the local end. One query to the kernel, without blocking.
    /// - Returns: `nil` if no process of this network namespace has that end.
    /// - Throws: the error of the kernel, for example if it has no inet_diag.
    public func user() throws(SystemError) -> UInt32? {
        var user: UInt32 = 0
        let (here, there) = (local.address.mappedBytes, remote.address.mappedBytes)
        switch hexlist_connection_user(here, local.port, there, remote.port, &user) {
        case 1: return user
        case 0: return nil
        default: throw .last
        }
    }
}

extension IPAddress {
    /// The 16 bytes of the address, of IPv4 as `::ffff:a.b.c.d`.
    fileprivate var mappedBytes: [UInt8] { isIPv6 ? bytes : [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + bytes }
}
