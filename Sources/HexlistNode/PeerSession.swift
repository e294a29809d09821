import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistTransport
import HexlistWire
import NIOCore

/// A dial that led to a session.
struct Dialled: Sendable {
    var endpoint: Endpoint
    /// The directory's probe it was; `nil` for a dial for rows that wait.
    var probe: ProbeID?
    var expected: PeerID?
}

/// The shell around one `Session`: a connection below, the node above, no decisions of its own.
///
/// Everything in here runs on the node's event loop, which is also the node's executor; that is what makes the unchecked
/// conformance true, and `node.assumeIsolated` checks it at every call.
final class PeerSession: PeerConnectionDelegate, @unchecked Sendable {
    /// Hexes that go to the store at once, at most; and where a trusted peer's go there too, which wait as long as this one's take.
    static let batchLimit = 1_024
    static let sharedBatchLimit = 64
    /// The time during which another session's hexes count.
    private static let sharedTime = Duration.milliseconds(100)
    /// The weight that may arrive in the middle of a burst before the node learns of it.
    private static let uncountedWeight = 64 << 10

    let connection: PeerConnection
    /// The purpose of the dial; `nil` for an inbound session.
    let dialled: Dialled?
    var machine: Session
    /// The peer that a Hello on TLS proved, and the instant of that Hello.
    private(set) var greeting: (peer: PeerID, at: Session.Instant)?
    var peer: PeerID? { greeting?.peer }
    /// The session as the directory was told of it.
    var info: SessionInfo?
    /// The pause after the name of a later Hello went to the store; `nil` if there is none.
    var namePause: NamePause?
    enum NamePause {
        case quiet
        /// Another Hello came meanwhile.
        case toldAgain
    }

    private let decoder: SharedDecoder
    private let node: Node
    /// The weight of this session that the node counts as waiting for the store.
    private var counted: (owner: InboundRoom.Owner, weight: Int) = (.strangers, 0)
    /// The next tick. Without a task of its own it is one of the node's shared ticks.
    private var tick: (task: Scheduled<Void>?, at: Session.Instant)?
    private var readTimer: Scheduled<Void>?
    private var batchTimer: Scheduled<Void>?
    /// The time at the first frame of a burst: one reading of the clock for all of it.
    private var burst: Session.Instant?
    private(set) var end: Session.End?
    /// The callers that wait for something from this session, to examine it.
    var checks = SessionChecks()

    init(connection: PeerConnection, machine: Session, dialled: Dialled?, decoder: SharedDecoder, node: Node) {
        self.connection = connection
        self.machine = machine
        self.dialled = dialled
        self.decoder = decoder
        self.node = node
    }

    /// The address that answered if the session was dialled by a host's name.
    var addressBehindName: String? {
        guard let dialled, connection.remoteAddress != dialled.endpoint.host, DialTarget(dialled.endpoint).isName else { return nil }
        return connection.remoteAddress
    }

    /// Begins the session. Nothing is delivered before.
    func start() {
        var actions: [Session.Action] = []
        machine.start(&actions)
        perform(actions)
        connection.delegate = self
        settle()
    }

    /// Ends it with the first word, and says no Hello: who is here is said to nobody this machine hides from.
    func refuse() {
        connection.delegate = self
        act { $0.end(.idle, text: Node.hidingText, &$1) }
    }

    /// The source address of an inbound session.
    var source: Endpoint? {
        guard dialled == nil else { return nil }
        return Endpoint(host: connection.remoteAddress, port: connection.remotePort, via: .inbound)
    }

    private var clocks: Clocks { node.clocks }
    private var now: Session.Instant { burst ?? clocks.now }

    // MARK: From the connection

    func received(frame: [UInt8], on connection: PeerConnection) {
        let now = burst ?? clocks.now
        burst = now
        var actions: [Session.Action] = []
        machine.received(decoder.decode(frame), bytes: frame.count, now: now, &actions)
        if !actions.isEmpty { perform(actions) }
        let (weight, mayRead) = Self.reading(&machine, at: now)
        let isUncounted = weight >= counted.weight + Self.uncountedWeight
        if isUncounted { count() }
        if isUncounted || !mayRead { updateReading() }
    }

    /// The weight that waits for the store, and whether more may be read. The machine is `inout` because the compiler else copies it for each frame.
    private static func reading(_ machine: inout Session, at now: Session.Instant) -> (weight: Int, mayRead: Bool) {
        (machine.waitingWeight, machine.mayRead(now: now))
    }

    func readCompleted(on connection: PeerConnection) {
        burst = nil
        submitBatch()
        settle()
    }

