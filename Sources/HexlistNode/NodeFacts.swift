public import HexlistDiscovery
public import HexlistModel
public import HexlistWire

/// Facts about a node and its network, for `hexlist doctor`.
public struct NodeFacts: Sendable {
    public var status: NodeStatus
    /// The addresses it listens on; empty for all interfaces.
    public var listen: [String]
    /// The bytes that stay free on the store's disk.
    public var diskReserveBytes: Int
    public var isIdentityElsewhere: Bool
    /// The interfaces on which browsing shows the own announcement.
    public var announcements: [(interface: String, isIPv6: Bool)]
    public var staticPeers: [(address: StaticAddress, state: PeerDirectory.ConfiguredState)]
    /// The peers that dialled their present session, with the address it comes from and its age; the latest first.
    public var dialledIn: [(peer: PeerID, name: String, address: String, age: Duration)]
    /// The trusted peers with a session that dial back on request, with the address of this machine that the session has. Behind NAT they
    /// dial another one.
    public var mayDialBack: [(peer: PeerID, name: String, address: String)]
}

/// Facts about one session, for `hexlist doctor`.
public struct SessionFacts: Sendable {
    public var address: String
    public var isDialledHere: Bool
    public var boot: BootNonce
    public var version: String
    /// The most bytes of a frame that the peer takes from this machine: 1 MiB or more means that it trusts this machine.
    public var maxFrameBytes: Int
    public var dialsBack: Bool
}

/// The facts of one session with a peer, and the answers to Pings on it, for `hexlist doctor`. The session may have ended since.
public struct SessionDiagnostics: Sendable {
    public var session: SessionFacts
    public var ping: PingOutcome
}

/// The result of reaching one address of a peer.
public struct AddressProbeResult: Sendable {
    public var host: String
    public var port: Int
    public var tcp: Result<Duration, ReachFailure>
    /// The handshake, with the expected identity; `nil` if TCP failed.
    public var tls: Result<Duration, ReachFailure>?
    /// The peer that proved itself there.
    public var peer: PeerID?
}

/// The reason why an address was not reached.
public struct ReachFailure: Error, Sendable, Equatable {
    public var text: String
    /// Whether the machine is there, but nothing listens.
    public var isRefused = false
    /// Whether something answered, but not the peer.
    public var isOther = false
    /// Whether the peer ended the session because it blocks this machine.
    public var isBlocked = false
}

/// The result of a short Ping and of a padded one behind it.
public enum PingOutcome: Sendable, Equatable {
    case answered(bytes: Int, after: Duration)
    /// `bytes`: 0 where it was the short one.
    case unanswered(bytes: Int)
    /// The session ended before; the text is the reason. `isBlocked`: the peer blocks this machine.
    case ended(String, isBlocked: Bool = false)
    /// The session was being compared with others of the peer, again and again.
    case notNow
}

/// The result of asking a peer to dial back.
public enum DialBackOutcome: Sendable, Equatable {
    case result(DialBack.Result)
    case noReply
    case cannotAsk
}
