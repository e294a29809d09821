import HexlistModel

extension Session {
    // MARK: What is owed

    /// Receipts and the latest Pong, merged until now. Call when the connection takes writes.
    public mutating func takeOwed(_ actions: inout [Action]) {
        guard state != .closed else { return }
        let limit = peerHello?.maxFrameBytes ?? configuration.strangerFrameBytes
        inbound.takeReceipts(frameLimit: limit) { actions.append(.send(.ack($0))) }
        if let message = owedPong, maySpeak { actions.append(.send(.pong(message: message))) }
        owedPong = nil
        takeOwedPairingCancel(&actions)
    }

    private mutating func takeOwedPairingCancel(_ actions: inout [Action]) {
        if owesPairingCancel, isTLS { actions.append(.send(.pair(Pairing(step: "cancel", message: "No request is taken now.")))) }
        owesPairingCancel = false
    }

    /// Whether `takeOwed` has anything to give.
    public var owesAnything: Bool { owedPong != nil || owesPairingCancel || inbound.owesReceipt }

    // MARK: Pairing

    /// A `Pair` that is not taken: who asks is told so, once for however many came. Any other step crossed with the `cancel` that ended its
    /// exchange; an answer to it would end the next one.
    public mutating func refusePairing(_ pairing: Pairing) {
        if pairing.step == "commit" { owesPairingCancel = true }
    }

    /// One step of an exchange; what was refused before is said before it, so that the other side does not take the `cancel`
    /// for this one's end.
    public mutating func sendPairing(_ pairing: Pairing, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        takeOwedPairingCancel(&actions)
        actions.append(.send(.pair(pairing)))
    }

    // MARK: Own Stores

    /// Whether one more Store of so many bytes fits the peer's window (`window` frames, 8 MiB; one longer frame may go alone).
    public func hasRoom(forBytes bytes: Int, windowFrames: Int, windowBytes: Int) -> Bool {
        guard state == .open, let peerHello else { return false }
        guard outbound.unacknowledgedFrames > 0 else { return true }
        return outbound.unacknowledgedFrames < min(peerHello.window, windowFrames)
            && outbound.unacknowledgedBytes + bytes <= min(windowBytes, ProtocolLimits.windowBytes)
    }

    /// Numbers one Store. Only when `hasRoom` said so.
    /// - Parameter tag: the row of the outbox, given back in `Action.settled`.
    public mutating func numberStore(tag: Int64, bytes: Int, now: Instant) -> Int64 {
        lastActivity = now
        return outbound.number(tag: tag, bytes: bytes, now: now)
    }

    public var unacknowledgedFrames: Int { outbound.unacknowledgedFrames }
    /// Rows of the outbox that are on their way.
    public var unacknowledgedTags: Set<Int64> { outbound.tags }
    public var nextSequence: Int64 { outbound.nextSequence }

    public mutating func sendAlert(_ message: String, now: Instant, _ actions: inout [Action]) {
        guard hasBegun, maySpeak else { return }
        lastActivity = now
        actions.append(.send(.alert(message: message, sequence: outbound.number(tag: nil, bytes: 0, now: now))))
    }

    /// Tells the peer more room or another name; `maxFrameBytes` and `window` are never lowered.
    /// - Parameter always: also where nothing in it is new: a peer that was refused for now tries again at a Hello.
    public mutating func sayHelloAgain(name: String, maxFrameBytes: Int, always: Bool = false, _ actions: inout [Action]) {
        guard state == .open else { return }
        var hello = ownHello
        hello.name = name
        hello.maxFrameBytes = max(hello.maxFrameBytes, maxFrameBytes)
        guard always || hello != ownHello else { return }
        ownHello = hello
        takeOwed(&actions)  // a refusal that came behind this Hello would begin the wait anew
        actions.append(.send(.hello(hello)))
        if isTLS { actions.append(.setFrameLimit(hello.maxFrameBytes)) }
    }

    public mutating func setTrusted(_ trusted: Bool) { isTrusted = trusted }

    /// Asks whether the other side still answers: only a Pong with this message, within 5 s of reading, counts.
    ///
    /// - Parameter padding: bytes that make the Ping longer, beside the message.
    public mutating func challenge(_ message: String, padding: Int = 0, now: Instant, _ actions: inout [Action]) {
        guard state == .open else { return }
        challenge = (message, now + timing.challenge)
        lastPing = now
        actions.append(.send(.ping(message: message, sequence: nil, padding: padding)))
    }

    /// Whether a `challenge` waits for its Pong.
    public var isChallenging: Bool { challenge != nil }

