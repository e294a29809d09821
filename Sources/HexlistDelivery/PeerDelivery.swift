import HexlistModel
import NIOCore

/// The way of one peer's rows from the outbox to its courier, lowest row first (Docs/Protocol.md, "Delivery").
///
/// Holds at most two loads of rows in memory, however long the queue is. Rows that are queued while it has caught up are
/// handed over as they are; all others are read from the store. The shell asks for the next step until it says `wait`. Whatever makes the
/// order doubtful (another courier, a temporary refusal, a raised limit) rewinds: nothing is sent until all that is in
/// flight is answered and written down, and then it goes on from the lowest row that still waits.
struct PeerDelivery: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Step: Sendable, Equatable {
        /// Read rows after this one; answer with `loaded`.
        case load(after: Int64, epoch: Int)
        case send(OutgoingHex)
        /// The row is too long even for a peer that takes the longest frames: `tooLarge`.
        case reject(Int64)
        /// The hex that the peer refused for now is no longer there to be sent first: end the courier.
        case end
        /// Nothing to do until something happens.
        case wait
    }

    /// Rows, and bytes of them, that one load brings.
    static let loadRows = 512
    static let loadBytes = 4 << 20

    /// The courier that rows are handed to: the newest one.
    private struct Channel {
        /// Bytes of one frame the peer takes.
        var frameLimit: Int
        /// Rows sent on it and not answered.
        var inFlight: Int
        /// Rows its peer refused for now since one was last sent. While there are any, one of them has to be the next.
        var refused: Set<Int64> = []
        /// The rows of `inFlight` that were sent before the peer last said that it may take more. The peer answers them first.
        var sentUninvited = 0
    }

    /// The knowledge of the rows after those in memory.
    private enum Reading {
        /// Everything up to `cursor` was read; the store may have more behind it.
        case idle(mayHaveMore: Bool)
        /// A load is under way, which may not have seen rows that were queued meanwhile.
        case loading(addedMeanwhile: Bool)
        /// The order is doubtful: once nothing is in flight or being written, everything is read anew. A load may still be under way; what
        /// it brings does not count.
        case doubtful(isLoading: Bool)

        var isLoading: Bool {
            switch self {
            case .idle: false
            case .loading: true
            case .doubtful(let isLoading): isLoading
            }
        }

        var isDoubtful: Bool { if case .doubtful = self { true } else { false } }
    }

    /// `nil` while there is no courier.
    private var channel: Channel?
    private var reading = Reading.idle(mayHaveMore: true)
    /// Loaded or handed over, and not sent; empty while the order is doubtful.
    private var rows: CircularBuffer<OutgoingHex> = []
    private var rowsBytes = 0
    /// The last row that was loaded, or handed over.
    private var cursor: Int64 = 0
    /// The number of batches with rows for the peer that are on their way into the store. These have lower ids than any row queued later.
    private var coming = 0
    /// The last row it was told of that is not durable yet, and cannot be read (decision 21).
    private var ahead: Int64?
    /// Whether one of those rows was not taken, or was dropped since. Until it is durable no later one is taken: the cursor would pass it.
    private var hasMissedAhead = false
    /// The number of the present reading; loads of an earlier one are stale.
    private var epoch = 0
    /// Whether there are rows that were seen and have no answer.
    private(set) var knowsOfRows = false
    /// Rises whenever it hears of rows that were queued.
    private(set) var rowsNoted: UInt64 = 0
    /// Results on their way into the store.
    private var writing = 0
    /// Rows in flight at most, after a failure or a refusal: one, and twice as many with each receipt. So what the peer fails
    /// on is soon alone at the head, and no other is blamed for it; and a full disk is asked with one hex, not a window.
    private var allowance: Int?
    private var pauses = DeliveryBackoff()
    /// Bytes sent since the slot was granted.
    private(set) var bytesThisSlot = 0

    init() {}

    /// The earliest moment at which rows go out again: the later of both waits.
    var pausedUntil: Instant? { pauses.until }

    func isPaused(now: Instant) -> Bool { pausedUntil.map { now < $0 } ?? false }

    /// Rows sent on the current session and not answered.
    var inFlight: Int { channel?.inFlight ?? 0 }

    /// Bytes of one frame the peer takes on the current session; 0 without one.
    var frameLimit: Int { channel?.frameLimit ?? 0 }

    /// Bytes of the longest body that fits a frame the peer takes.
    var longestBody: Int { frameLimit - ProtocolLimits.wrapperBytes }

    /// Whether anything is to be done as far as is known, so that it is worth a slot, a dial, an open session.
    var hasWork: Bool {
        if case .idle(mayHaveMore: false) = reading { !rows.isEmpty || inFlight > 0 } else { true }
    }

    /// Whether nothing of it is under way, so that it can be forgotten.
    var isQuiet: Bool { inFlight == 0 && coming == 0 && ahead == nil && !isWriting && !reading.isLoading }

    /// Whether the peer answered something the store does not say yet.
    var isWriting: Bool { writing > 0 }

    /// Whether so much waits in memory for the session that rows queued much faster would have to be read from the store again.
    var isBehind: Bool { isReadUp && rowsBytes > Self.loadBytes / 2 }

    /// Whether all there is was read, on a session.
    private var isReadUp: Bool { if channel != nil, case .idle(mayHaveMore: false) = reading { true } else { false } }

    /// Whether a row of so many bytes waits for the peer's trust, which raises its limit.
    func waitsForTrust(bytes: Int) -> Bool {
        guard let frameLimit = channel?.frameLimit else { return false }
        return frameLimit < ProtocolLimits.trustedFrameBytes && bytes + ProtocolLimits.wrapperBytes > frameLimit
    }

    // MARK: Rows

    mutating func rowsAdded() {
        noteRows()
        switch reading {
        case .idle: reading = .idle(mayHaveMore: true)
        case .loading: reading = .loading(addedMeanwhile: true)
        case .doubtful: break
        }
    }

    /// Takes up rows that were queued, in this order, with nothing between them and what was queued before. Where all of that was read
    /// already, and there is room, they need not be read from the store.
    /// - Parameter isDurable: `false` for rows that go ahead. They are handed over once more when they are durable, before any that is queued
    ///   later, or `lostAhead` is called.
    mutating func appended(_ more: [OutgoingHex], isDurable: Bool) {
        let new = more.drop { $0.id <= cursor }
        let hadMissed = hasMissedAhead
        if let last = more.last?.id {
            if !isDurable { ahead = last } else if let ahead, ahead <= last { forgetAhead() }
        }
        guard !new.isEmpty else { return }
        noteRows()
        if isReadUp, rowsBytes < Self.loadBytes, isDurable || (!hadMissed && coming == 0) {
            for row in new { take(row) }
        } else if isDurable {
            rowsAdded()
        } else {
            hasMissedAhead = true
        }
    }

    /// Notes that a batch with rows for the peer is on its way into the store; `rowsCame` once its rows are there, or will not be.
    mutating func rowsComing() { coming += 1 }

    mutating func rowsCame() { coming -= 1 }

    /// Notes that rows it was told of ahead, up to the last of them, will never be there. Later ones may be.
    /// - Returns: `false` if it was told of none.
    mutating func lostAhead(_ last: Int64) -> Bool {
        guard let ahead else { return false }
        if ahead <= last { forgetAhead() }
        doubt()
        return true
    }

    private mutating func forgetAhead() {
        ahead = nil
        hasMissedAhead = false
    }

    private mutating func noteRows() {
        knowsOfRows = true
        rowsNoted &+= 1
    }

    /// Notes that rows changed on their way (cancelled, retried): what was loaded may be stale.
    mutating func rowsChanged() { doubt() }

    /// - Parameters:
    ///   - more: rows after the last one that was loaded.
    ///   - hasMore: whether the store may have more behind them.
    mutating func loaded(_ more: [OutgoingHex], hasMore: Bool, epoch: Int) {
        guard epoch == self.epoch else { return }
        if !more.isEmpty { knowsOfRows = true }
        switch reading {
        case .loading(let addedMeanwhile):
            for row in more { take(row) }
            reading = .idle(mayHaveMore: hasMore || addedMeanwhile)
            forgetRowsIfNone()
        case .doubtful: reading = .doubtful(isLoading: false)
        case .idle: break  // nothing was asked for
        }
    }

    /// Notes that a load failed: it is tried again when the next thing happens.
    mutating func loadFailed(epoch: Int) {
        guard epoch == self.epoch else { return }
        reading = reading.isDoubtful ? .doubtful(isLoading: false) : .idle(mayHaveMore: true)
    }

    /// Notes that the store had no rows, while there is no session.
    /// - Parameter noted: `rowsNoted` when the look began.
    /// - Returns: `false` if that says nothing, as rows were queued meanwhile.
    mutating func foundNone(since noted: UInt64) -> Bool {
        guard channel == nil, noted == rowsNoted else { return false }
        knowsOfRows = false
        return true
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

    private mutating func doubt() {
        if ahead != nil { hasMissedAhead = true }
        reading = .doubtful(isLoading: reading.isLoading)
        rows = []
        rowsBytes = 0
    }

    private mutating func readAnew() {
        reading = .idle(mayHaveMore: true)
        cursor = 0
        epoch += 1
    }

    private mutating func forgetRowsIfNone() {
        if case .idle(mayHaveMore: false) = reading, rows.isEmpty, inFlight == 0, channel?.refused.isEmpty ?? true { knowsOfRows = false }
    }

    // MARK: The session

    /// A session is there to send on.
    /// - Parameter inFlight: rows sent on it earlier and not answered: it was fallen back to.
    mutating func connected(frameLimit: Int, inFlight: Int = 0) {
        channel = Channel(frameLimit: frameLimit, inFlight: inFlight)
        doubt()
    }

    mutating func disconnected() {
        channel = nil
        doubt()
    }

    /// The peer told a higher limit: rows that were too long come back into play.
    mutating func limitRaised(to limit: Int) {
        guard channel != nil, limit > frameLimit else { return }
        channel?.frameLimit = limit
        doubt()
    }

    /// The peer's first Hello on a session. A peer that started anew, or that takes longer frames than before (it trusts this node now),
    /// may take what it refused.
    mutating func greeted(boot: BootNonce, frameLimit: Int, now: Instant) {
        pauses.greeted(boot: boot, frameLimit: frameLimit, now: now)
    }

    /// The peer's later Hello: it may take what it refused, whichever of its sessions it says so on.
    /// - Parameter frameLimit: `nil` where that is not the session one sends on.
    mutating func greetedAgain(frameLimit: Int?, now: Instant) {
        if let frameLimit { limitRaised(to: frameLimit) }
        let sent = inFlight
        channel?.sentUninvited = sent
        pauses.greetedAgain(frameLimit: frameLimit, now: now)
    }

    mutating func slotBegan() { bytesThisSlot = 0 }

    // MARK: Answers

    /// Takes the peer's results for rows, which go into the store; call `written` when they are there.
    /// - Parameter isCurrent: whether it came on the session one sends on.
    /// - Returns: the results, with the first refused row marked.
    mutating func settled(_ rows: [RowResult], isCurrent: Bool, now: Instant) -> [RowResult] {
        var results = rows
        for (index, row) in rows.enumerated() {
            if isCurrent, inFlight > 0 { channel?.inFlight -= 1 }
            // A hex sent over another courier left before this session's Hello.
            let isUninvited = !isCurrent || channel?.sentUninvited ?? 0 > 0
            if isCurrent, isUninvited { channel?.sentUninvited -= 1 }
            guard case .refused(let code, _, let retryAfter) = row.result, code.isTemporary else { continue }
            results[index].isFirstRefused = isCurrent && channel?.refused.isEmpty ?? false
            if isUninvited {
                pauses.refusedUninvited(now: now)
            } else {
                let range = ProtocolLimits.retryAfterRange
                pauses.refused(until: now + .seconds(min(max(retryAfter ?? 60, range.lowerBound), range.upperBound)))
            }
            allowance = 1
            if isCurrent { channel?.refused.insert(row.id) }
            doubt()
        }
        if let allowance, results.contains(where: \.result.isDelivered), !reading.isDoubtful {
            self.allowance = allowance < ProtocolLimits.windowFrames ? allowance * 2 : nil
        }
        if !results.isEmpty { writing += 1 }
        forgetRowsIfNone()
        return results
    }

    mutating func written() { writing -= 1 }

    // MARK: Pauses

    /// The own person trusted the peer, as the peer's person is likely to have done: what it refused is tried at once.
    mutating func trustBegan() { pauses.endRefusal() }

    /// The transfer failed; it goes on no earlier than this.
    mutating func pause(until instant: Instant) {
        pauses.failed(until: instant)
        allowance = 1
    }

    /// A person asked: no pause counts any more, and rows may have come back.
    mutating func retryNow() {
        pauses.end()
        doubt()
    }

    /// The peer was away and is there: what failed while it went counts no more, only what it asked for itself.
    mutating func peerIsBack() { pauses.endFailure() }

    // MARK: Steps

    /// - Parameter hasRoom: whether a frame of so many bytes fits the peer's window.
    mutating func next(now: Instant, hasRoom: (Int) -> Bool) -> Step {
        guard let frameLimit = channel?.frameLimit, !isPaused(now: now) else { return .wait }
        if reading.isDoubtful {
            guard inFlight == 0, writing == 0 else { return .wait }
            readAnew()
        }
        // A stranger's limit may be raised by trust: rows too long for it wait, and those behind them pass.
        while frameLimit < ProtocolLimits.trustedFrameBytes, let row = rows.first, Self.frameBytes(row) > frameLimit { popFirst() }
        guard let row = rows.first else { return loadStep() }
        let bytes = Self.frameBytes(row)
        if bytes > frameLimit {
            popFirst()
            return .reject(row.id)
        }
        if let refused = channel?.refused, !refused.isEmpty, !refused.contains(row.id) { return .end }
        guard inFlight < allowance ?? .max, hasRoom(bytes) else { return .wait }
        pauses.end()
        popFirst()
        channel?.refused = []
        channel?.inFlight += 1
        bytesThisSlot += bytes
        return .send(row)
    }

    /// Bytes of a row in its wrapper, at most.
    static func frameBytes(_ row: OutgoingHex) -> Int { row.body.count + ProtocolLimits.wrapperBytes }

    private mutating func loadStep() -> Step {
        guard case .idle(mayHaveMore: true) = reading else { return .wait }
        reading = .loading(addedMeanwhile: false)
        return .load(after: cursor, epoch: epoch)
    }
}
