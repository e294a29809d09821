public import HexlistModel

/// Decides when a batch of a stream is large enough for the store.
struct BatchThreshold {
    /// The size of a batch, in hexes, from which hexes count as a stream.
    var stream = 64
    /// The waiting hexes, and their weight, that are enough for a batch.
    var enough = 512
    var enoughWeight = 2 << 20
    /// The longest time that fewer hexes wait, from the end of the previous batch: much less than a window lasts.
    var patience = Duration.milliseconds(8)
    /// The pause after which a stream may have no more to send before it is answered.
    var gap = Duration.milliseconds(2)
}

/// The receiving half of a session: takes numbers, passes batches to the store, takes results, makes receipts (Docs/Protocol.md,
/// "Delivery").
///
/// Holds at most a window: the shell stops reading while `waitingFrames` or `waitingWeight` are at their bounds.
struct InboundNumbers: Sendable {
    private enum Entry: Sendable {
        /// With the store, or waiting for it.
        case waiting
        /// A number of an operation other than Store.
        case used
        case kept(ReceiptStatus, of: ReceiptStatus?)
        case refused(Rejection)
    }

    /// The frames since the last number that could not be decoded: they explain as many missing numbers.
    var undecodable = 0
    /// The `through` of the last receipt.
    private(set) var through: Int64 = 0
    /// The entries of the numbers after `through`, from index `head` on.
    private var entries: [Entry] = []
    private var head = 0
    private var waiting: [IncomingHex] = []
    /// The weight of hexes that wait for the store or are with it.
    private(set) var waitingWeight = 0
    /// The sequence and id of each hex that is with the store.
    private var inFlight: [(sequence: Int64?, messageID: MessageID?)] = []
    private var inFlightWeight = 0
    /// The size of the last batch, and the instant at which the store had finished it.
    private var lastBatch: (count: Int, completedAt: ContinuousClock.Instant)?
    private var refusals = RefusalOrder<DeliveryResult>()

    private var last: Int64 { through + Int64(entries.count - head) }
    /// The frames that wait for the store, or for a receipt that the peer does not read. Neither may grow beyond the window.
    var waitingFrames: Int { max(entries.count - head, waiting.count + inFlight.count) }
    var isIdle: Bool { waiting.isEmpty && inFlight.isEmpty }
    var hasBatchInFlight: Bool { !inFlight.isEmpty }

    var owesReceipt: Bool {
        guard head < entries.count else { return false }
        if case .waiting = entries[head] { return false }
        return true
    }

    /// Takes the next number, with its refusal if there is one already.
    /// - Returns: whether the number is the next one, as it must be; if not the session ends with `sequenceFault`.
    mutating func accept(_ sequence: Int64, refused refusal: Refusal? = nil) -> Bool {
        // No overflow: both numbers are positive.
        let missing = sequence - last - 1
        guard missing >= 0, missing <= Int64(undecodable) else { return false }
        var number = last
        for _ in 0..<missing {
            number += 1
            entries.append(.refused(Rejection(sequence: number, code: .malformed, message: "The frame could not be decoded.")))
        }
        undecodable = 0
        if let refusal {
            let message = PeerName.cut(refusal.message, bytes: 256)
            entries.append(.refused(Rejection(sequence: sequence, code: refusal.code, message: message)))
        } else {
            entries.append(.used)
        }
        return true
    }

    /// Takes a Store. Its number, if it has one, was accepted just before.
    mutating func store(_ hex: IncomingHex) {
        if hex.sequence != nil, !entries.isEmpty { entries[entries.count - 1] = .waiting }
        waitingWeight += hex.weight
        waiting.append(hex)
    }

    /// The instant until which a batch waits for more hexes during a stream: fewer and larger transactions store as much with a quarter
    /// less work. `nil` for a hex that comes alone, which does not wait.
    /// - Parameter lastReceived: the instant at which the newest frame came.
    func batchDue(_ pace: BatchThreshold, lastReceived: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let lastBatch, lastBatch.count >= pace.stream, waiting.count < pace.enough, waitingWeight < pace.enoughWeight else {
            return nil
        }
        return min(lastBatch.completedAt + pace.patience, lastReceived + pace.gap)
    }

