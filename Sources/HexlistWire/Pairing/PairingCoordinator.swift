public import HexlistModel

/// Decides which pairings are allowed (Docs/Protocol.md, "Pairing"): one exchange at a time, a few attempts, and only while the user has
/// switched pairing on. Performs no IO. The caller passes in nonces and the time, and carries out the returned actions in order.
///
/// Pairing is on while the pairing window is open (`open`), or while a request of the user runs (`ask`). Memory is bounded: strangers can
/// only cause one exchange, and entries for failed keys.
public struct PairingCoordinator: Sendable {
    public typealias Instant = ContinuousClock.Instant
    /// Identifies a session by its object.
    public typealias SessionKey = ObjectIdentifier

    private struct Request {
        var number: Int
        let peer: PeerID
        let until: Instant
        var nextTry: Instant
        var obstacle: PendingReason?
    }

    private struct Exchange {
        let number: Int
        let session: SessionKey
        let peer: PeerID
        var isOwn: Bool
        var machine: PairingStateMachine
        /// Whether this machine has sent its nonce. The exchange then counts as an attempt.
        var isSpent = false
        /// The digits; `nil` until they are displayed.
        var digits: String?
        /// The peer's name that was displayed with the digits; `nil` before.
        var name: String?
    }

    let own: Fingerprint
    /// The limits. The protocol prescribes them; only tests use others.
    public var limits = Limits()
    /// The time at which the pairing window closes; `nil` if it is closed.
    public private(set) var openUntil: Instant?
    private var request: Request?
    private var exchange: Exchange?
    /// The last finished pairings, oldest first.
    public internal(set) var outcomes: [FinishedPairing] = []
    /// Number of failed exchanges since pairing was switched on.
    private(set) var failures = 0
    /// Number of exchanges since pairing was switched on in which this machine sent its nonce.
    private var tries = 0
    /// The times of the failures of each key.
    private var failed: [Fingerprint: [Instant]] = [:]
    /// The key of the peer whose session ended while its digits were displayed, and the time until which requests of other peers are
    /// refused.
    private var reserved: (key: Fingerprint, until: Instant)?
    var lastNumber = 0

    /// - Parameter own: this machine's key.
    public init(own: Fingerprint) { self.own = own }

    // MARK: State

    /// The running exchange, or the user's request if no exchange runs. At most one element.
    public var items: [Item] {
        if let exchange, let until = exchange.machine.nextDeadline {
            return [
                Item(
                    number: exchange.number, peer: exchange.peer, isOwn: exchange.isOwn, stage: exchange.machine.stage,
                    name: exchange.name, fingerprint: exchange.machine.peer, until: until)
            ]
        }
        return request.map {
            [Item(number: $0.number, peer: $0.peer, isOwn: true, stage: .opening, until: $0.until, obstacle: $0.obstacle)]
        } ?? []
    }

    /// Whether the running exchange or the user's request is with this peer, so that a session with it is needed.
    public func concerns(_ peer: PeerID) -> Bool { exchange?.peer == peer || request?.peer == peer }

    /// Whether a peer that is a stranger may have a session, because it is needed for pairing. While the pairing window is open, this
    /// applies to all peers. Otherwise it applies to the peer of the running exchange or of the user's request, and to a peer whose trust
    /// is being stored.
    public func invites(_ peer: PeerID, now: Instant) -> Bool {
        if concerns(peer) || openUntil.map({ now < $0 }) ?? false { return true }
        return outcomes.contains { outcome in
            if case .agreed = outcome.result { outcome.peer == peer } else { false }
        }
    }

    /// Whether an exchange runs on this session. The peer may already display the digits.
    public func hasExchange(on session: SessionKey) -> Bool { exchange?.session == session }

    /// The time at which `tick` has to be called next; `nil` if there is none.
    public var nextDeadline: Instant? {
        let retry = exchange == nil ? request?.nextTry : nil
        return [openUntil, retry, exchange == nil ? request?.until : nil, exchange?.machine.nextDeadline].compactMap { $0 }.min()
    }

    /// Number of attempts that are left before pairing is switched off.
    public var triesLeft: Int { max(0, min(limits.tries - tries, limits.failures - failures)) }

