import HexlistModel

/// A host and port at which a peer can be dialled, and how they became known.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// How an endpoint became known.
    public enum Source: String, Sendable, CaseIterable {
        /// The endpoint was announced by mDNS, possibly by anyone on the link.
        case mdns
        /// The endpoint was found by unicast DNS in a configured domain.
        case dns
        /// The endpoint was configured by the user.
        case `static`
        /// The endpoint was dialled successfully for an earlier session.
        case lastKnown
        /// The source address of an inbound session: displayed but never dialled, because its port belongs to that session.
        case inbound
    }

    /// A numeric address, with `%scope` (name or index of an interface) for IPv6 link-local ones. `static` endpoints may have a DNS name.
    public var host: String
    /// The interface on which the endpoint was announced.
    public var interface: String?
    public var port: UInt16
    public var via: Source

    public init(host: String, port: UInt16, interface: String? = nil, via: Source) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
    }

    /// Host and port without the source.
    var socketAddress: SocketAddress { SocketAddress(host: host, port: port) }

    struct SocketAddress: Hashable, Sendable {
        var host: String
        var port: UInt16
    }

    public var description: String { HostPort.text(host, port) }
}
