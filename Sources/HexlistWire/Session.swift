public import HexlistModel

/// The state machine of one authenticated connection to a peer (Docs/Protocol.md, "Session", "Delivery").
///
/// Performs no IO, and uses neither a clock nor randomness. The caller passes in decoded frames, the store's results and the time, and
/// carries out the returned actions in order. Receipts and Pongs are held back until the connection is writable. A peer that does not read
/// therefore makes no memory grow.
public struct Session: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public enum Role: Sendable { case dialer, acceptor }

    public enum Security: Sendable, Equatable {
        /// TLS 1.3; the peer proved this key.
        case tls(Fingerprint)
        /// Plain TCP: nothing that the peer claims is proved.
        case plain
    }

    /// The parameters of a new session.
    public struct Configuration: Sendable {
        public var own: PeerID
        public var role: Role
        public var security: Security
        /// The peer that was dialled; `nil` for an acceptor, or if any peer may answer.
        public var expected: PeerID?
        /// This machine's Hello. Its `maxFrameBytes` is the limit for received frames once the peer's Hello was accepted.
        public var hello: Hello
        /// Maximum bytes of a received frame before the peer's Hello was accepted. With TLS, the first frame has its own limit, 8 KiB.
        public var strangerFrameBytes: Int
        public var isTrusted: Bool
        public var strangerFramesPerSecond: Int
        /// The time when the TCP connection was established. The Hello must follow within 5 s.
        public var connectedAt: Instant

        public init(
            own: PeerID, role: Role, security: Security, expected: PeerID?, hello: Hello, strangerFrameBytes: Int,
            isTrusted: Bool, strangerFramesPerSecond: Int, connectedAt: Instant
        ) {
            self.own = own
            self.role = role
            self.security = security
            self.expected = expected
            self.hello = hello
            self.strangerFrameBytes = strangerFrameBytes
            self.isTrusted = isTrusted
            self.strangerFramesPerSecond = strangerFramesPerSecond
            self.connectedAt = connectedAt
        }
    }

    /// The timeouts of a session. The protocol prescribes them; only tests use others.
    public struct Timing: Sendable {
        /// Maximum time from the TCP connection to the peer's Hello.
        public var hello: Duration = .seconds(5)
        /// Time without a received frame after which a Ping is sent.
        public var ping: Duration = .seconds(15)
        /// Time without a received frame after which the session ends.
        public var silence: Duration = .seconds(45)
        /// Time without a receipt after which a Ping is sent, if frames are unacknowledged.
        public var pingUnacknowledged: Duration = .seconds(7)
        /// Time without a received frame after which the session ends, if frames are unacknowledged.
        public var silenceUnacknowledged: Duration = .seconds(20)
        /// Maximum time without a receipt, if frames are unacknowledged.
        public var receipt: Duration = .seconds(30)
        /// Interval of Pings while reading is paused.
        public var pausedPing: Duration = .seconds(5)
        /// Time without activity after which a stranger's session ends.
        public var strangerIdle: Duration = .seconds(60)
        /// Maximum time for the answer to a challenge.
        public var challenge: Duration = .seconds(5)
        /// Time without activity after which buffers that became large during a bulk send are freed.
        public var quiet: Duration = .seconds(10)

        public init() {}
    }

    public enum EndReason: Sendable, Equatable {
        /// This machine ended the session. The Bye was sent if the state of the session permitted it.
        case own(ByeCode)
        /// The peer sent a Bye. The code is `nil` if this version does not know it.
        case peer(ByeCode?, text: String)
        /// The connection was closed without a Bye.
        case lost
    }

    public enum OutFrame: Sendable, Equatable {
        case hello(Hello)
        case ack(Receipt)
        case alert(message: String, sequence: Int64)
        /// `padding` is the number of bytes by which the Ping is made longer; the receiver ignores them.
        case ping(message: String, sequence: Int64?, padding: Int = 0)
        case pong(message: String)
        case pair(Pairing)
        case bye(ByeCode, text: String)
        case dialBack(DialBack)
        case dialedBack(DialBack.Response)
        case fileDial(DialBack)
        case listNews
    }

    public enum Action: Sendable, Equatable {
        case send(OutFrame)
        /// Limit the size of received frames to this number of bytes, beginning with the next one.
        case setFrameLimit(Int)
        /// The peer's first Hello was accepted. On plain TCP its identity is only a claim.
        case opened(Hello, versionID: String)
        /// The peer sent another Hello. The value has the new name, the greater limits and the newest card.
        case updated(Hello)
        /// The first frame was not a Hello, so the peer is a legacy sender.
        case legacy
        case alert(String)
        /// The peer sent a step of a pairing, over TLS and after its Hello. To refuse it, call `refusePairing`.
        case pairing(Pairing)
        /// The peer acknowledged or refused outbox rows. The results are in the order of sending.
        case settled([RowResult])
        /// The peer answered the challenge with this message in time.
        case challengeAnswered(String)
        /// The peer did not answer the challenge with this message in time.
        case challengeFailed(String)
        /// The peer requests that this machine dial it back.
        case dialBack(DialBack)
        /// The peer's response to a dial-back request of this machine.
        case dialedBack(DialBack.Response)
        /// The peer requests that this machine dial it. The peer then fetches files on that connection.
        case fileDial(DialBack)
        /// The peer's lists have changed. A hint, as often as the peer likes.
        case listNews
        /// Close the connection, after all sent frames were written.
        case close(EndReason)
    }

    enum State: Sendable, Equatable { case awaitingHello, open, legacy, closed }

    public let configuration: Configuration
    let timing: Timing
    var state = State.awaitingHello
    /// The peer's Hello. Later Hellos can change the name and the card, and raise the limits; `nil` before the first one.
    public internal(set) var peerHello: Hello?
    /// The boot nonce of a peer that proved this machine's own identity, which ended the session with `conflict`; otherwise `nil`.
    public internal(set) var refusedBoot: BootNonce?
    /// The last Hello that was sent, or is to be sent. Its limits never decrease.
    public internal(set) var ownHello: Hello
    public internal(set) var isTrusted: Bool

    var inbound = InboundSequence()
    var outbound = OutboundWindow()
    /// Number of malformed frames of the peer. At `ProtocolLimits.strikes` the session ends.
    var strikes = 0
    /// The rate limit of a stranger's frames.
    var bucket: TokenBucket
    /// The message of the last Ping that was not answered yet; `nil` if there is none.
    var pendingPong: String?
    /// Whether a `cancel` is to be sent, because requests for a pairing were refused.
    var hasPendingPairingCancel = false
    /// The Ping to which a Pong is expected, and the time until which it has to arrive; `nil` if there is none.
    var challenge: (message: String, deadline: Instant)?

    var lastReceived: Instant
    var lastPing: Instant
    /// The time of the last frame in either direction, without Ping and Pong.
    var lastActivity: Instant
    /// The time at which the caller paused reading; `nil` while it reads.
    var pausedSince: Instant?
    var isAwaitingFirstFrame = true

    public init(_ configuration: Configuration, timing: Timing = Timing(), now: Instant) {
        self.configuration = configuration
        self.timing = timing
        ownHello = configuration.hello
        isTrusted = configuration.isTrusted
        lastReceived = now
        lastPing = now
        lastActivity = now
        bucket = TokenBucket(
            perSecond: Double(configuration.strangerFramesPerSecond), first: Double(ProtocolLimits.strangerFirstFrames), now: now)
    }

    public var isOpen: Bool { state == .open }
    public var isClosed: Bool { state == .closed }
    public var isLegacy: Bool { state == .legacy }
    /// Whether the peer has sent its Hello or is a legacy sender, and the session has not ended.
    public var hasBegun: Bool { state == .open || state == .legacy }
    var isTLS: Bool { configuration.security != .plain }

    /// Whether frames other than receipts may be sent: always over TLS, and on plain TCP after the peer's Hello (Docs/Protocol.md,
    /// "Session", "Opening").
    var maySpeak: Bool { isTLS || peerHello != nil }

    /// Begins the session. Called once, after the TLS handshake if there is one.
    public mutating func start(_ actions: inout [Action]) {
        actions.append(.setFrameLimit(isTLS ? ProtocolLimits.firstFrameBytes : configuration.strangerFrameBytes))
        if isTLS { actions.append(.send(.hello(ownHello))) }
    }

    // MARK: Frames

    /// Handles a received frame. Hexes are then available from `takeBatch`.
    public mutating func received(_ frame: DecodedFrame, bytes: Int, now: Instant, _ actions: inout [Action]) {
        guard state != .closed else { return }
        lastReceived = now
        if !isTrusted, !Session.isExemptFromRateLimit(frame) { bucket.take(now: now) }
        let isFirst = isAwaitingFirstFrame
        isAwaitingFirstFrame = false
        switch frame {
        case .refused(let refusal):
            if state == .awaitingHello { beginWithoutHello(refusal, isFirst: isFirst, &actions) }
            guard state != .closed else { return }
            refused(refusal, now: now, &actions)
        case .wrapper(let wrapper):
            if wrapper.operation == .hello, case .hello(let hello) = wrapper.object {
                received(hello, versionID: wrapper.versionID, now: now, &actions)
                return
            }
            if state == .awaitingHello {
                guard wrapper.operation != .bye else {
                    end(byPeer: wrapper.message, &actions)
                    return
                }
                becomeLegacy(&actions)
                guard state != .closed else { return }
            }
            received(wrapper, bytes: bytes, now: now, &actions)
        }
    }

    /// Whether a frame does not count for the rate limit of strangers. Receipts do not count: otherwise an untrusted peer could acknowledge
    /// only 20 frames per second. They cannot be abused, because a receipt that acknowledges nothing ends the session.
    private static func isExemptFromRateLimit(_ frame: DecodedFrame) -> Bool {
        switch frame {
        case .wrapper(let wrapper): wrapper.operation == .ack
        case .refused: false
        }
    }

    /// Ends the session after an invalid frame length. The rest of the stream cannot be divided into frames.
    public mutating func frameFault(_ actions: inout [Action]) { end(.frameLength, &actions) }

    private mutating func received(_ wrapper: DecodedWrapper, bytes: Int, now: Instant, _ actions: inout [Action]) {
        if let sequence = wrapper.sequence {
            guard inbound.accept(sequence) else {
                end(.sequenceFault, &actions)
                return
            }
        }
        switch wrapper.operation {
        case .store:
            guard case .hex(let content) = wrapper.object else { return }
            lastActivity = now
            inbound.store(
                IncomingHex(
                    content: content, messageID: isTLS ? wrapper.messageID : nil, weight: content.weight(frame: bytes),
                    sequence: wrapper.sequence))
        case .ack:
            guard case .receipt(let receipt) = wrapper.object else { return }
            lastActivity = now
            guard let settled = outbound.receive(receipt, now: now) else {
                end(.receiptFault, &actions)
                return
            }
            if !settled.isEmpty { actions.append(.settled(settled)) }
        case .alert:
            lastActivity = now
            if let message = wrapper.message { actions.append(.alert(message)) }
        case .ping:
            releaseMemory(now: now)
            let token = wrapper.message ?? ""
            guard token.utf8.count <= ProtocolLimits.messageBytes else { return }  // bounds the memory; tokens of Hexlist are shorter
            pendingPong = token
        case .pong:
            guard let open = challenge, PeerTextComparison.areEqual(wrapper.message, open.message) else { return }
            challenge = nil
            actions.append(now <= open.deadline ? .challengeAnswered(open.message) : .challengeFailed(open.message))
        case .bye:
            end(byPeer: wrapper.message, &actions)
        case .pair:
            guard case .pairing(let pairing) = wrapper.object else { return }
            guard state == .open, isTLS else { return refusePairing(pairing) }
            actions.append(.pairing(pairing))
        case .dialBack:
            // Dial-back requests are accepted only over TLS and after the peer's Hello. Otherwise the address might belong to another
            // machine.
            guard state == .open, isTLS, let request = wrapper.message.flatMap(DialBack.init(message:)) else { return }
            actions.append(.dialBack(request))
        case .dialedBack:
            guard state == .open, isTLS, let answer = wrapper.message.flatMap(DialBack.Response.init(message:)) else { return }
            actions.append(.dialedBack(answer))
        case .fileDial:
            guard state == .open, isTLS, let request = wrapper.message.flatMap(DialBack.init(message:)) else { return }
            actions.append(.fileDial(request))
        case .listNews:
            guard state == .open, isTLS else { return }
            actions.append(.listNews)
        case .hello:
            return  // the caller of this method has handled it
        }
    }

    private mutating func refused(_ refusal: Refusal, now: Instant, _ actions: inout [Action]) {
        if refusal.isUndecodable {
            inbound.undecodable += 1
        } else if let sequence = refusal.sequence {
            guard inbound.accept(sequence, refused: refusal) else {
                end(.sequenceFault, &actions)
                return
            }
        }
        guard refusal.code == .malformed else { return }
        strikes += 1
        if strikes >= ProtocolLimits.strikes { end(.tooManyErrors, &actions) }
    }

    // MARK: Hello

    private mutating func received(_ hello: Hello, versionID: String, now: Instant, _ actions: inout [Action]) {
        if let fault = check(hello) {
            // On plain TCP the peer's identity is only a claim.
            if fault == .conflict, isTLS { refusedBoot = hello.boot }
            end(fault, &actions)
            return
        }
        if let known = peerHello {
            guard hello.uuid == known.uuid, hello.boot == known.boot else {
                end(.identityMismatch, &actions)
                return
            }
            var later = hello
            later.maxFrameBytes = max(hello.maxFrameBytes, known.maxFrameBytes)
            later.window = max(hello.window, known.window)
            later.card = hello.card ?? known.card
            peerHello = later
            actions.append(.updated(later))
            return
        }
        peerHello = hello
        state = .open
        lastActivity = now
        if !isTLS { actions.append(.send(.hello(ownHello))) }
        actions.append(.setFrameLimit(isTLS ? ownHello.maxFrameBytes : configuration.strangerFrameBytes))
        actions.append(.opened(hello, versionID: versionID))
    }

    private func check(_ hello: Hello) -> ByeCode? {
        guard let uuid = hello.uuid, let boot = hello.boot else { return .identityMismatch }
        switch configuration.security {
        case .tls(let fingerprint):
            guard uuid == fingerprint.peerID else { return .identityMismatch }
        case .plain: break
        }
        if uuid == configuration.own { return boot == ownHello.boot ? .`self` : .conflict }
        if let expected = configuration.expected, expected != uuid { return .identityMismatch }
        return hello.protocols.contains(ProtocolLimits.version) ? nil : .protocolMismatch
    }

    private mutating func beginWithoutHello(_ refusal: Refusal, isFirst: Bool, _ actions: inout [Action]) {
        // An undecodable frame or a malformed Hello does not show that the peer is a legacy sender. The peer may still send a valid Hello
        // until the timeout.
        guard refusal.isUndecodable || refusal.operation == .hello else {
            becomeLegacy(&actions)
            return
        }
        if isFirst { actions.append(.setFrameLimit(configuration.strangerFrameBytes)) }
    }

    private mutating func becomeLegacy(_ actions: inout [Action]) {
        // A peer that this machine dialled has to send a Hello.
        guard configuration.role == .acceptor else {
            end(.identityMismatch, &actions)
            return
        }
        state = .legacy
        actions.append(.setFrameLimit(configuration.strangerFrameBytes))
        actions.append(.legacy)
    }

    // MARK: End of the session

    /// Ends the session. A Bye is sent if the state of the session permits it.
    public mutating func end(_ code: ByeCode, text: String = "", _ actions: inout [Action]) {
        guard state != .closed else { return }
        takePendingFrames(&actions)
        if maySpeak { actions.append(.send(.bye(code, text: text))) }
        state = .closed
        actions.append(.close(.own(code)))
    }

    private mutating func end(byPeer message: String?, _ actions: inout [Action]) {
        takePendingFrames(&actions)
        state = .closed
        let (code, text) = Session.parseBye(message ?? "")
        actions.append(.close(.peer(code, text: text)))
    }

    /// Ends the session of a peer that the user blocked. Refuses hexes that are not being stored, sends an alert for the peer's user, and
    /// sends `Bye` `blocked`. If the session has not begun, only the `Bye` is sent.
    public mutating func endBlocked(ownName: String, now: Instant, _ actions: inout [Action]) {
        guard state != .closed else { return }
        inbound.refuseWaiting(.blocked)
        takePendingFrames(&actions)
        sendAlert("\(ownName) blocked you.", now: now, &actions)
        end(.blocked, &actions)
    }

    /// Records that the connection was closed. Nothing more is sent.
    public mutating func connectionClosed() { state = .closed }

    /// Parses the message of a Bye: a code, optionally followed by `: ` and a text for the user.
    static func parseBye(_ message: String) -> (ByeCode?, text: String) {
        let bytes = message.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return (ByeCode(utf8: bytes), "") }
        let text = bytes[bytes.index(after: colon)...].drop { $0 == UInt8(ascii: " ") }
        return (ByeCode(utf8: bytes[..<colon]), String(decoding: text, as: UTF8.self))
    }
}
