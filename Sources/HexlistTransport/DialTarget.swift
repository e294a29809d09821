public import HexlistModel

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// An address or a host name with a port, at which a peer may be reached.
public struct DialTarget: Hashable, Sendable, CustomStringConvertible {
    /// A numeric address, possibly with an interface (such as `fe80::1%eth0`), or a host name.
    public var host: String
    public var port: UInt16
    /// The name or the index of the interface, for a link-local address whose text has none.
    public var interface: String?

    public init(host: String, port: UInt16, interface: String? = nil) {
        self.host = host
        self.port = port
        self.interface = interface
    }

    /// Whether the host is a name that DNS has to resolve. `false` for texts that resemble an address: the system would take a partial
    /// address (`1.2.3`) or one with leading zeros (`010.0.0.1`) for a different one (1.2.0.3, 8.0.0.1).
    public var isName: Bool {
        var other = in_addr()
        return IPAddress(scoped: host, interface: interface) == nil && !host.utf8.contains { ":%".utf8.contains($0) }
            && inet_aton(host, &other) == 0
    }

    /// The error for a host that is neither a name nor an address that this machine can reach.
    var invalidHostError: DialError { .unreachable("\(self) is no address\(host.contains(":") ? " of this machine's networks" : "")") }

    public var description: String {
        let isIPv6 = host.contains(":")
        let zone = isIPv6 && !host.contains("%") ? interface.map { "%\($0)" } ?? "" : ""
        return HostPort.text(host + zone, port)
    }
}

/// The reason why a target could not be dialled.
public enum DialError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Nothing listens on the port, although the host is reachable (ECONNREFUSED).
    case refused
    /// There is no route, the network is down, or the interface is unknown.
    case unreachable(String)
    /// The TCP connection and the handshake were not completed in time.
    case timeout
    /// The connection was accepted, and then closed during the handshake. A peer does so if it has too many connections, for example.
    case closed
    /// The server is not a Hexlist peer: it has no TLS 1.3, no ALPN protocol of Hexlist, or no P-256 certificate. The text gives the
    /// reason.
    case notHexlist(String)
    /// The server's certificate has the key of another peer, whose UUID is the value. The handshake was aborted, so that the key is not
    /// proved, and the server did not get this machine's certificate.
    case otherIdentity(PeerID)
    /// The host name does not exist in DNS.
    case nameNotFound(String)
    case cancelled
    /// Any other error, with its text.
    case failed(String)

    public var description: String {
        switch self {
        case .refused: "connection refused"
        case .unreachable(let why): "unreachable: \(why)"
        case .timeout: "no answer in time"
        case .closed: "closed during the handshake"
        case .notHexlist(let why): "not a Hexlist peer: \(why)"
        case .otherIdentity(let peer): "another peer answers there: \(peer)"
        case .nameNotFound(let why): "name not found: \(why)"
        case .cancelled: "cancelled"
        case .failed(let why): why
        }
    }
}

/// A target that could not be dialled, and the reason.
public struct DialFailure: Sendable, Equatable {
    public var target: DialTarget
    public var error: DialError

    public init(target: DialTarget, error: DialError) {
        self.target = target
        self.error = error
    }
}

/// The result of dialling several targets of one peer.
public struct DialReport: Sendable {
    /// The first connection that has completed its handshake with the expected peer. Other connections were closed before any frame was
    /// sent.
    public var connection: PeerConnection?
    /// The connection, if the purpose of the dial was to fetch files.
    public var files: FileClientConnection?
    /// Whether a connection was established, if the purpose of the dial was to serve files. The connection was passed to the `FileConnectionHost`.
    public var isServing = false
    /// All failures, in the order in which they occurred, even if the dial succeeded later. A host name has one failure for each address.
    public var failures: [DialFailure]

    public init(connection: PeerConnection?, failures: [DialFailure]) {
        self.connection = connection
        self.failures = failures
    }

    init(files: FileClientConnection, failures: [DialFailure]) {
        self.files = files
        self.failures = failures
    }

    init(isServing: Bool, failures: [DialFailure]) {
        self.isServing = isServing
        self.failures = failures
    }

    /// The failure that says most; `nil` if there is a connection. It is `refused` only if all addresses refused the connection.
    public var summary: DialError? {
        guard connection == nil, files == nil, !isServing else { return nil }
        guard let error = failures.map(\.error).min(by: { Self.rank($0) < Self.rank($1) }) else {
            return .failed("there is no address to dial")
        }
        return error
    }

    private static func rank(_ error: DialError) -> Int {
        switch error {
        case .otherIdentity: 0
        case .cancelled: 1
        case .closed: 2
        case .notHexlist: 3
        case .timeout: 4
        case .unreachable: 5
        case .nameNotFound: 6
        case .failed: 7
        case .refused: 8
        }
    }
}
