public import HexlistJSON
public import HexlistModel

/// The reply to `GET /v1/pairings`: `{"openUntil"?,"triesLeft"?,"items":[…]}`.
public struct PairingOverview: JSONShape, Sendable, Equatable {
    /// The time until which pairing requests are accepted; absent if none are accepted.
    public var openUntil: Timestamp?
    /// Number of exchanges that may still fail before requests are no longer accepted; absent if none are accepted.
    public var triesLeft: Int?
    /// The pairings that ended recently, oldest first, followed by the running one, if any.
    public var items: [PairingView]

    public init(openUntil: Timestamp? = nil, triesLeft: Int? = nil, items: [PairingView]) {
        self.openUntil = openUntil
        self.triesLeft = triesLeft
        self.items = items
    }
}

/// One pairing of this machine with a peer, running or ended.
public struct PairingView: JSONShape, Sendable, Equatable {
    public enum Role: String, Sendable {
        /// Whether this machine sent the pairing request (`asking`) or received it (`asked`).
        case asking, asked
    }

    public enum State: String, JSONWord, Sendable {
        /// This machine waits for the other one. There are no digits yet.
        case waiting
        /// Both machines show the digits, and their users compare them.
        case comparing
        /// The user of this machine confirmed the digits. The answer of the other user is missing.
        case confirmed
        case paired
        case ended

        public var isFinal: Bool { self == .paired || self == .ended }
    }

    /// The reason why a pairing ended.
    public enum Reason: String, Sendable, CaseIterable {
        /// The user of this machine said no, or entered wrong digits.
        case rejected, wrongCode
        /// The user of this machine cancelled the pairing before digits were shown.
        case withdrawn
        /// The other machine aborted after it could compute the digits, but before this machine showed them.
        case givenUp
        /// The other user said no, or the other machine aborted after the digits were shown.
        case refused
        /// The other machine tried to influence the digits (`unfair`), or violated the protocol (`outOfOrder`).
        case unfair, outOfOrder
        /// The user did not compare the digits in time (`timeout`), or the other machine did not accept the request in time (`expired`).
        case timeout, expired
        /// The session with the peer was lost.
        case lost
        /// Too many pairings failed. This failure ended the time in which requests are accepted.
        case tooManyTries
        /// Both users said yes, but the trust could not be stored.
        case notStored
    }

    /// The id of the pairing. Ids increase; a pairing that restarts with new digits gets a new one.
    public var id: Int
    public var peer: PeerID
    /// The alias, or the name the peer gives itself. Text of a peer: clean it before display.
    public var name: String
    public var alias: String?
    /// The trust in the peer; `nil` from an older daemon.
    public var trust: ForwardCompatibleEnum<Trust>?
    /// The fingerprint of the peer's key; `nil` before there is a session.
    public var fingerprint: Fingerprint?
    public var role: ForwardCompatibleEnum<Role>
    public var state: State
    /// The six digits; set in the states `comparing` and `confirmed`.
    public var digits: String?
    /// The reason why the pairing ended without success, as a code; otherwise `nil`.
    public var reason: ForwardCompatibleEnum<Reason>?
    /// A sentence for the user with the reason why the pairing waits, or why it ended.
    public var message: String?
    /// The time at which the pairing times out.
    public var until: Timestamp?
    /// Number of further exchanges with the same key that may fail within ten minutes; set only after a failure that counts towards this
    /// limit.
    public var triesLeft: Int?

    public init(
        id: Int, peer: PeerID, name: String, alias: String? = nil, trust: Trust = .stranger, fingerprint: Fingerprint? = nil, isOwn: Bool,
        state: State, digits: String? = nil, reason: Reason? = nil, message: String? = nil, until: Timestamp? = nil, triesLeft: Int? = nil
    ) {
        self.id = id
        self.peer = peer
        self.name = name
        self.alias = alias
        self.trust = ForwardCompatibleEnum(trust)
        self.fingerprint = fingerprint
        role = ForwardCompatibleEnum(isOwn ? .asking : .asked)
        self.state = state
        self.digits = digits
        self.reason = reason.map { ForwardCompatibleEnum($0) }
        self.message = message
        self.until = until
        self.triesLeft = triesLeft
    }

    public var isOwn: Bool { role.known == .asking }
    public var label: PeerDisplayName {
        PeerDisplayName(uuid: peer.description, name: name, alias: alias, trust: (trust ?? ForwardCompatibleEnum(.stranger)).text)
    }
}

/// The body of `POST /v1/pairings`: the peer to pair with. Without a peer, this machine accepts requests.
public struct PairingRequest: JSONShape, Sendable, Equatable {
    public var peer: String?

    private enum CodingKeys: String, RequestKey {
        case peer
    }

    public init(peer: String? = nil) { self.peer = peer }
}

/// The body of `POST /v1/pairings/{peer}/confirm`: the digits read on the other screen.
public struct PairingConfirmation: JSONShape, Sendable, Equatable {
    /// Six decimal digits. If they differ from those of this machine, they count as the answer no.
    public var digits: String
    /// The id of the pairing shown to the user. If it is outdated, the digits are not counted as a failure.
    public var id: Int?

    public init(digits: String, id: Int? = nil) {
        self.digits = digits
        self.id = id
    }

    private enum CodingKeys: String, RequestKey {
        case digits, id
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        digits = try container.decode(String.self, forKey: .digits)
        id = try container.decodeIfPresent(Int.self, forKey: .id)
        guard PairingConfirmation.areDigits(digits) else { throw JSONFault("`digits` are six decimal digits") }
    }

    public static func areDigits(_ text: String) -> Bool {
        text.utf8.count == 6 && text.utf8.allSatisfy(ASCII.isDigit)
    }
}
