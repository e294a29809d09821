public import HexlistModel

/// The thresholds for storing the hexes of a bulk send in larger batches.
struct BatchThreshold {
    /// Minimum number of hexes in the previous batch for the session to count as a bulk send.
    var stream = 64
    /// Number of received hexes at which a batch is stored immediately.
    var enough = 512
    /// Total weight of received hexes, in bytes, at which a batch is stored immediately.
    var enoughWeight = 2 << 20
    /// Maximum time for which a smaller batch waits for more hexes, from the end of the previous batch.
    var patience = Duration.milliseconds(8)
    /// Time without a received frame after which a smaller batch is stored, because the peer probably waits for a receipt.
    var gap = Duration.milliseconds(2)
}

/// The receiving half of a session: checks sequence numbers, groups received hexes into batches for the store, and creates receipts
/// (Docs/Protocol.md, "Delivery").
///
/// Memory is bounded: the caller stops reading when `waitingFrames` reaches the window, or `waitingWeight` its limit.
struct InboundSequence: Sendable {
    private enum Entry: Sendable {
        /// A hex that is to be stored, or is being stored.
        case waiting
        /// A frame without a hex, which is acknowledged without a result.
        case used
        case stored(ReceiptStatus, of: ReceiptStatus?)
        case refused(HexRejection)
    }

    /// Number of undecodable frames since the last frame with a sequence number. So many sequence numbers may be missing before the next
    /// one.
    var undecodable = 0
    /// The `through` of the last receipt: the greatest acknowledged sequence number.
    private(set) var through: Int64 = 0
    /// The states of the sequence numbers after `through`, beginning at index `head`. Earlier elements were acknowledged.
    private var entries: [Entry] = []
    private var head = 0
    /// The received hexes that are not being stored yet.
    private var waiting: [IncomingHex] = []
    /// The weight of all hexes that are to be stored or are being stored, in bytes.
    private(set) var waitingWeight = 0
    /// The sequence number and message ID of each hex that is being stored.
    private var inFlight: [(sequence: Int64?, messageID: MessageID?)] = []
    private var inFlightWeight = 0
    /// The number of hexes in the last batch, and the time at which it was stored.
    private var lastBatch: (count: Int, completedAt: ContinuousClock.Instant)?
    private var refusals = RefusalOrder<DeliveryResult>()

    /// The greatest sequence number that was received.
    private var last: Int64 { through + Int64(entries.count - head) }
    /// Number of frames that are not acknowledged: their hexes are not stored yet, or the receipt cannot be sent because the peer does not
    /// read.
    var waitingFrames: Int { max(entries.count - head, waiting.count + inFlight.count) }
    var isIdle: Bool { waiting.isEmpty && inFlight.isEmpty }
    var hasBatchInFlight: Bool { !inFlight.isEmpty }

    var hasPendingReceipt: Bool {
        guard head < entries.count else { return false }
        if case .waiting = entries[head] { return false }
        return true
    }

    /// Records the sequence number of a received frame.
    /// - Parameter refusal: the refusal by the decoder; `nil` if the frame was accepted.
    /// - Returns: `false` if the number is not the next one. The caller then ends the session with `sequenceFault`.
    mutating func accept(_ sequence: Int64, refused refusal: Refusal? = nil) -> Bool {
        // The subtraction cannot overflow, because both numbers are positive.
        let missing = sequence - last - 1
        guard missing >= 0, missing <= Int64(undecodable) else { return false }
        var number = last
        for _ in 0..<missing {
            number += 1
            entries.append(.refused(HexRejection(sequence: number, code: .malformed, message: "The frame could not be decoded.")))
        }
        undecodable = 0
        if let refusal {
            let message = PeerName.cut(refusal.message, bytes: 256)
            entries.append(.refused(HexRejection(sequence: sequence, code: refusal.code, message: message)))
        } else {
            entries.append(.used)
        }
        return true
    }

    /// Adds a received hex. Its sequence number, if it has one, was recorded with `accept` immediately before.
    mutating func store(_ hex: IncomingHex) {
        if hex.sequence != nil, !entries.isEmpty { entries[entries.count - 1] = .waiting }
        waitingWeight += hex.weight
        waiting.append(hex)
    }

    /// Returns the time until which the next batch of a bulk send waits for more hexes; `nil` if it does not wait. Larger batches lead to
    /// fewer transactions, which saves a quarter of the work.
    /// - Parameter lastReceived: the time of the last received frame.
    func batchDue(_ pace: BatchThreshold, lastReceived: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let lastBatch, lastBatch.count >= pace.stream, waiting.count < pace.enough, waitingWeight < pace.enoughWeight else {
            return nil
        }
        return min(lastBatch.completedAt + pace.patience, lastReceived + pace.gap)
    }

    /// Removes and returns the next batch of hexes. Empty while a batch is being stored, because its results may lead to refusals in the
    /// next one.
    /// - Parameters:
    ///   - limit: maximum number of hexes.
    ///   - rows: maximum number of hexes and links together. If the first hex alone has more, it is returned alone.
    mutating func takeBatch(limit: Int, rows: Int) -> [IncomingHex] {
        guard inFlight.isEmpty, !waiting.isEmpty else { return [] }
        if !refusals.isRefusing, waiting.count <= limit, waiting.reduce(0, { $0 + $1.rows }) <= rows {
            // The array is moved, because copying each hex would take most of the time.
            defer { waiting = [] }
            inFlight += waiting.lazy.map { ($0.sequence, $0.messageID) }
            inFlightWeight = waitingWeight
            return waiting
        }
        var batch: [IncomingHex] = []
        var taken = 0
        var room = rows
        while taken < waiting.count, batch.count < limit {
            let hex = waiting[taken]
            if let refusal = refusals.reason(toRefuse: hex.messageID) {
                settle(hex.sequence, refusal)
                taken += 1
                waitingWeight -= hex.weight
                continue
            }
            room -= hex.rows
            guard room >= 0 || batch.isEmpty else { break }
            taken += 1
            batch.append(hex)
            inFlight.append((hex.sequence, hex.messageID))
            inFlightWeight += hex.weight
        }
        waiting.removeFirst(taken)
        return batch
    }

