internal import GRDB
internal import HexlistModel

/// The retention times that a user can set, in days.
public struct RetentionLimits: Sendable, Equatable {
    public var heldDays: Int
    public var eventDays: Int

    public init(heldDays: Int = 7, eventDays: Int = 30) {
        self.heldDays = heldDays
        self.eventDays = eventDays
    }
}

/// The result of a round of maintenance.
public struct MaintenanceReport: Sendable, Equatable {
    /// The number of outbox rows that expired.
    public var expired = 0
    /// The number of settled outbox rows that were forgotten.
    public var forgotten = 0
    /// The number of held hexes dropped because their days are over.
    public var heldDropped = 0
    /// The number of message ids of deleted hexes that were forgotten.
    public var idsForgotten = 0
    /// The number of rows dropped from the event log, each one event or a run of events.
    public var eventsDropped = 0
    /// The number of peers dropped because nothing refers to them any more.
    public var peersDropped = 0
    /// The number of offers that ended, and of transfers that ended long ago.
    public var filesForgotten = 0
    /// Whether more may be due, so that another round is needed.
    public var isPartial = false
}

extension HexStore {
    /// Removes what is due, up to a bound, in one transaction, and saves the lived time: an outbox row that was not delivered in time becomes
    /// `expired` (`hex.expired`), a row settled long enough is forgotten, and held hexes, events and remembered ids that are too old are dropped,
    /// and peers that nothing refers to. All ages are by `LivedClock`.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970, for the events.
    ///   - completion: called on the writer's thread; call again while the report is partial.
    public func maintain(
        now: Int64, limits: RetentionLimits, completion: @escaping @Sendable (Result<MaintenanceReport, any Error>) -> Void
    ) {
        submit({ try $0.maintain(now: now, limits: limits) }, completion: completion)
    }
}

extension StoreWriter {
    /// - Parameters:
    ///   - now: milliseconds since 1970, for the events.
    ///   - chunk: the most rows of each kind, so that one piece of work does not delay the others.
    func maintain(now: Int64, limits: RetentionLimits = RetentionLimits(), chunk: Int = 2_000) throws -> MaintenanceReport {
        try change {
            tally.lived = lived
            var report = MaintenanceReport()
            try letGoOfOutbox(now, chunk, &report)
            let held = try all(
                "SELECT id FROM hex WHERE heldSince <= ? ORDER BY heldSince LIMIT ?", lived &- Self.days(limits.heldDays), chunk
            ) { $0.int64(0) }
            report.heldDropped = try remove(held, remembers: false)
            if report.heldDropped > 0 { changed([.peers, .room]) }
            report.idsForgotten = try run(
                """
                DELETE FROM tombstone WHERE (peer, messageID) IN
                    (SELECT peer, messageID FROM tombstone WHERE forgetAt <= ? ORDER BY forgetAt LIMIT ?)
                """, lived, chunk)
            report.eventsDropped = try dropEvents(limits, chunk)
            report.filesForgotten = try letGoOfFiles(chunk)
            report.isPartial = [
                report.expired + report.forgotten, held.count, report.idsForgotten, report.eventsDropped, report.filesForgotten,
            ]
            .contains { $0 >= chunk }
            try saveCounters()  // the next query reads them
            report.peersDropped = try dropPeers()
            return report
        }
    }

    private static func days(_ days: Int) -> Int64 { Int64(days).multipliedReportingOverflow(by: 86_400_000).partialValue }

    private func letGoOfFiles(_ chunk: Int) throws -> Int {
        let offers = try run("DELETE FROM offer WHERE id IN (SELECT id FROM offer WHERE ends <= ? ORDER BY ends LIMIT ?)", lived, chunk)
        let transfers = try run(
            "DELETE FROM transfer WHERE id IN (SELECT id FROM transfer WHERE lived <= ? ORDER BY lived LIMIT ?)",
            lived &- Self.days(TransferRow.keptDays), chunk)
        return max(offers, transfers, try letGoOfOffers(chunk))
    }

    private func letGoOfOutbox(_ now: Int64, _ chunk: Int, _ report: inout MaintenanceReport) throws {
        let due = try all(
            """
            SELECT \(OutboxRowRange.columns), peer.uuid FROM outbox JOIN peer ON peer.id = outbox.peer
            WHERE outbox.dueAt <= ? ORDER BY outbox.dueAt, outbox.id LIMIT ?
            """, lived, chunk
        ) { row in OutboxRowRange(row).map { (run: $0, peer: row.uuid(5).map(PeerID.init)) } }.compactMap(\.self)
        var expired: [PeerID?: [Int64]] = [:]
        for (run, peer) in due where report.expired + report.forgotten < chunk {
            if run.state == .queued {
                try move(run, to: .expired, at: now)
                try endOffers(with: run.ids, of: run.peer, forGood: true)
                expired[peer, default: []] += run.ids
                report.expired += run.ids.count
            } else {
                if run.state.keepsBody { try endOffers(with: run.ids, of: run.peer, forGood: true) }
                try self.run("DELETE FROM outbox WHERE id = ?", run.ids.lowerBound)
                try letGo(ofPack: run.pack)
                tally.outbox[run.state] &-= run.count
                report.forgotten += run.ids.count
            }
        }
        for (peer, ids) in expired.sorted(by: { ($0.value.first ?? 0) < ($1.value.first ?? 0) }) {
            for run in ConsecutiveRuns(ids) {
                try record(.hexExpired, at: now, count: run.count, peer: peer, outboxID: run.lowerBound)
            }
        }
    }

    /// Drops old events, beginning with the oldest, so that the remaining numbers have no gap.
    private func dropEvents(_ limits: RetentionLimits, _ chunk: Int) throws -> Int {
        let tooOld = lived &- Self.days(limits.eventDays)
        let oldest = try all("SELECT number, coalesce(lived, at), \(EventLog.sqlCost) FROM event ORDER BY number LIMIT ?", chunk) {
            (number: $0.int64(0), lived: $0.int64(1), bytes: $0.int64(2))
        }
        let due = oldest.prefix { $0.lived <= tooOld }
        guard let last = due.last else { return 0 }
        return try dropEvents(upTo: last.number, bytes: due.reduce(into: 0) { $0 &+= $1.bytes })
    }
}
