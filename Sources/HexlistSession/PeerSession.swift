public import HexlistModel
public import HexlistTransport
public import HexlistWire
import HexlistEventLoop
import NIOCore

/// A session with a peer: executes the actions of a `Session` state machine on a connection, and passes events to a `SessionDelegate`.
///
/// Every member is used only on the event loop of the connection, which is also that of the `SessionTable`. That makes the class
/// `Sendable`.
public final class PeerSession: PeerConnectionDelegate, @unchecked Sendable {
    /// Maximum number of hexes of a batch for the store.
    public static let batchLimit = 1_024
    /// Maximum number of hexes of a batch while another trusted session also stores hexes, because its hexes have to wait for this batch.
    static let sharedBatchLimit = 64
    /// Time after a batch of another session during which that session counts as storing hexes.
    private static let sharedTime = Duration.milliseconds(100)
    /// The weight in bytes of received hexes that are not yet reported to the table. At this weight they are reported before the end of the
    /// current read.
    private static let uncountedWeight = 64 << 10

    public let connection: PeerConnection
    public let delegate: any SessionDelegate
    public internal(set) var machine: Session
    /// The peer whose identity a Hello on TLS proved, and the instant of that Hello. `nil` before the Hello, and on plain TCP.
    package private(set) var greeting: (peer: PeerID, at: Session.Instant)?
    /// The peer that a Hello on TLS proved; `nil` before, and on plain TCP.
    public var peer: PeerID? { greeting?.peer }
    /// The reason for the session's end; `nil` while it runs.
    public private(set) var end: Session.EndReason?
    /// The diagnostic requests on this session.
    package var checks = PendingDiagnostics()

    private let table: SessionTable
    /// The weight of this session's hexes that wait to be stored, as last reported to the table, and the owner to which it was attributed.
    private var counted: (owner: InboundMemoryLimit.Owner, weight: Int) = (.strangers, 0)
    /// The next check of timeouts. `task` is `nil` if it is one of the table's shared ticks.
    private var tick: (task: Scheduled<Void>?, at: Session.Instant)?
    private var readTimer: Scheduled<Void>?
    private var batchTimer: Scheduled<Void>?
    /// The instant of the first frame of the current read, so that the clock is read only once per read.
    private var burst: Session.Instant?

    /// Creates a session. The caller then calls `start` or `refuse`.
    /// - Parameters:
    ///   - connection: a connection without a delegate, on the table's event loop.
    ///   - hello: this machine's Hello. Its `maxFrameBytes` is at least 1 MiB for a trusted peer.
    ///   - expected: the peer that was dialled. If another one answers, the session ends. `nil` to allow any peer, and for an accepted
    ///     connection.
    ///   - isTrusted: whether the proven key is trusted.
    public init(
        _ connection: PeerConnection, hello: Hello, expected: PeerID? = nil, isTrusted: Bool, in table: SessionTable,
        delegate: any SessionDelegate
    ) {
        self.connection = connection
        self.table = table
        self.delegate = delegate
        machine = Session(
            Session.Configuration(
                own: table.own, role: connection.role == .dialer ? .dialer : .acceptor,
                security: connection.peerFingerprint.map { .tls($0) } ?? .plain, expected: expected, hello: hello,
                strangerFrameBytes: table.limits.strangerFrameBytes, isTrusted: isTrusted,
                strangerFramesPerSecond: table.limits.strangerFramesPerSecond, connectedAt: connection.openedAt),
            now: table.clocks.now)
    }

    /// Begins the session, and handles frames of the connection. If there are too many sessions of strangers, one of them may be ended.
    public func start() {
        table.add(self)
        var actions: [Session.Action] = []
        machine.start(&actions)
        perform(actions)
        connection.delegate = self
        updateState()
        table.admit(self, mayGiveWay: delegate.mayGiveWay)
    }

    /// Ends a session that was not started, with a Bye and without a Hello, so that the peer does not learn this machine's name.
    /// - Parameter text: the reason, for the peer's user.
    public func refuse(_ code: ByeCode, text: String) {
        table.add(self)
        connection.delegate = self
        act { $0.end(code, text: text, &$1) }
        table.admit(self, mayGiveWay: delegate.mayGiveWay)
    }

    private var now: Session.Instant { burst ?? table.clocks.now }

    // MARK: PeerConnectionDelegate

    public func received(frame: [UInt8], on connection: PeerConnection) {
        let now = burst ?? table.clocks.now
        burst = now
        var actions: [Session.Action] = []
        machine.received(table.decoder.decode(frame), bytes: frame.count, now: now, &actions)
        if !actions.isEmpty { perform(actions) }
        let (weight, mayRead) = Self.reading(&machine, at: now)
        let isUncounted = weight >= counted.weight + Self.uncountedWeight
        if isUncounted { count() }
        if isUncounted || !mayRead { updateReading() }
    }