    /// Records the results of a batch, in the order of its hexes. Called once the batch is durable or refused.
    mutating func completed(_ results: [DeliveryResult], now: ContinuousClock.Instant) {
        lastBatch = (inFlight.count, now)
        for (hex, result) in zip(inFlight, results) {
            settle(hex.sequence, result)
            if case .refused(let code, _, _) = result, code.isTemporary, let id = hex.messageID { refusals.refused(id, for: result) }
        }
        inFlight.removeAll(keepingCapacity: true)
        waitingWeight -= inFlightWeight
        inFlightWeight = 0
    }

    /// Refuses the received hexes that are not being stored.
    mutating func refuseWaiting(_ code: RefusalCode) {
        for hex in waiting { settle(hex.sequence, .refused(code)) }
        waitingWeight -= waiting.reduce(0) { $0 + $1.weight }
        waiting = []
    }

    private mutating func settle(_ sequence: Int64?, _ result: DeliveryResult) {
        guard let sequence else { return }
        let index = head + Int(sequence - through - 1)
        guard entries.indices.contains(index) else { return }
        switch result {
        case .stored, .delivered: entries[index] = .stored(.stored, of: nil)
        case .held: entries[index] = .stored(.held, of: nil)
        case .duplicate(let of): entries[index] = .stored(.duplicate, of: of)
        case .refused(let code, let message, let retryAfter):
            entries[index] = .refused(HexRejection(sequence: sequence, code: code, message: message, retryAfter: retryAfter))
        case .undelivered: entries[index] = .refused(HexRejection(sequence: sequence, code: .internal))
        }
    }

    /// Number of elements for which memory is allocated.
    var capacity: Int { waiting.capacity + inFlight.capacity + entries.capacity }

    /// Frees buffers that became large during a bulk send.
    mutating func releaseMemory() {
        if waiting.isEmpty { waiting = [] }
        if inFlight.isEmpty { inFlight = [] }
        if entries.isEmpty { entries = [] }
    }

    // MARK: Receipts

    /// Calls `emit` with the receipts for all frames whose results are known, in as few receipts as possible.
    /// - Parameter frameLimit: maximum bytes of a frame that the peer accepts.
    mutating func takeReceipts(frameLimit: Int, _ emit: (Receipt) -> Void) {
        while hasPendingReceipt { emit(nextReceipt(frameLimit: frameLimit)) }
        if head == entries.count {
            entries.removeAll(keepingCapacity: entries.capacity <= 2_048)
            head = 0
        } else if head > 4_096, head > entries.count / 2 {
            entries.removeFirst(head)
            head = 0
        }
    }

    private mutating func nextReceipt(frameLimit: Int) -> Receipt {
        var receipt = Receipt(through: through, status: nil)
        var hasUsed = false
        var room = frameLimit - 256  // 256 bytes are reserved for the wrapper
        entries: while head < entries.count {
            switch entries[head] {
            case .waiting: break entries
            case .used:
                hasUsed = true
            case .stored(let status, let of):
                if let current = receipt.status {
                    guard current == status, receipt.of == of else { break entries }
                }
                receipt.status = status
                receipt.of = of
            case .refused(let rejection):
                // Each byte of a message may take six bytes after escaping.
                room -= 96 + 6 * rejection.message.utf8.count
                guard room >= 0 || receipt.through == through else { break entries }
                receipt.rejected.append(rejection)
            }
            head += 1
            receipt.through += 1
        }
        // A receipt needs a status. If it covers only frames without a hex, any status is correct.
        if hasUsed, receipt.status == nil { receipt.status = .stored }
        through = receipt.through
        return receipt
    }
}

extension Session {
    /// Removes and returns the next batch of received hexes, in order. Empty while a batch is being stored. Can be called after the end of
    /// the session, because received frames are still handled.
    /// - Parameters:
    ///   - limit: maximum number of hexes.
    ///   - rows: maximum number of hexes and links together. If the first hex alone has more, it is returned alone.
    public mutating func takeBatch(limit: Int, rows: Int = ProtocolLimits.batchRows) -> [IncomingHex] {
        inbound.takeBatch(limit: limit, rows: rows)
    }

    /// The weight of all received hexes without a result, in bytes. Also decreases after the end of the session.
    public var waitingWeight: Int { inbound.waitingWeight }

    /// The time until which the next batch waits for more hexes of a bulk send; `nil` if it does not wait.
    public func batchDue(now: Instant) -> Instant? {
        guard state != .closed, !inbound.hasBatchInFlight, let due = inbound.batchDue(BatchThreshold(), lastReceived: lastReceived),
            due > now
        else { return nil }
        return due
    }

    /// Records the results of a batch, one for each hex, in their order. Hexes with the result `stored` must be durable.
    public mutating func batchCompleted(_ results: [DeliveryResult], now: Instant) { inbound.completed(results, now: now) }

    public var hasBatchInFlight: Bool { inbound.hasBatchInFlight }
}
