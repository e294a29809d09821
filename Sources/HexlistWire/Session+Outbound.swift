import HexlistModel

extension Session {
    // MARK: Owed frames

    /// Appends pending receipts and the latest Pong, which were coalesced. Called when the connection is writable.
    public mutating func takePendingFrames(_ actions: inout [Action]) {
        guard state != .closed else { return }
        let limit = peerHello?.maxFrameBytes ?? configuration.strangerFrameBytes
        inbound.takeReceipts(frameLimit: limit) { actions.append(.send(.ack($0))) }
        if let message = pendingPong, maySpeak { actions.append(.send(.pong(message: message))) }
        pendingPong = nil
        takePendingPairingCancel(&actions)
    }

    private mutating func takePendingPairingCancel(_ actions: inout [Action]) {
        if hasPendingPairingCancel, isTLS { actions.append(.send(.pair(Pairing(step: "cancel", message: "No request is taken now.")))) }
        hasPendingPairingCancel = false
    }

    /// Whether `takePendingFrames` would append anything.
    public var hasPendingFrames: Bool { pendingPong != nil || hasPendingPairingCancel || inbound.hasPendingReceipt }

    // MARK: Pairing

    /// Refuses a `Pair`. Any number of requests gets a single `cancel`. Other steps are ignored: the peer sent them before it received the
    /// `cancel` that ended their exchange, and a response would end the next exchange.
    public mutating func refusePairing(_ pairing: Pairing) {
        if pairing.knownStep == .commit { hasPendingPairingCancel = true }
    }

    /// Sends one step of an exchange. A pending `cancel` of an earlier request is sent first, so that the peer does not apply it to this
    /// exchange.
    public mutating func sendPairing(_ pairing: Pairing, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        takePendingPairingCancel(&actions)
        actions.append(.send(.pair(pairing)))
    }

    // MARK: This side's Stores

    /// Number and bytes of Stores that fit into the peer's window; `nil` unless the session is open. If nothing is unacknowledged, a single
    /// larger Store may be sent.
    public func room(windowFrames: Int, windowBytes: Int) -> (frames: Int, bytes: Int, isIdle: Bool)? {
        guard state == .open, let peerHello else { return nil }
        let isIdle = outbound.unacknowledgedFrames == 0
        let frames = min(peerHello.window, windowFrames) - outbound.unacknowledgedFrames
        let bytes = min(windowBytes, ProtocolLimits.windowBytes) - outbound.unacknowledgedBytes
        return (isIdle ? max(1, frames) : frames, bytes, isIdle)
    }

    /// Assigns a sequence number to a Store. Only call it if `room` allows one more.
    /// - Parameter tag: the outbox row, returned in `Action.settled`.
    public mutating func numberStore(tag: Int64, bytes: Int, now: Instant) -> Int64 {
        lastActivity = now
        return outbound.number(tag: tag, bytes: bytes, now: now)
    }

    public var unacknowledgedFrames: Int { outbound.unacknowledgedFrames }
    /// The outbox rows in flight.
    public var unacknowledgedTags: Set<Int64> { outbound.tags }
    public var nextSequence: Int64 { outbound.nextSequence }

    public mutating func sendAlert(_ message: String, now: Instant, _ actions: inout [Action]) {
        guard hasBegun, maySpeak else { return }
        lastActivity = now
        actions.append(.send(.alert(message: message, sequence: outbound.number(tag: nil, bytes: 0, now: now))))
    }

    /// Sends another Hello with a larger limit, a new name or a card. `maxFrameBytes` and `window` never decrease.
    /// - Parameter always: whether to send it even if nothing changed, because a temporarily refused peer retries after a Hello.
    public mutating func resendHello(name: String, maxFrameBytes: Int, card: String? = nil, always: Bool = false, _ actions: inout [Action])
    {
        guard state == .open else { return }
        var hello = ownHello
        hello.name = name
        hello.maxFrameBytes = max(hello.maxFrameBytes, maxFrameBytes)
        hello.card = card ?? hello.card
        guard always || hello != ownHello else { return }
        ownHello = hello
        takePendingFrames(&actions)  // before the Hello, because a refusal after it would delay the peer's retry
        actions.append(.send(.hello(hello)))
        if isTLS { actions.append(.setFrameLimit(hello.maxFrameBytes)) }
    }

    public mutating func setTrusted(_ trusted: Bool) { isTrusted = trusted }

    /// Checks whether the peer responds: it has to send a Pong with this message within 5 s, not including pauses of reading.
    ///
    /// - Parameter padding: additional bytes of the Ping.
    public mutating func challenge(_ message: String, padding: Int = 0, now: Instant, _ actions: inout [Action]) {
        guard state == .open else { return }
        challenge = (message, now + timing.challenge)
        lastPing = now
        actions.append(.send(.ping(message: message, sequence: nil, padding: padding)))
    }

