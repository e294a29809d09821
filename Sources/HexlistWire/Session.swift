public import HexlistModel

/// The state machine of one authenticated connection to a peer (Docs/Protocol.md, "Session", "Delivery").
///
/// Performs no IO and uses neither clock nor randomness: the caller passes in decoded frames, store results and the time, and carries out
/// the actions in order. Receipts and the latest Pong are coalesced here until the connection is writable, so a peer that does not read
/// cannot make memory grow.
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
        /// The dialled peer; `nil` for an acceptor, and for a dialer that accepts any peer.
        public var expected: PeerID?
        /// The Hello to send. Its `maxFrameBytes` limits the received frames after the peer's Hello.
        public var hello: Hello
        /// Maximum bytes of a frame before the peer's Hello, from the second frame on.
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

    /// The timeouts of a session. They are fixed by the protocol, except in tests.
    public struct Timing: Sendable {
        public var hello: Duration = .seconds(5)
        public var ping: Duration = .seconds(15)
        public var silence: Duration = .seconds(45)
        public var pingUnacknowledged: Duration = .seconds(7)
        public var silenceUnacknowledged: Duration = .seconds(20)
        public var receipt: Duration = .seconds(30)
        public var pausedPing: Duration = .seconds(5)
        public var strangerIdle: Duration = .seconds(60)
        public var challenge: Duration = .seconds(5)
        /// Idle time after which memory of a bulk transfer is freed.
        public var quiet: Duration = .seconds(10)

        public init() {}
    }

    public enum EndReason: Sendable, Equatable {
        /// This side ended the session. It sent this Bye, if it was allowed to send one.
        case own(ByeCode)
        /// The peer sent Bye; `nil` if the code is unknown to this version.
        case peer(ByeCode?, text: String)
        /// The connection was closed without a Bye.
        case lost
    }

    public enum OutFrame: Sendable, Equatable {
        case hello(Hello)
        case ack(Receipt)
        case alert(message: String, sequence: Int64)
        /// `padding`: additional bytes that the receiver ignores.
        case ping(message: String, sequence: Int64?, padding: Int = 0)
        case pong(message: String)
        case pair(Pairing)
        case bye(ByeCode, text: String)
        case dialBack(DialBack)
        case dialedBack(DialBack.Response)
        case fileDial(DialBack)
    }

    public enum Action: Sendable, Equatable {
        case send(OutFrame)
        /// Set the maximum bytes of received frames, from the next one on.
        case setFrameLimit(Int)
        /// The peer's Hello was accepted. Only with TLS is its identity proved.
        case opened(Hello, versionID: String)
        /// The peer sent another Hello, with a new name or a larger limit.
        case updated(Hello)
        /// The first frame was not a Hello: the peer is a legacy sender.
        case legacy
        case alert(String)
        /// A `Pair` was received, over TLS and after Hello. To refuse it, call `refusePairing`.
        case pairing(Pairing)
        /// The peer acknowledged or refused outbox rows, in order.
        case settled([RowResult])
        /// The peer answered the Ping of `challenge` with this message in time (`challengeAnswered`), or did not (`challengeFailed`).
        case challengeAnswered(String)
        case challengeFailed(String)
        /// The peer requests to be dialled back.
        case dialBack(DialBack)
        /// The peer's response to a request of this side.
        case dialedBack(DialBack.Response)
        /// The peer requests to be dialled for a connection on which it fetches files.
        case fileDial(DialBack)
        /// Flush all sent frames, then close the connection.
        case close(EndReason)
    }

    enum State: Sendable, Equatable { case awaitingHello, open, legacy, closed }

    public let configuration: Configuration
    let timing: Timing
    var state = State.awaitingHello
    /// The latest Hello of the peer.
    public internal(set) var peerHello: Hello?
    /// The boot nonce of another process that proved this node's identity, which ended the session with `conflict`; otherwise `nil`.
    public internal(set) var refusedBoot: BootNonce?
    /// The latest Hello of this side. Its limits never decrease.
    public internal(set) var ownHello: Hello
    public internal(set) var isTrusted: Bool

    var inbound = InboundNumbers()
    var outbound = OutboundWindow()
    var strikes = 0
    var bucket: TokenBucket
    var pendingPong: String?
    var hasPendingPairingCancel = false
    var challenge: (message: String, deadline: Instant)?

    var lastReceived: Instant
    var lastPing: Instant
    /// The time of the last frame in either direction other than Ping and Pong.
    var lastActivity: Instant
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
    /// Whether the peer sent Hello or is a legacy sender, and the session has not ended.
    public var hasBegun: Bool { state == .open || state == .legacy }
    var isTLS: Bool { configuration.security != .plain }

    /// Whether frames other than receipts may be sent (Docs/Protocol.md, "Session", "Opening").
    var maySpeak: Bool { isTLS || peerHello != nil }

    /// Starts the session. Called once, after the TLS handshake.
    public mutating func start(_ actions: inout [Action]) {
        actions.append(.setFrameLimit(isTLS ? ProtocolLimits.firstFrameBytes : configuration.strangerFrameBytes))
        if isTLS { actions.append(.send(.hello(ownHello))) }
    }

    // MARK: Frames

    /// Handles a frame. Received hexes are returned by `takeBatch`.
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

    /// Whether a frame is exempt from the rate limit of strangers. Receipts are exempt, because a receipt that acknowledges no frame of
    /// this side ends the session. With the limit, an untrusted peer could acknowledge only 20 times a second.
    private static func isExemptFromRateLimit(_ frame: DecodedFrame) -> Bool {
        switch frame {
        case .wrapper(let wrapper): wrapper.operation == .ack
        case .refused: false
        }
    }

    /// Ends the session after an invalid frame length, because the stream cannot be resynchronized.
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
            guard token.utf8.count <= ProtocolLimits.messageBytes else { return }  // bounds the memory; peers send shorter ones
            pendingPong = token
        case .pong:
            guard let open = challenge, PeerText.areEqual(wrapper.message, open.message) else { return }
            challenge = nil
            actions.append(now <= open.deadline ? .challengeAnswered(open.message) : .challengeFailed(open.message))
        case .bye:
            end(byPeer: wrapper.message, &actions)
        case .pair:
            guard case .pairing(let pairing) = wrapper.object else { return }
            guard state == .open, isTLS else { return refusePairing(pairing) }
            actions.append(.pairing(pairing))
        case .dialBack:
            // Dial-back requests are accepted only over TLS after both Hellos: otherwise the address may belong to another machine.
            guard state == .open, isTLS, let request = wrapper.message.flatMap(DialBack.init(message:)) else { return }
            actions.append(.dialBack(request))
        case .dialedBack:
            guard state == .open, isTLS, let answer = wrapper.message.flatMap(DialBack.Response.init(message:)) else { return }
            actions.append(.dialedBack(answer))
        case .fileDial:
            guard state == .open, isTLS, let request = wrapper.message.flatMap(DialBack.init(message:)) else { return }
            actions.append(.fileDial(request))
        case .hello:
            return  // handled above
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
            // Over plain TCP the identity is only claimed.
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
        // An undecodable frame or a malformed Hello does not identify a legacy sender, so the Hello deadline remains.
        guard refusal.isUndecodable || refusal.operation == .hello else {
            becomeLegacy(&actions)
            return
        }
        if isFirst { actions.append(.setFrameLimit(configuration.strangerFrameBytes)) }
    }

    private mutating func becomeLegacy(_ actions: inout [Action]) {
        // A dialled peer must send Hello.
        guard configuration.role == .acceptor else {
            end(.identityMismatch, &actions)
            return
        }
        state = .legacy
        actions.append(.setFrameLimit(configuration.strangerFrameBytes))
        actions.append(.legacy)
    }

    // MARK: Ending

    /// Ends the session, with a Bye if this side may send one.
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

    /// Ends the session of a peer that was blocked: refuses received Stores, notifies the peer's user, and sends `Bye` `blocked`. If the
    /// session has not begun, only the `Bye` is sent.
    public mutating func endBlocked(ownName: String, now: Instant, _ actions: inout [Action]) {
        guard state != .closed else { return }
        inbound.refuseWaiting(.blocked)
        takePendingFrames(&actions)
        sendAlert("\(ownName) blocked you.", now: now, &actions)
        end(.blocked, &actions)
    }

    /// Records that the connection was closed. Nothing more is sent.
    public mutating func connectionClosed() { state = .closed }

    /// Parses the message of a Bye: `<code>: <text>`, or only the code.
    static func parseBye(_ message: String) -> (ByeCode?, text: String) {
        let bytes = message.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return (ByeCode(utf8: bytes), "") }
        let text = bytes[bytes.index(after: colon)...].drop { $0 == UInt8(ascii: " ") }
        return (ByeCode(utf8: bytes[..<colon]), String(decoding: text, as: UTF8.self))
    }
}
