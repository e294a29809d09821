import DequeModule

/// Assigns a limited number of resolver slots to records: those of trusted peers first, the others by round robin.
///
/// A resolver keeps its slot while no other record waits for one. If a record waits, the resolver is closed after `timeSlice`.
struct ResolverSlots: Sendable {
    /// Time a resolver keeps its slot while others wait. A resolver reports a failure after 5 s.
    static let timeSlice: Duration = .seconds(10)

    private let limit: Int
    /// Number of slots that records of trusted peers must leave to waiting untrusted records. Until a record is resolved, its peer is only
    /// guessed from the instance name, which can be forged.
    private let reserved: Int

    private struct Open: Sendable {
        var since: ContinuousClock.Instant
        var isTrusted: Bool
    }
    private var open: [Record: Open] = [:]
    private var trustedOpen = 0
    /// The resolvers in the order they were opened. Entries that differ from `open` are stale.
    private var opened: Deque<(record: Record, since: ContinuousClock.Instant)> = []
    /// The waiting records, and whether each is trusted. Queues may contain other records, which are stale.
    private var waiting: [Record: Bool] = [:]
    private var trustedQueue: Deque<Record> = []
    private var untrustedQueue: Deque<Record> = []
    private var untrustedWaiting = 0
    private var trustedWaiting: Int { waiting.count - untrustedWaiting }

    init(limit: Int) {
        self.limit = max(1, limit)
        reserved = self.limit / 4
    }

    var openCount: Int { open.count }
    func isOpen(_ record: Record) -> Bool { open[record] != nil }

    mutating func request(_ record: Record, isTrusted: Bool) {
        if let present = open[record] {
            if present.isTrusted != isTrusted { trustedOpen += isTrusted ? 1 : -1 }
            open[record]?.isTrusted = isTrusted
            return
        }
        if let present = waiting[record] {
            guard present != isTrusted else { return }
            dequeue(record)
        }
        enqueue(record, isTrusted: isTrusted)
    }

    /// Removes a record from the open and the waiting ones.
    /// - Returns: whether its resolver was open and must be closed.
    mutating func remove(_ record: Record) -> Bool {
        dequeue(record)
        guard let present = open.removeValue(forKey: record) else { return false }
        if present.isTrusted { trustedOpen -= 1 }
        return true
    }

    enum Action: Equatable {
        case open(Record)
        case close(Record)
    }

    /// Assigns free slots to waiting records, and ends time slices that are over.
    /// - Returns: the actions, in order.
    mutating func advance(now: ContinuousClock.Instant) -> [Action] {
        var actions: [Action] = []
        while open.count < limit, let record = nextWaiting() { begin(record, now: now, &actions) }
        // A waiting trusted record gets the slot of the untrusted record whose resolver was opened first.
        while trustedWaiting > 0, trustedOpen < limit - reserved,
            let (oldest, _) = open.lazy.filter({ !$0.value.isTrusted }).min(by: { $0.value.since < $1.value.since })
        {
            end(oldest, &actions)
            guard let record = nextWaiting() else { break }
            begin(record, now: now, &actions)
            enqueue(oldest, isTrusted: false)
        }
        // Resolvers opened or renewed in this loop are too recent to be selected again.
        while !waiting.isEmpty, let oldest = opened.first {
            guard let present = open[oldest.record], present.since == oldest.since else {
                _ = opened.popFirst()
                continue
            }
            guard present.since + Self.timeSlice <= now else { break }
            _ = opened.popFirst()
            if present.isTrusted, trustedWaiting == 0, trustedOpen <= limit - reserved {
                open[oldest.record]?.since = now
                opened.append((oldest.record, now))
                continue
            }
            end(oldest.record, &actions)
            if let record = nextWaiting() { begin(record, now: now, &actions) }
            enqueue(oldest.record, isTrusted: present.isTrusted)
        }
        return actions
    }

    private mutating func end(_ record: Record, _ actions: inout [Action]) {
        guard let present = open.removeValue(forKey: record) else { return }
        if present.isTrusted { trustedOpen -= 1 }
        actions.append(.close(record))
    }

    /// The end of the next time slice; `nil` if no record waits.
    var nextTimeSliceEnd: ContinuousClock.Instant? {
        guard !waiting.isEmpty, let oldest = opened.first else { return nil }
        return oldest.since + Self.timeSlice
    }

    private mutating func begin(_ record: Record, now: ContinuousClock.Instant, _ actions: inout [Action]) {
        let isTrusted = waiting[record] ?? false
        dequeue(record)
        open[record] = Open(since: now, isTrusted: isTrusted)
        if isTrusted { trustedOpen += 1 }
        opened.append((record, now))
        actions.append(.open(record))
        if opened.count > 2 * open.count + 256 { compact() }
    }

    private mutating func nextWaiting() -> Record? {
        let trustedMayBegin = untrustedWaiting == 0 || trustedOpen < limit - reserved
        if trustedMayBegin, let record = first(of: \.trustedQueue, isTrusted: true) { return record }
        return first(of: \.untrustedQueue, isTrusted: false) ?? first(of: \.trustedQueue, isTrusted: true)
    }

    private mutating func first(of queue: WritableKeyPath<Self, Deque<Record>>, isTrusted: Bool) -> Record? {
        while let record = self[keyPath: queue].first {
            if waiting[record] == isTrusted { return record }
            _ = self[keyPath: queue].popFirst()
        }
        return nil
    }

    private mutating func enqueue(_ record: Record, isTrusted: Bool) {
        waiting[record] = isTrusted
        if isTrusted {
            trustedQueue.append(record)
        } else {
            untrustedQueue.append(record)
            untrustedWaiting += 1
        }
        if trustedQueue.count + untrustedQueue.count > 2 * waiting.count + 256 { compact() }
    }

    private mutating func dequeue(_ record: Record) {
        guard let isTrusted = waiting.removeValue(forKey: record) else { return }
        if !isTrusted { untrustedWaiting -= 1 }
    }

    private mutating func compact() {
        var seen: Set<Record> = []
        trustedQueue.removeAll { waiting[$0] != true || !seen.insert($0).inserted }
        untrustedQueue.removeAll { waiting[$0] != false || !seen.insert($0).inserted }
        opened.removeAll { open[$0.record]?.since != $0.since }
    }
}