    /// Returns the weight of the hexes that wait to be stored, and whether more frames may be read. `machine` is `inout` to avoid a copy
    /// for each frame.
    private static func reading(_ machine: inout Session, at now: Session.Instant) -> (weight: Int, mayRead: Bool) {
        (machine.waitingWeight, machine.mayRead(now: now))
    }

    public func readCompleted(on connection: PeerConnection) {
        burst = nil
        submitBatch()
        updateState()
    }

    public func frameFault(_ length: UInt32, on connection: PeerConnection) {
        act { $0.frameFault(&$1) }
    }

    public func writabilityChanged(on connection: PeerConnection) {
        updateState()
        delegate.writabilityChanged(on: self)
    }

    public func closed(on connection: PeerConnection, error: (any Error)?) {
        tick?.task?.cancel()
        tick = nil
        readTimer?.cancel()
        submitBatch(waits: false)  // received frames are still handled
        machine.connectionClosed()
        count()
        let end = self.end ?? .lost
        self.end = end
        checks.ended()
        // Any error of the socket other than ECONNRESET shows a lost link. Otherwise the peer closed the connection.
        let closedByPeer = end == .lost && ((error as? IOError).map { $0.errnoCode == 104 /* ECONNRESET */ } ?? true)
        table.remove(self)
        delegate.ended(self, end: end, closedByPeer: closedByPeer)
    }

    // MARK: Events and sending

    /// Passes one event to the state machine, executes the resulting actions, and sends pending frames.
    public func act(_ event: (inout Session, inout [Session.Action]) -> Void) {
        var actions: [Session.Action] = []
        event(&machine, &actions)
        perform(actions)
        updateState()
    }

    /// Whether a hex of `bytes` bytes may be sent now: it fits into the peer's window, and the connection is writable.
    /// - Parameters:
    ///   - windowFrames: this machine's limit on hexes in flight.
    ///   - windowBytes: this machine's limit on their bytes.
    public func canSend(
        bytes: Int, windowFrames: Int = ProtocolLimits.windowFrames, windowBytes: Int = ProtocolLimits.windowBytes
    ) -> Bool {
        guard connection.isWritable, let room = machine.room(windowFrames: windowFrames, windowBytes: windowBytes) else { return false }
        return room.frames > 0 && (room.isIdle || bytes <= room.bytes)
    }

    /// Sends one hex. Call it only if `canSend` permits. After the last hex of a batch, call `updateState`.
    /// - Parameters:
    ///   - id: the caller's id of the hex, which is returned with its result (`SessionDelegate.settled`).
    ///   - messageID: the id of the hex, the same in every attempt, by which the peer recognises duplicates.
    ///   - body: the hex as HexJM, encoded by `HexEncoder`.
    public func send(id: Int64, messageID: MessageID, body: ArraySlice<UInt8>) {
        let sequence = machine.numberStore(tag: id, bytes: body.count, now: now)
        connection.write { buffer in
            body.withUnsafeBytes { WrapperEncoder.store(hexJSON: $0, messageID: messageID, sequence: sequence, into: &buffer) }
        }
    }

    /// Refuses a step of a pairing. If several are refused at once, a single `cancel` is sent.
    public func refuse(_ pairing: Pairing) { machine.refusePairing(pairing) }

    /// Applies a change of trust. Sends another Hello if this machine's name, its card or the frame limit for the peer changed.
    /// - Parameter always: whether to send the Hello even without a change, so that a peer that was refused temporarily tries again.
    public func sendHello(_ hello: Hello, isTrusted: Bool, always: Bool = false) {
        act { machine, actions in
            machine.setTrusted(isTrusted)
            machine.resendHello(name: hello.name, maxFrameBytes: hello.maxFrameBytes, card: hello.card, always: always, &actions)
        }
        table.setStrangerRate(of: self)
        table.shareAmongStrangers()
    }

