/// What connections of others may take before anything is known of them (Docs/Protocol.md, "Identity"; `limits.*` of the
/// configuration). Connections dialled here do not count.
public struct TransportLimits: Sendable, Equatable {
    /// Accepted connections in all, the reserved ones included.
    public var connections = 512
    /// Of one IPv4 address, one IPv6 address of an own link, one IPv6 /64 from beyond (`Admission.network`).
    public var perAddress = 16
    /// That have not said Hello. One that says nothing holds its place for `handshakeSeconds`.
    public var unidentified = 32
    /// Of `connections`, and besides `unidentified`: for the last addresses of trusted peers, so that a flood from
    /// elsewhere does not lock them out.
    public var reserved = 16
    /// From the TCP connection to the end of the TLS handshake, or to the first byte of plain TCP.
    public var handshakeSeconds = 5
    /// TLS handshakes begun; as many again for the last addresses of trusted peers. One takes about 0.4 ms of processor time.
    public var handshakesPerSecond = 100

    public init() {}
}
