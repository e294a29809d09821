public import HexlistJSON
public import HexlistModel

/// What `GET /v1/pairings` gives: `{"openUntil"?,"triesLeft"?,"items":[…]}`.
public struct PairingsShape: JSONShape, Sendable, Equatable {
    /// Until when requests are taken; absent while they are not.
    public var openUntil: Timestamp?
    /// How many exchanges may still come to nothing until no request is taken any more; absent while none is taken.
    public var triesLeft: Int?
    /// What ended lately, oldest first, then what runs: one at most.
    public var items: [PairingShape]

    public init(openUntil: Timestamp? = nil, triesLeft: Int? = nil, items: [PairingShape]) {
        self.openUntil = openUntil
        self.triesLeft = triesLeft
        self.items = items
    }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("openUntil", openUntil)
            $0.member("triesLeft", triesLeft)
            $0.member("items", items)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        openUntil = try object.optional("openUntil")
        triesLeft = try object.optional("triesLeft")
        items = try object.value("items")
    }
}

/// One pairing.
public struct PairingShape: JSONShape, Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        /// For the other side, until there are digits.
        case waiting
        /// The digits are shown on both sides.
        case comparing
        /// This side said yes.
        case confirmed
        case paired
        case ended

        public var isFinal: Bool { self == .paired || self == .ended }
    }

    /// Rises; a pairing that begins again with new digits has a new one.
    public var id: Int
    /// UUID.
    public var peer: String
    /// The alias, or what the peer calls itself. Text of a peer: clean it where it is shown.
    public var name: String
    public var alias: String?
    /// `trusted`, `blocked` or `stranger`.
    public var trust: String
    /// 64 hexadecimal digits: the key that is compared.
    public var fingerprint: String?
    /// Whether this side asked (`asking`) or was asked (`asked`).
    public var isOwn: Bool
    public var state: State
    /// Six, while `comparing` and `confirmed`.
    public var digits: String?
    /// Why it ended: `rejected`, `wrongCode`, `withdrawn`, `givenUp`, `refused`, `unfair`, `outOfOrder`, `timeout`, `expired`, `lost`,
    /// `tooManyTries`, `notStored`; a newer daemon may know more.
    public var reason: String?
    /// One sentence for people: why it waits, or why it ended.
    public var message: String?
    /// When it ends by itself.
    public var until: Timestamp?
    /// Of one that ended: how many more with that key may come to nothing within ten minutes; absent where this one does not count.
    public var triesLeft: Int?

    public init(
        id: Int, peer: String, name: String, alias: String? = nil, trust: String = "stranger", fingerprint: String? = nil, isOwn: Bool,
        state: State, digits: String? = nil,
        reason: String? = nil, message: String? = nil, until: Timestamp? = nil, triesLeft: Int? = nil
    ) {
        self.id = id
        self.peer = peer
        self.name = name
        self.alias = alias
        self.trust = trust
        self.fingerprint = fingerprint
        self.isOwn = isOwn
        self.state = state
        self.digits = digits
        self.reason = reason
        self.message = message
        self.until = until
        self.triesLeft = triesLeft
    }

    public var label: PeerLabel { PeerLabel(uuid: peer, name: name, alias: alias, trust: trust) }

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("id", id)
            $0.member("peer", peer)
            $0.member("name", name)
            $0.member("alias", alias)
            $0.member("trust", trust)
            $0.member("fingerprint", fingerprint)
            $0.member("role", isOwn ? "asking" : "asked")
            $0.member("state", state.rawValue)
            $0.member("digits", digits)
            $0.member("reason", reason)
            $0.member("message", message)
            $0.member("until", until)
            $0.member("triesLeft", triesLeft)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json)
        id = try object.value("id")
        peer = try object.value("peer")
        name = try object.value("name")
        alias = try object.optional("alias")
        trust = try object.optional("trust") ?? "stranger"
        fingerprint = try object.optional("fingerprint")
        let role: String = try object.value("role")
        isOwn = role == "asking"
        state = try object.choice("state")
        digits = try object.optional("digits")
        reason = try object.optional("reason")
        message = try object.optional("message")
        until = try object.optional("until")
        triesLeft = try object.optional("triesLeft")
    }
}

/// The body of `POST /v1/pairings`: whom to ask; without a peer, requests are taken.
public struct PairingRequest: JSONShape, Sendable, Equatable {
    public var peer: String?

    public init(peer: String? = nil) { self.peer = peer }

    public func write(to json: inout JSONWriter) { json.object { $0.member("peer", peer) } }

    public init(json: JSONValue) throws(JSONFault) { peer = try JSONObject(json, allowing: ["peer"]).optional("peer") }
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

    public func write(to json: inout JSONWriter) {
        json.object {
            $0.member("digits", digits)
            $0.member("id", id)
        }
    }

    public init(json: JSONValue) throws(JSONFault) {
        let object = try JSONObject(json, allowing: ["digits", "id"])
        digits = try object.value("digits")
        id = try object.optional("id")
        guard PairingConfirmation.areDigits(digits) else { throw JSONFault("`digits` are six decimal digits") }
    }

    public static func areDigits(_ text: String) -> Bool {
        text.utf8.count == 6 && text.utf8.allSatisfy(ASCII.isDigit)
    }
}
