internal import CLinux
public import HexlistModel

/// An established TCP connection of which at least the local end is on this machine.
public struct TCPConnection: Sendable {
    public var local: (address: IPAddress, port: UInt16)
    public var remote: (address: IPAddress, port: UInt16)

    public init(local: (address: IPAddress, port: UInt16), remote: (address: IPAddress, port: UInt16)) {
        self.local = local
        self.remote = remote
    }

    /// Returns the user ID of the process that owns the local end. Sends one query to the kernel and does not block.
    /// - Returns: `nil` if no process in this network namespace owns that end.
    /// - Throws: the error of the kernel, for example if it does not support inet_diag.
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
    /// The address as 16 bytes in network byte order. An IPv4 address is converted to `::ffff:a.b.c.d`.
    fileprivate var mappedBytes: [UInt8] { isIPv6 ? bytes : [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + bytes }
}