    func frameFault(_ length: UInt32, on connection: PeerConnection) {
        act { $0.frameFault(&$1) }
    }

    func writabilityChanged(on connection: PeerConnection) {
        settle()
        node.assumeIsolated { $0.roomMade(on: self) }
    }

    func closed(on connection: PeerConnection, error: (any Error)?) {
        tick?.task?.cancel()
        tick = nil
        readTimer?.cancel()
        submitBatch(waits: false)  // received frames are still handled
        machine.connectionClosed()
        count()
        let end = self.end ?? .lost
        self.end = end
        checks.ended()
        // An error that is not the socket's came from the other side: FIN with or without TLS's close_notify, half a frame. A lost link is
        // nobody's fault.
        let closedByPeer = end == .lost && ((error as? IOError).map { $0.errnoCode == 104 /* ECONNRESET */ } ?? true)
        node.assumeIsolated { $0.sessionEnded(self, end: end, closedByPeer: closedByPeer) }
    }

    // MARK: To the machine

    /// Passes one event to the machine, and carries out its actions and what it owes.
    func act(_ event: (inout Session, inout [Session.Action]) -> Void) {
        var actions: [Session.Action] = []
        event(&machine, &actions)
        perform(actions)
        settle()
    }

    func send(_ row: OutgoingHex) {
        let sequence = machine.numberStore(tag: row.id, bytes: row.body.count, now: now)
        connection.write { buffer in
            row.body.withUnsafeBytes { WrapperEncoder.store(hexJSON: $0, messageID: row.messageID, sequence: sequence, into: &buffer) }
        }
    }

    /// Called after anything that may owe a receipt, change the reading or move a deadline.
    func settle() {
        count()
        updateReading()  // also of a connection that has ended: what came before its end waits for it
        guard connection.isOpen else { return }
        if machine.owesAnything, connection.isWritable {
            var actions: [Session.Action] = []
            machine.takeOwed(&actions)
            perform(actions)
            updateReading()
        }
        scheduleTick()
    }

    private func perform(_ actions: [Session.Action]) {
        for action in actions {
            switch action {
            case .send(let frame): write(frame)
            case .setFrameLimit(let limit): connection.frameLimit = limit
            case .opened(let hello, let version):
                connection.markIdentified()
                if connection.isTLS, let peer = hello.uuid { greeting = (peer, now) }
                node.assumeIsolated { $0.sessionOpened(self, hello: hello, version: version) }
            case .updated(let hello):
                node.assumeIsolated { $0.sessionUpdated(self, hello: hello) }
            case .legacy:
                node.assumeIsolated { $0.legacySender(self) }
            case .alert(let message):
                node.assumeIsolated { $0.alertReceived(message, self) }
            case .pairing(let pairing):
                node.assumeIsolated { $0.pairing.received(pairing, self, $0) }
            case .settled(let rows):
                node.assumeIsolated { $0.settled(rows, on: self) }
            case .challengeAnswered(let message):
                challengeEnded(message, answered: true)
            case .challengeFailed(let message):
                challengeEnded(message, answered: false)
            case .dialBack(let request):
                node.assumeIsolated { $0.dialBack(request, self) }
            case .dialedBack(let answer):
                if checks.dialBack?.token == answer.token { checks.dialBack.take()?.done(answer.result) }
            case .fileDial(let request):
                node.assumeIsolated { $0.serving.dial(request, for: self, $0) }
            case .close(let end):
                self.end = end
                connection.close()
            }
        }
    }

    private func challengeEnded(_ message: String, answered: Bool) {
        if checks.ping?.message == message { return checks.ping.take()?.done(answered ? .answered : .unanswered) ?? () }
        node.assumeIsolated { $0.duplicates.ended(self, message: message, answered: answered, $0) }
    }

    private func write(_ frame: Session.OutFrame) {
        if case .ack(let receipt) = frame, !receipt.rejected.isEmpty { node.metrics.refused(in: receipt) }
        connection.write { buffer in
            switch frame {
            case .hello(let hello): WrapperEncoder.hello(hello, into: &buffer)
            case .ack(let receipt): WrapperEncoder.ack(receipt, into: &buffer)
            case .alert(let message, let sequence): WrapperEncoder.alert(message: message, sequence: sequence, into: &buffer)
            case .ping(let message, let sequence, let padding):
                WrapperEncoder.ping(message: message, sequence: sequence, padding: padding, into: &buffer)
            case .pong(let message): WrapperEncoder.pong(message: message, into: &buffer)
            case .pair(let pairing): WrapperEncoder.pair(pairing, into: &buffer)
            case .bye(let code, let text): WrapperEncoder.bye(code, text: text, into: &buffer)
            case .dialBack(let request): WrapperEncoder.dialBack(request, into: &buffer)
            case .dialedBack(let answer): WrapperEncoder.dialedBack(answer, into: &buffer)
            case .fileDial(let request): WrapperEncoder.fileDial(request, into: &buffer)
            }
        }
    }

