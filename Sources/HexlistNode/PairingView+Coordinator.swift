import HexlistAPI
import HexlistModel
import HexlistWire

extension PairingView {
    init(_ item: PairingCoordinator.Item, of peer: PeerView?, until: Int64) {
        let (state, digits): (State, String?) =
            switch item.stage {
            case .opening, .ended: (.waiting, nil)
            case .comparing(let digits): (.comparing, digits)
            case .confirmed(let digits): (.confirmed, digits)
            }
        self.init(
            id: item.number, peer: item.peer, name: peer?.alias ?? item.name ?? peer?.name ?? item.peer.shortID, alias: peer?.alias,
            trust: peer?.trust.known ?? .stranger, fingerprint: item.fingerprint ?? peer?.fingerprint, isOwn: item.isOwn, state: state,
            digits: digits, message: item.obstacle.map(Self.sentence), until: Timestamp(milliseconds: until))
    }

    init(_ outcome: PairingCoordinator.FinishedPairing, of peer: PeerView?) {
        var (state, digits, reason, message): (State, String?, Reason?, String?) = (.ended, nil, nil, nil)
        switch outcome.result {
        case .agreed(let agreed): (state, digits) = (.confirmed, agreed)
        case .paired: state = .paired
        case .notStored(let why): (reason, message) = (.notStored, "Both machines answered yes, but this one could not save it: \(why)")
        case .expired(let obstacle): (reason, message) = (.expired, obstacle.map(Self.sentence) ?? "There was no answer in time.")
        case .ended(let end): (reason, message) = Self.reason(of: end)
        }
        if outcome.isLast {
            if reason == .lost || reason == .givenUp { reason = .tooManyTries }
            message = message.map { "\($0) \(Self.interference)" }
        }
        self.init(
            id: outcome.number, peer: outcome.peer, name: peer?.alias ?? outcome.name ?? peer?.name ?? outcome.peer.shortID,
            alias: peer?.alias, trust: peer?.trust.known ?? .stranger, fingerprint: peer?.fingerprint, isOwn: outcome.isOwn, state: state,
            digits: digits, reason: reason, message: message, triesLeft: outcome.triesLeft)
    }

    private static func reason(of end: PairingStateMachine.EndReason) -> (Reason, String) {
        switch end {
        case .rejected: (.rejected, "You answered no.")
        case .wrongCode: (.wrongCode, "The digits were wrong.")
        case .withdrawn: (.withdrawn, "The request was withdrawn.")
        case .refused: (.refused, "The other machine answered no or cancelled.")
        case .notTaken: (.expired, "The other machine is not pairing.")
        case .givenUp: (.givenUp, "The other machine cancelled after it could know the digits.")
        case .badReveal: (.unfair, "The other machine tried to choose the digits. Somebody may be intercepting.")
        case .outOfOrder: (.outOfOrder, "The other machine broke the protocol.")
        case .timedOut: (.timeout, "There was no answer in time.")
        case .lost: (.lost, "The connection broke.")
        }
    }

    private static let interference = """
        Pairing was interrupted or interfered with and is now off. Run `hexlist pair PEER` on both machines, so that nobody else can \
        interfere.
        """

    private static func sentence(_ obstacle: PairingCoordinator.PendingReason) -> String {
        switch obstacle {
        case .notReached: "It cannot be reached at the moment."
        case .notTaken: "It is not pairing yet."
        case .givenUp: "It cancelled after it could know the digits; there will be new ones."
        case .lost: "The connection broke; there will be new digits."
        }
    }
}
