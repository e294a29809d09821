#if canImport(Glibc)
    public import Glibc
#endif

/// Opens sockets for purposes that NIO is not used for: Unix sockets of other programs, and datagram sockets.
public enum SystemSocket {
    public enum Kind: Sendable {
        case stream, datagram
    }

    /// Maximum bytes of the path of a Unix socket: the size of the field in `sockaddr_un` without the final NUL.
    public static let maximumPathBytes = 107

    /// Opens a socket that is closed on exec.
    /// - Parameter family: the address family, such as `AF_UNIX` or `AF_INET`.
    /// - Returns: the descriptor; -1 and errno on failure.
    public static func open(_ family: CInt, _ kind: Kind, isBlocking: Bool = true) -> CInt {
        let type = kind == .stream ? SOCK_STREAM : SOCK_DGRAM
        return socket(
            family, CInt(type.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | (isBlocking ? 0 : CInt(SOCK_NONBLOCK.rawValue)), 0)
    }

    /// Calls `body` with the address of a Unix socket.
    /// - Parameter path: the path, or `@` followed by a name in the abstract namespace.
    /// - Returns: the result of `body`; -1 and `ENAMETOOLONG` if the path is too long.
    public static func withUnixAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count <= maximumPathBytes else {
            errno = ENAMETOOLONG
            return -1
        }
        if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2) + socklen_t(bytes.count)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}
