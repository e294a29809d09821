public import HexlistModel

extension PeerDirectory {
    /// An event that the caller passes to the directory. Each event also fires the timers that are due; `tick` has no other effect.
    public enum Input: Sendable {
        case discovery(DiscoveryEvent)
        /// A session's Hello was verified. Sent for each session, also for a second one with the same peer.
        case sessionUp(SessionInfo)
        /// A session ended. Sent once for each `sessionUp`, with the same information.
        case sessionDown(SessionInfo, SessionEnd)
        /// A later Hello of an open session has a new name.
        case renamed(PeerID, name: String)
        case probeEnded(ProbeID, ProbeResult)
        /// Two processes of this peer proved themselves, and the older one still responds, so two machines have this identity.
        case identityConflict(PeerID, BootNonce, BootNonce)
        /// A process on another machine proved this node's UUID on an inbound session.
        case ownIdentityElsewhere(BootNonce)
        /// A peer that the store has data of. Sent for each such peer when this node starts and after an import.
        case knownPeer(KnownPeer)
        /// All configured addresses; replaces the previous set.
        case staticPeers([StaticAddress])
        case trustChanged(PeerID, Trust)
        /// All peers that the store has data of; replaces the previous set.
        case remembered(Set<PeerID>)
        /// The peer or the user requested a pairing. For a request of the peer, this is sent after the user was notified.
        case pairingAsked(PeerID)
        /// Whether this node is hidden (`announce: false`).
        case hiding(Bool)
        /// The peer was deleted from the store.
        case forget(PeerID)
        case tick
    }

    public enum Output: Sendable, Equatable {
        /// Dial these endpoints in order, 250 ms apart, until one of them completes the Hello. Then pass the result to the directory as the
        /// input `probeEnded`. `expecting` is the UUID that the peer must prove; `nil` for any.
        case probe(ProbeID, [Endpoint], expecting: PeerID?)
        /// Dial these endpoints until one of them completes the TLS handshake, which proves the peer's key, but send no frames to the peer.
        /// Then pass the result to the directory as the input `probeEnded`. The check finds out whether a peer that dialled its session can
        /// be dialled too.
        case check(ProbeID, [Endpoint], expecting: PeerID)
        case openResolver(Record)
        case closeResolver(Record)
        case changed(PeerEvent)
        /// A stranger without stored data became verified or is no longer verified. This is not recorded as an event, but displayed peer
        /// lists must be refreshed.
        case listingChanged
    }
}

public struct ProbeID: Hashable, Sendable, CustomStringConvertible {
    public let number: UInt64
    public var description: String { "\(number)" }
}

/// The result of a probe or check. An endpoint in the result is one of the endpoints of the output, unchanged.
public enum ProbeResult: Sendable, Equatable {
    /// A session was established. The caller also passes its `sessionUp` to the directory, before or after this result.
    case proved(PeerID, BootNonce, Endpoint)
    /// The result of a `check`: the expected key was proved at this endpoint.
    case reached(Endpoint)
    /// All endpoints refused the connection.
    case refused
    case noAnswer
    /// Another identity than the expected one was proved at this endpoint.
    case otherIdentity(PeerID, Endpoint)
    /// This node's identity was proved at this endpoint: by this process if `sameBoot`, otherwise by a machine with a copy of the identity.
    case ownIdentity(sameBoot: Bool, Endpoint)
    /// A host answered, but no session was established. The text completes a sentence that begins "answers, but".
    case failed(String)
}

/// The properties of a session that the directory needs.
public struct SessionInfo: Sendable, Hashable {
    public var peer: PeerID
    public var boot: BootNonce
    /// The name in the session's Hello.
    public var name: String
    public var version: String?
    /// The dialled endpoint. For an inbound session, its source address with `via: .inbound`, which is only displayed, or `nil`.
    public var endpoint: Endpoint?
    /// The resolved numeric address of an endpoint with a host name, saved for times when the name cannot be resolved.
    public var address: String?