    /// Asks the peer to dial this machine. Only where its Hello has the feature.
    public mutating func askToDialBack(_ request: DialBack, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.dialBack(request)))
    }

    public mutating func answerDialBack(_ answer: DialBack.Answer, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.dialedBack(answer)))
    }

    // MARK: Time

    /// When `tick` has something to do.
    public var nextDeadline: Instant? {
        guard state != .closed else { return nil }
        var earliest: Instant?
        func until(_ deadline: Instant) { earliest = earliest.map { min($0, deadline) } ?? deadline }
        if state == .awaitingHello { until(configuration.connectedAt + timing.hello) }
        if let challenge, pausedSince == nil { until(challenge.deadline) }
        if state == .open {
            if pausedSince != nil {
                until(lastPing + timing.pausedPing)
            } else if outbound.unacknowledgedFrames > 0 {
                until(lastReceived + timing.silenceUnacknowledged)
                until(max(quietSince, lastPing) + timing.pingUnacknowledged)
            } else {
                until(lastReceived + timing.silence)
                until(idlePing)
            }
            if outbound.unacknowledgedFrames > 0, let since = outbound.waitingSince, pausedSince == nil {
                until(since + timing.receipt)
            }
        } else if state == .legacy, pausedSince == nil, inbound.isIdle {
            until(lastReceived + (isTrusted ? timing.silence : timing.strangerIdle))
        }
        if state == .open, pausedSince == nil, !isTrusted, isIdle { until(lastActivity + timing.strangerIdle) }
        return earliest
    }

    /// Whether what is next is no more than the Ping of an idle session, for which a second more or less is nothing: many
    /// sessions are then asked together.
    public var mayTickLate: Bool {
        state == .open && pausedSince == nil && outbound.unacknowledgedFrames == 0 && idlePing < lastReceived + timing.silence
            && nextDeadline == idlePing
    }

    private var idlePing: Instant { max(lastReceived, lastPing) + timing.ping }

    /// Since when neither a frame nor, with own frames unacknowledged, a receipt came.
    private var quietSince: Instant { outbound.waitingSince.map { min($0, lastReceived) } ?? lastReceived }

    private var isIdle: Bool { outbound.unacknowledgedFrames == 0 && inbound.isIdle }

    /// - Parameter hasMoreToSend: rows wait for this peer, so a stranger's session is not idle.
    public mutating func tick(now: Instant, hasMoreToSend: Bool, _ actions: inout [Action]) {
        switch state {
        case .closed: return
        case .awaitingHello:
            if now >= configuration.connectedAt + timing.hello { end(.helloTimeout, &actions) }
        case .legacy:
            // Nothing is sent to it, so nothing can be asked of it: it may be silent as long as a stranger may be idle.
            guard pausedSince == nil, inbound.isIdle else { return }
            if now >= lastReceived + (isTrusted ? timing.silence : timing.strangerIdle) { end(.idle, &actions) }
        case .open:
            tickOpen(now: now, hasMoreToSend: hasMoreToSend, &actions)
        }
    }

    private mutating func tickOpen(now: Instant, hasMoreToSend: Bool, _ actions: inout [Action]) {
        if let since = pausedSince {
            // The store owes nothing: it is the peer that does not take what it is owed.
            if inbound.isIdle, outbound.waitingSince != nil || owesAnything, now >= since + timing.silence {
                return end(.silent, &actions)
            }
            // Who does not read says that it lives.
            if now >= lastPing + timing.pausedPing { ping(numbered: false, now: now, &actions) }
            return
        }
        if let open = challenge, now >= open.deadline {
            challenge = nil
            actions.append(.challengeFailed(open.message))
        }
        if outbound.unacknowledgedFrames > 0 {
            if now >= lastReceived + timing.silenceUnacknowledged { return end(.silent, &actions) }
            if let since = outbound.waitingSince, now >= since + timing.receipt { return end(.receiptTimeout, &actions) }
            if now >= max(quietSince, lastPing) + timing.pingUnacknowledged { ping(numbered: true, now: now, &actions) }
        } else {
            if now >= lastReceived + timing.silence { return end(.silent, &actions) }
            if now >= idlePing {
                giveBack(now: now)
                ping(numbered: false, now: now, &actions)
            }
        }
        if !isTrusted, isIdle {
            if hasMoreToSend {
                lastActivity = now
            } else if now >= lastActivity + timing.strangerIdle {
                end(.idle, &actions)
            }
        }
    }

    /// Frames it keeps memory for in any case.
    private static let smallCapacity = 64

    /// An idle session keeps no memory of a bulk. Called with each sign of life of one, whoever asks for it.
    mutating func giveBack(now: Instant) {
        guard isIdle, now - lastActivity >= timing.quiet, inbound.capacity + outbound.capacity > Session.smallCapacity else { return }
        inbound.giveBack()
        outbound.giveBack()
    }

    private mutating func ping(numbered: Bool, now: Instant, _ actions: inout [Action]) {
        lastPing = now
        guard maySpeak else { return }
        let sequence = numbered ? outbound.number(tag: nil, bytes: 0, now: now) : nil
        actions.append(.send(.ping(message: "", sequence: sequence)))
    }

    // MARK: Back-pressure

    /// Whether the shell should read on, as far as this session is concerned: not while the store owes it, and no faster than a
    /// stranger may speak.
    public func mayRead(now: Instant) -> Bool {
        guard state != .closed else { return false }
        guard inbound.waitingFrames < ownHello.window, inbound.waitingWeight < ProtocolLimits.sessionWeight else { return false }
        return isTrusted || bucket.hasToken(now: now)
    }

    /// A stranger's frames from now on: where there are many strangers each is read more slowly.
    public mutating func setStrangerRate(_ framesPerSecond: Double, now: Instant) { bucket.setRate(framesPerSecond, now: now) }

    /// When a stranger that spoke too fast may go on; `nil` where the store is what one waits for.
    public func readsAgain(now: Instant) -> Instant? {
        guard state != .closed, !isTrusted, !bucket.hasToken(now: now) else { return nil }
        return bucket.nextToken
    }

    /// The shell stopped reading: from now on silence is its own doing.
    public mutating func pausedReading(now: Instant) {
        guard pausedSince == nil else { return }
        pausedSince = now
    }

    /// The shell reads again; the time between counts as no silence.
    public mutating func resumedReading(now: Instant) {
        guard let since = pausedSince else { return }
        pausedSince = nil
        let pause = now - since
        lastReceived += pause
        outbound.shift(by: pause)
        challenge?.deadline += pause
    }
}
