import HexlistModel

extension Session {
    // MARK: Pending frames

    /// Sends the receipts that are pending, the Pong for the last Ping, and a pending refusal of pairings. Called when the connection is
    /// writable.
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

    /// Whether any frame is pending that `takePendingFrames` sends.
    public var hasPendingFrames: Bool { pendingPong != nil || hasPendingPairingCancel || inbound.hasPendingReceipt }

    // MARK: Pairing

    /// Refuses a step of a pairing. However many requests (`commit`) are refused, one `cancel` is sent. Refused steps of other kinds get no
    /// answer: the peer sent them before it received the `cancel` of their exchange, and another `cancel` would end its next exchange.
    public mutating func refusePairing(_ pairing: Pairing) {
        if pairing.knownStep == .commit { hasPendingPairingCancel = true }
    }

    /// Sends a step of a pairing. A pending `cancel` of an earlier request is sent first, so the peer does not take it for a `cancel` of
    /// this exchange.
    public mutating func sendPairing(_ pairing: Pairing, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        takePendingPairingCancel(&actions)
        actions.append(.send(.pair(pairing)))
    }

    // MARK: Sending hexes

    /// The number and bytes of Stores that the peer's window still permits; `nil` unless the session is open. If `isIdle`, no frame is
    /// unacknowledged, and one Store of any size may be sent.
    /// - Parameters:
    ///   - windowFrames: this machine's own limit of unacknowledged frames.
    ///   - windowBytes: this machine's own limit of their bytes.
    public func room(windowFrames: Int, windowBytes: Int) -> (frames: Int, bytes: Int, isIdle: Bool)? {
        guard state == .open, let peerHello else { return nil }
        let isIdle = outbound.unacknowledgedFrames == 0
        let frames = min(peerHello.window, windowFrames) - outbound.unacknowledgedFrames
        let bytes = min(windowBytes, ProtocolLimits.windowBytes) - outbound.unacknowledgedBytes
        return (isIdle ? max(1, frames) : frames, bytes, isIdle)
    }

    /// Assigns the next sequence number to a Store. Called only if `room` permits another Store.
    /// - Parameter tag: the id of the outbox row. `Action.settled` has it with the result.
    public mutating func numberStore(tag: Int64, bytes: Int, now: Instant) -> Int64 {
        lastActivity = now
        return outbound.number(tag: tag, bytes: bytes, now: now)
    }

    public var unacknowledgedFrames: Int { outbound.unacknowledgedFrames }
    /// The ids of the outbox rows in flight.
    public var unacknowledgedTags: Set<Int64> { outbound.tags }
    public var nextSequence: Int64 { outbound.nextSequence }

    public mutating func sendAlert(_ message: String, now: Instant, _ actions: inout [Action]) {
        guard hasBegun, maySpeak else { return }
        lastActivity = now
        actions.append(.send(.alert(message: message, sequence: outbound.number(tag: nil, bytes: 0, now: now))))
    }

    /// Sends another Hello, if the name, the card or the frame limit changed. `maxFrameBytes` and `window` never decrease.
    /// - Parameter always: whether to send the Hello in any case. A peer that was refused temporarily retries when it receives a Hello.
    public mutating func resendHello(name: String, maxFrameBytes: Int, card: String? = nil, always: Bool = false, _ actions: inout [Action])
    {
        guard state == .open else { return }
        var hello = ownHello
        hello.name = name
        hello.maxFrameBytes = max(hello.maxFrameBytes, maxFrameBytes)
        hello.card = card ?? hello.card
        guard always || hello != ownHello else { return }
        ownHello = hello
        takePendingFrames(&actions)  // before the Hello: a refusal received after a Hello would delay the peer's retry
        actions.append(.send(.hello(hello)))
        if isTLS { actions.append(.setFrameLimit(hello.maxFrameBytes)) }
    }

    public mutating func setTrusted(_ trusted: Bool) { isTrusted = trusted }

    /// Checks whether the peer is alive. It has to send a Pong with this message within 5 s, in which pauses of reading do not count.
    /// - Parameter padding: number of bytes by which the Ping is made longer.
    public mutating func challenge(_ message: String, padding: Int = 0, now: Instant, _ actions: inout [Action]) {
        guard state == .open else { return }
        challenge = (message, now + timing.challenge)
        lastPing = now
        actions.append(.send(.ping(message: message, sequence: nil, padding: padding)))
    }

    /// Whether the answer to a `challenge` is pending.
    public var isChallenging: Bool { challenge != nil }

