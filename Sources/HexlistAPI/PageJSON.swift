public import HexlistJSON
public import HexlistModel

/// The reply to `POST /v1/web`: where the page is, once.
public struct PageInvitation: JSONShape, Sendable, Equatable {
    /// The address with a secret behind `#`: good for one opening.
    public var url: String
    /// The port on 127.0.0.1.
    public var port: Int
    /// When the secret ends.
    public var until: Timestamp

    public init(url: String, port: Int, until: Timestamp) {
        self.url = url
        self.port = port
        self.until = until
    }
}

/// The reply to `GET /v1/web`: what the page shows of this machine.
public struct PageOverview: JSONShape, Sendable, Equatable {
    public var version: String
    public var name: String
    public var uuid: PeerID
    public var fingerprint: Fingerprint
    public var inbox: Int
    public var unread: Int
    public var held: Int
    /// Hexes of My Hexlist that are in no other.
    public var mine: Int
    @OutboxCounts public var outbox: [OutboxState: Int]
    /// The number of the newest event; 0 before the first.
    public var lastEvent: Int64
    /// The reason why others are not found at the moment; `nil` while they are.
    public var discoveryFault: String?
    /// The reason why the store cannot be written at the moment.
    public var storeFault: String?

    public init(
        version: String, name: String, uuid: PeerID, fingerprint: Fingerprint, inbox: Int, unread: Int, held: Int, mine: Int,
        outbox: [OutboxState: Int], lastEvent: Int64, discoveryFault: String? = nil, storeFault: String? = nil
    ) {
        self.version = version
        self.name = name
        self.uuid = uuid
        self.fingerprint = fingerprint
        self.inbox = inbox
        self.unread = unread
        self.held = held
        self.mine = mine
        self.outbox = outbox
        self.lastEvent = lastEvent
        self.discoveryFault = discoveryFault
        self.storeFault = storeFault
    }
}

/// The body of `POST /session`, which only the page's listener has.
public struct PageSecret: JSONShape, Sendable, Equatable {
    public var secret: String

    private enum CodingKeys: String, RequestKey {
        case secret
    }

    public init(secret: String) { self.secret = secret }
}

/// The reply to `POST /session`.
public struct PageSession: JSONShape, Sendable, Equatable {
    /// The token that each request of the page carries, as `Authorization: Bearer TOKEN`.
    public var token: String
    /// The secret with which the page begins again when it is reloaded.
    public var reload: String
    /// What the head of each event stream says, as `Hexlist-Proof`: who has the port after the listener ended does not know it.
    public var proof: String

    public init(token: String, reload: String, proof: String) {
        self.token = token
        self.reload = reload
        self.proof = proof
    }
}
