public import HexlistModel

extension PeerDirectory {
    /// What happened. Every input may also make timers fire, so `tick` is just an input that says nothing.
    public enum Input: Sendable {
        case discovery(DiscoveryEvent)
        /// A session's Hello was checked. One for every session, also for a second one with the same peer.
        case sessionUp(SessionInfo)
        /// The end of a session, with what its `sessionUp` said. One for every `sessionUp`.
        case sessionDown(SessionInfo, SessionEnd)
        /// A later Hello on a living session named the peer anew.
        case renamed(PeerID, name: String)
        case probeEnded(ProbeID, ProbeResult)
        /// Both starts of this peer proved themselves, and the older one still answers.
        case identityConflict(PeerID, BootNonce, BootNonce)
        /// Somebody else proved the own UUID from another start, on a session that came in.
        case ownIdentityElsewhere(BootNonce)
        /// A peer of the store, at the start or after an import.
        case knownPeer(KnownPeer)
        /// All addresses the user configured; replaces what was said before.
        case staticPeers([StaticAddress])
        case trustChanged(PeerID, Trust)
        /// All peers the store has something of; replaces what was said before.
        case remembered(Set<PeerID>)
        /// A stranger asked to be paired with, and the person was told.
        case askedToPair(PeerID)
        /// Whether this node hides (`announce: false`).
        case hiding(Bool)
        /// The store knows it no longer.
        case forget(PeerID)
        case tick
    }

    public enum Output: Sendable, Equatable {
        /// Dial these up to Hello, in this order, 250 ms apart, and end it with `probeEnded`. `expecting` is who must answer; `nil`
        /// takes whoever does.
        case probe(ProbeID, [Endpoint], expecting: PeerID?)
        /// Dial these up to the end of the handshake, which proves the key, say nothing, and end it with `probeEnded`: the peer has a
        /// session of its own making, and this is only whether it can be dialled there.
        case check(ProbeID, [Endpoint], expecting: PeerID)
        case openResolver(Record)
        case closeResolver(Record)
        case changed(PeerEvent)
        /// A stranger that left nothing came or went: no event, but whoever looks at the listing looks again.
        case listingChanged
    }
}

public struct ProbeID: Hashable, Sendable, CustomStringConvertible {
    public let number: UInt64
    public var description: String { "\(number)" }
}

/// How a probe ended. Endpoints are given back as they were given out.
public enum ProbeResult: Sendable, Equatable {
    /// A session came up (its `sessionUp` is sent too, before or after).
    case proved(PeerID, BootNonce, Endpoint)
    /// Of a `check`: the expected key was proved here.
    case reached(Endpoint)
    /// Every endpoint refused the connection.
    case refused
    case noAnswer
    /// This endpoint proved another identity than the expected one.
    case otherIdentity(PeerID, Endpoint)
    /// This endpoint proved the own identity; from this very process where `sameBoot`, else a clone's.
    case ownIdentity(sameBoot: Bool, Endpoint)
    /// Something answered, but no session came of it. The text is for people and follows "answers, but ".
    case failed(String)
}

/// One session as the directory sees it.
public struct SessionInfo: Sendable, Hashable {
    public var peer: PeerID
    public var boot: BootNonce
    /// As its Hello gave it.
    public var name: String
    public var version: String?
    /// The endpoint that was dialled; for a session that came in its source `via: .inbound`, which is shown only, or `nil`.
    public var endpoint: Endpoint?
    /// The numeric address behind an endpoint that is a host's name: it is remembered for when the name cannot be looked up.
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
    /// Without a Bye: reset, closed, silent.
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
    /// `lastKnown` and `static` ones, the best first; at most 8 are kept.
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

/// A change worth an event.
public enum PeerEvent: Sendable, Equatable {
    /// Verified, from anything else; of a stranger once it leaves something.
    case up(PeerID)
    /// No longer verified; for each `up`.
    case down(PeerID)
    /// Two machines prove this UUID, the own one perhaps.
    case conflict(PeerID)
    /// Only one of them does any more.
    case conflictEnded(PeerID)
    /// An announcement turned out to be `stale`, `conflict`, `impostor` or `invalid`. Told once for each instance and reason.
    case ghost(GhostEvent)
}

public struct GhostEvent: Sendable, Equatable {
    /// The UUID it claims.
    public var peer: PeerID?
    public var name: String
    public var reason: GhostReason
    public var why: String
}

/// Why an announcement is no peer of its own.
public enum GhostReason: String, Sendable, CaseIterable {
    /// The own UUID, until a Hello proves another boot.
    case `self`
    /// Another interface, IP version, reflector or instance name of a known peer: folded into its endpoints.
    case duplicate
    /// Nobody answers, or an older start of a known peer.
    case stale
    /// Two live machines with one UUID, each boot proved by a Hello.
    case conflict
    /// The Hello does not prove the advertised UUID.
    case impostor
    /// No usable TXT, port or address.
    case invalid
    /// A probe is under way, or waits for its turn; or this machine hides, and does not ask strangers.
    case unverified
}

/// One line of `hexlist peers --all --why`.
public struct DirectoryRow: Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        /// Hello proved UUID and boot.
        case verified
        /// Verified before, not answering.
        case away
        case ghost
    }

    public struct Place: Sendable, Equatable {
        public var endpoint: Endpoint
        /// When a session was last dialled there, by this process.
        public var lastOK: ContinuousClock.Instant?
    }

    /// For a ghost the UUID it claims, if it claims one. At most one row that is no ghost has a given UUID.
    public var peer: PeerID?
    /// As Hello gave it; before one, as the store remembers or the announcement says. Text of a peer: clean it where it is shown.
    public var name: String
    public var state: State
    public var reason: GhostReason?
    /// One sentence for people, without a full stop. Holds text of peers too.
    public var why: String
    /// The best first.
    public var endpoints: [Place]
    public var lastSeen: ContinuousClock.Instant?
    public var boot: BootNonce?
    public var version: String?
    public var hasSession: Bool
}
