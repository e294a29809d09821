import HexlistModel

/// The sending half of a session: assigns sequence numbers, and checks receipts. The window of the peer bounds its memory.
struct OutboundWindow: Sendable {
    private struct Sent: Sendable {
        /// The id of the outbox row, if the frame is a Store; otherwise `nil`.
        var tag: Int64?
        var bytes: Int
    }

    private(set) var nextSequence: Int64 = 1
    private(set) var unacknowledgedBytes = 0
    /// The instant since which a receipt is due: the last receipt, or the sending of the oldest unacknowledged frame if that is later. It
    /// is moved forward by the time during which this side read nothing. `nil` if all frames are acknowledged.
    private(set) var waitingSince: ContinuousClock.Instant?
    /// The sent frames. Unacknowledged ones begin at index `head`.
    private var sent: [Sent] = []
    private var head = 0

    /// The ids of the outbox rows that are not acknowledged.
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

    /// Frees a buffer that became large during a bulk send.
    mutating func releaseMemory() {
        if sent.isEmpty { sent = [] }
    }

    mutating func shift(by pause: Duration) {
        if let since = waitingSince { waitingSince = since + pause }
    }

    /// Handles a receipt.
    /// - Returns: the results of the acknowledged outbox rows, in order; `nil` if the receipt is invalid, which ends the session with
    ///   `receiptFault`.
    mutating func receive(_ receipt: Receipt, now: ContinuousClock.Instant) -> [RowResult]? {
        let through = nextSequence - 1 - Int64(unacknowledgedFrames)
        guard receipt.through > through, receipt.through < nextSequence else { return nil }
        var rejections: [Int64: HexRejection] = [:]
        for rejection in receipt.rejected {
            guard rejection.sequence > through, rejection.sequence <= receipt.through,
                rejections.updateValue(rejection, forKey: rejection.sequence) == nil
            else { return nil }
        }
        // The whole receipt is validated before any result is used.
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
