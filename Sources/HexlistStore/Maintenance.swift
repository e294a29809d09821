internal import GRDB
internal import HexlistModel

/// How long things are kept.
public struct RetentionLimits: Sendable, Equatable {
    public var heldDays: Int
    public var eventDays: Int

    public init(heldDays: Int = 7, eventDays: Int = 30) {
        self.heldDays = heldDays
        self.eventDays = eventDays
    }
}

/// What a round of maintenance did.
public struct MaintenanceReport: Sendable, Equatable {
    /// Rows of the outbox that ran out of time.
    public var expired = 0
    /// Rows of the outbox that are remembered no longer.
    public var forgotten = 0
    /// Held hexes whose days are over.
    public var heldDropped = 0
    /// Message ids of deleted hexes that are remembered no longer.
    public var idsForgotten = 0
    /// Rows of the event log, each one event or a run of them.
    public var eventsDropped = 0
    /// Peers nothing refers to any more.
    public var peersDropped = 0
    /// There may be more to do: again.
    public var isPartial = false
}

extension HexStore {
    /// Lets go of what is due, a bounded part of it, in one transaction: a row of the outbox undelivered in its time becomes `expired`
    /// (`hex.expired`) and one settled long enough is forgotten; held hexes, events and remembered ids that are too old go, and peers
    /// nothing refers to.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - jump: milliseconds by which the wall clock jumped since the last round, new clock less old one: it moves no deadline.
    ///   - completion: on the writer's thread. While the report is partial, there may be more to do.
    public func maintain(
        now: Int64, jump: Int64, limits: RetentionLimits, completion: @escaping @Sendable (Result<MaintenanceReport, any Error>) -> Void
    ) {
        submit(
            { writer in
                if jump != 0 { try writer.shiftDeadlines(by: jump) }
                return try writer.maintain(now: now, limits: limits)
            }, completion: completion)
    }
}

extension StoreWriter {
    /// - Parameters:
    ///   - now: milliseconds since 1970, of a clock whose jumps were told to `shiftDeadlines`.
    ///   - chunk: rows of each kind at most, so that one piece of work does not hold up the others.
    func maintain(now: Int64, limits: RetentionLimits = RetentionLimits(), chunk: Int = 2_000) throws -> MaintenanceReport {
        try change {
            var report = MaintenanceReport()
            try letGoOfOutbox(now, chunk, &report)
            let held = try all(
                "SELECT id FROM hex WHERE heldSince <= ? ORDER BY heldSince LIMIT ?", now &- Self.days(limits.heldDays), chunk
            ) { $0.int64(0) }
            report.heldDropped = try remove(held, remembering: nil)
            if report.heldDropped > 0 { changed([.peers, .room]) }
            report.idsForgotten = try run(
                """
                DELETE FROM tombstone WHERE (peer, messageID) IN
                    (SELECT peer, messageID FROM tombstone WHERE forgetAt <= ? ORDER BY forgetAt LIMIT ?)
                """, now, chunk)
            report.eventsDropped = try dropEvents(now, limits, chunk)
            report.isPartial = [report.expired + report.forgotten, held.count, report.idsForgotten, report.eventsDropped]
                .contains { $0 >= chunk }
            try saveCounters()  // what is asked next reads them
            report.peersDropped = try dropPeers()
            return report
        }
    }

    /// Tells of a jump of the wall clock, so that it moves no deadline: what expires, is forgotten or is tried again
    /// does so as much later, or earlier, on the clock.
    ///
    /// - Parameter milliseconds: new clock less old clock.
    func shiftDeadlines(by milliseconds: Int64) throws {
        try change {
            try run("UPDATE outbox SET dueAt = dueAt + ?, nextAttemptAt = nextAttemptAt + ?", milliseconds, milliseconds)
            try run("UPDATE tombstone SET forgetAt = forgetAt + ?", milliseconds)
            try run("UPDATE hex SET heldSince = heldSince + ? WHERE heldSince IS NOT NULL", milliseconds)
        }
    }

    private static func days(_ days: Int) -> Int64 { Int64(days).multipliedReportingOverflow(by: 86_400_000).partialValue }

    private func letGoOfOutbox(_ now: Int64, _ chunk: Int, _ report: inout MaintenanceReport) throws {
        let due = try all(
            """
            SELECT outbox.id, outbox.peer, outbox.state, outbox.bytes, peer.uuid FROM outbox JOIN peer ON peer.id = outbox.peer
            WHERE outbox.dueAt <= ? ORDER BY outbox.dueAt, outbox.id LIMIT ?
            """, now, chunk
        ) { row in OutboxEntry(row).map { (entry: $0, peer: row.uuid(4).map(PeerID.init)) } }.compactMap(\.self)
        var expired: [PeerID?: [Int64]] = [:]
        for (row, peer) in due {
            if row.state == .queued {
                try move(row, to: .expired, at: now)
                expired[peer, default: []].append(row.id)
                report.expired += 1
            } else {
                try run("DELETE FROM outbox WHERE id = ?", row.id)
                tally.outbox[row.state] &-= 1
                if row.state.keepsBody { tally.outboxBytes &-= row.bytes }
                report.forgotten += 1
            }
        }
        for (peer, ids) in expired.sorted(by: { ($0.value.first ?? 0) < ($1.value.first ?? 0) }) {
            for run in ConsecutiveRuns(ids) {
                try record(.hexExpired, at: now, count: run.count, peer: peer, outboxID: run.lowerBound)
            }
        }
    }

    /// From the oldest on, so that the numbers that stay have no gap.
    private func dropEvents(_ now: Int64, _ limits: RetentionLimits, _ chunk: Int) throws -> Int {
        let tooOld = now &- Self.days(limits.eventDays)
        let oldest = try all("SELECT number, at, \(EventLog.sqlCost) FROM event ORDER BY number LIMIT ?", chunk) {
            (number: $0.int64(0), at: $0.int64(1), bytes: $0.int64(2))
        }
        let due = oldest.prefix { $0.at <= tooOld }
        guard let last = due.last else { return 0 }
        return try dropEvents(upTo: last.number, bytes: due.reduce(into: 0) { $0 &+= $1.bytes })
    }
}
