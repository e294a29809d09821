public import HexlistModel

/// One authenticated connection to a peer as a state machine without a socket (Docs/Protocol.md, "Session", "Delivery").
///
/// The shell passes in decoded frames, store results and the time, carries out the actions in order, and asks for owed frames: receipts
/// and the latest Pong are merged here until the connection takes them, so a peer that does not read makes nothing grow. There is no clock
/// and no randomness in here.
///
/// Its state: both identities, the frame numbers of each direction, the receipts owed, and the times of the last byte, frame and receipt.
/// Each of these times has a timeout of its own that ends the session.
public struct Session: Sendable {
    public typealias Instant = ContinuousClock.Instant

    public enum Role: Sendable { case dialer, acceptor }

    public enum Security: Sendable, Equatable {
        /// TLS 1.3 with this key proven.
        case tls(Fingerprint)
        /// Plain TCP: nothing a peer says about itself is proven.
        case plain
    }

    /// The parameters of a new session.
    public struct Configuration: Sendable {
        public var own: PeerID
        public var role: Role
        public var security: Security
        /// The peer that was dialled; `nil` for an acceptor, and for a dialer that only asks who is there.
        public var expected: PeerID?
        /// The Hello to send. Its `maxFrameBytes` is this side's limit after the other's Hello.
        public var hello: Hello
        /// The most bytes of a frame before and without a Hello, from the second frame on.
        public var strangerFrameBytes: Int
        public var isTrusted: Bool
        public var strangerFramesPerSecond: Int
        /// The instant at which the TCP connection was made; Hello must come within 5 s of it.
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

    /// The times of one session, as the protocol fixes them; others only in tests.
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
        /// The time without anything but signs of life after which the memory of a bulk is freed.
        public var quiet: Duration = .seconds(10)

        public init() {}
    }

    public enum End: Sendable, Equatable {
        /// This side ended the session, with that Bye if it may send one.
        case own(ByeCode)
        /// The peer said Bye; `nil` for a code this version does not know.
        case peer(ByeCode?, text: String)
        /// The connection ended without a Bye.
        case lost
    }

    public enum OutFrame: Sendable, Equatable {
        case hello(Hello)
        case ack(Receipt)
        case alert(message: String, sequence: Int64)
        /// `padding`: the bytes that only make the frame longer.
        case ping(message: String, sequence: Int64?, padding: Int = 0)
        case pong(message: String)
        case pair(Pairing)
        case bye(ByeCode, text: String)
        case dialBack(DialBack)
        case dialedBack(DialBack.Answer)
        case fileDial(DialBack)
    }

    public enum Action: Sendable, Equatable {
        case send(OutFrame)
        /// Set the most bytes of a frame, from the next frame on.
        case setFrameLimit(Int)
        /// The peer's Hello was checked; on TLS it is proven.
        case opened(Hello, versionID: String)
        /// The peer sent another Hello, with another name or a larger limit.
        case updated(Hello)
        /// The first frame was no Hello: the sender is a foreign program.
        case legacy
        case alert(String)
        /// A `Pair` came, over TLS and after Hello. A shell that does not take it calls `refusePairing`.
        case pairing(Pairing)
        /// The peer has answered for own rows, in order.
        case settled([RowResult])
        /// The Ping with this message was answered in time; `challengeFailed`: it was not.
        case challengeAnswered(String)
        case challengeFailed(String)
        /// The peer asks to be dialled back.
        case dialBack(DialBack)
        /// The peer answered a request of this side to be dialled back.
        case dialedBack(DialBack.Answer)
        /// The peer asks to be dialled for a connection on which it fetches files.
        case fileDial(DialBack)
        /// Flush everything sent before, then close the connection.
        case close(End)
    }

    enum State: Sendable, Equatable { case awaitingHello, open, legacy, closed }

    public let configuration: Configuration
    let timing: Timing
    var state = State.awaitingHello
    /// The latest Hello of the peer.
    public internal(set) var peerHello: Hello?
    /// Another start that proved this node's own identity, which ended the session (`conflict`).
    public internal(set) var refusedBoot: BootNonce?
    /// This side's latest Hello. Its limits only ever rise.
    public internal(set) var ownHello: Hello
    public internal(set) var isTrusted: Bool

    var inbound = InboundNumbers()
    var outbound = OutboundWindow()
    var strikes = 0
    var bucket: TokenBucket
    var owedPong: String?
    var owesPairingCancel = false
    var challenge: (message: String, deadline: Instant)?

    var lastReceived: Instant
    var lastPing: Instant
    /// The instant of the last frame, either way, that was more than a sign of life.
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
    /// Whether the peer has said Hello, or turned out to be a legacy sender, and the session has not ended.
    public var hasBegun: Bool { state == .open || state == .legacy }
    var isTLS: Bool { configuration.security != .plain }

