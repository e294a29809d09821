import HexlistModel

extension Session {
    // MARK: Owed frames

    /// Appends the receipts and the latest Pong that were merged until now. Called when the connection takes writes.
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

    /// Whether `takeOwed` has anything to append.
    public var owesAnything: Bool { owedPong != nil || owesPairingCancel || inbound.owesReceipt }

    // MARK: Pairing

    /// Refuses a `Pair`. A request is answered with one `cancel`, however many came. Any other step crossed with the `cancel` that ended
    /// its exchange; an answer to it would end the next exchange.
    public mutating func refusePairing(_ pairing: Pairing) {
        if pairing.knownStep == .commit { owesPairingCancel = true }
    }

    /// Sends one step of an exchange. An owed `cancel` of an earlier request is sent first, so that the other side does not take it for the
    /// end of this exchange.
    public mutating func sendPairing(_ pairing: Pairing, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        takeOwedPairingCancel(&actions)
        actions.append(.send(.pair(pairing)))
    }

    // MARK: This side's Stores

    /// The Stores, and bytes of them, that fit the peer's window; `nil` unless the session is open. While nothing is unacknowledged, one
    /// longer Store may be sent alone.
    public func room(windowFrames: Int, windowBytes: Int) -> (frames: Int, bytes: Int, isIdle: Bool)? {
        guard state == .open, let peerHello else { return nil }
        let isIdle = outbound.unacknowledgedFrames == 0
        let frames = min(peerHello.window, windowFrames) - outbound.unacknowledgedFrames
        let bytes = min(windowBytes, ProtocolLimits.windowBytes) - outbound.unacknowledgedBytes
        return (isIdle ? max(1, frames) : frames, bytes, isIdle)
    }

    /// Numbers one Store. Called only if `room` allows it.
    /// - Parameter tag: the row of the outbox, which comes back in `Action.settled`.
    public mutating func numberStore(tag: Int64, bytes: Int, now: Instant) -> Int64 {
        lastActivity = now
        return outbound.number(tag: tag, bytes: bytes, now: now)
    }

    public var unacknowledgedFrames: Int { outbound.unacknowledgedFrames }
    /// The rows of the outbox that are on their way.
    public var unacknowledgedTags: Set<Int64> { outbound.tags }
    public var nextSequence: Int64 { outbound.nextSequence }

    public mutating func sendAlert(_ message: String, now: Instant, _ actions: inout [Action]) {
        guard hasBegun, maySpeak else { return }
        lastActivity = now
        actions.append(.send(.alert(message: message, sequence: outbound.number(tag: nil, bytes: 0, now: now))))
    }

    /// Tells the peer a larger limit or another name; `maxFrameBytes` and `window` are never lowered.
    /// - Parameter always: whether to send it even without a change: a peer that was refused for now tries again after a Hello.
    public mutating func sayHelloAgain(name: String, maxFrameBytes: Int, always: Bool = false, _ actions: inout [Action]) {
        guard state == .open else { return }
        var hello = ownHello
        hello.name = name
        hello.maxFrameBytes = max(hello.maxFrameBytes, maxFrameBytes)
        guard always || hello != ownHello else { return }
        ownHello = hello
        takeOwed(&actions)  // a refusal that followed this Hello would start the wait anew
        actions.append(.send(.hello(hello)))
        if isTLS { actions.append(.setFrameLimit(hello.maxFrameBytes)) }
    }

    public mutating func setTrusted(_ trusted: Bool) { isTrusted = trusted }

    /// Asks whether the other side still answers: only a Pong with this message within 5 s, not counting pauses in reading, counts.
    ///
    /// - Parameter padding: the bytes that make the Ping longer, in addition to the message.
    public mutating func challenge(_ message: String, padding: Int = 0, now: Instant, _ actions: inout [Action]) {
        guard state == .open else { return }
        challenge = (message, now + timing.challenge)
        lastPing = now
        actions.append(.send(.ping(message: message, sequence: nil, padding: padding)))
    }

    /// Whether a `challenge` is waiting for its Pong.
    public var isChallenging: Bool { challenge != nil }