    // MARK: The store

    /// Hands what came to the store, unless a batch is there already: then it follows that one.
    /// - Parameter waits: a batch of a stream may wait to become larger.
    func submitBatch(waits: Bool = true) {
        if waits, let due = machine.batchDue(now: clocks.now) {
            guard batchTimer == nil else { return }
            batchTimer = connection.eventLoop.schedule(at: due, clocks) { [self] in
                batchTimer = nil
                submitBatch()
            }
            return
        }
        batchTimer?.cancel()
        batchTimer = nil
        let isShared = node.assumeIsolated { $0.sessions.storeIsShared(beside: self, within: Self.sharedTime) }
        let batch = machine.takeBatch(limit: isShared ? Self.sharedBatchLimit : Self.batchLimit)
        guard !batch.isEmpty else { return }
        node.assumeIsolated { $0.keep(batch, from: self) }
    }

    /// The transaction is durable, or refused.
    func batchCompleted(_ results: [DeliveryResult]) {
        machine.batchCompleted(results, now: clocks.now)
        submitBatch()
        settle()
    }

    // MARK: Reading and time

    /// Tells the node what waits now. It is told the difference to what it was told last, so that nothing is given back twice or
    /// never: with the last answer of the store, which always comes, a session has nothing waiting.
    private func count() {
        let owner = machine.isTrusted ? connection.peerFingerprint.map { InboundRoom.Owner.peer($0.peerID) } ?? .strangers : .strangers
        let weight = machine.waitingWeight
        guard weight != counted.weight || owner != counted.owner else { return }
        let before = counted
        counted = (owner, weight)
        node.assumeIsolated { $0.sessions.waitingChanged(from: before, to: (owner, weight)) }
    }

    /// Called after anything that decides whether more is taken from the peer.
    func updateReading() {
        guard !machine.isClosed else { return }
        let now = clocks.now
        let mayRead = machine.mayRead(now: now) && node.assumeIsolated { $0.sessions.mayRead(counted.owner) }
        // The share of a stranger may have become smaller since the timer was set.
        if !mayRead, readTimer == nil, let again = machine.readsAgain(now: now) {
            readTimer = connection.eventLoop.schedule(at: again, clocks) { [self] in
                readTimer = nil
                settle()
            }
        }
        guard mayRead != connection.isReading else { return }
        if mayRead {
            machine.resumedReading(now: now)
            readTimer?.cancel()
            readTimer = nil
        } else {
            machine.pausedReading(now: now)
        }
        connection.isReading = mayRead
    }

    /// Time passed without its timers, as in sleep.
    func timePassed() { tickNow() }

    private func tickNow() {
        act { [hasMore = node.assumeIsolated { $0.hasWork(for: self.peer) }] in $0.tick(now: clocks.now, hasMoreToSend: hasMore, &$1) }
    }

    private func scheduleTick() {
        guard connection.isOpen, let deadline = machine.nextDeadline else { return }
        if machine.mayTickLate {
            let second = WholeSeconds.next(from: deadline)
            guard needsTick(at: second) else { return }
            tick = (nil, second)
            node.assumeIsolated { $0.sessions.shareTick(self, at: second, $0) }
        } else if needsTick(at: deadline) {
            let task = connection.eventLoop.schedule(at: deadline, clocks) { [self] in
                tick = nil
                tickNow()
            }
            tick = (task, deadline)
        }
    }

    /// Whether nothing is going to happen before; what would be too late is taken back.
    private func needsTick(at instant: Session.Instant) -> Bool {
        if let tick, tick.at <= instant { return false }
        tick?.task?.cancel()
        return true
    }

    func sharedTick(at second: Session.Instant) {
        guard let tick, tick.task == nil, tick.at == second else { return }
        self.tick = nil
        tickNow()
    }
}

/// The decoder of all sessions of a node: the room that a frame made it take is there once, however many sessions there are.
///
/// `@unchecked`: used on the node's loop only, as the sessions are.
final class SharedDecoder: @unchecked Sendable {
    private var decoder = WrapperDecoder()

    func decode(_ frame: [UInt8]) -> DecodedFrame { decoder.decode(frame) }
}
