internal import GRDB
internal import HexlistModel

/// The configurable retention times of held hexes and events, in days.
public struct RetentionLimits: Sendable, Equatable {
    public var heldDays: Int
    public var eventDays: Int

    public init(heldDays: Int = 7, eventDays: Int = 30) {
        self.heldDays = heldDays
        self.eventDays = eventDays
    }
}

/// The result of one round of maintenance.
public struct MaintenanceReport: Sendable, Equatable {
    /// The number of outbox rows that expired.
    public var expired = 0
    /// The number of outbox rows in a final state that were deleted because of their age.
    public var forgotten = 0
    /// The number of held hexes deleted because of their age.
    public var heldDropped = 0
    /// The number of tombstones deleted because of their age.
    public var idsForgotten = 0
    /// The number of rows deleted from the event log, each with one or more events.
    public var eventsDropped = 0
    /// The number of peers deleted because nothing refers to them.
    public var peersDropped = 0
    /// The number of ended offers and old transfers deleted, or of offers for lists that were checked.
    public var filesForgotten = 0
    /// The numbers of deleted hexes and links of My Hexlist that were removed from the trash.
    public var hexesPurged = 0
    public var linksPurged = 0
    /// The number of changes deleted from the change log of My Hexlist because of their age.
    public var changesForgotten = 0
    /// Whether the round reached its limit of rows, so that another round is needed.
    public var isPartial = false
}

extension HexStore {
    /// Runs one bounded round of maintenance in one transaction, and saves the time of `StoreOpenTimeClock`. Queued outbox rows past their deadline
    /// become `expired`, with a `hex.expired` event. Deletes old outbox rows in a final state, old held hexes, events, tombstones, offers,
    /// transfers, the trash and change log of My Hexlist, and peers to which nothing refers. All ages are measured by `StoreOpenTimeClock`.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970, for the events.
    ///   - completion: called on the writer's thread. Call `maintain` again if the report is partial.
    public func maintain(
        now: Int64, limits: RetentionLimits, completion: @escaping @Sendable (Result<MaintenanceReport, any Error>) -> Void
    ) {
        submit({ try $0.maintain(now: now, limits: limits) }, completion: completion)
    }
}

extension StoreWriter {
    /// Runs one round of maintenance, as `HexStore.maintain` describes.
    /// - Parameters:
    ///   - now: milliseconds since 1970, for the events.
    ///   - chunk: maximum number of rows of each kind that one round changes, so that other write requests are not delayed.
    func maintain(now: Int64, limits: RetentionLimits = RetentionLimits(), chunk: Int = 2_000) throws -> MaintenanceReport {
        try change {
            counters.lived = lived
            var report = MaintenanceReport()
            try cleanUpOutbox(now, chunk, &report)
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
            report.filesForgotten = try cleanUpFiles(chunk)
            (report.hexesPurged, report.linksPurged) = try purgeTrash(limit: chunk)
            report.changesForgotten = try forgetChanges(madeUntil: lived &- Self.days(MyHexlistChange.days), limit: chunk)
            report.isPartial = [
                report.expired + report.forgotten, held.count, report.idsForgotten, report.eventsDropped, report.filesForgotten,
                report.hexesPurged + report.linksPurged, report.changesForgotten,
            ]
            .contains { $0 >= chunk }
            try saveCounters()  // `dropPeers` reads the counters of peers
            report.peersDropped = try dropPeers()
            return report
        }
    }

    static func days(_ days: Int) -> Int64 { Int64(days).multipliedReportingOverflow(by: 86_400_000).partialValue }

    private func cleanUpFiles(_ chunk: Int) throws -> Int {
        let checked = try checkOffersOfLists(chunk)  // first, because it postpones the end of offers
        let offers = try run("DELETE FROM offer WHERE id IN (SELECT id FROM offer WHERE ends <= ? ORDER BY ends LIMIT ?)", lived, chunk)
        let transfers = try run(
            "DELETE FROM transfer WHERE id IN (SELECT id FROM transfer WHERE lived <= ? ORDER BY lived LIMIT ?)",
            lived &- Self.days(TransferRow.keptDays), chunk)
        return max(checked, offers, transfers, try deleteEndedOffers(chunk))
    }

    private func cleanUpOutbox(_ now: Int64, _ chunk: Int, _ report: inout MaintenanceReport) throws {
        let due = try all(
            """
            SELECT \(OutboxRowRange.columns), peer.uuid FROM outbox JOIN peer ON peer.id = outbox.peer
            WHERE outbox.dueAt <= ? ORDER BY outbox.dueAt, outbox.id LIMIT ?
            """, lived, chunk
        ) { row in OutboxRowRange(row).map { (rowRange: $0, peer: row.uuid(5).map(PeerID.init)) } }.compactMap(\.self)
        var expired: [PeerID?: [Int64]] = [:]
        for (rowRange, peer) in due where report.expired + report.forgotten < chunk {
            if rowRange.state == .queued {
                try move(rowRange, to: .expired, at: now)
                try endOffers(with: rowRange.ids, of: rowRange.peer, forGood: true)
                expired[peer, default: []] += rowRange.ids
                report.expired += rowRange.ids.count
            } else {
                if rowRange.state.keepsBody { try endOffers(with: rowRange.ids, of: rowRange.peer, forGood: true) }
                try self.run("DELETE FROM outbox WHERE id = ?", rowRange.ids.lowerBound)
                try cleanUp(pack: rowRange.pack)
                counters.outbox[rowRange.state] &-= rowRange.count
                report.forgotten += rowRange.ids.count
            }
        }
        for (peer, ids) in expired.sorted(by: { ($0.value.first ?? 0) < ($1.value.first ?? 0) }) {
            for range in ConsecutiveRuns(ids) {
                try record(.hexExpired, at: now, count: range.count, peer: peer, outboxID: range.lowerBound)
            }
        }
    }

    /// Deletes old events. Stops at the first event that is not old, so that the remaining numbers have no gap.
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
