public import HexlistModel

/// One exchange of six digits on one session (Docs/Protocol.md, "Pairing"). Performs no IO: the caller carries out the
/// actions, in order. It ends with `paired` or `ended` and is of no use afterwards.
///
/// Whoever has the session's keys proven gives them in; this value sees to it that neither side could have chosen its nonce
/// after it saw the other's.
public struct PairingStateMachine: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public struct Timing: Sendable {
        /// For a step that no person has to do.
        public var step: Duration = .seconds(5)
        /// For the person to compare and answer.
        public var answer: Duration = .seconds(120)
        /// For the other side's answer, behind that: who said yes at the last moment still hears of the other's yes.
        public var grace: Duration = .seconds(10)

        public init() {}
    }

    public enum Action: Sendable, Equatable {
        case send(Pairing)
        /// For the person to compare with those on the other machine.
        case show(digits: String)
        /// Both people said yes.
        case paired
        /// - Parameter isFailure: it was one more try that somebody may have had of the digits.
        case ended(End, isFailure: Bool)
    }

    public enum End: Sendable, Equatable {
        /// The other side takes no request, or gave up before it could know the digits.
        case notTaken
        /// The other side had the own nonce, by which it could know the digits, and went no further.
        case givenUp
        /// The other side said no, or broke off, with the digits before it.
        case refused
        /// The own person said no.
        case rejected
        /// The own person gave up before there were digits.
        case withdrawn
        /// The own person entered other digits.
        case wrongCode
        /// The nonce is not the one committed to: somebody tried to choose the digits.
        case badReveal
        /// A step that is not due, or makes no sense.
        case outOfOrder
        /// Nobody answered in time, here or there.
        case timedOut
        /// The session is gone.
        case lost
    }

    public enum Stage: Sendable, Equatable {
        /// Nothing to see yet.
        case opening
        /// The digits are shown and the own person has not answered.
        case comparing(digits: String)
        /// The own person said yes; the other side's answer is due.
        case confirmed(digits: String)
        case ended
    }

    private enum State: Sendable {
        /// Asked, and waits for the other's nonce. `crossed`: the other asked at the same time, and gives way.
        case committed(PairingNonce, crossed: Bool)
        /// Was asked, has answered with its nonce, and waits for the one committed to.
        case answered(PairingNonce, commitment: [UInt8])
        case comparing(digits: String, saidYes: Bool, heardYes: Bool)
        case ended
    }

    public let own: Fingerprint
    public let peer: Fingerprint
    private let timing: Timing
    private var state: State
    private var deadline: Instant

    private init(own: Fingerprint, peer: Fingerprint, timing: Timing, state: State, now: Instant) {
        self.own = own
        self.peer = peer
        self.timing = timing
        self.state = state
        deadline = now + timing.step
    }

    // MARK: Beginning

    /// Asks the peer. `nonce` is used for this exchange only.
    public static func ask(
        own: Fingerprint, peer: Fingerprint, nonce: PairingNonce, timing: Timing = Timing(), now: Instant
    ) -> (PairingStateMachine, [Action]) {
        let machine = PairingStateMachine(own: own, peer: peer, timing: timing, state: .committed(nonce, crossed: false), now: now)
        let commitment = PairingCode.commitment(nonce: nonce, asker: own, asked: peer)
        return (machine, [.send(Pairing(step: "commit", commitment: Base64.encode(commitment)))])
    }

    /// Takes a request of the peer. `nil` where it is no `commit`, or its commitment no 32 bytes.
    public static func answer(
        _ request: Pairing, own: Fingerprint, peer: Fingerprint, nonce: PairingNonce, timing: Timing = Timing(), now: Instant
    ) -> (PairingStateMachine, [Action])? {
        guard request.step == "commit", let commitment = Base64.decode32(request.commitment) else { return nil }
        let machine = PairingStateMachine(
            own: own, peer: peer, timing: timing, state: .answered(nonce, commitment: commitment), now: now)
        return (machine, [.send(Pairing(step: "nonce", nonce: nonce.base64))])
    }

    // MARK: What is there to see

    public var stage: Stage {
        switch state {
        case .committed, .answered: .opening
        case .comparing(let digits, saidYes: false, _): .comparing(digits: digits)
        case .comparing(let digits, saidYes: true, _): .confirmed(digits: digits)
        case .ended: .ended
        }
    }

    /// When `tick` has something to do.
    public var nextDeadline: Instant? {
        if case .ended = state { return nil }
        return deadline
    }

    private var hasShown: Bool { if case .comparing = state { true } else { false } }

    // MARK: The other side

    /// A `Pair` came on the session.
    /// - Parameter freshNonce: used where both asked and this side gives way.
    public mutating func received(_ pairing: Pairing, freshNonce: @autoclosure () -> PairingNonce, now: Instant) -> [Action] {
        if case .ended = state { return [] }
        if pairing.step == "cancel" {
            // Its message is for a log at most: next to a question it would be a stranger's advice. One is known, which tells a person
            // who said no from one who said nothing; it ends the exchange all the same.
            let end: End =
                switch state {
                case .committed, .ended: .notTaken
                case .answered: .givenUp
                case .comparing: pairing.message.utf8.elementsEqual(End.timedOut.message.utf8) ? .timedOut : .refused
                }
            return self.end(end, tells: nil)
        }
        switch (state, pairing.step) {
        case (.committed(let nonce, crossed: false), "commit"):
            // Of two requests that cross, that of the greater UUID stands.
            guard own.peerID < peer.peerID else {
                state = .committed(nonce, crossed: true)
                return []
            }
            guard let commitment = Base64.decode32(pairing.commitment) else { return end(.outOfOrder) }
            let nonce = freshNonce()
            state = .answered(nonce, commitment: commitment)
            deadline = now + timing.step
            return [.send(Pairing(step: "nonce", nonce: nonce.base64))]

        case (.committed(let nonce, _), "nonce"):
            guard let other = PairingNonce(base64: pairing.nonce) else { return end(.outOfOrder) }
            let digits = PairingCode.digits(asker: own, asked: peer, askerNonce: nonce, askedNonce: other)
            return [.send(Pairing(step: "reveal", nonce: nonce.base64)), show(digits, now: now)]

        case (.answered(let nonce, let commitment), "reveal"):
            guard let other = PairingNonce(base64: pairing.nonce),
                PairingCode.areEqual(commitment, PairingCode.commitment(nonce: other, asker: peer, asked: own))
            else { return end(.badReveal) }
            return [show(PairingCode.digits(asker: peer, asked: own, askerNonce: other, askedNonce: nonce), now: now)]

        case (.comparing(let digits, let saidYes, heardYes: false), "confirm"):
            guard !saidYes else {
                state = .ended
                return [.paired]
            }
            state = .comparing(digits: digits, saidYes: false, heardYes: true)
            return []

        default: return end(.outOfOrder)
        }
    }

    // MARK: The own person

    /// The person says that these digits are on both screens. Counts only while digits are shown and no answer was given.
    public mutating func confirm(digits entered: String) -> [Action] {
        guard case .comparing(let digits, saidYes: false, let heardYes) = state else { return [] }
        guard PairingCode.areEqual(Array(entered.utf8), Array(digits.utf8)) else { return end(.wrongCode) }
        let confirmation = Action.send(Pairing(step: "confirm"))
        guard !heardYes else {
            state = .ended
            return [confirmation, .paired]
        }
        state = .comparing(digits: digits, saidYes: true, heardYes: false)
        deadline += timing.grace
        return [confirmation]
    }

    /// The person says no, or gives up.
    public mutating func reject() -> [Action] {
        if case .ended = state { return [] }
        return end(hasShown ? .rejected : .withdrawn)
    }

    // MARK: Time and the session

    public mutating func tick(now: Instant) -> [Action] {
        guard let due = nextDeadline, now >= due else { return [] }
        if case .answered = state { return end(.givenUp) }
        return end(.timedOut)
    }

    /// An exchange dies with its session. That is no failure: links break.
    public mutating func sessionEnded() -> [Action] {
        if case .ended = state { return [] }
        return end(.lost, tells: nil)
    }

    private mutating func show(_ digits: String, now: Instant) -> Action {
        state = .comparing(digits: digits, saidYes: false, heardYes: false)
        deadline = now + timing.answer
        return .show(digits: digits)
    }

    private mutating func end(_ end: End) -> [Action] { self.end(end, tells: end.message) }

    /// - Parameter message: what the other side is told; `nil` where it knows, or cannot be told.
    private mutating func end(_ end: End, tells message: String?) -> [Action] {
        let isFailure = hasShown && end != .lost || end == .badReveal
        state = .ended
        let cancel = message.map { Action.send(Pairing(step: "cancel", message: $0)) }
        return (cancel.map { [$0] } ?? []) + [.ended(end, isFailure: isFailure)]
    }
}

extension PairingStateMachine.End {
    /// For the person at the other side.
    fileprivate var message: String {
        switch self {
        case .notTaken, .refused, .lost: ""
        case .rejected, .wrongCode: "The person there said no."
        case .withdrawn: "The request was taken back."
        case .badReveal: "The digits could have been chosen."
        case .outOfOrder: "A step came that was not due."
        case .givenUp, .timedOut: "There was no answer in time."
        }
    }
}