    /// Whether anything but receipts may be sent (Docs/Protocol.md, "Session", 6).
    var maySpeak: Bool { isTLS || peerHello != nil }

    /// Begins the session. Called once, when the handshake with the peer's certificate is complete.
    public mutating func start(_ actions: inout [Action]) {
        actions.append(.setFrameLimit(isTLS ? ProtocolLimits.firstFrameBytes : configuration.strangerFrameBytes))
        if isTLS { actions.append(.send(.hello(ownHello))) }
    }

    // MARK: Frames

    /// Handles one frame. Hexes of Stores become available in `takeBatch`.
    public mutating func received(_ frame: DecodedFrame, bytes: Int, now: Instant, _ actions: inout [Action]) {
        guard state != .closed else { return }
        lastReceived = now
        if !isTrusted, !Session.isEarned(frame) { bucket.take(now: now) }
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

    /// Whether a frame does not count against a stranger's rate. Receipts do not: each must answer frames this side sent, or it ends the
    /// session. Counted, they would limit every send to an untrusted peer to 20 receipts a second.
    private static func isEarned(_ frame: DecodedFrame) -> Bool {
        switch frame {
        case .wrapper(let wrapper): wrapper.operation == .ack
        case .refused: false
        }
    }

    /// Ends the session because of a length outside the bounds: the stream cannot be read further.
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
            giveBack(now: now)
            let token = wrapper.message ?? ""
            guard token.utf8.count <= ProtocolLimits.messageBytes else { return }  // no peer asks with a longer token, and it would be kept
            owedPong = token
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
            // Only if both said Hello, on TLS: of anyone else the address may be another machine's.
            guard state == .open, isTLS, let request = wrapper.message.flatMap(DialBack.init(message:)) else { return }
            actions.append(.dialBack(request))
        case .dialedBack:
            guard state == .open, isTLS, let answer = wrapper.message.flatMap(DialBack.Answer.init(message:)) else { return }
            actions.append(.dialedBack(answer))
        case .fileDial:
            guard state == .open, isTLS, let request = wrapper.message.flatMap(DialBack.init(message:)) else { return }
            actions.append(.fileDial(request))
        case .hello:
            return  // handled before this switch
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
            // On plain TCP the identity is only a claim.
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
        // Bytes that could not be read, or a malformed Hello, do not tell who is speaking: the deadline stays.
        guard refusal.isUndecodable || refusal.operation == .hello else {
            becomeLegacy(&actions)
            return
        }
        if isFirst { actions.append(.setFrameLimit(configuration.strangerFrameBytes)) }
    }

    private mutating func becomeLegacy(_ actions: inout [Action]) {
        // A dialled peer answers with Hello; anything else is not the expected peer.
        guard configuration.role == .acceptor else {
            end(.identityMismatch, &actions)
            return
        }
        state = .legacy
        actions.append(.setFrameLimit(configuration.strangerFrameBytes))
        actions.append(.legacy)
    }

    // MARK: Ending

    /// Ends the session from this side, with a Bye if this side may send.
    public mutating func end(_ code: ByeCode, text: String = "", _ actions: inout [Action]) {
        guard state != .closed else { return }
        takeOwed(&actions)
        if maySpeak { actions.append(.send(.bye(code, text: text))) }
        state = .closed
        actions.append(.close(.own(code)))
    }

    private mutating func end(byPeer message: String?, _ actions: inout [Action]) {
        takeOwed(&actions)
        state = .closed
        let (code, text) = Session.parseBye(message ?? "")
        actions.append(.close(.peer(code, text: text)))
    }

    /// Ends the session of a peer that was blocked: refuses Stores already read, tells the user there, then says `Bye` `blocked`. A session
    /// that has not begun only gets the `Bye`.
    public mutating func endBlocked(ownName: String, now: Instant, _ actions: inout [Action]) {
        guard state != .closed else { return }
        inbound.refuseWaiting(.blocked)
        takeOwed(&actions)
        sendAlert("\(ownName) blocked you.", now: now, &actions)
        end(.blocked, &actions)
    }

    /// Notes that the connection is gone. Nothing more is sent.
    public mutating func connectionClosed() { state = .closed }

    /// Splits the message of a Bye, `<code>: <text>` or the code alone.
    static func parseBye(_ message: String) -> (ByeCode?, text: String) {
        let bytes = message.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return (ByeCode(utf8: bytes), "") }
        let text = bytes[bytes.index(after: colon)...].drop { $0 == UInt8(ascii: " ") }
        return (ByeCode(utf8: bytes[..<colon]), String(decoding: text, as: UTF8.self))
    }
}
