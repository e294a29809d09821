public import HexlistJSON
public import HexlistModel

/// The reply to `POST /v1/web`: an address that opens the page once.
public struct PageAddress: JSONShape, Sendable, Equatable {
    /// The address, with a secret after `#` that is valid once.
    public var url: String
    /// The port of the page's listener on 127.0.0.1.
    public var port: Int
    /// The time at which the secret expires.
    public var until: Timestamp

    public init(url: String, port: Int, until: Timestamp) {
        self.url = url
        self.port = port
        self.until = until
    }
}

/// The reply to `GET /v1/web`: the state of this machine for the page.
public struct PageOverview: JSONShape, Sendable, Equatable {
    public var version: String
    public var name: String
    public var uuid: PeerID
    public var fingerprint: Fingerprint
    public var inbox: Int
    public var unread: Int
    public var held: Int
    /// Number of hexes at the top level of My Hexlist.
    public var mine: Int
    /// The number of the last change of My Hexlist in its change log; 0 before the first change.
    public var mineChange: Int64
    /// Number of links in shared hexes that others added and that the user has not seen; of each hex at most 1 000 are counted.
    @OmittedIfEmpty public var newLinks: Int
    @OutboxCounts public var outbox: [OutboxState: Int]
    /// The number of the newest event of the event log; 0 before the first event.
    public var lastEvent: Int64
    /// The LocalSend devices that want to send files and wait for the user's answer; `nil` if there are none.
    public var uploadRequests: [UploadRequestView]?
    /// The reason why peers cannot be found at the moment; `nil` if they can.
    public var discoveryFault: String?
    /// The reason why the store cannot be written at the moment; `nil` if it can.
    public var storeFault: String?

    public init(
        version: String, name: String, uuid: PeerID, fingerprint: Fingerprint, inbox: Int, unread: Int, held: Int, mine: Int,
        mineChange: Int64, newLinks: Int = 0, outbox: [OutboxState: Int], lastEvent: Int64, uploadRequests: [UploadRequestView]? = nil,
        discoveryFault: String? = nil,
        storeFault: String? = nil
    ) {
        self.version = version
        self.name = name
        self.uuid = uuid
        self.fingerprint = fingerprint
        self.inbox = inbox
        self.unread = unread
        self.held = held
        self.mine = mine
        self.mineChange = mineChange
        self.newLinks = newLinks
        self.outbox = outbox
        self.lastEvent = lastEvent
        self.uploadRequests = uploadRequests
        self.discoveryFault = discoveryFault
        self.storeFault = storeFault
    }
}

/// The body of `POST /session`, with which the page exchanges a secret for a token. Only the page's listener has this path.
public struct PageSecret: JSONShape, Sendable, Equatable {
    public var secret: String

    private enum CodingKeys: String, RequestKey {
        case secret
    }

    public init(secret: String) { self.secret = secret }
}

/// The reply to `POST /session`: the keys of the new page.
public struct PageSession: JSONShape, Sendable, Equatable {
    /// The token that authorises all further requests of the page, sent as `Authorization: Bearer TOKEN`.
    public var token: String
    /// The secret with which the page starts a new session after a reload.
    public var reload: String
    /// The value of the header `Hexlist-Proof` in the replies with event streams. It proves that the page is still connected to the same
    /// listener: another program that takes the port later does not know it.
    public var proof: String

    public init(token: String, reload: String, proof: String) {
        self.token = token
        self.reload = reload
        self.proof = proof
    }
}

/// The QR code of this machine: the URI of `hexlist id --qr`, which `hexlist peer add` reads, and its image as SVG.
public struct IdentityQRCode: JSONShape, Sendable, Equatable {
    public var uri: String
    public var svg: String

    public init(uri: String, svg: String) { (self.uri, self.svg) = (uri, svg) }
}