    public init(
        peer: PeerID, boot: BootNonce, name: String, version: String? = nil, endpoint: Endpoint? = nil, address: String? = nil
    ) {
        self.peer = peer
        self.boot = boot
        self.name = name
        self.version = version
        self.endpoint = endpoint
        self.address = address
    }
}

public enum SessionEnd: Sendable, Equatable {
    /// The peer sent `Bye` `shutdown`.
    case shutdown
    /// Either side sent `Bye` `idle`.
    case idle
    /// The session ended without a Bye: it was reset, closed or timed out.
    case lost
    /// The peer sent another Bye, or this side ended the session.
    case other
}

/// A peer that the store has data of.
public struct KnownPeer: Sendable, Equatable {
    public var id: PeerID
    public var name: String
    public var trust: Trust
    public var version: String?
    /// The `lastKnown` and `static` endpoints, best first; at most 8 are kept.
    public var endpoints: [Endpoint]

    public init(id: PeerID, name: String, trust: Trust, version: String? = nil, endpoints: [Endpoint] = []) {
        self.id = id
        self.name = name
        self.trust = trust
        self.version = version
        self.endpoints = endpoints
    }
}

/// A peer's address in the configuration, `host:port`.
public struct StaticAddress: Hashable, Sendable, CustomStringConvertible {
    /// A numeric address or a DNS name.
    public var host: String
    public var port: UInt16

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    var endpoint: Endpoint { Endpoint(host: host, port: port, via: .static) }
    public var description: String { endpoint.description }
}

/// A change that is recorded as an event.
public enum PeerEvent: Sendable, Equatable {
    /// The peer became verified. For a stranger, only sent if it has stored data, a configured address or a pairing request.
    case up(PeerID)
    /// The peer is no longer verified. Sent once for each `up`.
    case down(PeerID)
    /// Two machines prove this UUID, possibly that of this node.
    case conflict(PeerID)
    /// Only one machine still proves this UUID.
    case conflictEnded(PeerID)
    /// An announcement was classified as `stale`, `conflict`, `impostor` or `invalid`. Sent once for each instance and reason.
    case ghost(GhostEvent)
}

public struct GhostEvent: Sendable, Equatable {
    /// The announced UUID.
    public var peer: PeerID?
    public var name: String
    public var reason: GhostReason
    public var why: String
}

/// The reason why an announcement is not a separate live peer.
public enum GhostReason: String, Sendable, CaseIterable {
    /// The announcement has the UUID or the endpoint of this node, and no other machine has proved the UUID.
    case `self`
    /// Another announcement of a known peer: on another interface, with another IP version or instance name, or from an mDNS reflector. Its
    /// endpoint is added to those of the peer.
    case duplicate
    /// No peer answers at the endpoint, or the announcement is of an earlier process of a known peer.
    case stale
    /// Two running machines have the same UUID; both proved it by a Hello.
    case conflict
    /// A Hello proved another UUID than the announced one.
    case impostor
    /// The announcement has no usable TXT, port or address.
    case invalid
    /// A probe is running or queued; or this machine is hidden and does not probe strangers.
    case unverified
}

/// A row of `hexlist peers --all --why`.
public struct DirectoryRow: Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        /// A Hello proved the UUID and the boot nonce.
        case verified
        /// The peer was verified before, but is offline now.
        case away
        case ghost
    }

    public struct ListedEndpoint: Sendable, Equatable {
        public var endpoint: Endpoint
        /// The time of the last successful dial of this endpoint by this process; `nil` if there was none.
        public var lastOK: ContinuousClock.Instant?
    }

    /// The UUID of the peer, or the one that a ghost announces. Unique among rows that are not ghosts.
    public var peer: PeerID?
    /// The name in the last Hello, else in the store, else in the announcement. The text is from a peer and must be cleaned for display.
    public var name: String
    public var state: State
    public var reason: GhostReason?
    /// One sentence for the user, without a full stop. May contain text from a peer, which must be cleaned for display.
    public var why: String
    /// The endpoints, best first.
    public var endpoints: [ListedEndpoint]
    public var lastSeen: ContinuousClock.Instant?
    public var boot: BootNonce?
    public var version: String?
    public var hasSession: Bool
}
