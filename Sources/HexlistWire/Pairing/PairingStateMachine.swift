public import HexlistModel

/// The state machine of one exchange of a pairing, on one session, which leads to the six digits (Docs/Protocol.md, "Pairing"). Performs no
/// IO: the caller carries out the returned actions in order. The last action is `paired` or `ended`.
///
/// The caller passes in the keys that the session has proved. The state machine ensures that no machine can choose its nonce after it has
/// seen the other machine's nonce.
public struct PairingStateMachine: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public struct Timing: Sendable {
        /// Timeout of the steps that need no user.
        public var step: Duration = .seconds(5)
        /// Time in which the user has to compare the digits and answer.
        public var answer: Duration = .seconds(120)
        /// Additional time for the answer of the peer, so that a user who confirms at the last moment still completes the pairing.
        public var grace: Duration = .seconds(10)

        public init() {}
    }

    public enum Action: Sendable, Equatable {
        case send(Pairing)
        /// Display these digits, so that the user can compare them with those on the other machine.
        case show(digits: String)
        /// Both users confirmed the digits.
        case paired
        /// The exchange ended without trust.
        /// - Parameter isFailure: whether the exchange may have been an attacker's guess of the digits.
        case ended(EndReason, isFailure: Bool)
    }

    public enum EndReason: Sendable, Equatable {
        /// The peer refused the request, or ended the exchange before it could know the digits.
        case notTaken
        /// The peer ended the exchange when it could know the digits: it had this machine's nonce.
        case givenUp
        /// The peer ended the exchange after the digits were displayed, for example because its user rejected them.
        case refused
        /// The user of this machine rejected the digits.
        case rejected
        /// The user of this machine cancelled before the digits were displayed.
        case withdrawn
        /// The user of this machine entered digits other than the displayed ones.
        case wrongCode
        /// The peer's nonce does not match its commitment, so the peer has tried to choose the digits.
        case badReveal
        /// The peer sent a malformed step, or a step at the wrong time.
        case outOfOrder
        /// A timeout at this machine or at the peer.
        case timedOut
        /// The session ended.
        case lost
    }

    public enum Stage: Sendable, Equatable {
        /// The digits are not known yet.
        case opening
        /// The digits are displayed. The user of this machine has not answered.
        case comparing(digits: String)
        /// The user of this machine confirmed the digits. The answer of the peer is awaited.
        case confirmed(digits: String)
        case ended
    }

    private enum State: Sendable {
        /// This machine sent a request, and waits for the peer's nonce. `crossed`: the peer has sent a request at the same time, which is
        /// ignored.
        case committed(PairingNonce, crossed: Bool)
        /// The peer sent a request. This machine has sent its nonce, and waits for the nonce to which the peer is committed.
        case answered(PairingNonce, commitment: [UInt8])
        /// The digits are displayed. `saidYes`: the user of this machine confirmed them. `heardYes`: the peer reported the confirmation of
        /// its user.
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

    // MARK: Start

    /// Begins an exchange with a request of this machine.
    /// - Parameter nonce: a nonce that was never used before.
    public static func ask(
        own: Fingerprint, peer: Fingerprint, nonce: PairingNonce, timing: Timing = Timing(), now: Instant
    ) -> (PairingStateMachine, [Action]) {
        let machine = PairingStateMachine(own: own, peer: peer, timing: timing, state: .committed(nonce, crossed: false), now: now)
        let commitment = PairingCode.commitment(nonce: nonce, asker: own, asked: peer)
        return (machine, [.send(Pairing(step: "commit", commitment: Base64.encode(commitment)))])
    }

    /// Begins an exchange with a request of the peer. Returns `nil` if the step is not a `commit`, or its commitment does not have 32
    /// bytes.
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

    /// The time at which `tick` has to be called next; `nil` after the end.
    public var nextDeadline: Instant? {
        if case .ended = state { return nil }
        return deadline
    }

    private var hasShown: Bool { if case .comparing = state { true } else { false } }

    // MARK: Steps of the peer

    /// Handles a step that was received on the session.
    /// - Parameter freshNonce: the nonce for answering the peer's request, if both machines sent one and this machine's request is ignored.
    public mutating func received(_ pairing: Pairing, freshNonce: @autoclosure () -> PairingNonce, now: Instant) -> [Action] {
        if case .ended = state { return [] }
        if pairing.knownStep == .cancel {
            // The message is not displayed, because a stranger could use it to influence the user. It is only compared with the text that a
            // peer sends after a timeout, in order to tell a timeout from a rejection.
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
            // If both machines sent a request at the same time, that of the machine with the greater UUID is used.
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

    // MARK: The user of this machine

    /// Handles the digits that the user confirmed. No effect unless digits are displayed and not confirmed yet.
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

    /// Handles the user's rejection of the digits, or the cancellation of the request.
    public mutating func reject() -> [Action] {
        if case .ended = state { return [] }
        return end(hasShown ? .rejected : .withdrawn)
    }

    // MARK: Timeouts and end of the session

    /// Handles timeouts. Called at `nextDeadline`.
    public mutating func tick(now: Instant) -> [Action] {
        guard let due = nextDeadline, now >= due else { return [] }
        if case .answered = state { return end(.givenUp) }
        return end(.timedOut)
    }

    /// Handles the end of the session, which ends the exchange. It is not a failure, because connections may be lost at any time.
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

    /// Ends the exchange.
    /// - Parameter message: the text of the `cancel` for the peer; `nil` to send none, because the peer knows of the end or cannot be
    ///   reached.
    private mutating func end(_ end: EndReason, notifying message: String?) -> [Action] {
        let isFailure = hasShown && end != .lost || end == .badReveal
        state = .ended
        let cancel = message.map { Action.send(Pairing(step: "cancel", message: $0)) }
        return (cancel.map { [$0] } ?? []) + [.ended(end, isFailure: isFailure)]
    }
}

extension PairingStateMachine.EndReason {
    /// The text that is shown to the user of the peer.
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
