import HexlistModel

/// The sending half of a session: assigns sequence numbers and checks receipts. Memory is bounded by the window.
struct OutboundWindow: Sendable {
    private struct Sent: Sendable {
        /// The outbox row of a Store; `nil` for other numbered frames.
        var tag: Int64?
        var bytes: Int
    }

    private(set) var nextSequence: Int64 = 1
    private(set) var unacknowledgedBytes = 0
    /// The time since which a receipt is expected; `nil` if nothing is unacknowledged.
    private(set) var waitingSince: ContinuousClock.Instant?
    /// The sent frames. The unacknowledged ones begin at index `head`.
    private var sent: [Sent] = []
    private var head = 0

    var tags: Set<Int64> { Set(sent[head...].compactMap(\.tag)) }
    var unacknowledgedFrames: Int { sent.count - head }

    mutating func number(tag: Int64?, bytes: Int, now: ContinuousClock.Instant) -> Int64 {
        defer { nextSequence += 1 }
        if unacknowledgedFrames == 0 { waitingSince = now }
        sent.append(Sent(tag: tag, bytes: bytes))
        unacknowledgedBytes += bytes
        return nextSequence
    }

    /// Number of frames for which memory is allocated.
    var capacity: Int { sent.capacity }

    /// Frees memory that was allocated for a bulk transfer.
    mutating func releaseMemory() {
        if sent.isEmpty { sent = [] }
    }

    mutating func shift(by pause: Duration) {
        if let since = waitingSince { waitingSince = since + pause }
    }

    /// - Returns: the results of the outbox rows that the receipt covers, in order; `nil` if the receipt is invalid (`receiptFault`).
    mutating func receive(_ receipt: Receipt, now: ContinuousClock.Instant) -> [RowResult]? {
        let through = nextSequence - 1 - Int64(unacknowledgedFrames)
        guard receipt.through > through, receipt.through < nextSequence else { return nil }
        var rejections: [Int64: HexRejection] = [:]
        for rejection in receipt.rejected {
            guard rejection.sequence > through, rejection.sequence <= receipt.through,
                rejections.updateValue(rejection, forKey: rejection.sequence) == nil
            else { return nil }
        }
        // Validates the whole receipt before applying any of it.
        let count = Int(receipt.through - through)
        var settled: [RowResult] = []
        settled.reserveCapacity(count)
        var bytes = 0
        for offset in 0..<count {
            let frame = sent[head + offset]
            bytes += frame.bytes
            guard let tag = frame.tag else { continue }
            if !rejections.isEmpty, let rejection = rejections[through + 1 + Int64(offset)] {
                settled.append(
                    RowResult(id: tag, .refused(rejection.code, message: rejection.message, retryAfter: rejection.retryAfter)))
            } else {
                guard let status = receipt.status else { return nil }
                settled.append(RowResult(id: tag, DeliveryResult(status, of: receipt.of)))
            }
        }
        head += count
        unacknowledgedBytes -= bytes
        waitingSince = unacknowledgedFrames > 0 ? now : nil
        if head == sent.count || head > 4_096 {
            sent.removeFirst(head)
            head = 0
        }
        return settled
    }
}
