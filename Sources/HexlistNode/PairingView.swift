public import HexlistModel
import HexlistWire

/// Pairing at a glance.
public struct PairingOverview: Sendable, Equatable {
    /// Until when requests are taken, in milliseconds since 1970; `nil` while they are not.
    public var openUntil: Int64?
    /// How many exchanges may still come to nothing until no request is taken any more; `nil` while none is taken.
    public var triesLeft: Int?
    /// What ended lately, oldest first, then what runs: one at most.
    public var items: [PairingView]
}

/// One pairing as people and scripts see it.
public struct PairingView: Sendable, Equatable {
    public enum Stage: Sendable, Equatable {
        /// For the other side, until there are digits.
        case waiting
        /// Both people are asked whether they see the same.
        case comparing(digits: String)
        /// The own person said yes, the other one has not yet.
        case confirmed(digits: String)
        case paired
        case ended(Reason)
    }

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
        /// Nobody answered the question, or the request was not taken, in time.
        case timeout, expired
        /// The session broke.
        case lost
        /// It was lost or given up, and with it pairing was switched off: too many exchanges came to nothing.
        case tooManyTries
        /// Both said yes, and the store could not be written.
        case notStored
    }

    /// Rises; a pairing that begins again with new digits has a new one.
    public var number: Int
    public var peer: PeerID
    /// Its alias, or what the peer called itself when the digits were shown; before that what it does now. Peer text: clean it when it is
    /// shown.
    public var name: String
    public var alias: String?
    public var trust: Trust
    /// The key that is compared; `nil` before there is a session.
    public var fingerprint: Fingerprint?
    /// Whether this side asked.
    public var isOwn: Bool
    public var stage: Stage
    /// When it ends by itself, in milliseconds since 1970; `nil` where it ended.
    public var until: Int64?
    /// One sentence for people: why it waits, or why it ended.
    public var message: String?
    /// Of one that ended: how many more with that key may come to nothing within ten minutes; `nil` where this one does not count.
    public var triesLeft: Int?
}

extension PairingView {
    init(_ item: PairingDesk.Item, of peer: PeerView?, until: Int64) {
        let stage: Stage =
            switch item.stage {
            case .opening, .ended: .waiting
            case .comparing(let digits): .comparing(digits: digits)
            case .confirmed(let digits): .confirmed(digits: digits)
            }
        self.init(
            number: item.number, peer: item.peer, name: peer?.alias ?? item.name ?? peer?.name ?? item.peer.shortID, alias: peer?.alias,
            trust: peer?.trust ?? .stranger,
            fingerprint: item.fingerprint ?? peer?.fingerprint, isOwn: item.isOwn, stage: stage, until: until,
            message: item.obstacle.map(Self.sentence))
    }

    init(_ outcome: PairingDesk.Outcome, of peer: PeerView?) {
        var (stage, message): (Stage, String?) =
            switch outcome.result {
            case .agreed(let digits): (.confirmed(digits: digits), nil)
            case .paired: (.paired, nil)
            case .notStored(let why): (.ended(.notStored), "Both sides said yes, but this one could not store it: \(why)")
            case .expired(let obstacle): (.ended(.expired), obstacle.map(Self.sentence) ?? "There was no answer in time.")
            case .ended(let end): Self.told(end)
            }
        if outcome.isLast {
            if [.ended(.lost), .ended(.givenUp)].contains(stage) { stage = .ended(.tooManyTries) }
            message = message.map { "\($0) \(Self.interference)" }
        }
        self.init(
            number: outcome.number, peer: outcome.peer, name: peer?.alias ?? outcome.name ?? peer?.name ?? outcome.peer.shortID,
            alias: peer?.alias, trust: peer?.trust ?? .stranger, fingerprint: peer?.fingerprint, isOwn: outcome.isOwn, stage: stage,
            until: nil,
            message: message, triesLeft: outcome.triesLeft)
    }

    private static func told(_ end: PairingStateMachine.End) -> (Stage, String) {
        switch end {
        case .rejected: (.ended(.rejected), "You said no.")
        case .wrongCode: (.ended(.wrongCode), "Those were not the digits shown here.")
        case .withdrawn: (.ended(.withdrawn), "The request was taken back.")
        case .refused: (.ended(.refused), "The other side said no, or broke off.")
        case .notTaken: (.ended(.expired), "The other side takes no request.")
        case .givenUp: (.ended(.givenUp), "The other side gave up once it could know the digits.")
        case .badReveal: (.ended(.unfair), "The other side tried to choose the digits. Somebody may be in between.")
        case .outOfOrder: (.ended(.outOfOrder), "The other side did not keep to the steps.")
        case .timedOut: (.ended(.timeout), "There was no answer in time.")
        case .lost: (.ended(.lost), "The connection broke.")
        }
    }

    private static let interference = """
        Pairing was interrupted or interfered with, and is off now. Name each other, `hexlist pair PEER` on both machines: then nobody else \
        is listened to.
        """

    private static func sentence(_ obstacle: PairingDesk.Obstacle) -> String {
        switch obstacle {
        case .notReached: "It cannot be reached just now."
        case .notTaken: "It takes no request yet; run `hexlist pair` there."
        case .givenUp: "It gave up once it could know the digits; there will be new ones."
        case .lost: "The connection broke; there will be new digits."
        }
    }
}