    /// Returns the time from which a key may try again; `nil` if it may try now.
    public func mayTry(_ key: Fingerprint, now: Instant) -> Instant? {
        let recent = recent(failed[key], now: now)
        guard recent.count >= limits.failuresPerKey, let first = recent.dropLast(limits.failuresPerKey - 1).last else { return nil }
        return first + limits.memory
    }

    /// Records the name that is displayed with the digits, after the action `.shown`. The user confirms this name, even if the peer changes
    /// its name later.
    public mutating func nameShown(_ name: String) { exchange?.name = name }

    // MARK: The user

    /// Opens the pairing window: requests of peers are accepted for two minutes.
    public mutating func open(now: Instant) -> [Action] {
        switchOn()
        openUntil = now + limits.on
        return [.changed]
    }

    /// Closes the pairing window. An exchange that a peer requested ends. The user's own request continues.
    public mutating func close(now: Instant) -> [Action] {
        openUntil = nil
        guard let exchange, !exchange.isOwn else { return [.changed] }
        return drive(now: now) { $0.reject() }
    }

    /// Requests a pairing with a peer. The request is valid for two minutes. If an exchange that this peer requested is running, it is
    /// used.
    /// - Returns: `nil` if an exchange or a request with another peer is running.
    public mutating func ask(_ peer: PeerID, now: Instant) -> [Action]? {
        guard request == nil || request?.peer == peer else { return nil }
        let actions = rejectUnseen(otherThan: peer, now: now)
        guard exchange == nil || exchange?.peer == peer else { return nil }
        guard request == nil else { return actions }
        switchOn()
        if exchange == nil { lastNumber += 1 }
        exchange?.isOwn = true
        request = Request(number: lastNumber, peer: peer, until: now + limits.on, nextTry: now)
        return actions + [.changed] + tick(now: now)
    }

    /// Ends an exchange that a peer requested, if its digits are not displayed yet. Called when the user requests a pairing with another
    /// peer.
    private mutating func rejectUnseen(otherThan peer: PeerID?, now: Instant) -> [Action] {
        guard let exchange, !exchange.isOwn, exchange.digits == nil, exchange.peer != peer else { return [] }
        return drive(now: now) { $0.reject() }
    }

    /// Handles the user's statement that both machines display these digits.
    /// - Parameter number: the number of the item that the user saw; `nil` for the running one.
    public mutating func confirm(_ peer: PeerID, digits: String, number: Int?, now: Instant) -> (ConfirmationResult, [Action]) {
        if let number, exchange.map({ $0.number != number || $0.peer != peer }) ?? true {
            return (outcomes.contains { $0.number == number } || number < lastNumber ? .outdated : .noDigits, [])
        }
        guard let exchange, exchange.peer == peer, case .comparing = exchange.machine.stage else { return (.noDigits, []) }
        return (.accepted, drive(now: now) { $0.confirm(digits: digits) } + [.changed])
    }

    /// Handles the user's statement that the digits differ, or the cancellation of the request.
    /// - Returns: `nil` if there is neither an exchange nor a request with the peer.
    public mutating func reject(_ peer: PeerID, now: Instant) -> [Action]? {
        if exchange?.peer == peer {
            if request?.peer == peer { request = nil }
            return drive(now: now) { $0.reject() }
        }
        guard let request, request.peer == peer else { return nil }
        self.request = nil
        return [over(request, .ended(.withdrawn)), .changed]
    }

    // MARK: Sessions

    /// Handles a step of a pairing that a peer has sent.
    /// - Parameter canAnswer: whether the session is writable. If it is not, a new request is refused.
    public mutating func received(
        _ pairing: Pairing, from peer: Fingerprint, on session: SessionKey, canAnswer: Bool, freshNonce: @autoclosure () -> PairingNonce,
        now: Instant
    ) -> [Action] {
        if exchange?.session == session {
            return drive(now: now) { $0.received(pairing, freshNonce: freshNonce(), now: now) }
        }
        guard accepts(peer, now: now), canAnswer,
            let (machine, actions) = PairingStateMachine.answer(
                pairing, own: own, peer: peer, nonce: freshNonce(), timing: limits.timing, now: now)
        else { return [.refuse(session)] }
        return start(machine, on: session, isOwn: request?.peer == peer.peerID, actions, now: now)
    }

