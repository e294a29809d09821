import HexlistModel
import NIOCore

/// The state machine of the delivery to one peer: sends its outbox rows to its courier in ascending order (Docs/Protocol.md, "Delivery").
///
/// At most two batches of rows are in memory, however long the queue is. New rows are kept in memory if all rows before them were read
/// already; otherwise they are read from the store later. `DeliveryScheduler` calls `next` until it returns `wait`.
///
/// An event that can change the order (another courier, a temporary refusal, a raised frame limit) causes a rewind: nothing is sent until
/// all rows in flight have results in the store. Sending then restarts at the lowest queued row.
struct PeerDelivery: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Step: Sendable, Equatable {
        /// Read the rows after the row `after`, and call `loaded`.
        case load(after: Int64, epoch: Int)
        case send(OutgoingHex)
        /// Reject the row as `tooLarge`: it exceeds the limit of trusted peers.
        case reject(Int64)
        /// Close the courier: the peer waits for a hex that it refused temporarily, but that hex is no longer queued.
        case end
        /// Nothing to do until the next event.
        case wait
    }

    /// Maximum number of rows of a batch, and maximum total bytes of their bodies.
    static let loadRows = 512
    static let loadBytes = 4 << 20

    /// The state of the newest courier, which is the one used.
    private struct Channel {
        /// Maximum bytes of a frame.
        var frameLimit: Int
        /// The number of rows in flight.
        var inFlight: Int
        /// The rows that the peer refused temporarily since a row was last sent. If there are any, the next row has to be one of them.
        var refused: Set<Int64> = []
        /// The number of rows of `inFlight` that were sent before the peer's last Hello. Their results arrive before those of the other
        /// rows.
        var sentBeforeHello = 0
    }

    /// The state of reading rows from the store.
    private enum Reading {
        /// All rows up to `cursor` were read. The store may have more rows after it.
        case idle(mayHaveMore: Bool)
        /// A batch is being read, which may lack rows that were queued meanwhile.
        case loading(addedMeanwhile: Bool)
        /// All rows are read again once nothing is in flight or being written. A batch that is still being read is discarded.
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

    /// The state of the newest courier; `nil` without a courier.
    private var channel: Channel?
    private var reading = Reading.idle(mayHaveMore: true)
    /// The rows in memory that are to be sent next; empty while rewinding.
    private var rows: CircularBuffer<OutgoingHex> = []
    private var rowsBytes = 0
    /// The highest row that was read or appended.
    private var cursor: Int64 = 0
    /// The number of batches with rows for the peer that are being written. Their rows have lower ids than any row queued later.
    private var enqueuesInProgress = 0
    /// The last row that was appended before its commit and cannot be read yet (decision 27).
    private var lastUncommitted: Int64?
    /// Whether one of the uncommitted rows was not taken into memory, or was dropped since. Until their commit no later row is taken into
    /// memory: `cursor` would advance past the missing row, which would then never be read.
    private var missedUncommitted = false
    /// The number of rewinds; batches of an earlier epoch are discarded.
    private var epoch = 0
    /// Whether there are known rows without a result.
    private(set) var hasKnownRows = false
    /// Increases whenever rows are queued.
    private(set) var queueRevision: UInt64 = 0
    /// The number of batches of results that are being written.
    private var writing = 0
    /// Maximum rows in flight after a failure or a refusal: one at first, doubled with each receipt; `nil` for no limit. With one row in
    /// flight, a failure is blamed on the row that caused it, and a peer whose disk is full is probed with one hex instead of a window.
    private var inFlightLimit: Int?
    private var pauses = DeliveryBackoff()
    /// Bytes sent since the slot was granted.
    private(set) var bytesThisSlot = 0

    init() {}

    /// The end of the current pause.
    var pausedUntil: Instant? { pauses.until }

    func isPaused(now: Instant) -> Bool { pausedUntil.map { now < $0 } ?? false }

    /// The number of rows in flight.
    var inFlight: Int { channel?.inFlight ?? 0 }

    /// Maximum bytes of a frame; 0 without a courier.
    var frameLimit: Int { channel?.frameLimit ?? 0 }

    /// Maximum bytes of a body.
    var longestBody: Int { frameLimit - ProtocolLimits.wrapperBytes }

    /// Whether there may be rows to send, which justify a slot, a dial or an open session.
    var hasWork: Bool {
        if case .idle(mayHaveMore: false) = reading { !rows.isEmpty || inFlight > 0 } else { true }
    }

    /// Whether nothing is in progress, so that the state can be dropped.
    var isIdle: Bool { inFlight == 0 && enqueuesInProgress == 0 && lastUncommitted == nil && !isWriting && !reading.isLoading }

    /// Whether results are being written.
    var isWriting: Bool { writing > 0 }

    /// Whether the rows in memory exceed half of `loadBytes`. Rows beyond `loadBytes` have to be read from the store.
    var isBufferFilling: Bool { isCaughtUp && rowsBytes > Self.loadBytes / 2 }

    /// Whether there is a courier, and all rows were read.
    private var isCaughtUp: Bool { if channel != nil, case .idle(mayHaveMore: false) = reading { true } else { false } }

    /// Whether a row of this size is too long until the peer trusts this machine and raises its limit.
    func waitsForTrust(bytes: Int) -> Bool {
        guard let frameLimit = channel?.frameLimit else { return false }
        return frameLimit < ProtocolLimits.trustedFrameBytes && bytes + ProtocolLimits.wrapperBytes > frameLimit
    }

    // MARK: Rows

    mutating func rowsAdded() {
        queueChanged()
        switch reading {
        case .idle: reading = .idle(mayHaveMore: true)
        case .loading: reading = .loading(addedMeanwhile: true)
        case .rewinding: break
        }
    }

    /// Adds rows that were queued, in ascending order and without a gap after the rows queued before. They are kept in memory if all rows
    /// before them were read and there is space; otherwise they are read from the store later.
    /// - Parameter isDurable: `false` for rows that are sent before their commit. After the commit they are appended again, before any row
    ///   that is queued later. If the commit fails, `uncommittedLost` is called.
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

    /// Notes that a batch with rows for the peer is being written, until `enqueueEnded`.
    mutating func enqueueBegan() { enqueuesInProgress += 1 }

    mutating func enqueueEnded() { enqueuesInProgress -= 1 }

    /// Drops uncommitted rows whose transaction failed.
    /// - Parameter last: the id of the last of these rows.
    /// - Returns: `false` if there are no uncommitted rows.
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

    /// Rewinds because rows were cancelled or retried, so that those in memory may be outdated.
    mutating func rowsChanged() { rewind() }

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

    /// Handles a failed read of rows. `next` will request it again.
    mutating func loadFailed(epoch: Int) {
        guard epoch == self.epoch else { return }
        reading = reading.isRewinding ? .rewinding(isLoading: false) : .idle(mayHaveMore: true)
    }

    /// Notes that the store has no rows for the peer, while there is no courier.
    /// - Parameter revision: `queueRevision` at the time of the query.
    /// - Returns: `false` if rows were queued since, so that the query is outdated.
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
        if rows.isEmpty, rows.capacity > 64 { rows = [] }  // returns the memory after a bulk send
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

    /// Uses another courier from now on.
    /// - Parameter inFlight: the number of rows in flight on it, if it was used before.
    mutating func connected(frameLimit: Int, inFlight: Int = 0) {
        channel = Channel(frameLimit: frameLimit, inFlight: inFlight)
        rewind()
    }

    mutating func disconnected() {
        channel = nil
        rewind()
    }

    /// Rewinds if the limit is higher than before, because skipped rows may fit now.
    mutating func limitRaised(to limit: Int) {
        guard channel != nil, limit > frameLimit else { return }
        channel?.frameLimit = limit
        rewind()
    }

    /// Handles the first Hello of a session. A peer that restarted, or that accepts longer frames because it trusts this machine now, may
    /// accept the hexes it refused.
    mutating func greeted(boot: BootNonce, frameLimit: Int, now: Instant) {
        pauses.greeted(boot: boot, frameLimit: frameLimit, now: now)
    }

    /// Handles a later Hello on any session of the peer: it may accept the hexes it refused.
    /// - Parameter frameLimit: `nil` if the session is not the one used for sending.
    mutating func greetedAgain(frameLimit: Int?, now: Instant) {
        if let frameLimit { limitRaised(to: frameLimit) }
        let sent = inFlight
        channel?.sentBeforeHello = sent
        pauses.greetedAgain(frameLimit: frameLimit, now: now)
    }

    mutating func slotBegan() { bytesThisSlot = 0 }

    // MARK: Results

    /// Handles results of rows. The caller writes the returned results to the store and then calls `written`.
    /// - Parameter isCurrent: whether they came on the courier that is used.
    /// - Returns: the results, with the first refused row marked.
    mutating func settled(_ rows: [RowResult], isCurrent: Bool, now: Instant) -> [RowResult] {
        var results = rows
        for (index, row) in rows.enumerated() {
            if isCurrent, inFlight > 0 { channel?.inFlight -= 1 }
            // Hexes on an older courier were sent before the Hello of the courier in use.
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

    /// Ends the pause that the peer requested. Called when this machine's user has trusted the peer: the peer's user probably trusts this
    /// machine now too.
    mutating func trustBegan() { pauses.endRefusal() }

    /// Pauses after a failed transfer.
    mutating func pause(until instant: Instant) {
        pauses.failed(until: instant)
        inFlightLimit = 1
    }

    /// Ends all pauses, as requested by the user, and rewinds, because failed rows may be queued again.
    mutating func retryNow() {
        pauses.end()
        rewind()
    }

    /// Ends the pause after a failure, because the peer was away and is back. A pause that the peer requested stays.
    mutating func peerIsBack() { pauses.endFailure() }

    // MARK: Steps

    /// - Parameter fitsWindow: whether a frame of that many bytes fits into the peer's window.
    mutating func next(now: Instant, fitsWindow: (Int) -> Bool) -> Step {
        guard let frameLimit = channel?.frameLimit, !isPaused(now: now) else { return .wait }
        if reading.isRewinding {
            guard inFlight == 0, writing == 0 else { return .wait }
            restartReading()
        }
        // Rows that are too long until the peer trusts this machine are skipped, and wait in the store.
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

    /// Returns an upper bound of the bytes of a row's frame: the body and the wrapper.
    static func frameBytes(_ row: OutgoingHex) -> Int { row.body.count + ProtocolLimits.wrapperBytes }

    private mutating func loadStep() -> Step {
        guard case .idle(mayHaveMore: true) = reading else { return .wait }
        reading = .loading(addedMeanwhile: false)
        return .load(after: cursor, epoch: epoch)
    }
}
