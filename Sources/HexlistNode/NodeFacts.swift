public import HexlistDiscovery
public import HexlistModel
public import HexlistWire

/// What a node knows of itself and its network, for `hexlist doctor`.
public struct NodeFacts: Sendable {
    public var status: NodeStatus
    /// Where it listens; empty means every interface.
    public var listen: [String]
    /// Bytes that are to stay free on the store's disk.
    public var diskReserveBytes: Int
    public var isIdentityElsewhere: Bool
    /// Where the own announcement is seen by browsing.
    public var announcements: [(interface: String, isIPv6: Bool)]
    public var staticPeers: [(address: StaticAddress, state: PeerDirectory.ConfiguredState)]
    /// Peers whose present session they dialled, with the address it comes from and how long ago that was; the latest first.
    public var dialledIn: [(peer: PeerID, name: String, address: String, age: Duration)]
    /// Trusted peers with a session that dial back when asked, with the address of this machine that the session has. Behind NAT they dial
    /// another one.
    public var mayDialBack: [(peer: PeerID, name: String, address: String)]
}

/// One session, for `hexlist doctor`.
public struct SessionFacts: Sendable {
    public var address: String
    public var isDialledHere: Bool
    public var boot: BootNonce
    public var version: String
    /// What the peer takes from this machine: 1 MiB or more says that it trusts it.
    public var maxFrameBytes: Int
    public var dialsBack: Bool
}

/// How far one address of a peer was reached.
public struct ReachFacts: Sendable {
    public var host: String
    public var port: Int
    public var tcp: Result<Duration, ReachFailure>
    /// The handshake, with the identity that was expected; `nil` where TCP failed.
    public var tls: Result<Duration, ReachFailure>?
    /// Who proved itself there.
    public var peer: PeerID?
}

/// For people; follows "but".
public struct ReachFailure: Error, Sendable, Equatable {
    public var text: String
    /// The machine is there, and nothing listens.
    public var isRefused = false
    /// Something answered, but not the peer.
    public var isOther = false
    /// The peer ended the session because it blocks this machine.
    public var isBlocked = false
}

/// What a padded Ping showed.
public enum PingOutcome: Sendable, Equatable {
    case answered(bytes: Int, after: Duration)
    case unanswered(bytes: Int)
    /// The session ended before; the text says why. `isBlocked`: the peer blocks this machine.
    case ended(String, isBlocked: Bool = false)
    /// No session, or it is being compared with another one.
    case notNow
}

/// What became of asking a peer to dial back.
public enum DialBackOutcome: Sendable, Equatable {
    case result(DialBack.Result)
    case noReply
    case cannotAsk
}