    /// Requests the peer to dial this machine. Called only if the peer's Hello has the feature `dialBack`.
    public mutating func askToDialBack(_ request: DialBack, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.dialBack(request)))
    }

    /// Requests the peer to dial this machine and to serve files on that connection. Called only if the peer's Hello has the feature
    /// `files`.
    public mutating func askToDialForFiles(_ request: DialBack, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.fileDial(request)))
    }

    /// Announces changes of this machine's lists. Does nothing if the peer's Hello does not have the feature `lists`, because older
    /// versions do not know the frame.
    public mutating func announceLists(_ actions: inout [Action]) {
        guard state == .open, isTLS, peerHello?.exchangesLists == true else { return }
        actions.append(.send(.listNews))
    }

    public mutating func answerDialBack(_ answer: DialBack.Response, _ actions: inout [Action]) {
        guard state == .open, isTLS else { return }
        actions.append(.send(.dialedBack(answer)))
    }

    // MARK: Time

    /// The time at which `tick` has to be called next; `nil` after the end of the session.
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

    /// Whether the next deadline is the Ping of an idle session. This `tick` may be called up to a second late, so that the timers of many
    /// sessions are coalesced.
    public var mayTickLate: Bool {
        state == .open && pausedSince == nil && outbound.unacknowledgedFrames == 0 && idlePing < lastReceived + timing.silence
            && nextDeadline == idlePing
    }

    /// The time of the next Ping on a session without unacknowledged frames.
    private var idlePing: Instant { max(lastReceived, lastPing) + timing.ping }

    /// The time of the last received frame, or of the last receipt if it is earlier and frames are unacknowledged.
    private var quietSince: Instant { outbound.waitingSince.map { min($0, lastReceived) } ?? lastReceived }

    private var isIdle: Bool { outbound.unacknowledgedFrames == 0 && inbound.isIdle && challenge == nil }

    /// Sends the Ping that is due, and ends the session if a timeout has passed.
    /// - Parameter hasMoreToSend: whether rows for this peer are queued. If so, a stranger's session is not idle.
    public mutating func tick(now: Instant, hasMoreToSend: Bool, _ actions: inout [Action]) {
        switch state {
        case .closed: return
        case .awaitingHello:
            if now >= configuration.connectedAt + timing.hello { end(.helloTimeout, &actions) }
        case .legacy:
            // A legacy sender cannot be pinged, because it receives no frames other than receipts. It may be silent for as long as a
            // stranger's session may be idle.
            guard pausedSince == nil, inbound.isIdle else { return }
            if now >= lastReceived + (isTrusted ? timing.silence : timing.strangerIdle) { end(.idle, &actions) }
        case .open:
            tickOpen(now: now, hasMoreToSend: hasMoreToSend, &actions)
        }
    }

    private mutating func tickOpen(now: Instant, hasMoreToSend: Bool, _ actions: inout [Action]) {
        if let since = pausedSince {
            // If no hex waits to be stored, reading is paused because the peer does not read its receipts.
            if inbound.isIdle, outbound.waitingSince != nil || hasPendingFrames, now >= since + timing.silence {
                return end(.silent, &actions)
            }
            // Pings are sent also while reading is paused.
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

    /// Number of elements whose memory is never freed.
    private static let smallCapacity = 64

    /// Frees buffers that became large during a bulk send, once the session was idle for `timing.quiet`. Called with each Ping in either
    /// direction.
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

    /// Whether the connection may be read now. It may not while too many received hexes wait to be stored, or while a stranger exceeds its
    /// rate limit.
    public func mayRead(now: Instant) -> Bool {
        guard state != .closed else { return false }
        guard inbound.waitingFrames < ownHello.window, inbound.waitingWeight < ProtocolLimits.sessionWeight else { return false }
        return isTrusted || bucket.hasToken(now: now)
    }

    /// Changes the rate limit of a stranger's frames. It is lower if there are more strangers.
    public mutating func setStrangerRate(_ framesPerSecond: Double, now: Instant) { bucket.setRate(framesPerSecond, now: now) }

    /// The time at which a stranger's rate limit permits reading again; `nil` if the rate limit does not prevent it now.
    public func nextReadTime(now: Instant) -> Instant? {
        guard state != .closed, !isTrusted, !bucket.hasToken(now: now) else { return nil }
        return bucket.nextToken
    }

    /// Records that the caller paused reading. Until `resumedReading`, missing frames do not count as silence of the peer.
    public mutating func pausedReading(now: Instant) {
        guard pausedSince == nil else { return }
        pausedSince = now
    }

    /// Records that the caller resumed reading. Timeouts are extended by the length of the pause.
    public mutating func resumedReading(now: Instant) {
        guard let since = pausedSince else { return }
        pausedSince = nil
        let pause = now - since
        lastReceived += pause
        outbound.shift(by: pause)
        challenge?.deadline += pause
    }
}
