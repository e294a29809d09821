public import HexlistModel

/// An address at which a peer was reached.
public struct PeerEndpoint: Sendable, Hashable {
    /// A numeric address, with a scope if it has one, or a name that the user configured.
    public var host: String
    public var port: Int
    public var interface: String?
    /// The source of the endpoint, in discovery's terms.
    public var via: String
    /// The time at which a session there last proved the peer, in milliseconds since 1970; 0 for never.
    public var lastOKAt: Int64

    public init(host: String, port: Int, interface: String?, via: String, lastOKAt: Int64) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOKAt = lastOKAt
    }
}

/// A peer the store remembers: trusted, blocked, with an alias, in a group, with a setting of its own, or with hexes in the store or the
/// outbox.
public struct PeerRecord: Sendable, Equatable {
    public var peer: PeerID
    /// The fingerprint; `nil` until a session proved it. A trusted peer always has one.
    public var fingerprint: Fingerprint?
    /// The peer's own name, as last seen. Peer text.
    public var name: String
    public var alias: String?
    public var trust: Trust
    public var version: String?
    public var boot: BootNonce?
    /// Milliseconds since 1970.
    public var lastSeenAt: Int64?
    /// The number of its hexes, in the inbox or held.
    public var hexes: Int
    /// The number of its unread hexes in the inbox.
    public var unread: Int
    public var held: Int
    public var heldBytes: Int
    /// The number of outbox rows waiting for it.
    public var queued: Int
    /// The endpoints, up to `endpointLimit`, the one that worked last first.
    public var endpoints: [PeerEndpoint]
    /// The names of its groups.
    public var groups: [String] = []
    public var receive = PeerReceive.inbox
    /// Whether desktop notifications tell of it.
    public var notify = true
    /// Bytes of a hex, and of a day, up to which files that it offers are fetched by themselves; `nil`: none.
    public var fetchLimit: Int64?
    /// The day since 1970, UTC, on which that was done last, and the bytes of it.
    public var fetchDay: Int64 = 0
    public var fetchDayBytes: Int64 = 0

    /// The bytes that were fetched by themselves on the day of a moment, or are on their way.
    public func fetchedBytes(at now: Int64) -> Int64 { fetchDay == now / 86_400_000 ? fetchDayBytes : 0 }

    /// The most addresses kept of one peer. Peers provide them, so they are bounded; the oldest are dropped.
    public static let endpointLimit = 16

    public var label: PeerDisplayName { PeerDisplayName(peer, name: name, alias: alias, trust: trust) }
}

/// The facts that one contact with a peer showed.
public struct ContactInfo: Sendable {
    public var peer: PeerID
    public var fingerprint: Fingerprint?
    public var name: String
    public var version: String?
    public var boot: BootNonce?
    /// Milliseconds since 1970.
    public var seenAt: Int64
    /// The places where the peer was reached, the best last; empty for a session the peer dialled.
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

/// The effect of a change of trust on the peer's held hexes.
public struct TrustChange: Sendable, Equatable {
    /// The hexes taken into the inbox, in order of arrival.
    public var moved: [Int64]
    /// The number of held hexes that were deleted.
    public var deleted: Int
}
