import HexlistModel

/// Where a peer can be dialled, and who says so.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// How an endpoint became known.
    public enum Via: String, Sendable, CaseIterable {
        /// Announced over mDNS: anyone on the link may have said it.
        case mdns
        /// Found by unicast DNS, in a domain the user configured.
        case dns
        /// Configured by the user.
        case `static`
        /// A session was once dialled there.
        case lastKnown
        /// The address a peer's own session came from: shown, never dialled (the port is that session's).
        case inbound
    }

    /// A numeric address, IPv6 link-local ones with `%scope` (an interface's name or index); for `static` ones a DNS name too.
    public var host: String
    /// The interface it was announced on.
    public var interface: String?
    public var port: UInt16
    public var via: Via

    public init(host: String, port: UInt16, interface: String? = nil, via: Via) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
    }

    /// What makes two endpoints the same place, whoever told of them.
    var place: Place { Place(host: host, port: port) }

    struct Place: Hashable, Sendable {
        var host: String
        var port: UInt16
    }

    public var description: String { HostPort.text(host, port) }
}
