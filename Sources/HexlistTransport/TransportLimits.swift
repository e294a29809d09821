/// The limits on connections that others open, before their identity is known (Docs/Protocol.md, "Identity"; `limits.*` of the
/// configuration). Dialled connections do not count.
public struct TransportLimits: Sendable, Equatable {
    /// The most accepted connections, including the reserved ones.
    public var connections = 512
    /// The most connections from one IPv4 address, one IPv6 address on an own link, or one IPv6 /64 elsewhere (`Admission.network`).
    public var perAddress = 16
    /// The most connections that have not said Hello. A silent one holds its place for `handshakeSeconds`.
    public var unidentified = 32
    /// The connections, out of `connections` and in addition to `unidentified`, that are kept for the last addresses of trusted peers, so
    /// that a flood from elsewhere does not lock them out.
    public var reserved = 16
    /// The time from the TCP connection to the end of the TLS handshake, or to the first byte of plain TCP.
    public var handshakeSeconds = 5
    /// TLS handshakes begun per second; as many again for the last addresses of trusted peers. One takes about 0.4 ms of processor time.
    public var handshakesPerSecond = 100

    public init() {}
}
