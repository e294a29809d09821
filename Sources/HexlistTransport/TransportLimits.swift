/// The limits of accepted connections (Docs/Protocol.md, "Identity"; `limits.*` in the configuration). Dialled connections are not limited.
public struct TransportLimits: Sendable, Equatable {
    /// Maximum number of accepted connections, with the reserved ones.
    public var connections = 512
    /// Maximum number of connections from one IPv4 address, one IPv6 address on a link of this machine, or one other IPv6 /64
    /// (`Admission.network`).
    public var perAddress = 16
    /// Maximum number of connections whose peer has not sent a Hello. A silent connection occupies its slot for `handshakeSeconds`.
    public var unidentified = 32
    /// Number of connections that are reserved for the addresses at which trusted peers were last reached, so that many connections from
    /// other addresses do not lock them out. They are included in `connections`, and are additional to `unidentified`.
    public var reserved = 16
    /// Timeout in seconds from the TCP connection to the end of the TLS handshake; on plain TCP, to the first byte.
    public var handshakeSeconds = 5
    /// Maximum number of TLS handshakes per second. The addresses at which trusted peers were last reached have a separate limit of the
    /// same size. A handshake takes about 0.4 ms of CPU time.
    public var handshakesPerSecond = 100

    public init() {}
}
