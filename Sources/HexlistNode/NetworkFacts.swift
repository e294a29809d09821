public import HexlistDiscovery
public import HexlistModel
public import HexlistWire

/// Facts about a node and its network, for `hexlist doctor`.
public struct NetworkFacts: Sendable {
    public var status: NodeStatus
    /// The addresses on which the node listens; empty for all interfaces.
    public var listen: [String]
    /// The bytes that are kept free on the store's disk.
    public var diskReserveBytes: Int
    public var isIdentityElsewhere: Bool
    /// The interfaces on which this machine's own announcement is visible.
    public var announcements: [(interface: String, isIPv6: Bool)]
    public var staticPeers: [(address: StaticAddress, state: PeerDirectory.StaticAddressState)]
    /// The peers whose current session is inbound, with its source address and age; the newest first.
    public var dialledIn: [(peer: PeerID, name: String, address: String, age: Duration)]
    /// The trusted peers that support dial-back, with the local address of this machine on the session with them. If this machine is behind
    /// NAT, they dial the address of the NAT instead.
    public var mayDialBack: [(peer: PeerID, name: String, address: String)]
}

/// Facts about one session, for `hexlist doctor`.
public struct SessionFacts: Sendable {
    public var address: String
    public var isDialledHere: Bool
    public var boot: BootNonce
    public var version: String
    /// Maximum bytes of a frame that the peer accepts from this machine; 1 MiB or more if it trusts this machine.
    public var maxFrameBytes: Int
    public var dialsBack: Bool
}

/// The facts of a session and the result of Pings on it, for `hexlist doctor`. The session may have ended since.
public struct SessionDiagnostics: Sendable {
    public var session: SessionFacts
    public var ping: PingOutcome
}

/// The result of probing an address of a peer.
public struct AddressProbeResult: Sendable {
    public var host: String
    public var port: Int
    public var tcp: Result<Duration, ReachFailure>
    /// The result of the TLS handshake with the expected identity; `nil` if TCP failed.
    public var tls: Result<Duration, ReachFailure>?
    /// The peer that proved its identity at the address.
    public var peer: PeerID?
}

/// The reason why an address could not be reached.
public struct ReachFailure: Error, Sendable, Equatable {
    public var text: String
    /// Whether the connection was refused: the machine is up, but nothing listens.
    public var isRefused = false
    /// Whether another program or another peer answered.
    public var isOther = false
    /// Whether the peer ended the session because it blocks this machine.
    public var isBlocked = false
}

/// The result of a short Ping followed by a padded one.
public enum PingOutcome: Sendable, Equatable {
    case answered(bytes: Int, after: Duration)
    /// `bytes` is the padding; 0 for the short Ping.
    case unanswered(bytes: Int)
    /// The session ended for the reason in the text. `isBlocked`: the peer blocks this machine.
    case ended(String, isBlocked: Bool = false)
    /// Duplicate sessions with the peer were being compared during the whole test.
    case notNow
}

/// The result of asking a peer to dial back.
public enum DialBackOutcome: Sendable, Equatable {
    case result(DialBack.Result)
    case noReply
    case cannotAsk
}
