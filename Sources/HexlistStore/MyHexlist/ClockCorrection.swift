internal import HexlistLists
internal import HexlistModel

extension HexStore {
    /// Gives values of shared lists new versions if the clock of this machine was more than 12 hours ahead when they were written
    /// (`ListLimits.clockAhead`): other machines leave such values out. Later changes get versions by the present clock again. The corrected
    /// values cannot be undone by the change log, because they count as changed since.
    ///
    /// Call while the clocks of this machine and of a peer agree. A list stays as it is if a page of it arrived more than 12 hours after `now`:
    /// the present clock is the wrong one then.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the number of corrected hexes and links, deleted ones included.
    public func correctVersions(at now: Int64) async throws -> Int {
        guard try await read({ try !$0.listsAhead(at: now).isEmpty }) else { return 0 }
        return try await write { writer in try writer.change { try writer.correctVersions(at: now) } }
    }
}

extension StoreReader {
    /// Returns the shared lists with versions that other machines leave out, as `ListRecord.row`. The user may change all of them: of other
    /// lists this machine does not send rows.
    /// - Parameter now: milliseconds since 1970.
    fileprivate func listsAhead(at now: Int64) throws -> [Int64] {
        let latest = now.addingClamped(ListLimits.clockAhead)
        return try all(
            """
            SELECT id FROM list WHERE id <> ? AND entry IS NOT NULL AND clock > ?
                AND NOT EXISTS (SELECT 1 FROM listCursor WHERE listCursor.list = list.id AND listCursor.at > ?)
            """, ListRecord.mine, HybridClock.latest(milliseconds: latest), latest
        ) { $0.int64(0) }.filter { try isWritable($0) }
    }
}

extension StoreWriter {
    fileprivate func correctVersions(at now: Int64) throws -> Int {
        let latest = HybridClock.latest(milliseconds: now.addingClamped(ListLimits.clockAhead))
        return try listsAhead(at: now).reduce(0) { count, list in
            // The new number has written no versions. Other machines request all rows because of it.
            try renewReplica(of: list)
            return try changeMine(at: now, in: list) { try count + $0.nodes.renewVersions(after: latest) }
        }
    }
}
