public import HexlistModel

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// An address or host name and a port at which a peer may be dialled.
public struct DialTarget: Hashable, Sendable, CustomStringConvertible {
    /// A numeric address, possibly with an interface (`fe80::1%eth0`), or a DNS name.
    public var host: String
    public var port: UInt16
    /// The name or index of the interface of a link-local address without one.
    public var interface: String?

    public init(host: String, port: UInt16, interface: String? = nil) {
        self.host = host
        self.port = port
        self.interface = interface
    }

    /// Whether the host must be resolved by DNS. False for texts that resemble an address: the system would interpret a partial one
    /// (`1.2.3`) or one with leading zeros (`010.0.0.1`) as a different address (1.2.0.3, 8.0.0.1).
    public var isName: Bool {
        var other = in_addr()
        return IPAddress(scoped: host, interface: interface) == nil && !host.utf8.contains { ":%".utf8.contains($0) }
            && inet_aton(host, &other) == 0
    }

    /// The error for a host that is neither a name nor an address in this machine's networks.
    var invalidHostError: DialError { .unreachable("\(self) is no address\(host.contains(":") ? " of this machine's networks" : "")") }

    public var description: String {
        let isIPv6 = host.contains(":")
        let zone = isIPv6 && !host.contains("%") ? interface.map { "%\($0)" } ?? "" : ""
        return HostPort.text(host + zone, port)
    }
}

/// The reason why a target could not be dialled.
public enum DialError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The host is up, but nothing listens on the port: ECONNREFUSED.
    case refused
    /// There is no route, the network is down, or the interface is unknown.
    case unreachable(String)
    /// The connection or the handshake was not complete in time.
    case timeout
    /// The connection was accepted and then closed during the handshake, for example by a peer at its connection limit.
    case closed
    /// The server is not a Hexlist peer: no TLS 1.3, another ALPN protocol, or no P-256 certificate.
    case notHexlist(String)
    /// The certificate has an unexpected key. The handshake was aborted: that key is not proven, and this machine's certificate was not
    /// sent.
    case otherIdentity(PeerID)
    /// The name does not exist in DNS.
    case nameNotFound(String)
    case cancelled
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
    /// The first connection that finished its handshake with the expected identity. Others were closed before any frame.
    public var connection: PeerConnection?
    /// The connection of a dial to fetch files.
    public var files: FileClientConnection?
    /// Whether a dial to serve files was successful; its connection was passed to the `FileHost`.
    public var isServing = false
    /// All failures in order, including those before a success; one for each address of a host name.
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

    /// The most informative failure; `nil` if there is a connection. `refused` only if all addresses refused.
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