    /// Whether a `challenge` is pending.
    public var isChallenging: Bool { challenge != nil }

    /// Requests the peer to dial this machine. The peer's Hello must have the feature `dialBack`.
    public mutating func askToDialBack(_ request: DialBack, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.dialBack(request)))
    }

    /// Requests the peer to dial this machine and serve files on the connection. The peer's Hello must have the feature `files`.
    public mutating func askToDialForFiles(_ request: DialBack, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.fileDial(request)))
    }

    public mutating func answerDialBack(_ answer: DialBack.Response, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.dialedBack(answer)))
    }

    // MARK: Time

    /// The time to call `tick`.
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

    /// Whether the next deadline is only the Ping of an idle session, which may be up to a second late, so that timers of many sessions can
    /// be coalesced.
    public var mayTickLate: Bool {
        state == .open && pausedSince == nil && outbound.unacknowledgedFrames == 0 && idlePing < lastReceived + timing.silence
            && nextDeadline == idlePing
    }

    private var idlePing: Instant { max(lastReceived, lastPing) + timing.ping }

    /// The time since which no frame was received or, with unacknowledged frames, no receipt.
    private var quietSince: Instant { outbound.waitingSince.map { min($0, lastReceived) } ?? lastReceived }

    private var isIdle: Bool { outbound.unacknowledgedFrames == 0 && inbound.isIdle && challenge == nil }

    /// - Parameter hasMoreToSend: whether rows wait for this peer, so that a stranger's session is not idle.
    public mutating func tick(now: Instant, hasMoreToSend: Bool, _ actions: inout [Action]) {
        switch state {
        case .closed: return
        case .awaitingHello:
            if now >= configuration.connectedAt + timing.hello { end(.helloTimeout, &actions) }
        case .legacy:
            // A legacy sender gets no frames, so it cannot be pinged: it may be silent as long as a stranger may be idle.
            guard pausedSince == nil, inbound.isIdle else { return }
            if now >= lastReceived + (isTrusted ? timing.silence : timing.strangerIdle) { end(.idle, &actions) }
        case .open:
            tickOpen(now: now, hasMoreToSend: hasMoreToSend, &actions)
        }
    }

    private mutating func tickOpen(now: Instant, hasMoreToSend: Bool, _ actions: inout [Action]) {
        if let since = pausedSince {
            // If the store has finished all frames, reading is paused because the peer does not read its receipts.
            if inbound.isIdle, outbound.waitingSince != nil || hasPendingFrames, now >= since + timing.silence {
                return end(.silent, &actions)
            }
            // Sends Pings even while reading is paused.
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
                releaseMemory(now: now)
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

    /// Number of elements for which memory is always kept.
    private static let smallCapacity = 64

    /// Frees memory of a bulk transfer once the session was idle for `timing.quiet`. Called with each Ping or Pong.
    mutating func releaseMemory(now: Instant) {
        guard isIdle, now - lastActivity >= timing.quiet, inbound.capacity + outbound.capacity > Session.smallCapacity else { return }
        inbound.releaseMemory()
        outbound.releaseMemory()
    }

    private mutating func ping(numbered: Bool, now: Instant, _ actions: inout [Action]) {
        lastPing = now
        guard maySpeak else { return }
        let sequence = numbered ? outbound.number(tag: nil, bytes: 0, now: now) : nil
        actions.append(.send(.ping(message: "", sequence: sequence)))
    }

    // MARK: Back-pressure

    /// Whether the caller should continue reading: not while the store is behind, and not faster than the rate limit of strangers.
    public func mayRead(now: Instant) -> Bool {
        guard state != .closed else { return false }
        guard inbound.waitingFrames < ownHello.window, inbound.waitingWeight < ProtocolLimits.sessionWeight else { return false }
        return isTrusted || bucket.hasToken(now: now)
    }

    /// Sets the rate limit of a stranger's frames: the more strangers, the lower it is.
    public mutating func setStrangerRate(_ framesPerSecond: Double, now: Instant) { bucket.setRate(framesPerSecond, now: now) }

    /// The time at which a stranger beyond its rate limit may be read again; `nil` if reading waits for the store.
    public func nextReadTime(now: Instant) -> Instant? {
        guard state != .closed, !isTrusted, !bucket.hasToken(now: now) else { return nil }
        return bucket.nextToken
    }

    /// Records that the caller paused reading, so that the missing frames do not count as silence of the peer.
    public mutating func pausedReading(now: Instant) {
        guard pausedSince == nil else { return }
        pausedSince = now
    }

    /// Records that the caller resumed reading; the pause does not count as silence.
    public mutating func resumedReading(now: Instant) {
        guard let since = pausedSince else { return }
        pausedSince = nil
        let pause = now - since
        lastReceived += pause
        outbound.shift(by: pause)
        challenge?.deadline += pause
    }
}
