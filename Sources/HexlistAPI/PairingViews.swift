public import HexlistJSON
public import HexlistModel

/// The reply to `GET /v1/pairings`: `{"openUntil"?,"triesLeft"?,"items":[…]}`.
public struct PairingOverview: JSONShape, Sendable, Equatable {
    /// The end of the time in which requests are taken; absent while none is taken.
    public var openUntil: Timestamp?
    /// The number of exchanges that may still fail before requests are no longer taken; absent while none is taken.
    public var triesLeft: Int?
    /// The pairings that ended lately, oldest first, then the one that runs, if any.
    public var items: [PairingView]

    public init(openUntil: Timestamp? = nil, triesLeft: Int? = nil, items: [PairingView]) {
        self.openUntil = openUntil
        self.triesLeft = triesLeft
        self.items = items
    }
}

/// One pairing.
public struct PairingView: JSONShape, Sendable, Equatable {
    public enum Role: String, Sendable {
        /// The part of this side: it asked, or was asked.
        case asking, asked
    }

    public enum State: String, JSONWord, Sendable {
        /// The pairing waits for the other side, until there are digits.
        case waiting
        /// The digits are shown on both sides.
        case comparing
        /// The person on this side said yes.
        case confirmed
        case paired
        case ended

        public var isFinal: Bool { self == .paired || self == .ended }
    }

    /// The reason why a pairing ended.
    public enum Reason: String, Sendable, CaseIterable {
        /// The own person said no, or entered other digits.
        case rejected, wrongCode
        /// The own person took the request back before there were digits.
        case withdrawn
        /// The other side gave up when it could know the digits, and before they were shown here.
        case givenUp
        /// The other side said no or gave up, after the digits were shown.
        case refused
        /// The other side tried to choose the digits, or did not keep to the steps.
        case unfair, outOfOrder
        /// The time ran out: nobody answered the question, or the request was not taken.
        case timeout, expired
        /// The session broke.
        case lost
        /// The pairing was lost or given up, and too many exchanges had failed, so pairing was switched off with it.
        case tooManyTries
        /// Both sides said yes, but the store could not be written.
        case notStored
    }

    /// Rises; a pairing that begins again with new digits has a new one.
    public var id: Int
    public var peer: PeerID
    /// The alias, or what the peer calls itself. Text of a peer: clean it where it is shown.
    public var name: String
    public var alias: String?
    /// `nil` from an older daemon.
    public var trust: ForwardCompatibleEnum<Trust>?
    /// The key that is compared; `nil` before there is a session.
    public var fingerprint: Fingerprint?
    public var role: ForwardCompatibleEnum<Role>
    public var state: State
    /// Six, while `comparing` and `confirmed`.
    public var digits: String?
    /// The reason, while `ended`.
    public var reason: ForwardCompatibleEnum<Reason>?
    /// One sentence for people: the reason why it waits, or why it ended.
    public var message: String?
    /// When it ends by itself.
    public var until: Timestamp?
    /// The number of exchanges with that key that may still fail within ten minutes, on a pairing that ended; absent where this one does
    /// not count.
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

/// The body of `POST /v1/pairings`: whom to ask; without a peer, requests are taken.
public struct PairingRequest: JSONShape, Sendable, Equatable {
    public var peer: String?

    private enum CodingKeys: String, RequestKey {
        case peer
    }

    public init(peer: String? = nil) { self.peer = peer }
}

/// The body of `POST /v1/pairings/{peer}/confirm`: what the person read on the other screen.
public struct PairingConfirmation: JSONShape, Sendable, Equatable {
    /// Six decimal digits. Others than those shown are a no.
    public var digits: String
    /// The pairing that was looked at: its digits, shown no longer, are no failure then.
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