    /// Takes the next hexes for the store. None while a batch is with it: its results decide about the rest.
    /// - Parameters:
    ///   - limit: the most hexes.
    ///   - rows: the most hexes and links together; the first hex is taken even if it has more.
    mutating func takeBatch(limit: Int, rows: Int) -> [IncomingHex] {
        guard inFlight.isEmpty, !waiting.isEmpty else { return [] }
        if !refusals.isRefusing, waiting.count <= limit, waiting.reduce(0, { $0 + $1.rows }) <= rows {
            // All of them, moved: a copy of each costs more than the rest of this.
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

    /// Takes the results of the batch, in its order, after it was committed or refused.
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

    /// Refuses the hexes that are not with the store yet.
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
        case .stored: entries[index] = .kept(.stored, of: nil)
        case .held: entries[index] = .kept(.held, of: nil)
        case .duplicate(let of): entries[index] = .kept(.duplicate, of: of)
        case .refused(let code, let message, let retryAfter):
            entries[index] = .refused(Rejection(sequence: sequence, code: code, message: message, retryAfter: retryAfter))
        }
    }

    /// The number of hexes and answers for which memory is allocated.
    var capacity: Int { waiting.capacity + inFlight.capacity + entries.capacity }

    /// Frees the memory that a bulk needed.
    mutating func giveBack() {
        if waiting.isEmpty { waiting = [] }
        if inFlight.isEmpty { inFlight = [] }
        if entries.isEmpty { entries = [] }
    }

    // MARK: Receipts

    /// Passes all receipts that can be made now to `emit`, as few as possible.
    mutating func takeReceipts(frameLimit: Int, _ emit: (Receipt) -> Void) {
        while owesReceipt { emit(nextReceipt(frameLimit: frameLimit)) }
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
        var room = frameLimit - 256  // the wrapper around it
        entries: while head < entries.count {
            switch entries[head] {
            case .waiting: break entries
            case .used:
                hasUsed = true
            case .kept(let status, let of):
                if let current = receipt.status {
                    guard current == status, receipt.of == of else { break entries }
                }
                receipt.status = status
                receipt.of = of
            case .refused(let rejection):
                // Each byte of a message may become an escape of six bytes.
                room -= 96 + 6 * rejection.message.utf8.count
                guard room >= 0 || receipt.through == through else { break entries }
                receipt.rejected.append(rejection)
            }
            head += 1
            receipt.through += 1
        }
        // Numbers of other operations than Store are covered by any status.
        if hasUsed, receipt.status == nil { receipt.status = .stored }
        through = receipt.through
        return receipt
    }
}

extension Session {
    /// Takes the next hexes for the store, in order; none while a batch is with it. Works after the end too: received frames are still
    /// handled.
    /// - Parameters:
    ///   - limit: the most hexes.
    ///   - rows: the most hexes and links together; a single hex may have more.
    public mutating func takeBatch(limit: Int, rows: Int = ProtocolLimits.batchRows) -> [IncomingHex] {
        inbound.takeBatch(limit: limit, rows: rows)
    }

    /// The weight of hexes that wait for the store or are with it. Falls to 0 after the end too, once the store has answered.
    public var waitingWeight: Int { inbound.waitingWeight }

    /// The instant until which the next batch waits to become larger; `nil` if it does not wait.
    public func batchDue(now: Instant) -> Instant? {
        guard state != .closed, !inbound.hasBatchInFlight, let due = inbound.batchDue(BatchThreshold(), lastReceived: lastReceived),
            due > now
        else { return nil }
        return due
    }

    /// Takes the store's results for the batch, one per hex, in its order. One that kept a hex only after the transaction is durable.
    public mutating func batchCompleted(_ results: [DeliveryResult], now: Instant) { inbound.completed(results, now: now) }

    public var hasBatchInFlight: Bool { inbound.hasBatchInFlight }
}
