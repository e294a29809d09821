public import HexlistModel

/// One exchange of six digits on one session (Docs/Protocol.md, "Pairing"). Performs no IO: the caller carries out the actions, in order.
/// Ends with `paired` or `ended` and cannot be used afterwards.
///
/// The caller provides the keys that the session has proved. This machine ensures that neither side can have chosen its nonce after it saw
/// the other's.
public struct PairingStateMachine: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public struct Timing: Sendable {
        /// The time for a step that needs no person.
        public var step: Duration = .seconds(5)
        /// The time for the user to compare and answer.
        public var answer: Duration = .seconds(120)
        /// The time for the other side's answer, on top of `answer`: a user who says yes at the last moment still learns of the other's
        /// yes.
        public var grace: Duration = .seconds(10)

        public init() {}
    }

    public enum Action: Sendable, Equatable {
        case send(Pairing)
        /// Show digits, for the user to compare with those on the other machine.
        case show(digits: String)
        /// Both users said yes.
        case paired
        /// The exchange is over without a pairing.
        /// - Parameter isFailure: whether somebody may have had one more guess at the digits.
        case ended(End, isFailure: Bool)
    }

    public enum End: Sendable, Equatable {
        /// The other side takes no request, or gave up before it could know the digits.
        case notTaken
        /// The other side had this side's nonce, by which it could know the digits, and did not continue.
        case givenUp
        /// The other side saw the digits, and said no or broke off.
        case refused
        /// This side's user said no.
        case rejected
        /// This side's user gave up before there were digits.
        case withdrawn
        /// This side's user entered other digits.
        case wrongCode
        /// The nonce differs from the one committed to: somebody tried to choose the digits.
        case badReveal
        /// A step that is not due, or is malformed.
        case outOfOrder
        /// Nobody answered in time, on either side.
        case timedOut
        /// The session ended.
        case lost
    }

    public enum Stage: Sendable, Equatable {
        /// Nothing to show yet.
        case opening
        /// The digits are shown, and this side's user has not answered.
        case comparing(digits: String)
        /// This side's user said yes; the other side's answer is due.
        case confirmed(digits: String)
        case ended
    }

    private enum State: Sendable {
        /// This side asked and waits for the other's nonce. `crossed`: the other side asked at the same time and gives way.
        case committed(PairingNonce, crossed: Bool)
        /// This side was asked, has answered with its nonce, and waits for the nonce that was committed to.
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

    /// Begins an exchange by asking the peer. `nonce` is used for this exchange only.
    public static func ask(
        own: Fingerprint, peer: Fingerprint, nonce: PairingNonce, timing: Timing = Timing(), now: Instant
    ) -> (PairingStateMachine, [Action]) {
        let machine = PairingStateMachine(own: own, peer: peer, timing: timing, state: .committed(nonce, crossed: false), now: now)
        let commitment = PairingCode.commitment(nonce: nonce, asker: own, asked: peer)
        return (machine, [.send(Pairing(step: "commit", commitment: Base64.encode(commitment)))])
    }

    /// Begins an exchange by taking the peer's request; `nil` if that is no `commit`, or its commitment is not 32 bytes.
    public static func answer(
        _ request: Pairing, own: Fingerprint, peer: Fingerprint, nonce: PairingNonce, timing: Timing = Timing(), now: Instant
    ) -> (PairingStateMachine, [Action])? {
        guard request.knownStep == .commit, let commitment = Base64.decode32(request.commitment) else { return nil }
        let machine = PairingStateMachine(
            own: own, peer: peer, timing: timing, state: .answered(nonce, commitment: commitment), now: now)
        return (machine, [.send(Pairing(step: "nonce", nonce: nonce.base64))])
    }

    // MARK: The stage

    public var stage: Stage {
        switch state {
        case .committed, .answered: .opening
        case .comparing(let digits, saidYes: false, _): .comparing(digits: digits)
        case .comparing(let digits, saidYes: true, _): .confirmed(digits: digits)
        case .ended: .ended
        }
    }

    /// The instant at which `tick` has something to do.
    public var nextDeadline: Instant? {
        if case .ended = state { return nil }
        return deadline
    }

    private var hasShown: Bool { if case .comparing = state { true } else { false } }

    // MARK: The other side

    /// Handles a `Pair` that came on the session.
    /// - Parameter freshNonce: the nonce to use if both sides asked and this one gives way.
    public mutating func received(_ pairing: Pairing, freshNonce: @autoclosure () -> PairingNonce, now: Instant) -> [Action] {
        if case .ended = state { return [] }
        if pairing.knownStep == .cancel {
            // The message is for a log at most: shown next to a question it would be a stranger's advice. Only a known one, which
            // distinguishes a user who said no from one who did not answer, changes the end that is reported.
            let end: End =
                switch state {
                case .committed, .ended: .notTaken
                case .answered: .givenUp
                case .comparing: pairing.message.utf8.elementsEqual(End.timedOut.message.utf8) ? .timedOut : .refused
                }
            return self.end(end, tells: nil)
        }
        switch (state, pairing.knownStep) {
        case (.committed(let nonce, crossed: false), .commit?):
            // Of two requests that cross, the one of the greater UUID stands.
            guard own.peerID < peer.peerID else {
                state = .committed(nonce, crossed: true)
                return []
            }
            guard let commitment = Base64.decode32(pairing.commitment) else { return end(.outOfOrder) }
            let nonce = freshNonce()
            state = .answered(nonce, commitment: commitment)
            deadline = now + timing.step
            return [.send(Pairing(step: "nonce", nonce: nonce.base64))]

        case (.committed(let nonce, _), .nonce?):
            guard let other = PairingNonce(base64: pairing.nonce) else { return end(.outOfOrder) }
            let digits = PairingCode.digits(asker: own, asked: peer, askerNonce: nonce, askedNonce: other)
            return [.send(Pairing(step: "reveal", nonce: nonce.base64)), show(digits, now: now)]

        case (.answered(let nonce, let commitment), .reveal?):
            guard let other = PairingNonce(base64: pairing.nonce),
                PairingCode.areEqual(commitment, PairingCode.commitment(nonce: other, asker: peer, asked: own))
            else { return end(.badReveal) }
            return [show(PairingCode.digits(asker: peer, asked: own, askerNonce: other, askedNonce: nonce), now: now)]

        case (.comparing(let digits, let saidYes, heardYes: false), .confirm?):
            guard !saidYes else {
                state = .ended
                return [.paired]
            }
            state = .comparing(digits: digits, saidYes: false, heardYes: true)
            return []

        default: return end(.outOfOrder)
        }
    }

    // MARK: This side's user

    /// Takes the digits that the user says are on both screens. Counts only while digits are shown and not yet answered.
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

    /// Takes the user's no, or the request back.
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

    /// Ends the exchange with its session. That is no failure: connections break.
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

    /// - Parameter message: the text for the other side; `nil` if it knows, or cannot be told.
    private mutating func end(_ end: End, tells message: String?) -> [Action] {
        let isFailure = hasShown && end != .lost || end == .badReveal
        state = .ended
        let cancel = message.map { Action.send(Pairing(step: "cancel", message: $0)) }
        return (cancel.map { [$0] } ?? []) + [.ended(end, isFailure: isFailure)]
    }
}

extension PairingStateMachine.End {
    /// The text for the user on the other side.
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
