public import HexlistJSON
public import HexlistModel

/// The state of the daemon.
public struct StatusJSON: JSONShape, Sendable, Equatable {
    public var version: String
    public var uuid: PeerID
    public var name: String
    /// Whether this machine announces itself (`announce`); `nil` from an older daemon, which always announces itself.
    public var announce: Bool?
    public var fingerprint: Fingerprint
    public var pid: Int
    public var port: Int
    public var uptimeSeconds: Int
    /// The state of multicast DNS-SD through avahi-daemon.
    public var avahi: DiscoveryStatus
    /// Whether this machine alone uses its identity; `nil` from an older daemon.
    public var identity: IdentityJSON?
    /// The domains that are browsed by unicast DNS, with the state of each.
    @OmittedIfEmpty public var domains: [DomainStatus]
    /// Number of verified peers.
    public var peers: Int
    public var ghosts: Int
    /// Number of hexes in the inbox; `nil` from an older daemon.
    public var inbox: Int?
    public var unread: Int
    public var held: Int
    /// Number of outbox rows in each state, including states without rows.
    @OutboxCounts public var outbox: [OutboxState: Int]
    public var storeBytes: Int64
    /// The reason why the store cannot be written at the moment; `nil` if it can. Until it can be written, incoming hexes are refused, and
    /// their senders retry.
    public var storeFault: String?
    /// The error in the configuration file, because of which the daemon keeps using the previous configuration; `nil` if the file is valid.
    public var configurationFault: String?
    /// Hooks that cannot run, and hooks whose last run failed.
    @OmittedIfEmpty public var hookFaults: [HookFault]
    /// Routes that do not work, or on which envelopes were dropped.
    @OmittedIfEmpty public var routeProblems: [RouteProblem]
    public var stateFolder: String
    /// The state of the search index; `nil` from an older daemon.
    public var search: SearchIndexState?
    /// The state of LocalSend; `nil` from an older daemon.
    public var localSend: LocalSendStatus?
    /// Number of drop tokens. While there are any, the peer port also answers plain HTTP. `nil` from an older daemon.
    public var drops: Int?
    /// Number of envelopes in the folders of routes that are encrypted for this machine's former identity, so that it cannot open them any
    /// more. Set only in the reply to a rotation of the identity; `nil` if there are none.
    public var formerEnvelopes: Int?

    private enum CodingKeys: String, CodingKey {
        case version, uuid, name, announce, fingerprint, pid, port, uptimeSeconds, avahi, identity, domains, peers, ghosts, inbox, unread,
            held
        case outbox, storeBytes, storeFault, configurationFault, hookFaults, routeProblems, stateFolder, search, drops, formerEnvelopes
        case localSend = "localsend"
    }

    public init(
        version: String, uuid: PeerID, name: String, announce: Bool? = true, fingerprint: Fingerprint, pid: Int, port: Int,
        uptimeSeconds: Int, avahi: DiscoveryStatus, identity: IdentityJSON? = IdentityJSON(state: .own), domains: [DomainStatus] = [],
        peers: Int, ghosts: Int, inbox: Int? = nil, unread: Int, held: Int, outbox: [OutboxState: Int], storeBytes: Int64,
        storeFault: String? = nil, configurationFault: String? = nil, hookFaults: [HookFault] = [], routeProblems: [RouteProblem] = [],
        stateFolder: String, search: SearchIndexState? = nil, localSend: LocalSendStatus? = nil, drops: Int? = nil
    ) {
        self.version = version
        self.uuid = uuid
        self.name = name
        self.announce = announce
        self.fingerprint = fingerprint
        self.pid = pid
        self.port = port
        self.uptimeSeconds = uptimeSeconds
        self.avahi = avahi
        self.identity = identity
        self.domains = domains
        self.peers = peers
        self.ghosts = ghosts
        self.inbox = inbox
        self.unread = unread
        self.held = held
        self.outbox = outbox
        self.storeBytes = storeBytes
        self.storeFault = storeFault
        self.configurationFault = configurationFault
        self.hookFaults = hookFaults
        self.routeProblems = routeProblems
        self.stateFolder = stateFolder
        self.search = search
        self.localSend = localSend
        self.drops = drops
    }
}

/// The state of discovery, on the local links or in a domain.
public enum DiscoveryState: String, Sendable {
    /// Discovery has just started, and has not reported its state yet.
    case starting
    case running
    /// Discovery works only in part. With mDNS: peers are found, but this machine is not announced. With a domain: the DNS server
    /// answers, but lists no peer.
    case degraded
    case unavailable
    /// Discovery is switched off by the configuration.
    case off
}

