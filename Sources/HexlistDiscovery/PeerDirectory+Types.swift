public import HexlistModel

extension PeerDirectory {
    /// An event for the directory. Each input also fires due timers; `tick` does nothing else.
    public enum Input: Sendable {
        case discovery(DiscoveryEvent)
        /// A session's Hello was verified. Sent for each session, also for a second one with the same peer.
        case sessionUp(SessionInfo)
        /// A session ended. Sent once for each `sessionUp`, with the same information.
        case sessionDown(SessionInfo, SessionEnd)
        /// A later Hello of an open session has a new name.
        case renamed(PeerID, name: String)
        case probeEnded(ProbeID, ProbeResult)
        /// Two starts of this peer proved themselves, and the older one still responds.
        case identityConflict(PeerID, BootNonce, BootNonce)
        /// Another start, on another machine, proved this node's UUID on an inbound session.
        case ownIdentityElsewhere(BootNonce)
        /// A peer of the store, at the start or after an import.
        case knownPeer(KnownPeer)
        /// All configured addresses; replaces the previous set.
        case staticPeers([StaticAddress])
        case trustChanged(PeerID, Trust)
        /// All peers that the store has data of; replaces the previous set.
        case remembered(Set<PeerID>)
        /// The peer or the user requested a pairing. A peer's request is sent once the user was notified.
        case pairingAsked(PeerID)
        /// Whether this node is hidden (`announce: false`).
        case hiding(Bool)
        /// The peer was deleted from the store.
        case forget(PeerID)
        case tick
    }

    public enum Output: Sendable, Equatable {
        /// Dial these endpoints in order, staggered by 250 ms, up to the Hello, then send `probeEnded`. `expecting` is the peer that must
        /// answer; `nil` for any.
        case probe(ProbeID, [Endpoint], expecting: PeerID?)
        /// Dial these endpoints up to the end of the handshake, which proves the key, without sending anything, then send `probeEnded`. The
        /// peer has a session that it dialled; the check finds out whether it can be dialled too.
        case check(ProbeID, [Endpoint], expecting: PeerID)
        case openResolver(Record)
        case closeResolver(Record)
        case changed(PeerEvent)
        /// A stranger without stored data came or went. Not an event, but displayed listings must be refreshed.
        case listingChanged
    }
}

public struct ProbeID: Hashable, Sendable, CustomStringConvertible {
    public let number: UInt64
    public var description: String { "\(number)" }
}

/// The result of a probe. Endpoints are unchanged from the output.
public enum ProbeResult: Sendable, Equatable {
    /// A session was established. Its `sessionUp` is sent too, before or after.
    case proved(PeerID, BootNonce, Endpoint)
    /// The result of a `check`: the expected key was proved at this endpoint.
    case reached(Endpoint)
    /// All endpoints refused the connection.
    case refused
    case noAnswer
    /// Another identity than the expected one was proved at this endpoint.
    case otherIdentity(PeerID, Endpoint)
    /// This node's identity was proved at this endpoint: by this process if `sameBoot`, else by a clone.
    case ownIdentity(sameBoot: Bool, Endpoint)
    /// Something answered, but no session was established. The text follows "answers, but ".
    case failed(String)
}

/// A session as the directory sees it.
public struct SessionInfo: Sendable, Hashable {
    public var peer: PeerID
    public var boot: BootNonce
    /// The name in the session's Hello.
    public var name: String
    public var version: String?
    /// The dialled endpoint. For an inbound session its source with `via: .inbound`, for display only, or `nil`.
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
    /// No Bye: reset, closed or timed out.
    case lost
    /// Another Bye, or closed by this side.
    case other
}

/// A peer of the store.
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

/// A `host:port` of the configuration.
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
    /// The peer became verified. For strangers, only sent if they have stored data.
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
    /// This node's UUID, unless a Hello proves another start.
    case `self`
    /// Another interface, IP version, reflector or instance name of a known peer, merged into its endpoints.
    case duplicate
    /// Nobody answers, or it is of an earlier start of a known peer.
    case stale
    /// Two live machines with the same UUID; a Hello proved both starts.
    case conflict
    /// A Hello proved another UUID than the announced one.
    case impostor
    /// No usable TXT, port or address.
    case invalid
    /// A probe is running or queued; or this machine is hidden and does not probe strangers.
    case unverified
}

/// A row of `hexlist peers --all --why`.
public struct DirectoryRow: Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        /// UUID and start were proved by a Hello.
        case verified
        /// Verified before, but not answering.
        case away
        case ghost
    }

    public struct ListedEndpoint: Sendable, Equatable {
        public var endpoint: Endpoint
        /// The time when this process last dialled a session there.
        public var lastOK: ContinuousClock.Instant?
    }

    /// The UUID of the peer, or the one that a ghost announces. Unique among rows that are not ghosts.
    public var peer: PeerID?
    /// The name in the last Hello, else in the store, else in the announcement. Text of a peer, to be cleaned for display.
    public var name: String
    public var state: State
    public var reason: GhostReason?
    /// One sentence for the user, without a full stop. Contains text of a peer.
    public var why: String
    /// The endpoints, best first.
    public var endpoints: [ListedEndpoint]
    public var lastSeen: ContinuousClock.Instant?
    public var boot: BootNonce?
    public var version: String?
    public var hasSession: Bool
}
