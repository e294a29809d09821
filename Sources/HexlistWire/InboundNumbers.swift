public import HexlistModel

/// A Store on its way into the store.
public struct InboundHex: Sendable {
    public var content: HexContent
    /// `nil` where it had none, or came over plain TCP: nothing to deduplicate by.
    public var messageID: MessageID?
    /// `nil`: no receipt is owed.
    public var sequence: Int64?
    /// Bytes it takes, at most, while it waits and in the store: a frame of 15 kB may hold 5 000 links. It is what quotas, reading and
    /// the disk's reserve count.
    public let weight: Int

    /// Rows it becomes: its own, and one a link.
    public var rows: Int { 1 + content.links.count }

    /// - Parameter byteCount: of its frame.
    public init(content: HexContent, messageID: MessageID?, sequence: Int64?, byteCount: Int) {
        self.content = content
        self.messageID = messageID
        self.sequence = sequence
        weight = content.weight(frame: byteCount)
    }
}

/// What the store did with one hex of a batch.
public enum InboundResult: Sendable, Equatable {
    /// Durable: committed with fsync.
    case kept(ReceiptStatus, of: ReceiptStatus? = nil)
    case refused(RefusalCode, message: String = "", retryAfter: Int? = nil)
}

/// When a batch of a stream is large enough for the store.
struct BatchPace {
    /// Hexes of one batch from which they come in a stream.
    var stream = 64
    /// Hexes, and weight of them, that wait for no more.
    var enough = 512
    var enoughWeight = 2 << 20
    /// How long fewer wait, from the end of the batch before: well within the time a window lasts.
    var patience = Duration.milliseconds(8)
    /// A stream that paused so long may have no more to send before it is answered.
    var gap = Duration.milliseconds(2)
}

/// The receiving half of a session: numbers in, batches to the store, results back, receipts out (Docs/Protocol.md, "Delivery").
///
/// Holds no more than a window: the shell stops reading while `waitingFrames` or `waitingWeight` are at their bounds.
struct InboundNumbers: Sendable {
    private enum Entry: Sendable {
        /// With the store, or on its way there.
        case waiting
        /// A number on an operation other than Store.
        case used
        case kept(ReceiptStatus, of: ReceiptStatus?)
        case refused(Rejection)
    }

    /// A temporary refusal refuses every later Store of the session, until one refused so comes again.
    private struct Refusing: Sendable {
        /// Ids remembered: more than any honest sender has in flight, and 128 KiB.
        static let bound = 4_096
        var code: RefusalCode
        var message: String
        var retryAfter: Int?
        var ids: Set<MessageID>
    }

    /// Frames that could not be decoded since the last number: they explain as many missing numbers.
    var undecodable = 0
    /// The last receipt's `through`.
    private(set) var through: Int64 = 0
    /// Of the numbers after `through`, from `head` on.
    private var entries: [Entry] = []
    private var head = 0
    private var waiting: [InboundHex] = []
    /// Of hexes that wait for the store, and of those that are with it.
    private(set) var waitingWeight = 0
    /// Sequence and id of each hex that is with the store.
    private var inFlight: [(sequence: Int64?, messageID: MessageID?)] = []
    private var inFlightWeight = 0
    /// Hexes of the last batch, and when the store was done with it.
    private var lastBatch: (count: Int, completedAt: ContinuousClock.Instant)?
    private var refusing: Refusing?

    private var last: Int64 { through + Int64(entries.count - head) }
    /// Frames that wait for the store, or for a receipt the peer does not read: neither may grow past the window.
    var waitingFrames: Int { max(entries.count - head, waiting.count + inFlight.count) }
    var isIdle: Bool { waiting.isEmpty && inFlight.isEmpty }
    var hasBatchInFlight: Bool { !inFlight.isEmpty }

    var owesReceipt: Bool {
        guard head < entries.count else { return false }
        if case .waiting = entries[head] { return false }
        return true
    }

