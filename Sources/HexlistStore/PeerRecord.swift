public import HexlistModel

/// Where a peer was reached.
public struct PeerEndpoint: Sendable, Hashable {
    /// A numeric address, with its scope where it has one, or a name the user configured.
    public var host: String
    public var port: Int
    public var interface: String?
    /// How it was found, as discovery names it.
    public var via: String
    /// When a session on it last proved the peer; milliseconds since 1970, 0 for never.
    public var lastOKAt: Int64

    public init(host: String, port: Int, interface: String?, via: String, lastOKAt: Int64) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOKAt = lastOKAt
    }
}

/// A peer the store remembers: trusted, blocked, with an alias, or with hexes in the store or the outbox.
public struct PeerRecord: Sendable, Equatable {
    public var peer: PeerID
    /// `nil` until a session proved it. Always there for a trusted peer.
    public var fingerprint: Fingerprint?
    /// What it calls itself, as last seen.
    public var name: String
    public var alias: String?
    public var trust: Trust
    public var version: String?
    public var boot: BootNonce?
    /// Milliseconds since 1970.
    public var lastSeenAt: Int64?
    /// Hexes of it in the inbox or held.
    public var hexes: Int
    /// Of its hexes in the inbox.
    public var unread: Int
    public var held: Int
    public var heldBytes: Int
    /// Rows of the outbox waiting for it.
    public var queued: Int
    /// Last one that worked first, `endpointLimit` at most.
    public var endpoints: [PeerEndpoint]

    /// Addresses kept of one peer: they come from it, so they are bounded; the oldest go.
    public static let endpointLimit = 16

    public var label: PeerLabel { PeerLabel(peer, name: name, alias: alias, trust: trust) }
}

/// What one look at a peer showed.
public struct PeerSighting: Sendable {
    public var peer: PeerID
    public var fingerprint: Fingerprint?
    public var name: String
    public var version: String?
    public var boot: BootNonce?
    /// Milliseconds since 1970.
    public var seenAt: Int64
    /// Where it was reached, the best last; none for a session the peer dialled.
    public var endpoints: [PeerEndpoint]

    public init(
        peer: PeerID, fingerprint: Fingerprint?, name: String, version: String?, boot: BootNonce?, seenAt: Int64,
        endpoints: [PeerEndpoint] = []
    ) {
        self.peer = peer
        self.fingerprint = fingerprint
        self.name = name
        self.version = version
        self.boot = boot
        self.seenAt = seenAt
        self.endpoints = endpoints
    }
}

/// What a change of trust did to the peer's held hexes.
public struct TrustChange: Sendable, Equatable {
    /// Taken into the inbox, in order of arrival.
    public var moved: [Int64]
    /// Held hexes that were deleted.
    public var deleted: Int
}
