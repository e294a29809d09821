import HexlistModel
import NIOCore

/// The state machine of the delivery to one peer: it determines which outbox row the courier sends next, in ascending order of their ids
/// (Docs/Protocol.md, "Delivery").
///
/// At most two batches of rows are in memory, however many rows are queued. A new row is kept in memory only if all rows before it were
/// read; otherwise it is read from the store later. `DeliveryScheduler` calls `next` until the returned step is `wait`.
///
/// Some events may change which row is to be sent next: another courier, a temporary refusal, or a raised frame limit. They cause a rewind.
/// Nothing is then sent until the results of all rows in flight are in the store. After that, sending restarts at the lowest queued row.
struct PeerDelivery: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The action that the scheduler has to take next.
    enum Step: Sendable, Equatable {
        /// Read rows with ids greater than `after` from the store, and pass them to `loaded`.
        case load(after: Int64, epoch: Int)
        case send(OutgoingHex)
        /// Reject the row as `tooLarge`, because it exceeds even the limit for trusted peers.
        case reject(Int64)
        /// Close the courier: the peer waits for the repetition of a hex that it refused temporarily, but that hex is no longer queued.
        case end
        /// Do nothing until the next event.
        case wait
    }

    /// Maximum number of rows of a batch that is read from the store.
    static let loadRows = 512
    /// Maximum bytes of all bodies in a batch that is read from the store.
    static let loadBytes = 4 << 20

    /// The state of the courier in use, which is the newest one.
    private struct Channel {
        /// Maximum bytes of a frame.
        var frameLimit: Int
        /// The number of rows in flight.
        var inFlight: Int
        /// The rows that the peer refused temporarily since it was last sent a row. If there are any, one of them has to be sent next.
        var refused: Set<Int64> = []
        /// The number of rows in flight that were sent before the peer's last Hello. Their results arrive before those of the other rows.
        var sentBeforeHello = 0
    }

    /// The state of reading rows from the store.
    private enum Reading {
        /// No read is in progress. All rows up to `cursor` were read; `mayHaveMore` if the store may have rows after it.
        case idle(mayHaveMore: Bool)
        /// A batch is being read. `addedMeanwhile` if rows were queued since the read began, which the batch may lack.
        case loading(addedMeanwhile: Bool)
        /// All rows are to be read again, once no row is in flight and no result is being written. The batch of a read in progress is
        /// discarded.
        case rewinding(isLoading: Bool)

        var isLoading: Bool {
            switch self {
            case .idle: false
            case .loading: true
            case .rewinding(let isLoading): isLoading
            }
        }

        var isRewinding: Bool { if case .rewinding = self { true } else { false } }
    }

    /// The state of the courier in use; `nil` without a courier.
    private var channel: Channel?
    private var reading = Reading.idle(mayHaveMore: true)
    /// The rows in memory that are not sent yet, in ascending order. Empty while rewinding.
    private var rows: CircularBuffer<OutgoingHex> = []
    private var rowsBytes = 0
    /// The highest id of a row that was read or appended.
    private var cursor: Int64 = 0
    /// The number of batches with rows for the peer that are being written to the store. The ids of their rows are lower than those of rows
    /// that are queued later.
    private var enqueuesInProgress = 0
    /// The id of the last row that was appended before its commit. It cannot be read from the store yet (decision 27). `nil` if there is
    /// none.
    private var lastUncommitted: Int64?
    /// Whether an uncommitted row is not in memory, because it was not accepted or was dropped. Until the commit, no later uncommitted row
    /// is accepted. Otherwise `cursor` would advance past the missing row, which would then never be read.
    private var missedUncommitted = false
    /// The number of rewinds so far. A batch whose read began before the last rewind is discarded.
    private var epoch = 0
    /// Whether rows without a result are known to exist, in memory, in flight or in the store.
    private(set) var hasKnownRows = false
    /// Increases whenever rows are queued.
    private(set) var queueRevision: UInt64 = 0
    /// The number of batches of results that are being written to the store.
    private var writing = 0
    /// Maximum number of rows in flight after a failure or a temporary refusal: 1 at first, doubled with each receipt; `nil` for no limit.
    /// With one row in flight, a failure is attributed to the right row. A peer whose disk is full is tested with one hex instead of a
    /// whole window.
    private var inFlightLimit: Int?
    private var pauses = DeliveryBackoff()
    /// Bytes sent since the peer got its slot.
    private(set) var bytesThisSlot = 0

    init() {}

    /// The end of the current pause; `nil` if there is none.
    var pausedUntil: Instant? { pauses.until }

    func isPaused(now: Instant) -> Bool { pausedUntil.map { now < $0 } ?? false }

    /// The number of rows in flight.
    var inFlight: Int { channel?.inFlight ?? 0 }

    /// Maximum bytes of a frame to the peer; 0 without a courier.
    var frameLimit: Int { channel?.frameLimit ?? 0 }

    /// Maximum bytes of a row's body.
    var longestBody: Int { frameLimit - ProtocolLimits.wrapperBytes }

    /// Whether there may be rows to send, for which a slot is requested, the peer is dialled, and a session stays open.
    var hasWork: Bool {
        if case .idle(mayHaveMore: false) = reading { !rows.isEmpty || inFlight > 0 } else { true }
    }

    /// Whether no read, write or result is pending, so the state can be removed.
    var isIdle: Bool { inFlight == 0 && enqueuesInProgress == 0 && lastUncommitted == nil && !isWriting && !reading.isLoading }

    /// Whether results are being written.
    var isWriting: Bool { writing > 0 }

    /// Whether the rows in memory exceed half of `loadBytes`. Rows beyond `loadBytes` have to be read from the store later.
    var isBufferFilling: Bool { isCaughtUp && rowsBytes > Self.loadBytes / 2 }

    /// Whether there is a courier, and all queued rows were read into memory.
    private var isCaughtUp: Bool { if channel != nil, case .idle(mayHaveMore: false) = reading { true } else { false } }

    /// Whether a row with a body of this size is too long for the peer's present limit, which is that for strangers. The peer raises it if
    /// it trusts this machine.
    func waitsForTrust(bytes: Int) -> Bool {
        guard let frameLimit = channel?.frameLimit else { return false }
        return frameLimit < ProtocolLimits.trustedFrameBytes && bytes + ProtocolLimits.wrapperBytes > frameLimit
    }

    // MARK: Rows

    /// Records that the store has new rows for the peer.
    mutating func rowsAdded() {
        queueChanged()
        switch reading {
        case .idle: reading = .idle(mayHaveMore: true)
        case .loading: reading = .loading(addedMeanwhile: true)
        case .rewinding: break
        }
    }

    /// Adds rows that were just queued. They are kept in memory if all rows before them were read and there is space. Otherwise they are
    /// read from the store later.
    /// - Parameters:
    ///   - more: all rows since the last call, in ascending order.
    ///   - isDurable: `false` for rows that may be sent before their commit. They are appended again after the commit, before any row that
    ///     is queued later. If the commit fails, `uncommittedLost` is called instead.
    mutating func appended(_ more: [OutgoingHex], isDurable: Bool) {
        let new = more.drop { $0.id <= cursor }
        let hadMissed = missedUncommitted
        if let last = more.last?.id {
            if !isDurable { lastUncommitted = last } else if let lastUncommitted, lastUncommitted <= last { clearUncommitted() }
        }
        guard !new.isEmpty else { return }
        queueChanged()
        if isCaughtUp, rowsBytes < Self.loadBytes, isDurable || (!hadMissed && enqueuesInProgress == 0) {
            for row in new { append(row) }
        } else if isDurable {
            rowsAdded()
        } else {
            missedUncommitted = true
        }
    }

    /// Records that a batch with rows for the peer is being written to the store, until `enqueueEnded`.
    mutating func enqueueBegan() { enqueuesInProgress += 1 }

    mutating func enqueueEnded() { enqueuesInProgress -= 1 }

    /// Drops rows that were appended before their commit, because their transaction failed.
    /// - Parameter last: the greatest id of these rows.
    /// - Returns: `false` if the peer has no uncommitted rows.
    mutating func uncommittedLost(upTo last: Int64) -> Bool {
        guard let lastUncommitted else { return false }
        if lastUncommitted <= last { clearUncommitted() }
        rewind()
        return true
    }

    private mutating func clearUncommitted() {
        lastUncommitted = nil
        missedUncommitted = false
    }

    private mutating func queueChanged() {
        hasKnownRows = true
        queueRevision &+= 1
    }

    /// Rewinds because rows were cancelled or queued again, so the rows in memory may be outdated.
    mutating func rowsChanged() { rewind() }

    /// Adds rows that were read from the store. Without effect if the epoch has changed since the read began.
    /// - Parameters:
    ///   - more: the rows after `cursor`.
    ///   - hasMore: whether the store may have more rows after them.
    mutating func loaded(_ more: [OutgoingHex], hasMore: Bool, epoch: Int) {
        guard epoch == self.epoch else { return }
        if !more.isEmpty { hasKnownRows = true }
        switch reading {
        case .loading(let addedMeanwhile):
            for row in more { append(row) }
            reading = .idle(mayHaveMore: hasMore || addedMeanwhile)
            updateHasKnownRows()
        case .rewinding: reading = .rewinding(isLoading: false)
        case .idle: break
        }
    }

    /// Handles a failed read of rows. `next` requests the read again.
    mutating func loadFailed(epoch: Int) {
        guard epoch == self.epoch else { return }
        reading = reading.isRewinding ? .rewinding(isLoading: false) : .idle(mayHaveMore: true)
    }

    /// Records that the store has no rows for the peer. Called while there is no courier.
    /// - Parameter revision: the value of `queueRevision` before the store was queried.
    /// - Returns: `false` if rows were queued since then; the call has no effect in that case.
    mutating func foundNone(at revision: UInt64) -> Bool {
        guard channel == nil, revision == queueRevision else { return false }
        hasKnownRows = false
        return true
    }

    private mutating func append(_ row: OutgoingHex) {
        rows.append(row)
        rowsBytes += row.body.count
        cursor = row.id
    }

    private mutating func popFirst() {
        guard let row = rows.popFirst() else { return }
        rowsBytes -= row.body.count
        if rows.isEmpty, rows.capacity > 64 { rows = [] }  // frees the memory after a bulk send
    }

    private mutating func rewind() {
        if lastUncommitted != nil { missedUncommitted = true }
        reading = .rewinding(isLoading: reading.isLoading)
        rows = []
        rowsBytes = 0
    }

    private mutating func restartReading() {
        reading = .idle(mayHaveMore: true)
        cursor = 0
        epoch += 1
    }

    private mutating func updateHasKnownRows() {
        if case .idle(mayHaveMore: false) = reading, rows.isEmpty, inFlight == 0, channel?.refused.isEmpty ?? true { hasKnownRows = false }
    }

    // MARK: Courier

    /// Sends over another courier from now on.
    /// - Parameter inFlight: the number of rows in flight on this courier.
    mutating func connected(frameLimit: Int, inFlight: Int = 0) {
        channel = Channel(frameLimit: frameLimit, inFlight: inFlight)
        rewind()
    }

    mutating func disconnected() {
        channel = nil
        rewind()
    }

    /// Raises the frame limit. Rewinds if it is higher than before, because rows that were skipped may now be short enough.
    mutating func limitRaised(to limit: Int) {
        guard channel != nil, limit > frameLimit else { return }
        channel?.frameLimit = limit
        rewind()
    }

    /// Handles the first Hello of a session. If the peer restarted, or accepts longer frames because it trusts this machine now, it may
    /// also accept hexes that it refused before.
    mutating func greeted(boot: BootNonce, frameLimit: Int, now: Instant) {
        pauses.greeted(boot: boot, frameLimit: frameLimit, now: now)
    }

    /// Handles a later Hello on any session of the peer, after which it may accept hexes that it refused before.
    /// - Parameter frameLimit: the frame limit in this Hello; `nil` if the Hello came on a session that is not used for sending.
    mutating func greetedAgain(frameLimit: Int?, now: Instant) {
        if let frameLimit { limitRaised(to: frameLimit) }
        let sent = inFlight
        channel?.sentBeforeHello = sent
        pauses.greetedAgain(frameLimit: frameLimit, now: now)
    }

    mutating func slotBegan() { bytesThisSlot = 0 }

    // MARK: Results

    /// Handles the results of rows. The caller writes the returned results to the store, and then calls `written`.
    /// - Parameter isCurrent: whether they came from the courier in use.
    /// - Returns: the same results, with `isFirstRefused` set for the first temporarily refused row.
    mutating func settled(_ rows: [RowResult], isCurrent: Bool, now: Instant) -> [RowResult] {
        var results = rows
        for (index, row) in rows.enumerated() {
            if isCurrent, inFlight > 0 { channel?.inFlight -= 1 }
            // Rows of an older courier were sent before the Hello of the courier in use.
            let isBeforeHello = !isCurrent || channel?.sentBeforeHello ?? 0 > 0
            if isCurrent, isBeforeHello { channel?.sentBeforeHello -= 1 }
            guard case .refused(let code, _, let retryAfter) = row.result, code.isTemporary else { continue }
            results[index].isFirstRefused = isCurrent && channel?.refused.isEmpty ?? false
            if isBeforeHello {
                pauses.refusedBeforeHello(now: now)
            } else {
                let range = ProtocolLimits.retryAfterRange
                pauses.refused(until: now + .seconds(min(max(retryAfter ?? 60, range.lowerBound), range.upperBound)))
            }
            inFlightLimit = 1
            if isCurrent { channel?.refused.insert(row.id) }
            rewind()
        }
        if let limit = inFlightLimit, results.contains(where: \.result.isDelivered), !reading.isRewinding {
            inFlightLimit = limit < ProtocolLimits.windowFrames ? limit * 2 : nil
        }
        if !results.isEmpty { writing += 1 }
        updateHasKnownRows()
        return results
    }

    mutating func written() { writing -= 1 }

    // MARK: Pauses

    /// Ends the pause that the peer requested. Called when this machine's user has trusted the peer, because the peer's user has probably
    /// trusted this machine too.
    mutating func trustBegan() { pauses.endRefusal() }

    /// Begins a pause after a failed transfer.
    mutating func pause(until instant: Instant) {
        pauses.failed(until: instant)
        inFlightLimit = 1
    }

    /// Ends all pauses at the user's request. Rewinds, because failed rows may have been queued again.
    mutating func retryNow() {
        pauses.end()
        rewind()
    }

    /// Ends the pause after a failed transfer, because the peer is online again. A pause that the peer requested goes on.
    mutating func peerIsBack() { pauses.endFailure() }

    // MARK: Next action

    /// Returns the next action. After `load` and `reject`, further steps may follow immediately.
    /// - Parameter fitsWindow: whether a frame of this number of bytes fits into the courier's capacity.
    mutating func next(now: Instant, fitsWindow: (Int) -> Bool) -> Step {
        guard let frameLimit = channel?.frameLimit, !isPaused(now: now) else { return .wait }
        if reading.isRewinding {
            guard inFlight == 0, writing == 0 else { return .wait }
            restartReading()
        }
        // Rows that exceed the limit for strangers are skipped, and stay in the store. They are read again after the peer has raised the
        // limit.
        while frameLimit < ProtocolLimits.trustedFrameBytes, let row = rows.first, Self.frameBytes(row) > frameLimit { popFirst() }
        guard let row = rows.first else { return loadStep() }
        let bytes = Self.frameBytes(row)
        if bytes > frameLimit {
            popFirst()
            return .reject(row.id)
        }
        if let refused = channel?.refused, !refused.isEmpty, !refused.contains(row.id) { return .end }
        guard inFlight < inFlightLimit ?? .max, fitsWindow(bytes) else { return .wait }
        pauses.end()
        popFirst()
        channel?.refused = []
        channel?.inFlight += 1
        bytesThisSlot += bytes
        return .send(row)
    }

    /// Returns an upper bound of the bytes of a row's frame: body and wrapper.
    static func frameBytes(_ row: OutgoingHex) -> Int { row.body.count + ProtocolLimits.wrapperBytes }

    private mutating func loadStep() -> Step {
        guard case .idle(mayHaveMore: true) = reading else { return .wait }
        reading = .loading(addedMeanwhile: false)
        return .load(after: cursor, epoch: epoch)
    }
}
