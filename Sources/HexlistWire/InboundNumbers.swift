public import HexlistModel

/// The conditions under which a batch of a bulk transfer is passed to the store.
struct BatchThreshold {
    /// Minimum size of the previous batch, in hexes, for the session to count as a bulk transfer.
    var stream = 64
    /// Number of waiting hexes, and their total weight, at which a batch is passed to the store without further delay.
    var enough = 512
    var enoughWeight = 2 << 20
    /// Maximum delay of a batch below `enough` and `enoughWeight`, from the end of the previous batch.
    var patience = Duration.milliseconds(8)
    /// Time without a received frame after which such a batch is passed to the store, because the peer probably waits for a receipt.
    var gap = Duration.milliseconds(2)
}

/// The receiving half of a session: checks sequence numbers, passes batches to the store, and creates receipts (Docs/Protocol.md,
/// "Delivery").
///
/// Memory is bounded by the window: the caller stops reading while `waitingFrames` or `waitingWeight` are at their limits.
struct InboundNumbers: Sendable {
    private enum Entry: Sendable {
        /// A hex that waits for the store or is being stored.
        case waiting
        /// A frame of an operation other than Store.
        case used
        case stored(ReceiptStatus, of: ReceiptStatus?)
        case refused(HexRejection)
    }

    /// Number of undecodable frames since the last valid sequence number. The next number may skip at most this many numbers.
    var undecodable = 0
    /// The `through` of the last receipt: all numbers up to it were acknowledged.
    private(set) var through: Int64 = 0
    /// The states of the sequence numbers after `through`. The first one is at index `head`; elements before it were acknowledged.
    private var entries: [Entry] = []
    private var head = 0
    private var waiting: [IncomingHex] = []
    /// The weight of hexes that wait for the store or are being stored.
    private(set) var waitingWeight = 0
    /// Sequence number and ID of each hex that is being stored.
    private var inFlight: [(sequence: Int64?, messageID: MessageID?)] = []
    private var inFlightWeight = 0
    /// The size of the last batch, and the time when it was stored.
    private var lastBatch: (count: Int, completedAt: ContinuousClock.Instant)?
    private var refusals = RefusalOrder<DeliveryResult>()

    private var last: Int64 { through + Int64(entries.count - head) }
    /// Number of frames that wait for the store, or for a receipt that cannot be sent because the peer does not read.
    var waitingFrames: Int { max(entries.count - head, waiting.count + inFlight.count) }
    var isIdle: Bool { waiting.isEmpty && inFlight.isEmpty }
    var hasBatchInFlight: Bool { !inFlight.isEmpty }

    var hasPendingReceipt: Bool {
        guard head < entries.count else { return false }
        if case .waiting = entries[head] { return false }
        return true
    }

    /// Accepts the sequence number of a received frame. `refusal` is set if the decoder refused the frame.
    /// - Returns: false if it is not the next number; the session then ends with `sequenceFault`.
    mutating func accept(_ sequence: Int64, refused refusal: Refusal? = nil) -> Bool {
        // Cannot overflow: both numbers are positive.
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

    /// Enqueues a Store. Its number, if any, was accepted before.
    mutating func store(_ hex: IncomingHex) {
        if hex.sequence != nil, !entries.isEmpty { entries[entries.count - 1] = .waiting }
        waitingWeight += hex.weight
        waiting.append(hex)
    }

    /// The time until which a batch waits for more hexes during a bulk transfer; `nil` if it does not wait. Waiting leads to fewer, larger
    /// transactions, which need a quarter less work.
    /// - Parameter lastReceived: the time of the latest frame.
    func batchDue(_ pace: BatchThreshold, lastReceived: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let lastBatch, lastBatch.count >= pace.stream, waiting.count < pace.enough, waitingWeight < pace.enoughWeight else {
            return nil
        }
        return min(lastBatch.completedAt + pace.patience, lastReceived + pace.gap)
    }

    /// Removes and returns the next hexes for the store. Empty while a batch is being stored, because its results affect the next hexes.
    /// - Parameters:
    ///   - limit: maximum hexes.
    ///   - rows: maximum hexes and links together; the first hex is returned even if it has more.
    mutating func takeBatch(limit: Int, rows: Int) -> [IncomingHex] {
        guard inFlight.isEmpty, !waiting.isEmpty else { return [] }
        if !refusals.isRefusing, waiting.count <= limit, waiting.reduce(0, { $0 + $1.rows }) <= rows {
            // Moves the array: copying each hex would dominate the cost.
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

    /// Applies the results of the batch, in the order of its hexes, after the batch was committed or refused.
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

    /// Refuses the hexes that wait for the store.
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

    /// Frees memory that was allocated for a bulk transfer.
    mutating func releaseMemory() {
        if waiting.isEmpty { waiting = [] }
        if inFlight.isEmpty { inFlight = [] }
        if entries.isEmpty { entries = [] }
    }

    // MARK: Receipts

    /// Passes all receipts that can be sent to `emit`, merged into as few as possible.
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
                // Escaping can make each byte of a message six bytes long.
                room -= 96 + 6 * rejection.message.utf8.count
                guard room >= 0 || receipt.through == through else { break entries }
                receipt.rejected.append(rejection)
            }
            head += 1
            receipt.through += 1
        }
        // Any status covers the numbers of operations other than Store, but there has to be one.
        if hasUsed, receipt.status == nil { receipt.status = .stored }
        through = receipt.through
        return receipt
    }
}

extension Session {
    /// Removes and returns the next hexes for the store, in order; empty while a batch is being stored. Also works after the end of the
    /// session, because received frames are still handled.
    /// - Parameters:
    ///   - limit: maximum hexes.
    ///   - rows: maximum hexes and links together; a single hex may have more.
    public mutating func takeBatch(limit: Int, rows: Int = ProtocolLimits.batchRows) -> [IncomingHex] {
        inbound.takeBatch(limit: limit, rows: rows)
    }

    /// The weight of hexes that wait for the store or are being stored. It decreases to 0 after the end of the session too.
    public var waitingWeight: Int { inbound.waitingWeight }

    /// The time until which the next batch waits for more hexes; `nil` if it does not wait.
    public func batchDue(now: Instant) -> Instant? {
        guard state != .closed, !inbound.hasBatchInFlight, let due = inbound.batchDue(BatchThreshold(), lastReceived: lastReceived),
            due > now
        else { return nil }
        return due
    }

    /// Applies the store's results for the batch, one per hex, in its order. Stored hexes must be durable.
    public mutating func batchCompleted(_ results: [DeliveryResult], now: Instant) { inbound.completed(results, now: now) }

    public var hasBatchInFlight: Bool { inbound.hasBatchInFlight }
}