/// The state of discovery on the local links (multicast DNS-SD).
public struct DiscoveryStatus: JSONShape, Sendable, Equatable {
    public var state: ForwardCompatibleEnum<DiscoveryState>
    /// The problem and advice; `nil` while discovery runs.
    public var message: String?

    public init(state: DiscoveryState, message: String? = nil) {
        self.state = ForwardCompatibleEnum(state)
        self.message = message
    }
}

/// The state of LocalSend on this machine.
public struct LocalSendStatus: JSONShape, Sendable, Equatable {
    public enum State: String, Sendable {
        case running
        /// Devices are found, but this machine is not announced to them, and its port for devices is closed.
        case hidden
        /// No port could be bound.
        case failed
        case off
    }

    public var state: ForwardCompatibleEnum<State>
    /// The TCP port for devices; `nil` if none is open.
    public var port: Int?
    /// The reason why the port is not 53317 or why no port could be bound; `nil` if neither applies.
    public var reason: String?
    /// The SHA-256 of this machine's certificate, by which LocalSend devices identify this machine.
    public var fingerprint: Fingerprint?
    /// The interfaces on which announcements are sent and received.
    @OmittedIfEmpty public var interfaces: [String]
    /// Whether this machine received its own announcement, which shows that multicast works.
    public var hearsItself: Bool

    public init(
        state: State, port: Int? = nil, reason: String? = nil, fingerprint: Fingerprint? = nil, interfaces: [String] = [],
        hearsItself: Bool = false
    ) {
        self.state = ForwardCompatibleEnum(state)
        self.port = port
        self.reason = reason
        self.fingerprint = fingerprint
        self.interfaces = interfaces
        self.hearsItself = hearsItself
    }
}

/// The state of browsing one domain by unicast DNS.
public struct DomainStatus: JSONShape, Sendable, Equatable {
    public var domain: String
    public var state: ForwardCompatibleEnum<DiscoveryState>
    /// The problem; `nil` while DNS answers.
    public var message: String?

    public init(domain: String, state: DiscoveryState, message: String? = nil) {
        self.domain = domain
        self.state = ForwardCompatibleEnum(state)
        self.message = message
    }
}

/// Whether this machine alone uses its identity.
public struct IdentityJSON: JSONShape, Sendable, Equatable {
    /// The state of the identity. An unknown state of a newer daemon becomes `own`.
    public enum State: String, Sendable {
        case own
        /// The state folder was last used on another machine.
        case foreign
        /// Another machine uses this identity too.
        case conflict
    }

    private var word: ForwardCompatibleEnum<State>
    /// The problem and advice; `nil` for the state `own`.
    public var message: String?

    private enum CodingKeys: String, CodingKey {
        case word = "state"
        case message
    }

    public var state: State { word.known ?? .own }

    public init(state: State, message: String? = nil) {
        word = ForwardCompatibleEnum(state)
        self.message = message
    }
}

/// A hook that cannot run, or whose last run failed.
public struct HookFault: JSONShape, Sendable, Equatable {
    /// The name of the hook; `nil` if the problem concerns the folder of hooks.
    public var hook: String?
    public var message: String
    /// The time of the failed run; `nil` if the hook cannot run at all.
    public var at: Timestamp?

    public init(hook: String?, message: String, at: Timestamp? = nil) {
        self.hook = hook
        self.message = message
        self.at = at
    }

    /// One line of text: `peer.up: it failed: …`, or only the message if the problem concerns the folder of hooks.
    public var text: String { hook.map { "\($0): \(message)" } ?? message }
}

/// The number of outbox rows in each state: `{"queued":2,…}`. Has a member for every `OutboxState`, in the order of that enum.
@propertyWrapper
public struct OutboxCounts: JSONCoded, Sendable, Equatable {
    public var wrappedValue: [OutboxState: Int]

    public init(wrappedValue: [OutboxState: Int]) { self.wrappedValue = wrappedValue }

    public func write(to json: inout JSONWriter) {
        json.object { for state in OutboxState.allCases { $0.member(state.rawValue, wrappedValue[state] ?? 0) } }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        wrappedValue = [:]
        for state in OutboxState.allCases { wrappedValue[state] = try object.optional(state.rawValue) ?? 0 }
    }
}
