public import HexlistModel

extension PeerDirectory {
    /// An event for the directory. Every input may also make timers fire; `tick` does only that.
    public enum Input: Sendable {
        case discovery(DiscoveryEvent)
        /// A session's Hello was checked. Sent for every session, also for a second one with the same peer.
        case sessionUp(SessionInfo)
        /// The end of a session, with the same information as its `sessionUp`. Sent once for every `sessionUp`.
        case sessionDown(SessionInfo, SessionEnd)
        /// A later Hello on a living session has a new name.
        case renamed(PeerID, name: String)
        case probeEnded(ProbeID, ProbeResult)
        /// Two starts of this peer proved themselves, and the older one still answers.
        case identityConflict(PeerID, BootNonce, BootNonce)
        /// Another machine proved the own UUID from another start, on an inbound session.
        case ownIdentityElsewhere(BootNonce)
        /// A peer of the store, at the start or after an import.
        case knownPeer(KnownPeer)
        /// All addresses the user configured; replaces the previous set.
        case staticPeers([StaticAddress])
        case trustChanged(PeerID, Trust)
        /// All peers the store has something of; replaces the previous set.
        case remembered(Set<PeerID>)
        /// The peer, or the user, asked for a pairing. A peer's request counts once the user was told.
        case pairingAsked(PeerID)
        /// Whether this node hides (`announce: false`).
        case hiding(Bool)
        /// The store no longer has this peer.
        case forget(PeerID)
        case tick
    }

    public enum Output: Sendable, Equatable {
        /// Dial these endpoints up to the Hello, in this order, 250 ms apart, and end with `probeEnded`. `expecting` is the peer that must
        /// answer; `nil` for any.
        case probe(ProbeID, [Endpoint], expecting: PeerID?)
        /// Dial these endpoints up to the end of the handshake, which proves the key, send nothing, and end with `probeEnded`. The peer has
        /// a session that it dialled; the check finds out whether it can be dialled too.
        case check(ProbeID, [Endpoint], expecting: PeerID)
        case openResolver(Record)
        case closeResolver(Record)
        case changed(PeerEvent)
        /// A stranger that left nothing came or went. No event, but whoever shows the listing reads it again.
        case listingChanged
    }
}

public struct ProbeID: Hashable, Sendable, CustomStringConvertible {
    public let number: UInt64
    public var description: String { "\(number)" }
}

/// The result of a probe. Endpoints are those of the output, unchanged.
public enum ProbeResult: Sendable, Equatable {
    /// A session came up (its `sessionUp` is sent too, before or after).
    case proved(PeerID, BootNonce, Endpoint)
    /// The result of a `check`: this endpoint proved the expected key.
    case reached(Endpoint)
    /// Every endpoint refused the connection.
    case refused
    case noAnswer
    /// This endpoint proved another identity than the expected one.
    case otherIdentity(PeerID, Endpoint)
    /// This endpoint proved the own identity: this very process if `sameBoot`, else a clone.
    case ownIdentity(sameBoot: Bool, Endpoint)
    /// Something answered, but no session came up. The text is for people and follows "answers, but ".
    case failed(String)
}

/// One session as the directory sees it.
public struct SessionInfo: Sendable, Hashable {
    public var peer: PeerID
    public var boot: BootNonce
    /// The name in the session's Hello.
    public var name: String
    public var version: String?
    /// The endpoint that was dialled. For an inbound session, its source with `via: .inbound`, which is shown only, or `nil`.
    public var endpoint: Endpoint?
    /// The numeric address behind an endpoint that is a host's name, saved for times when the name cannot be looked up.
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
    /// `Bye` `shutdown` from the peer.
    case shutdown
    /// `Bye` `idle`, from either side.
    case idle
    /// Without a Bye: reset, closed, or silent.
    case lost
    /// Any other Bye, or closed by this side.
    case other
}

/// A peer the store remembers.
public struct KnownPeer: Sendable, Equatable {
    public var id: PeerID
    public var name: String
    public var trust: Trust
    public var version: String?
    /// The `lastKnown` and `static` endpoints, the best first; at most 8 are kept.
    public var endpoints: [Endpoint]

    public init(id: PeerID, name: String, trust: Trust, version: String? = nil, endpoints: [Endpoint] = []) {
        self.id = id
        self.name = name
        self.trust = trust
        self.version = version
        self.endpoints = endpoints
    }
}

/// `host:port` of the user's configuration.
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

/// A change that is worth an event.
public enum PeerEvent: Sendable, Equatable {
    /// The peer became verified. Told of a stranger once it leaves something.
    case up(PeerID)
    /// The peer is no longer verified. Told for each `up`.
    case down(PeerID)
    /// Two machines prove this UUID, possibly the own one.
    case conflict(PeerID)
    /// Only one machine proves this UUID now.
    case conflictEnded(PeerID)
    /// An announcement turned out to be `stale`, `conflict`, `impostor` or `invalid`. Told once for each instance and reason.
    case ghost(GhostEvent)
}

public struct GhostEvent: Sendable, Equatable {
    /// The UUID the announcement claims.
    public var peer: PeerID?
    public var name: String
    public var reason: GhostReason
    public var why: String
}

/// The reason why an announcement is no peer of its own.
public enum GhostReason: String, Sendable, CaseIterable {
    /// The own UUID, unless a Hello proves another boot.
    case `self`
    /// Another interface, IP version, reflector or instance name of a known peer: folded into its endpoints.
    case duplicate
    /// An announcement that nobody answers, or of an older start of a known peer.
    case stale
    /// Two live machines with one UUID, each boot proved by a Hello.
    case conflict
    /// An announcement whose UUID the Hello does not prove.
    case impostor
    /// An announcement without usable TXT, port or address.
    case invalid
    /// A probe is under way or queued; or this machine hides and does not ask strangers.
    case unverified
}

/// One line of `hexlist peers --all --why`.
public struct DirectoryRow: Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        /// A Hello proved UUID and boot.
        case verified
        /// Verified before, but does not answer.
        case away
        case ghost
    }

    public struct Place: Sendable, Equatable {
        public var endpoint: Endpoint
        /// The instant at which this process last dialled a session there.
        public var lastOK: ContinuousClock.Instant?
    }

    /// The peer's UUID; for a ghost the UUID it claims, if any. At most one row that is no ghost has a given UUID.
    public var peer: PeerID?
    /// The name in the last Hello, else the store's, else the announcement's. Peer text: cleaned where it is shown.
    public var name: String
    public var state: State
    public var reason: GhostReason?
    /// One sentence for people, without a full stop. Contains peer text.
    public var why: String
    /// The endpoints, the best first.
    public var endpoints: [Place]
    public var lastSeen: ContinuousClock.Instant?
    public var boot: BootNonce?
    public var version: String?
    public var hasSession: Bool
}
