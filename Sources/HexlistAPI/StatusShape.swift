public import HexlistJSON
public import HexlistModel

/// The daemon at a glance.
public struct StatusShape: JSONShape, Sendable, Equatable {
    public var version: String
    public var uuid: String
    public var name: String
    /// Whether others are told of this machine (`announce`).
    public var announce: Bool
    /// 64 hexadecimal digits.
    public var fingerprint: String
    public var pid: Int
    public var port: Int
    public var uptimeSeconds: Int
    public var avahi: AvahiShape
    public var identity: IdentityShape
    /// Domains browsed by unicast DNS.
    public var domains: [DomainShape]
    /// Verified ones.
    public var peers: Int
    public var ghosts: Int
    /// Hexes in the inbox; `nil` from an older daemon.
    public var inbox: Int?
    public var unread: Int
    public var held: Int
    /// How many rows stand where; every state is there.
    public var outbox: [OutboxState: Int]
    public var storeBytes: Int64
    /// Why the store cannot be written at the moment; hexes are refused for now and kept by their senders.
    public var storeFault: String?
    /// Why what the configuration file says now does not count; the daemon goes on with what it read before.
    public var configurationFault: String?
    /// Hooks that are not run, and those whose last run failed.
    public var hookFaults: [HookFault]
    public var stateFolder: String

    public init(
        version: String, uuid: String, name: String, announce: Bool = true, fingerprint: String, pid: Int, port: Int, uptimeSeconds: Int,
        avahi: AvahiShape, identity: IdentityShape = IdentityShape(state: .own), domains: [DomainShape] = [], peers: Int, ghosts: Int,
        inbox: Int? = nil, unread: Int, held: Int, outbox: [OutboxState: Int], storeBytes: Int64,
        storeFault: String? = nil, configurationFault: String? = nil, hookFaults: [HookFault] = [], stateFolder: String
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
        self.stateFolder = stateFolder
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("version", version)
            $0.member("uuid", uuid)
            $0.member("name", name)
            $0.member("announce", announce)
            $0.member("fingerprint", fingerprint)
            $0.member("pid", pid)
            $0.member("port", port)
            $0.member("uptimeSeconds", uptimeSeconds)
            $0.member("avahi", avahi)
            $0.member("identity", identity)
            if !domains.isEmpty { $0.member("domains", domains) }
            $0.member("peers", peers)
            $0.member("ghosts", ghosts)
            $0.member("inbox", inbox)
            $0.member("unread", unread)
            $0.member("held", held)
            $0.member("outbox", OutboxCounts(counts: outbox))
            $0.member("storeBytes", storeBytes)
            $0.member("storeFault", storeFault)
            $0.member("configurationFault", configurationFault)
            if !hookFaults.isEmpty { $0.member("hookFaults", hookFaults) }
            $0.member("stateFolder", stateFolder)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        version = try object.value("version")
        uuid = try object.value("uuid")
        name = try object.value("name")
        announce = try object.optional("announce") ?? true
        fingerprint = try object.value("fingerprint")
        pid = try object.value("pid")
        port = try object.value("port")
        uptimeSeconds = try object.value("uptimeSeconds")
        avahi = try object.value("avahi")
        identity = try object.optional("identity") ?? IdentityShape(state: .own)
        domains = try object.optional("domains") ?? []
        peers = try object.value("peers")
        ghosts = try object.value("ghosts")
        inbox = try object.optional("inbox")
        unread = try object.value("unread")
        held = try object.value("held")
        let counts: OutboxCounts = try object.value("outbox")
        outbox = counts.counts
        storeBytes = try object.value("storeBytes")
        storeFault = try object.optional("storeFault")
        configurationFault = try object.optional("configurationFault")
        hookFaults = try object.optional("hookFaults") ?? []
        stateFolder = try object.value("stateFolder")
    }
}

/// Whether peers are found by DNS-SD.
public struct AvahiShape: JSONShape, Sendable, Equatable {
    /// `running`, `unavailable` or `off`.
    public var state: String
    /// What is wrong and what to do.
    public var message: String?

    public init(state: String, message: String? = nil) {
        self.state = state
        self.message = message
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("state", state)
            $0.member("message", message)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        state = try object.value("state")
        message = try object.optional("message")
    }
}

/// Whether the identity is this machine's alone.
public struct IdentityShape: JSONShape, Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        case own
        /// The state folder was last used on another machine.
        case foreign
        /// Another machine proves it too.
        case conflict
    }

    public var state: State
    /// What is wrong and what to do.
    public var message: String?

    public init(state: State, message: String? = nil) {
        self.state = state
        self.message = message
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("state", state.rawValue)
            $0.member("message", message)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        let name: String = try object.value("state")
        state = State(rawValue: name) ?? .own
        message = try object.optional("message")
    }
}

/// A hook that is not run, or whose last run failed.
public struct HookFault: JSONShape, Sendable, Equatable {
    /// Its name; absent where it is the folder that is wrong.
    public var hook: String?
    /// What is wrong.
    public var message: String
    /// When it failed.
    public var at: Timestamp?

    public init(hook: String?, message: String, at: Timestamp? = nil) {
        self.hook = hook
        self.message = message
        self.at = at
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("hook", hook)
            $0.member("message", message)
            $0.member("at", at)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        hook = try object.optional("hook")
        message = try object.value("message")
        at = try object.optional("at")
    }
}

/// Browsing one domain by unicast DNS.
public struct DomainShape: JSONShape, Sendable, Equatable {
    public var domain: String
    /// `running`, `degraded` (DNS answers and lists nobody) or `unavailable`.
    public var state: String
    /// What is wrong.
    public var message: String?

    public init(domain: String, state: String, message: String? = nil) {
        self.domain = domain
        self.state = state
        self.message = message
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("domain", domain)
            $0.member("state", state)
            $0.member("message", message)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        domain = try object.value("domain")
        state = try object.value("state")
        message = try object.optional("message")
    }
}

/// `{"queued":2,…}`: every state, in the order of the enumeration.
private struct OutboxCounts: JSONShape {
    var counts: [OutboxState: Int]

    init(counts: [OutboxState: Int]) { self.counts = counts }

    func write(to json: inout JSONWriter) {
        json.object {
            for state in OutboxState.allCases { $0.member(state.rawValue, counts[state] ?? 0) }
        }
    }

    init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        counts = [:]
        for state in OutboxState.allCases {
            let count: Int? = try object.optional(state.rawValue)
            counts[state] = count ?? 0
        }
    }
}
