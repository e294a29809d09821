public import HexlistJSON
public import HexlistModel

/// A peer, or a ghost, in lists and by itself.
public struct PeerShape: JSONShape, Sendable, Equatable {
    /// `verified`, `away` or `ghost`; a newer daemon may know more.
    public enum State: String, Sendable, CaseIterable {
        case verified, away, ghost
    }

    /// `nil` for a ghost whose announcement carries none.
    public var uuid: String?
    /// What it calls itself. Text of a peer: clean it where it is shown.
    public var name: String
    public var alias: String?
    public var state: State
    /// Why it is hidden: `self`, `duplicate`, `stale`, `conflict`, `impostor`, `invalid`, `unverified`.
    public var reason: String?
    /// One line for people.
    public var why: String?
    /// `trusted`, `blocked` or `stranger`.
    public var trust: String
    /// 64 hexadecimal digits; `nil` for what never proved itself.
    public var fingerprint: String?
    public var version: String?
    public var boot: String?
    public var endpoints: [EndpointShape]
    public var lastSeen: Timestamp?
    public var unread: Int

    public init(
        uuid: String?, name: String, alias: String? = nil, state: State, reason: String? = nil, why: String? = nil,
        trust: String, fingerprint: String? = nil, version: String? = nil, boot: String? = nil,
        endpoints: [EndpointShape] = [], lastSeen: Timestamp? = nil, unread: Int = 0
    ) {
        self.uuid = uuid
        self.name = name
        self.alias = alias
        self.state = state
        self.reason = reason
        self.why = why
        self.trust = trust
        self.fingerprint = fingerprint
        self.version = version
        self.boot = boot
        self.endpoints = endpoints
        self.lastSeen = lastSeen
        self.unread = unread
    }

    public var label: PeerLabel { PeerLabel(uuid: uuid, name: name, alias: alias, trust: trust) }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("uuid", uuid)
            $0.member("name", name)
            $0.member("alias", alias)
            $0.member("state", state.rawValue)
            $0.member("reason", reason)
            $0.member("why", why)
            $0.member("trust", trust)
            $0.member("fingerprint", fingerprint)
            $0.member("version", version)
            $0.member("boot", boot)
            $0.member("endpoints", endpoints)
            $0.member("lastSeen", lastSeen)
            $0.member("unread", unread)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        uuid = try object.optional("uuid")
        name = try object.value("name")
        alias = try object.optional("alias")
        state = try object.choice("state")
        reason = try object.optional("reason")
        why = try object.optional("why")
        trust = try object.value("trust")
        fingerprint = try object.optional("fingerprint")
        version = try object.optional("version")
        boot = try object.optional("boot")
        endpoints = try object.value("endpoints")
        lastSeen = try object.optional("lastSeen")
        unread = try object.value("unread")
    }
}

/// Where a peer can be reached.
public struct EndpointShape: JSONShape, Sendable, Equatable {
    public var host: String
    public var port: Int
    public var interface: String?
    /// `mdns`, `dns`, `static`, `lastKnown` or `inbound`.
    public var via: String
    /// When a session last came up over it.
    public var lastOK: Timestamp?

    public init(host: String, port: Int, interface: String? = nil, via: String, lastOK: Timestamp? = nil) {
        self.host = host
        self.port = port
        self.interface = interface
        self.via = via
        self.lastOK = lastOK
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("host", host)
            $0.member("port", port)
            $0.member("interface", interface)
            $0.member("via", via)
            $0.member("lastOK", lastOK)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        host = try object.value("host")
        port = try object.value("port")
        interface = try object.optional("interface")
        via = try object.value("via")
        lastOK = try object.optional("lastOK")
    }
}
