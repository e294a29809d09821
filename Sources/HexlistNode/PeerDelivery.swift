import HexlistModel
import HexlistWire
import NIOCore

/// One row of the outbox on its way.
struct OutgoingHex: Sendable, Equatable {
    /// The outbox row.
    var id: Int64
    var messageID: MessageID
    /// The HexJM as it travels.
    var body: [UInt8]
}

/// The way of one peer's rows from the outbox onto its session, lowest row first (Docs/Protocol.md, "Delivery").
///
/// Holds at most two loads of rows in memory, however long the queue is. Rows that are queued while it has caught up are
/// handed over as they are; all others are read from the store. The shell asks for the next step until it says `wait`. Whatever makes the
/// order doubtful (another session, a temporary refusal, a raised limit) rewinds: nothing is sent until all that is in
/// flight is answered and written down, and then it goes on from the lowest row that still waits.
struct PeerDelivery: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Step: Sendable, Equatable {
        /// Read rows after this one; answer with `loaded`.
        case load(after: Int64, epoch: Int)
        case send(OutgoingHex)
        /// Too long for a peer that takes the most there is: `tooLarge`.
        case reject(Int64)
        /// What the peer refused for now is no longer there to be sent first: end the session (`Bye` `idle`).
        case endSession
        /// Nothing to do until something happens.
        case wait
    }

    /// What becomes of one row.
    struct Verdict: Sendable, Equatable {
        enum State: Sendable, Equatable { case stored, held, rejected(RefusalCode, String), refusedForNow(RefusalCode, String) }
        var id: Int64
        var state: State
        /// The first row refused since the last one was sent: those behind it were refused because it was.
        var leads = false
    }

    /// Rows, and bytes of them, that one load brings.
    static let loadRows = 512
    static let loadBytes = 4 << 20
    /// Overhead of the wrapper around a body, at most.
    static let frameOverhead = 256

    private(set) var isConnected = false
    /// Bytes of one frame the peer takes.
    private(set) var frameLimit = 0
    /// Loaded and not sent.
    private var rows: CircularBuffer<OutgoingHex> = []
    private var rowsBytes = 0
    /// The last row that was loaded, or handed over.
    private var cursor: Int64 = 0
    private var epoch = 0
    private var isLoading = false
    /// The store may have rows behind `cursor`.
    private var mayHaveMore = true
    /// Rows were seen that are not answered for.
    private(set) var knowsOfRows = false
    /// A load under way may not have seen the newest rows.
    private var addedWhileLoading = false
    private var needsRewind = false
    /// Sent on the current session and not answered.
    private(set) var inFlight = 0
    /// Verdicts on their way into the store.
    private var writing = 0
    /// Rows the current session's peer has refused for now.
    private var refused: Set<Int64> = []
    /// Whether the next row must be one of `refused`.
    private var mustLeadWithRefused = false
    /// Rows in flight at most, after a failure or a refusal: one, and twice as many with each receipt. So what the peer fails
    /// on is soon alone at the head, and no other is blamed for it; and a full disk is asked with one hex, not a window.
    private var allowance: Int?
    /// Not before, after a transfer that failed; outlives the session.
    private var failedUntil: Instant?
    /// Not before, as far as the peer itself asked for it; outlives the session.
    private var refusedUntil: Instant?
    /// When a wait the peer asked for last ended because it said that it may take more.
    private var invitedAt: Instant?
    /// The peer's start, and the bytes of a frame it took, as its newest Hello told them.
    private var greeting: (boot: BootNonce, frameLimit: Int)?
    /// Bytes sent since the turn was given.
    private(set) var bytesThisTurn = 0

    init() {}

    /// Not before: the later of both waits.
    var pausedUntil: Instant? { [failedUntil, refusedUntil].compactMap(\.self).max() }

    /// Whether anything is to be done as far as is known, so that it is worth a turn, a dial, an open session.
    var hasWork: Bool { mayHaveMore || !rows.isEmpty || inFlight > 0 || needsRewind }

    /// Bytes of the longest body that fits a frame the peer takes.
    var longestBody: Int { frameLimit - Self.frameOverhead }

    /// Nothing of it is under way: it can be forgotten.
    var isQuiet: Bool { inFlight == 0 && !isWriting && !isLoading }
    /// Whether the peer answered something the store does not say yet.
    var isWriting: Bool { writing > 0 }

    func isPaused(now: Instant) -> Bool { pausedUntil.map { now < $0 } ?? false }

    /// Whether a row of so many bytes waits for the peer's trust, which raises its limit.
    func waitsForTrust(bytes: Int) -> Bool {
        isConnected && frameLimit < ProtocolLimits.trustedFrameBytes && bytes + Self.frameOverhead > frameLimit
    }

    // MARK: Events

    mutating func rowsAdded() {
        mayHaveMore = true
        knowsOfRows = true
        if isLoading { addedWhileLoading = true }
    }

    /// Rows were queued, in this order, with nothing between them and what was queued before. Where all of that was read
    /// already, and there is room, they need not be read from the store.
    mutating func appended(_ more: [OutgoingHex]) {
        guard isConnected, !mayHaveMore, !isLoading, !needsRewind, rowsBytes < Self.loadBytes else { return rowsAdded() }
        for row in more where row.id > cursor { take(row) }
        knowsOfRows = true
    }

    private mutating func take(_ row: OutgoingHex) {
        rows.append(row)
        rowsBytes += row.body.count
        cursor = row.id
    }

    private mutating func popFirst() {
        guard let row = rows.popFirst() else { return }
        rowsBytes -= row.body.count
        if rows.isEmpty, rows.capacity > 64 { rows = [] }  // what a bulk took is not kept
    }

    private mutating func dropRows() {
        rows = []
        rowsBytes = 0
    }

    /// A session is there to send on: the newest one.
    /// - Parameter inFlight: rows sent on it earlier and not answered: it was fallen back to.
    mutating func connected(frameLimit: Int, inFlight: Int = 0) {
        isConnected = true
        self.frameLimit = frameLimit
        self.inFlight = inFlight
        refused = []
        mustLeadWithRefused = false
        needsRewind = true
    }

    mutating func disconnected() {
        isConnected = false
        inFlight = 0
        refused = []
        mustLeadWithRefused = false
        needsRewind = true
        dropRows()
    }

    /// The peer told a higher limit: rows that were too long come back into play.
    mutating func limitRaised(to limit: Int) {
        guard limit > frameLimit else { return }
        frameLimit = limit
        needsRewind = true
    }

    /// The peer's first Hello on a session. A peer that started anew, or that takes longer frames than before (it trusts this node now),
    /// may take what it refused.
    mutating func greeted(boot: BootNonce, frameLimit: Int, now: Instant) {
        if let greeting, greeting.boot != boot || greeting.frameLimit < frameLimit { invited(now: now) }
        greeting = (boot, frameLimit)
    }

    /// The peer's later Hello: it may take what it refused, whichever of its sessions it says so on.
    /// - Parameter frameLimit: `nil` where that is not the session one sends on.
    mutating func greetedAgain(frameLimit: Int?, now: Instant) {
        if let frameLimit {
            greeting?.frameLimit = frameLimit
            limitRaised(to: frameLimit)
        }
        invited(now: now)
    }

    /// The wait the peer asked for is over, but for so much that one that says Hello all the time is asked no more often than one with
    /// the shortest `retryAfter`.
    private mutating func invited(now: Instant) {
        guard let until = refusedUntil else { return }
        let earliest = invitedAt.map { max(now, $0 + .seconds(ProtocolLimits.retryAfterRange.lowerBound)) } ?? now
        refusedUntil = min(until, earliest)
        invitedAt = refusedUntil
    }

    /// The own person trusted the peer, as the peer's person is likely to have done: what it refused is tried at once.
    mutating func trustBegan() { refusedUntil = nil }

    /// Rows changed under way (cancelled, retried): what was loaded may be stale.
    mutating func rowsChanged() { needsRewind = true }

    mutating func turnBegan() {
        bytesThisTurn = 0
    }

    /// - Parameters:
    ///   - more: rows after the last one that was loaded.
    ///   - hasMore: whether the store may have more behind them.
    mutating func loaded(_ more: [OutgoingHex], hasMore: Bool, epoch: Int) {
        guard epoch == self.epoch else { return }
        isLoading = false
        for row in more { take(row) }
        mayHaveMore = hasMore || addedWhileLoading
        if !more.isEmpty { knowsOfRows = true }
        forgetRowsIfNone()
    }

    private mutating func forgetRowsIfNone() {
        if rows.isEmpty, inFlight == 0, refused.isEmpty, !mayHaveMore, !needsRewind { knowsOfRows = false }
    }

    /// The load failed: it is tried again when the next thing happens.
    mutating func loadFailed(epoch: Int) {
        guard epoch == self.epoch else { return }
        isLoading = false
    }

    /// The peer answered for rows. The verdicts go into the store; say `written` when they are there.
    /// - Parameter isCurrent: whether it came on the session one sends on.
    mutating func settled(_ settled: [Session.Settled], isCurrent: Bool, now: Instant) -> [Verdict] {
        var verdicts: [Verdict] = []
        verdicts.reserveCapacity(settled.count)
        for row in settled {
            if isCurrent { inFlight = max(0, inFlight - 1) }
            switch row.result {
            case .kept(let status, let of):
                let isHeld = status == .held || (status == .duplicate && of == .held)
                verdicts.append(Verdict(id: row.tag, state: isHeld ? .held : .stored))
            case .refused(let code, let message, let retryAfter):
                guard code.isTemporary else {
                    verdicts.append(Verdict(id: row.tag, state: .rejected(code, message)))
                    continue
                }
                verdicts.append(
                    Verdict(id: row.tag, state: .refusedForNow(code, message), leads: isCurrent && refused.isEmpty))
                let seconds = min(
                    max(retryAfter ?? 60, ProtocolLimits.retryAfterRange.lowerBound), ProtocolLimits.retryAfterRange.upperBound)
                let until = now + .seconds(seconds)
                refusedUntil = max(refusedUntil ?? until, until)
                needsRewind = true
                allowance = 1
                if isCurrent {
                    refused.insert(row.tag)
                    mustLeadWithRefused = true
                }
            }
        }
        if let allowance, verdicts.contains(where: { $0.state == .stored || $0.state == .held }), !needsRewind {
            self.allowance = allowance < ProtocolLimits.windowFrames ? allowance * 2 : nil
        }
        if !verdicts.isEmpty { writing += 1 }
        forgetRowsIfNone()
        return verdicts
    }

    /// The transfer failed; it goes on no earlier than this.
    mutating func pause(until instant: Instant) {
        failedUntil = max(failedUntil ?? instant, instant)
        allowance = 1
    }

    /// A person asked: no pause counts any more, and rows may have come back.
    mutating func retryNow() {
        failedUntil = nil
        refusedUntil = nil
        needsRewind = true
    }

    /// The peer was away and is there: what failed while it went counts no more, only what it asked for itself.
    mutating func peerIsBack() { failedUntil = nil }

    mutating func written() { writing -= 1 }

    // MARK: Steps

    /// - Parameter hasRoom: whether a frame of so many bytes fits the peer's window.
    mutating func next(now: Instant, hasRoom: (Int) -> Bool) -> Step {
        guard isConnected, !isPaused(now: now) else { return .wait }
        if needsRewind {
            guard inFlight == 0, writing == 0 else { return .wait }
            rewind()
        }
        // A stranger's limit may be raised by trust: rows too long for it wait, and those behind them pass.
        while frameLimit < ProtocolLimits.trustedFrameBytes, let row = rows.first, frameBytes(row) > frameLimit { popFirst() }
        guard let row = rows.first else { return loadStep() }
        let bytes = frameBytes(row)
        if bytes > frameLimit {
            popFirst()
            return .reject(row.id)
        }
        if mustLeadWithRefused, !refused.contains(row.id) { return .endSession }
        guard inFlight < allowance ?? .max, hasRoom(bytes) else { return .wait }
        mustLeadWithRefused = false
        refused = []
        failedUntil = nil
        refusedUntil = nil
        popFirst()
        inFlight += 1
        bytesThisTurn += bytes
        return .send(row)
    }

    private func frameBytes(_ row: OutgoingHex) -> Int { row.body.count + Self.frameOverhead }

    private mutating func loadStep() -> Step {
        guard mayHaveMore, !isLoading else { return .wait }
        isLoading = true
        addedWhileLoading = false
        return .load(after: cursor, epoch: epoch)
    }

    private mutating func rewind() {
        needsRewind = false
        dropRows()
        cursor = 0
        epoch += 1
        isLoading = false
        mayHaveMore = true
    }
}
