/// Limits of accepted connections before their peer is identified (Docs/Protocol.md, "Identity"; `limits.*` of the configuration). Dialled
/// connections do not count.
public struct TransportLimits: Sendable, Equatable {
    /// Maximum accepted connections, including the reserved ones.
    public var connections = 512
    /// Maximum connections from one IPv4 address, one IPv6 address on the local link, or one IPv6 /64 elsewhere (`Admission.network`).
    public var perAddress = 16
    /// Maximum connections that have not said Hello. A silent one occupies its slot for `handshakeSeconds`.
    public var unidentified = 32
    /// Connections, included in `connections` and additional to `unidentified`, reserved for the last addresses of trusted peers, so that a
    /// flood from other addresses does not lock them out.
    public var reserved = 16
    /// Timeout from the TCP connection to the end of the TLS handshake, or to the first byte of plain TCP.
    public var handshakeSeconds = 5
    /// Maximum TLS handshakes per second, and the same number again for the last addresses of trusted peers. A handshake takes about 0.4 ms
    /// of CPU time.
    public var handshakesPerSecond = 100

    public init() {}
}