    private func accepts(_ key: Fingerprint, now: Instant) -> Bool {
        guard exchange == nil else { return false }
        if let request {
            guard request.peer == key.peerID, now < request.until else { return false }
        } else {
            guard let openUntil, now < openUntil else { return false }
            if let reserved, reserved.key != key, now < reserved.until { return false }
        }
        guard mayTry(key, now: now) == nil else { return false }
        return failed[key] != nil || failed.count < limits.keys || recentFailures(now: now).count < limits.keys
    }

    /// Begins the exchange for the user's request, on a session that exists after the action `.reach`.
    public mutating func begin(on session: SessionKey, with peer: Fingerprint, nonce: PairingNonce, now: Instant) -> [Action] {
        guard exchange == nil, let request, request.peer == peer.peerID, now < request.until, mayTry(peer, now: now) == nil else {
            return []
        }
        let (machine, actions) = PairingStateMachine.ask(own: own, peer: peer, nonce: nonce, timing: limits.timing, now: now)
        return start(machine, on: session, isOwn: true, actions, now: now)
    }

    /// Records that no session with the peer could be established after the action `.reach`.
    public mutating func notReached(_ peer: PeerID) -> [Action] {
        guard exchange == nil, request?.peer == peer, request?.obstacle != .notReached else { return [] }
        request?.obstacle = .notReached
        return [.changed]
    }

    /// Tries the user's request again, because a session with the peer began, or one of several sessions ended.
    public mutating func sessionsChanged(of peer: PeerID, now: Instant) -> [Action] {
        guard exchange == nil, request?.peer == peer else { return [] }
        request?.nextTry = now
        return tick(now: now)
    }

    /// Ends the exchange on a session that ended.
    public mutating func sessionEnded(_ session: SessionKey, now: Instant) -> [Action] {
        guard exchange?.session == session else { return [] }
        return drive(now: now) { $0.sessionEnded() }
    }

    /// Records the result of the action `.trust`.
    /// - Parameter failure: a sentence for the user if the trust could not be stored; otherwise `nil`.
    public mutating func stored(_ number: Int, failure: String?) -> [Action] {
        guard let index = outcomes.firstIndex(where: { $0.number == number }) else { return [] }
        outcomes[index].result = failure.map { .notStored($0) } ?? .paired
        return [.finished(outcomes[index]), .changed]
    }

    // MARK: Time

    /// Handles timeouts, and tries the user's request again. Called at `nextDeadline`.
    public mutating func tick(now: Instant) -> [Action] {
        var actions: [Action] = []
        if let openUntil, now >= openUntil {
            self.openUntil = nil
            actions += rejectUnseen(otherThan: nil, now: now) + [.changed]
        }
        if exchange != nil { actions += drive(now: now) { $0.tick(now: now) } }
        guard exchange == nil, let request else { return actions }
        if now >= request.until {
            self.request = nil
            actions += [over(request, .expired(request.obstacle)), .changed]
        } else if now >= request.nextTry {
            self.request?.nextTry = now + limits.retry
            actions.append(.reach(request.peer))
        }
        return actions
    }

    // MARK: Helpers

    /// Resets the counters, unless pairing is already on. A running exchange in which this machine has sent its nonce counts as the first
    /// attempt.
    private mutating func switchOn() {
        guard openUntil == nil, request == nil else { return }
        failures = 0
        tries = exchange?.isSpent == true ? 1 : 0
    }

    private mutating func start(
        _ machine: PairingStateMachine, on session: SessionKey, isOwn: Bool, _ actions: [PairingStateMachine.Action], now: Instant
    ) -> [Action] {
        lastNumber += 1
        if isOwn { request?.number = lastNumber }
        exchange = Exchange(number: lastNumber, session: session, peer: machine.peer.peerID, isOwn: isOwn, machine: machine)
        return carryOut(actions, now: now)
    }

    private mutating func drive(now: Instant, _ event: (inout PairingStateMachine) -> [PairingStateMachine.Action]) -> [Action] {
        guard var machine = exchange?.machine else { return [] }
        let actions = event(&machine)
        exchange?.machine = machine
        return carryOut(actions, now: now)
    }

