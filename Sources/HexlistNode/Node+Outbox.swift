public import HexlistModel
import HexlistStore
import NIOCore

/// The outbox as people and scripts see it: the rows, and what this node knows of them right now.
extension Node {
    /// A page in ascending order of rows.
    /// - Parameter limit: rows at most.
    public func outbox(peer: PeerID?, states: Set<OutboxState>?, after: Int64?, limit: Int) async throws -> [OutboxView] {
        // `sending` is a queued row on its way; it is told apart here, where that is known.
        let stored = states.map { wanted in Set(wanted.map { $0 == .sending ? .queued : $0 }) }
        let rows = try await store.read { try $0.outboxPage(OutboxFilter(peer: peer, states: stored), limit: limit, after: after ?? 0) }
            .items
        let live = Dictionary(uniqueKeysWithValues: links.map { ($0, $1.sending?.machine.unacknowledgedTags ?? []) })
        return rows.map { view(of: $0, inFlight: live[$0.peer] ?? []) }.filter { states?.contains($0.state) ?? true }
    }

    /// - Throws: `HexlistError` `notFound`.
    public func outboxRow(_ id: Int64) async throws -> OutboxView {
        guard let row = try await store.read({ try $0.outboxRow(id) }) else { throw Node.noRow(id) }
        return view(of: row, inFlight: links[row.peer]?.sending?.machine.unacknowledgedTags ?? [])
    }

    /// Tries rows again now: a failed, expired or cancelled one is queued anew, a waiting one waits no longer.
    public func retry(_ ids: [Int64]) async throws -> [OutboxView] {
        let at = Node.wallClock()
        let expiresAt = at + Int64(configuration.outbox.expireDays) * 86_400_000
        let rows = try await store.write { writer in
            let rows = try Node.rows(ids, in: writer)
            // A delivered, cancelled or expired row has no body any more.
            if let gone = rows.first(where: { !$0.state.keepsBody }) {
                throw HexlistError(
                    .badRequest, "Row \(gone.id) is \(gone.state.rawValue); there is nothing left of it to send.",
                    hint: "Send the hex again.")
            }
            _ = try writer.retry(ids, at: at, expiresAt: expiresAt)
            return try Node.rows(ids, in: writer)
        }
        for peer in Set(rows.map(\.peer)) {
            let link = link(to: peer)
            link.delivery.retryNow()
            kick(link)
        }
        notifyWatchers()
        return rows.map { view(of: $0, inFlight: []) }
    }

    /// - Returns: each row, and whether it was on its way and may have arrived all the same.
    public func cancel(_ ids: [Int64]) async throws -> [(row: OutboxView, mayHaveArrived: Bool)] {
        let at = Node.wallClock()
        let live = links.values.reduce(into: Set<Int64>()) { $0.formUnion($1.sending?.machine.unacknowledgedTags ?? []) }
        let rows = try await store.write { writer in
            _ = try Node.rows(ids, in: writer)
            _ = try writer.cancel(ids, at: at)
            return try Node.rows(ids, in: writer)
        }
        for peer in Set(rows.map(\.peer)) { links[peer]?.delivery.rowsChanged() }
        rowsEnded(rows.filter { $0.state == .cancelled }.map { RowEnd(id: $0.id, peer: $0.peer, state: .cancelled) })
        notifyWatchers()
        return rows.map { (view(of: $0, inFlight: []), live.contains($0.id) || $0.attempts > 0) }
    }

    private static func rows(_ ids: [Int64], in reader: StoreReader) throws -> [OutboxRow] {
        let rows = try reader.outboxRows(ids)
        if let missing = Set(ids).subtracting(rows.map(\.id)).min() { throw noRow(missing) }
        return rows
    }

    static func noRow(_ id: Int64) -> HexlistError {
        HexlistError(.notFound, "There is no outbox row \(id).", hint: "`hexlist outbox list` lists those there are.")
    }

    private func view(of row: OutboxRow, inFlight: Set<Int64>) -> OutboxView {
        let isSending = row.state == .queued && inFlight.contains(row.id)
        var view = OutboxView(
            outboxID: row.id, messageID: row.messageID, peer: row.peer, state: isSending ? .sending : row.state,
            attempts: row.attempts, waitingFor: nil, nextAttemptAt: nil, lastError: row.lastError, createdAt: row.createdAt,
            bytes: row.bytes)
        guard row.state == .queued, !isSending else { return view }
        let link = links[row.peer]
        if let link, let until = link.delivery.pausedUntil, link.delivery.isPaused(now: .now) {
            view.waitingFor = "retry"
            view.nextAttemptAt = Node.wallClock() + (until - .now).milliseconds
        } else if let link, link.sending != nil {
            if link.delivery.waitsForTrust(bytes: row.bytes) {
                view.waitingFor = "trust"
            } else {
                view.waitingFor = turns.isWaiting(row.peer) ? "turn" : "window"
            }
        } else {
            view.waitingFor = directory.isVerified(row.peer) ? "session" : "peer"
        }
        return view
    }
}
