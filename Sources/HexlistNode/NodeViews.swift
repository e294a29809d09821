import HexlistDiscovery
public import HexlistModel

/// How finding others is doing, on the own links or in a domain. The raw values are those of the local API.
public enum DiscoveryState: String, Sendable {
    /// Nothing has been heard of it yet.
    case starting
    case running
    /// Others are seen, but this machine is not announced; of a domain: DNS answers and lists nobody.
    case degraded
    case unavailable
    /// Not used, as configured.
    case off
}

/// A node at a glance.
public struct NodeStatus: Sendable, Equatable {
    public var uuid: PeerID
    public var fingerprint: Fingerprint
    public var name: String
    /// Whether others are told of this machine, as configured.
    public var isAnnounced: Bool
    public var port: Int
    public var boot: BootNonce
    public var discoveryState: DiscoveryState
    /// What is wrong with discovery and what to do; `nil` while it runs.
    public var discoveryMessage: String?
    /// That another machine has this one's identity, and what to do; `nil` where nobody says so.
    public var conflict: String?
    /// Those browsed by unicast DNS, by name.
    public var domains: [DomainStatus]
    /// Rows `verified`, and ghosts but for this machine itself and more announcements of a listed peer (`self`, `duplicate`).
    public var peers: Int
    public var ghosts: Int
}

/// Browsing one domain by unicast DNS.
public struct DomainStatus: Sendable, Equatable {
    public var domain: String
    public var state: DiscoveryState
    /// What is wrong; `nil` while it runs.
    public var message: String?

    init(_ domain: String, _ backend: BackendState) {
        self.domain = domain
        state = backend.state
        message = backend.message
    }
}

/// A peer, or a ghost, as lists show it.
public struct PeerView: Sendable, Equatable {
    public enum State: String, Sendable { case verified, away, ghost }

    /// `nil` for a ghost whose announcement carries no UUID.
    public var uuid: PeerID?
    /// What the peer calls itself (or its announcement does). Peer text: clean it when it is shown.
    public var name: String
    public var alias: String?
    public var state: State
    /// Why it is hidden, for a ghost: `self`, `duplicate`, `stale`, `conflict`, `impostor`, `invalid`, `unverified`.
    public var reason: String?
    /// One line for people: why it is where it is.
    public var why: String?
    public var trust: Trust
    /// Proved by a session; `nil` for what was never verified.
    public var fingerprint: Fingerprint?
    public var version: String?
    public var boot: BootNonce?
    public var endpoints: [EndpointView]
    /// Milliseconds since 1970.
    public var lastSeen: Int64?
    public var unread: Int

    public var label: PeerLabel { PeerLabel(uuid: uuid?.description, name: name, alias: alias, trust: trust.rawValue) }

    /// - Throws: `notFound` where nothing says whose announcement it is.
    public func requiredID() throws(HexlistError) -> PeerID {
        guard let uuid else { throw HexlistError(.notFound, "What is announced there names no UUID.") }
        return uuid
    }
}

public struct EndpointView: Sendable, Equatable {
    public var host: String
    public var port: Int
    public var interface: String?
    /// `mdns`, `dns`, `static`, `lastKnown`, `inbound`.
    public var via: String
    /// Milliseconds since 1970.
    public var lastOK: Int64?

    public init(host: String, port: Int, interface: String? = nil, via: String, lastOK: Int64? = nil) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOK = lastOK
    }
}

/// One hex to one or more peers.
public struct SendRequest: Sendable {
    public enum Content: Sendable {
        /// A hex as decoded from what the caller gave.
        case hex(HexContent)
        /// A stored hex, forwarded with its claim of a sender and its unknown members.
        case forward(hexID: Int64)
    }

    public var content: Content
    public var peers: [PeerID]
    /// Makes a rerun idempotent: the same key gives the same `messageID`.
    public var key: String?
    /// Sends again what failed within the last 3 minutes.
    public var force: Bool

    public init(content: Content, peers: [PeerID], key: String? = nil, force: Bool = false) {
        self.content = content
        self.peers = peers
        self.key = key
        self.force = force
    }
}

/// What became of one hex for one peer, so far.
public struct SendOutcome: Sendable, Equatable {
    public var outboxID: Int64
    public var messageID: MessageID
    public var peer: PeerID
    public var state: OutboxState
    /// A refusal code of the peer, where it refused.
    public var code: String?
    public var message: String?
    /// An earlier send with the same key had queued it, and this one did nothing.
    public var isEarlier = false
    /// As `OutboxView` has them; of a send that waited for an end that did not come.
    public var waitingFor: String?
    public var nextAttemptAt: Int64?

    public init(outboxID: Int64, messageID: MessageID, peer: PeerID, state: OutboxState, code: String? = nil, message: String? = nil) {
        self.outboxID = outboxID
        self.messageID = messageID
        self.peer = peer
        self.state = state
        self.code = code
        self.message = message
    }
}

/// One row of the outbox as people and scripts see it.
public struct OutboxView: Sendable, Equatable {
    public var outboxID: Int64
    public var messageID: MessageID
    public var peer: PeerID
    public var label: PeerLabel?
    public var state: OutboxState
    public var attempts: Int
    /// `peer` (to come back), `conflict`, `session`, `turn`, `window`, `retry`, `trust`; `nil` for a final state.
    public var waitingFor: String?
    /// Milliseconds since 1970.
    public var nextAttemptAt: Int64?
    public var lastError: String?
    /// Why it was rejected or failed.
    public var code: String?
    public var message: String?
    /// What it is about; `nil` in a row of an earlier version.
    public var subject: String?
    public var createdAt: Int64
    public var bytes: Int
}