    /// Writes pending receipts, pauses or resumes reading, and schedules timers. Called after `send`, and by `act`.
    public func updateState() {
        count()
        updateReading()  // also after the end of the connection, for the frames received before
        guard connection.isOpen else { return }
        if machine.hasPendingFrames, connection.isWritable {
            var actions: [Session.Action] = []
            machine.takePendingFrames(&actions)
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
                delegate.opened(self, hello: hello, version: version)
            case .updated(let hello):
                delegate.updated(self, hello: hello)
            case .legacy:
                connection.markIdentified()
                delegate.openedWithoutHello(self)
            case .alert(let message):
                delegate.received(alert: message, on: self)
            case .pairing(let pairing):
                delegate.received(pairing: pairing, on: self)
            case .settled(let hexes):
                delegate.settled(hexes, on: self)
            case .challengeAnswered(let message):
                challengeEnded(message, answered: true)
            case .challengeFailed(let message):
                challengeEnded(message, answered: false)
            case .dialBack(let request):
                delegate.received(dialBack: request, on: self)
            case .dialedBack(let answer):
                if checks.dialBack?.token == answer.token { checks.dialBack.take()?.done(answer.result) }
            case .fileDial(let request):
                delegate.received(fileDial: request, on: self)
            case .listNews:
                delegate.receivedListNews(on: self)
            case .close(let end):
                self.end = end
                connection.close()
            }
        }
    }

    private func challengeEnded(_ message: String, answered: Bool) {
        if checks.ping?.message == message { return checks.ping.take()?.done(answered ? .answered : .unanswered) ?? () }
        delegate.challengeEnded(message, answered: answered, on: self)
    }

    private func write(_ frame: Session.OutFrame) {
        if case .ack(let receipt) = frame, !receipt.rejected.isEmpty { delegate.sending(refusals: receipt, on: self) }
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
            case .listNews: WrapperEncoder.listNews(into: &buffer)
            }
        }
    }

    // MARK: The store

    /// Passes received hexes to the delegate as a batch, unless the previous batch is still being stored.
    /// - Parameter waits: whether the batch may wait for more hexes of a stream.
    private func submitBatch(waits: Bool = true) {
        if waits, let due = machine.batchDue(now: table.clocks.now) {
            guard batchTimer == nil else { return }
            batchTimer = connection.eventLoop.schedule(at: due, table.clocks) { [self] in
                batchTimer = nil
                submitBatch()
            }
            return
        }
        batchTimer?.cancel()
        batchTimer = nil
        let isShared = table.storeIsShared(beside: self, within: Self.sharedTime)
        let batch = machine.takeBatch(limit: isShared ? Self.sharedBatchLimit : Self.batchLimit)
        guard !batch.isEmpty else { return }
        table.noteStoreWrite(by: self)
        delegate.received(hexes: batch, on: self)
    }

    /// Reports the results of a batch (`SessionDelegate.received(hexes:on:)`), once its hexes are durable or refused. Also called after the
    /// session's end.
    /// - Parameter results: one for each hex of the batch, in their order.
    public func batchCompleted(_ results: [DeliveryResult]) {
        machine.batchCompleted(results, now: table.clocks.now)
        submitBatch()
        updateState()
    }

    // MARK: Reading and time

    /// Reports the weight of the hexes that wait to be stored to the table, if it has changed. It is zero once the results of all hexes are
    /// known.
    private func count() {
        let owner =
            machine.isTrusted ? connection.peerFingerprint.map { InboundMemoryLimit.Owner.peer($0.peerID) } ?? .strangers : .strangers
        let weight = machine.waitingWeight
        guard weight != counted.weight || owner != counted.owner else { return }
        let before = counted
        counted = (owner, weight)
        table.waitingChanged(from: before, to: (owner, weight))
    }

    /// Pauses or resumes reading, as the state machine and the table decide. Called after every change of the conditions.
    func updateReading() {
        guard !machine.isClosed else { return }
        let now = table.clocks.now
        let mayRead = machine.mayRead(now: now) && table.room.mayRead(counted.owner)
        // When the timer fires, the conditions are checked again: a stranger's share of the rate limit may be smaller by then.
        if !mayRead, readTimer == nil, let again = machine.nextReadTime(now: now) {
            readTimer = connection.eventLoop.schedule(at: again, table.clocks) { [self] in
                readTimer = nil
                updateState()
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

    /// Checks all timeouts immediately. Called if timers did not run for some time, for example after a suspend.
    public func timePassed() { tickNow() }

    private func tickNow() {
        act { [hasMore = delegate.hasWork(for: self)] in $0.tick(now: table.clocks.now, hasMoreToSend: hasMore, &$1) }
    }

    private func scheduleTick() {
        guard connection.isOpen, let deadline = machine.nextDeadline else { return }
        if machine.mayTickLate {
            let second = SecondGrid.next(from: deadline)
            guard needsTick(at: second) else { return }
            tick = (nil, second)
            table.shareTick(self, at: second)
        } else if needsTick(at: deadline) {
            let task = connection.eventLoop.schedule(at: deadline, table.clocks) { [self] in
                tick = nil
                tickNow()
            }
            tick = (task, deadline)
        }
    }

    /// Prepares to set a tick at an instant. A later tick is cancelled.
    /// - Returns: `false` if a tick is already set for this instant or an earlier one.
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