    /// Asks the peer to dial this machine. Only for a peer with that feature in its Hello.
    public mutating func askToDialBack(_ request: DialBack, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.dialBack(request)))
    }

    /// Asks the peer to dial this machine and to hand out files on that connection. Only for a peer with the feature `files` in its Hello.
    public mutating func askToDialForFiles(_ request: DialBack, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.fileDial(request)))
    }

    public mutating func answerDialBack(_ answer: DialBack.Answer, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.dialedBack(answer)))
    }

    // MARK: Time

    /// The instant at which `tick` has something to do.
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

    /// Whether the next deadline is only the Ping of an idle session, for which a second more or less does not matter, so that many
    /// sessions can be served together.
    public var mayTickLate: Bool {
        state == .open && pausedSince == nil && outbound.unacknowledgedFrames == 0 && idlePing < lastReceived + timing.silence
            && nextDeadline == idlePing
    }

    private var idlePing: Instant { max(lastReceived, lastPing) + timing.ping }

    /// The instant since which no frame came or, with unacknowledged frames, no receipt.
    private var quietSince: Instant { outbound.waitingSince.map { min($0, lastReceived) } ?? lastReceived }

    private var isIdle: Bool { outbound.unacknowledgedFrames == 0 && inbound.isIdle && challenge == nil }

    /// - Parameter hasMoreToSend: whether rows wait for this peer, so that a stranger's session is not idle.
    public mutating func tick(now: Instant, hasMoreToSend: Bool, _ actions: inout [Action]) {
        switch state {
        case .closed: return
        case .awaitingHello:
            if now >= configuration.connectedAt + timing.hello { end(.helloTimeout, &actions) }
        case .legacy:
            // A legacy session gets no frames, so it cannot be asked for a sign of life: it may be silent as long as a stranger may be
            // idle.
            guard pausedSince == nil, inbound.isIdle else { return }
            if now >= lastReceived + (isTrusted ? timing.silence : timing.strangerIdle) { end(.idle, &actions) }
        case .open:
            tickOpen(now: now, hasMoreToSend: hasMoreToSend, &actions)
        }
    }

    private mutating func tickOpen(now: Instant, hasMoreToSend: Bool, _ actions: inout [Action]) {
        if let since = pausedSince {
            // The store owes nothing, so the peer is not taking what it is owed.
            if inbound.isIdle, outbound.waitingSince != nil || owesAnything, now >= since + timing.silence {
                return end(.silent, &actions)
            }
            // While not reading, this side still sends a sign of life.
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

    /// The number of frames for which memory is always kept.
    private static let smallCapacity = 64

    /// Frees the memory of a bulk once a session has been idle for `timing.quiet`. Called with each sign of life, in either direction.
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

    /// Whether the shell should read more, as far as this session is concerned: not while the store has not answered, and not faster than a
    /// stranger may send.
    public func mayRead(now: Instant) -> Bool {
        guard state != .closed else { return false }
        guard inbound.waitingFrames < ownHello.window, inbound.waitingWeight < ProtocolLimits.sessionWeight else { return false }
        return isTrusted || bucket.hasToken(now: now)
    }

    /// Sets the rate of a stranger's frames from now on: the more strangers, the slower each is read.
    public mutating func setStrangerRate(_ framesPerSecond: Double, now: Instant) { bucket.setRate(framesPerSecond, now: now) }

    /// The instant at which a stranger that sent too fast may continue; `nil` if the store is what reading waits for.
    public func readsAgain(now: Instant) -> Instant? {
        guard state != .closed, !isTrusted, !bucket.hasToken(now: now) else { return nil }
        return bucket.nextToken
    }

    /// Notes that the shell stopped reading: from now on silence is this side's own doing.
    public mutating func pausedReading(now: Instant) {
        guard pausedSince == nil else { return }
        pausedSince = now
    }

    /// Notes that the shell reads again; the time in between does not count as silence.
    public mutating func resumedReading(now: Instant) {
        guard let since = pausedSince else { return }
        pausedSince = nil
        let pause = now - since
        lastReceived += pause
        outbound.shift(by: pause)
        challenge?.deadline += pause
    }
}