    /// Takes the next number, with its refusal if it has one already.
    /// - Returns: whether numbers still rise as they must; if not the session ends with `sequenceFault`.
    mutating func accept(_ sequence: Int64, refused refusal: Refusal? = nil) -> Bool {
        // No overflow: both are positive.
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

    /// Takes a Store whose number, if it has one, was accepted just now.
    mutating func store(_ hex: InboundHex) {
        if hex.sequence != nil, !entries.isEmpty { entries[entries.count - 1] = .waiting }
        waitingWeight += hex.weight
        waiting.append(hex)
    }

    /// Until when a batch waits for more, while hexes come in a stream: fewer and larger transactions store as much with a
    /// quarter less work. A hex that comes alone waits for nothing.
    /// - Parameter lastReceived: when the newest frame came.
    func batchDue(_ pace: BatchPace, lastReceived: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let lastBatch, lastBatch.count >= pace.stream, waiting.count < pace.enough, waitingWeight < pace.enoughWeight else {
            return nil
        }
        return min(lastBatch.completedAt + pace.patience, lastReceived + pace.gap)
    }

    /// The next hexes for the store; empty while a batch is there already: what it answers decides about the rest.
    /// - Parameters:
    ///   - limit: hexes at most.
    ///   - rows: hexes and links together, at most; the first hex comes whatever it has.
    mutating func takeBatch(limit: Int, rows: Int) -> [InboundHex] {
        guard inFlight.isEmpty, !waiting.isEmpty else { return [] }
        var batch: [InboundHex] = []
        var taken = 0
        var room = rows
        while taken < waiting.count, batch.count < limit {
            let hex = waiting[taken]
            if refuses(hex) {
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

    /// Whether the state of temporary refusal meets this hex. It ends where a hex refused so comes again.
    private mutating func refuses(_ hex: InboundHex) -> Bool {
        guard var state = refusing else { return false }
        if let id = hex.messageID, state.ids.contains(id) {
            refusing = nil
            return false
        }
        if let id = hex.messageID, state.ids.count < Refusing.bound {
            refusing = nil  // so that the set is not copied
            state.ids.insert(id)
            refusing = state
        }
        settle(hex.sequence, .refused(state.code, message: state.message, retryAfter: state.retryAfter))
        return true
    }

    /// The batch was committed, or refused. `results` stand in its order.
    mutating func completed(_ results: [InboundResult], now: ContinuousClock.Instant) {
        lastBatch = (inFlight.count, now)
        for (hex, result) in zip(inFlight, results) {
            settle(hex.sequence, result)
            guard case .refused(let code, let message, let retryAfter) = result, code.isTemporary, let id = hex.messageID
            else { continue }
            if refusing == nil { refusing = Refusing(code: code, message: message, retryAfter: retryAfter, ids: []) }
            refusing?.ids.insert(id)
        }
        inFlight.removeAll(keepingCapacity: true)
        waitingWeight -= inFlightWeight
        inFlightWeight = 0
    }

    /// Refuses what is not with the store yet.
    mutating func refuseWaiting(_ code: RefusalCode) {
        for hex in waiting { settle(hex.sequence, .refused(code)) }
        waitingWeight -= waiting.reduce(0) { $0 + $1.weight }
        waiting = []
    }

    private mutating func settle(_ sequence: Int64?, _ result: InboundResult) {
        guard let sequence else { return }
        let index = head + Int(sequence - through - 1)
        guard entries.indices.contains(index) else { return }
        switch result {
        case .kept(let status, let of):
            entries[index] = .kept(status, of: of)
        case .refused(let code, let message, let retryAfter):
            entries[index] = .refused(Rejection(sequence: sequence, code: code, message: message, retryAfter: retryAfter))
        }
    }

    /// Hexes and answers there is memory for.
    var capacity: Int { waiting.capacity + inFlight.capacity + entries.capacity }

    /// The memory of what came in a bulk.
    mutating func giveBack() {
        if waiting.isEmpty { waiting = [] }
        if inFlight.isEmpty { inFlight = [] }
        if entries.isEmpty { entries = [] }
    }

    // MARK: Receipts

    /// Everything that can be said now, as few receipts as it takes.
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
                // Every byte of a message may become an escape of six.
                room -= 96 + 6 * rejection.message.utf8.count
                guard room >= 0 || receipt.through == through else { break entries }
                receipt.rejected.append(rejection)
            }
            head += 1
            receipt.through += 1
        }
        // A number that is not a Store's is covered under any status.
        if hasUsed, receipt.status == nil { receipt.status = .stored }
        through = receipt.through
        return receipt
    }
}

extension Session {
    /// The next hexes for the store, in order; empty while one batch is there already. Also after the end: received frames
    /// are still handled.
    /// - Parameters:
    ///   - limit: hexes at most.
    ///   - rows: hexes and links together, at most, but for a single hex that has more.
    public mutating func takeBatch(limit: Int, rows: Int = ProtocolLimits.batchRows) -> [InboundHex] {
        inbound.takeBatch(limit: limit, rows: rows)
    }

    /// Weight of the hexes that wait for the store or are with it. It falls to 0 also after the end, once the store has answered.
    public var waitingWeight: Int { inbound.waitingWeight }

    /// Until when the next batch waits to become larger; `nil` where it does not.
    public func batchDue(now: Instant) -> Instant? {
        guard state != .closed, !inbound.hasBatchInFlight, let due = inbound.batchDue(BatchPace(), lastReceived: lastReceived), due > now
        else { return nil }
        return due
    }

    /// The store answered for the batch, one result a hex, in its order. `kept` only after the transaction is durable.
    public mutating func batchCompleted(_ results: [InboundResult], now: Instant) { inbound.completed(results, now: now) }

    public var hasBatchInFlight: Bool { inbound.hasBatchInFlight }
}