    private mutating func carryOut(_ actions: [PairingStateMachine.Action], now: Instant) -> [Action] {
        var out: [Action] = []
        for action in actions {
            guard let exchange else { break }
            switch action {
            case .send(let pairing):
                if !pairing.nonce.isEmpty {
                    self.exchange?.isSpent = true
                    tries += 1
                }
                out.append(.send(pairing, exchange.session))
            case .show(let digits):
                self.exchange?.digits = digits
                out += [.shown(exchange.peer, digits: digits, wasAsked: !exchange.isOwn), .changed]
            case .paired:
                openUntil = nil
                request = nil
                self.exchange = nil
                remember(
                    FinishedPairing(
                        number: exchange.number, peer: exchange.peer, isOwn: exchange.isOwn, name: exchange.name,
                        result: .agreed(digits: exchange.digits ?? "")))
                out += [.trust(exchange.peer, exchange.machine.peer, number: exchange.number, name: exchange.name), .changed]
            case .ended(let end, let isFailure):
                self.exchange = nil
                out += ended(exchange, end, isFailure: isFailure, now: now)
            }
        }
        return out
    }

    private mutating func ended(_ exchange: Exchange, _ end: PairingStateMachine.EndReason, isFailure: Bool, now: Instant) -> [Action] {
        let key = exchange.machine.peer
        if end == .lost, exchange.digits != nil { reserved = (key, now + limits.reserved) }
        if isFailure { failures += 1 }
        if exchange.isSpent, end != .lost { noteFailure(of: key, now: now) }
        // The user's request also ends if the peer's key has used its attempts, because further answers of the peer would be refused.
        let isBarred = !isFailure && request?.peer == exchange.peer && mayTry(key, now: now) != nil
        let isExhausted = tries >= limits.tries || failures >= limits.failures || isBarred
        let isLast = isExhausted && (openUntil != nil || request != nil)
        if isExhausted { openUntil = nil }
        if isExhausted || isFailure && exchange.isOwn { request = nil }
        var out: [Action] = []
        // If this machine has sent its nonce, the user is informed of the end, because the peer may have guessed the digits.
        if exchange.isSpent || exchange.isOwn && request == nil {
            let outcome = FinishedPairing(
                number: exchange.number, peer: exchange.peer, isOwn: exchange.isOwn, name: exchange.name, result: .ended(end),
                isLast: isLast, triesLeft: exchange.isSpent && end != .lost ? triesLeft(of: key, now: now) : nil)
            remember(outcome)
            out.append(.finished(outcome))
        }
        guard request != nil else { return out + [.changed] }
        if exchange.isSpent {
            lastNumber += 1
            request?.number = lastNumber
        }
        request?.obstacle =
            switch end {
            case .lost: .lost
            case .givenUp: .givenUp
            default: .notTaken
            }
        request?.nextTry = now + limits.retry
        return out + [.changed]
    }

    private mutating func noteFailure(of key: Fingerprint, now: Instant) {
        failed = recentFailures(now: now)
        guard failed[key] != nil || failed.count < limits.keys else { return }
        failed[key] = ((failed[key] ?? []) + [now]).suffix(limits.failuresPerKey)
    }

    private func triesLeft(of key: Fingerprint, now: Instant) -> Int {
        max(0, limits.failuresPerKey - recent(failed[key], now: now).count)
    }

    /// Returns those failures of a key that still count, because they are younger than `limits.memory`.
    private func recent(_ failures: [Instant]?, now: Instant) -> [Instant] { (failures ?? []).filter { $0 + limits.memory > now } }

    private func recentFailures(now: Instant) -> [Fingerprint: [Instant]] {
        failed.mapValues { recent($0, now: now) }.filter { !$0.value.isEmpty }
    }

    private mutating func over(_ request: Request, _ result: FinishedPairing.Result) -> Action {
        let outcome = FinishedPairing(number: request.number, peer: request.peer, isOwn: true, result: result)
        remember(outcome)
        return .finished(outcome)
    }

    private mutating func remember(_ outcome: FinishedPairing) {
        outcomes = (outcomes + [outcome]).suffix(limits.outcomes)
    }
}
