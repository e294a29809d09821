public import HexlistModel

/// A single exchange of six digits on one session (Docs/Protocol.md, "Pairing"). Performs no IO: the caller carries out the actions in
/// order. It ends with `paired` or `ended` and cannot be reused.
///
/// The caller provides the keys that the session has proved. The state machine ensures that neither side can choose its nonce after seeing
/// the other's.
public struct PairingStateMachine: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public struct Timing: Sendable {
        /// Timeout of steps without user interaction.
        public var step: Duration = .seconds(5)
        /// Timeout for the user to compare the digits and respond.
        public var answer: Duration = .seconds(120)
        /// Additional time for the peer's response, so that a confirmation at the last moment still completes the pairing.
        public var grace: Duration = .seconds(10)

        public init() {}
    }

    public enum Action: Sendable, Equatable {
        case send(Pairing)
        /// Show digits to be compared with those on the other machine.
        case show(digits: String)
        /// Both users confirmed.
        case paired
        /// The exchange ended without a pairing.
        /// - Parameter isFailure: whether the exchange may have been an attacker's guess at the digits.
        case ended(EndReason, isFailure: Bool)
    }

    public enum EndReason: Sendable, Equatable {
        /// The peer refused the request, or gave up before it could know the digits.
        case notTaken
        /// The peer had this side's nonce, so that it could know the digits, and did not continue.
        case givenUp
        /// The peer showed the digits, and its user rejected them or it ended the exchange.
        case refused
        /// The user of this side rejected the digits.
        case rejected
        /// The user of this side cancelled before the digits were shown.
        case withdrawn
        /// The user of this side entered other digits.
        case wrongCode
        /// The nonce does not match its commitment: an attempt to choose the digits.
        case badReveal
        /// A step that is out of order or malformed.
        case outOfOrder
        /// A timeout on either side.
        case timedOut
        /// The session ended.
        case lost
    }

    public enum Stage: Sendable, Equatable {
        /// The digits are not known yet.
        case opening
        /// The digits are displayed, and the user of this side has not responded.
        case comparing(digits: String)
        /// The user of this side confirmed; waiting for the peer.
        case confirmed(digits: String)
        case ended
    }

    private enum State: Sendable {
        /// This side requested and waits for the peer's nonce. `crossed`: the peer requested at the same time, and its request is dropped.
        case committed(PairingNonce, crossed: Bool)
        /// The peer requested; this side has sent its nonce and waits for the nonce that belongs to the peer's commitment.
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

    /// Starts an exchange as the side that requests the pairing. `nonce` must not be reused.
    public static func ask(
        own: Fingerprint, peer: Fingerprint, nonce: PairingNonce, timing: Timing = Timing(), now: Instant
    ) -> (PairingStateMachine, [Action]) {
        let machine = PairingStateMachine(own: own, peer: peer, timing: timing, state: .committed(nonce, crossed: false), now: now)
        let commitment = PairingCode.commitment(nonce: nonce, asker: own, asked: peer)
        return (machine, [.send(Pairing(step: "commit", commitment: Base64.encode(commitment)))])
    }

    /// Starts an exchange by accepting the peer's request; `nil` if that is not a `commit` or its commitment is not 32 bytes.
    public static func answer(
        _ request: Pairing, own: Fingerprint, peer: Fingerprint, nonce: PairingNonce, timing: Timing = Timing(), now: Instant
    ) -> (PairingStateMachine, [Action])? {
        guard request.knownStep == .commit, let commitment = Base64.decode(request.commitment, count: 32) else { return nil }
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

    /// The time to call `tick`.
    public var nextDeadline: Instant? {
        if case .ended = state { return nil }
        return deadline
    }

    private var hasShown: Bool { if case .comparing = state { true } else { false } }

    // MARK: The other side

    /// Handles a `Pair` received on the session.
    /// - Parameter freshNonce: the nonce to use if both sides requested and this request is dropped.
    public mutating func received(_ pairing: Pairing, freshNonce: @autoclosure () -> PairingNonce, now: Instant) -> [Action] {
        if case .ended = state { return [] }
        if pairing.knownStep == .cancel {
            // The message is not displayed, because a stranger could use it to influence the user's decision. It is only compared with the
            // text of a timeout, to distinguish a timeout from a rejection.
            let end: EndReason =
                switch state {
                case .committed, .ended: .notTaken
                case .answered: .givenUp
                case .comparing: pairing.message.utf8.elementsEqual(EndReason.timedOut.message.utf8) ? .timedOut : .refused
                }
            return self.end(end, notifying: nil)
        }
        switch (state, pairing.knownStep) {
        case (.committed(let nonce, crossed: false), .commit?):
            // If both sides requested at the same time, the request of the side with the greater UUID is used.
            guard own.peerID < peer.peerID else {
                state = .committed(nonce, crossed: true)
                return []
            }
            guard let commitment = Base64.decode(pairing.commitment, count: 32) else { return end(.outOfOrder) }
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

    /// Checks the digits that the user confirmed. Only valid while digits are shown and not confirmed yet.
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

    /// Handles the user's rejection of the digits, or cancellation of the request.
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

    /// Ends the exchange with its session. Not a failure, because connections break.
    public mutating func sessionEnded() -> [Action] {
        if case .ended = state { return [] }
        return end(.lost, notifying: nil)
    }

    private mutating func show(_ digits: String, now: Instant) -> Action {
        state = .comparing(digits: digits, saidYes: false, heardYes: false)
        deadline = now + timing.answer
        return .show(digits: digits)
    }

    private mutating func end(_ end: EndReason) -> [Action] { self.end(end, notifying: end.message) }

    /// - Parameter message: the text for the peer; `nil` if the peer knows the end already or cannot be reached.
    private mutating func end(_ end: EndReason, notifying message: String?) -> [Action] {
        let isFailure = hasShown && end != .lost || end == .badReveal
        state = .ended
        let cancel = message.map { Action.send(Pairing(step: "cancel", message: $0)) }
        return (cancel.map { [$0] } ?? []) + [.ended(end, isFailure: isFailure)]
    }
}

extension PairingStateMachine.EndReason {
    /// The text for the user at the peer.
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
