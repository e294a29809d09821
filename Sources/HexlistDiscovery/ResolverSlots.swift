import DequeModule

/// Shares the resolvers that may be open at once among the records that want one: records of trusted peers first, the rest in turn.
///
/// An open resolver stays open while no record waits. While one does, the resolver gives up its place after `turn`.
struct ResolverSlots: Sendable {
    /// The time a resolver keeps its place while others wait. A resolver that finds nothing reports it after 5 s.
    static let turn: Duration = .seconds(10)

    private let limit: Int
    /// The places left to other records, while any of them waits, instead of to trusted ones: which records are a trusted peer's is only a
    /// guess before they are resolved, and can be forged.
    private let reserved: Int

    private struct Open: Sendable {
        var since: ContinuousClock.Instant
        var isTrusted: Bool
    }
    private var open: [Record: Open] = [:]
    private var trustedOpen = 0
    /// The resolvers in the order they were opened. Entries that differ from `open` are skipped.
    private var opened: Deque<(record: Record, since: ContinuousClock.Instant)> = []
    /// The waiting records, and whether each is trusted. Lines may hold further records, which are skipped.
    private var waiting: [Record: Bool] = [:]
    private var trustedLine: Deque<Record> = []
    private var restLine: Deque<Record> = []
    private var restWaiting = 0
    private var trustedWaiting: Int { waiting.count - restWaiting }

    init(limit: Int) {
        self.limit = max(1, limit)
        reserved = self.limit / 4
    }

    var openCount: Int { open.count }
    func isOpen(_ record: Record) -> Bool { open[record] != nil }

    mutating func want(_ record: Record, isTrusted: Bool) {
        if let present = open[record] {
            if present.isTrusted != isTrusted { trustedOpen += isTrusted ? 1 : -1 }
            open[record]?.isTrusted = isTrusted
            return
        }
        if let present = waiting[record] {
            guard present != isTrusted else { return }
            leaveLine(record)
        }
        standInLine(record, isTrusted: isTrusted)
    }

    /// Removes a record from the open and the waiting ones.
    /// - Returns: whether its resolver was open and has to be closed.
    mutating func dismiss(_ record: Record) -> Bool {
        leaveLine(record)
        guard let present = open.removeValue(forKey: record) else { return false }
        if present.isTrusted { trustedOpen -= 1 }
        return true
    }

    enum Action: Equatable {
        case open(Record)
        case close(Record)
    }

    /// - Returns: what to do, in this order.
    mutating func advance(now: ContinuousClock.Instant) -> [Action] {
        var actions: [Action] = []
        while open.count < limit, let record = nextWaiting() { begin(record, now: now, &actions) }
        // A trusted record does not wait for the end of another's turn.
        while trustedWaiting > 0, trustedOpen < limit - reserved,
            let (oldest, _) = open.lazy.filter({ !$0.value.isTrusted }).min(by: { $0.value.since < $1.value.since })
        {
            end(oldest, &actions)
            guard let record = nextWaiting() else { break }
            begin(record, now: now, &actions)
            standInLine(oldest, isTrusted: false)
        }
        // Resolvers that begin or are renewed in this loop are too young to be reached again.
        while !waiting.isEmpty, let oldest = opened.first {
            guard let present = open[oldest.record], present.since == oldest.since else {
                _ = opened.popFirst()
                continue
            }
            guard present.since + Self.turn <= now else { break }
            _ = opened.popFirst()
            if present.isTrusted, trustedWaiting == 0, trustedOpen <= limit - reserved {
                open[oldest.record]?.since = now
                opened.append((oldest.record, now))
                continue
            }
            end(oldest.record, &actions)
            if let record = nextWaiting() { begin(record, now: now, &actions) }
            standInLine(oldest.record, isTrusted: present.isTrusted)
        }
        return actions
    }

    private mutating func end(_ record: Record, _ actions: inout [Action]) {
        guard let present = open.removeValue(forKey: record) else { return }
        if present.isTrusted { trustedOpen -= 1 }
        actions.append(.close(record))
    }

    /// The instant at which a turn ends; `nil` if no record waits for it.
    var nextTurn: ContinuousClock.Instant? {
        guard !waiting.isEmpty, let oldest = opened.first else { return nil }
        return oldest.since + Self.turn
    }

    private mutating func begin(_ record: Record, now: ContinuousClock.Instant, _ actions: inout [Action]) {
        let isTrusted = waiting[record] ?? false
        leaveLine(record)
        open[record] = Open(since: now, isTrusted: isTrusted)
        if isTrusted { trustedOpen += 1 }
        opened.append((record, now))
        actions.append(.open(record))
        if opened.count > 2 * open.count + 256 { sweep() }
    }

    private mutating func nextWaiting() -> Record? {
        let trustedMayBegin = restWaiting == 0 || trustedOpen < limit - reserved
        if trustedMayBegin, let record = first(of: \.trustedLine, isTrusted: true) { return record }
        return first(of: \.restLine, isTrusted: false) ?? first(of: \.trustedLine, isTrusted: true)
    }

    private mutating func first(of line: WritableKeyPath<Self, Deque<Record>>, isTrusted: Bool) -> Record? {
        while let record = self[keyPath: line].first {
            if waiting[record] == isTrusted { return record }
            _ = self[keyPath: line].popFirst()
        }
        return nil
    }

    private mutating func standInLine(_ record: Record, isTrusted: Bool) {
        waiting[record] = isTrusted
        if isTrusted {
            trustedLine.append(record)
        } else {
            restLine.append(record)
            restWaiting += 1
        }
        if trustedLine.count + restLine.count > 2 * waiting.count + 256 { sweep() }
    }

    private mutating func leaveLine(_ record: Record) {
        guard let isTrusted = waiting.removeValue(forKey: record) else { return }
        if !isTrusted { restWaiting -= 1 }
    }

    private mutating func sweep() {
        var seen: Set<Record> = []
        trustedLine.removeAll { waiting[$0] != true || !seen.insert($0).inserted }
        restLine.removeAll { waiting[$0] != false || !seen.insert($0).inserted }
        opened.removeAll { open[$0.record]?.since != $0.since }
    }
}
