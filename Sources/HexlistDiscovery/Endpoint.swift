import HexlistModel

/// A place where a peer can be dialled, and the source of that knowledge.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// The source of an endpoint.
    public enum Via: String, Sendable, CaseIterable {
        /// Announced over mDNS, possibly by anyone on the link.
        case mdns
        /// Found by unicast DNS, in a domain the user configured.
        case dns
        /// Configured by the user.
        case `static`
        /// The place of an earlier session that this node dialled.
        case lastKnown
        /// The source address of a session the peer dialled: shown, never dialled, because the port is that session's.
        case inbound
    }

    /// A numeric address, with `%scope` (an interface's name or index) for IPv6 link-local ones; for `static` endpoints also a DNS name.
    public var host: String
    /// The name of the interface on which the endpoint was announced.
    public var interface: String?
    public var port: UInt16
    public var via: Via

    public init(host: String, port: UInt16, interface: String? = nil, via: Via) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
    }

    /// The host and port, by which endpoints are the same place whatever their source.
    var place: Place { Place(host: host, port: port) }

    struct Place: Hashable, Sendable {
        var host: String
        var port: UInt16
    }

    public var description: String { HostPort.text(host, port) }
}
