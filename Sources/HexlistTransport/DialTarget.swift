public import HexlistModel

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Where a peer may be.
public struct DialTarget: Hashable, Sendable, CustomStringConvertible {
    /// A numeric address (a link-local one may name its interface, `fe80::1%eth0`), or a DNS name.
    public var host: String
    public var port: UInt16
    /// Name or index; counts for a link-local address that names none.
    public var interface: String?

    public init(host: String, port: UInt16, interface: String? = nil) {
        self.host = host
        self.port = port
        self.interface = interface
    }

    /// Whether its host is to be looked up. Not what is written as an address: half of one (`1.2.3`) or one with zeros before it
    /// (`010.0.0.1`) the system would take for another address than the one that is meant (1.2.0.3, 8.0.0.1).
    public var isName: Bool {
        var other = in_addr()
        return IPAddress(scoped: host, interface: interface) == nil && !host.utf8.contains { ":%".utf8.contains($0) }
            && inet_aton(host, &other) == 0
    }

    /// Of a host that is neither a name nor an address of this machine's networks.
    var isNowhere: DialError { .unreachable("\(self) is no address\(host.contains(":") ? " of this machine's networks" : "")") }

    public var description: String {
        let isIPv6 = host.contains(":")
        let zone = isIPv6 && !host.contains("%") ? interface.map { "%\($0)" } ?? "" : ""
        return HostPort.text(host + zone, port)
    }
}

/// Why one target could not be reached.
public enum DialError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The machine is there and nothing listens on the port: exactly ECONNREFUSED.
    case refused
    /// No route, the network is down, no such interface.
    case unreachable(String)
    /// No answer, or no end of the handshake, in time.
    case timeout
    /// Accepted, and closed again during the handshake; what a peer at its limits does.
    case closed
    /// Something else answers there: no TLS 1.3, another ALPN, no P-256 certificate.
    case notHexlist(String)
    /// The certificate of another key than the expected one. The handshake ended there: nothing proves that key, and the own certificate
    /// was not sent.
    case otherIdentity(PeerID)
    /// DNS does not know the name.
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

/// How a dial to several targets of one peer ended.
public struct DialReport: Sendable {
    /// The first to finish its handshake with the expected identity; the others are closed and said nothing but TLS.
    public var connection: PeerConnection?
    /// In the order they came, also those before a success. A name with several addresses has one for each of them.
    public var failures: [DialFailure]

    public init(connection: PeerConnection?, failures: [DialFailure]) {
        self.connection = connection
        self.failures = failures
    }

    /// The failure that says most about the peer; `nil` with a connection. `refused` only when every address was refused.
    public var summary: DialError? {
        guard connection == nil else { return nil }
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
