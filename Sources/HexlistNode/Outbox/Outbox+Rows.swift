public import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistJSON
public import HexlistModel
public import HexlistStore
public import NIOCore

// The outbox as people and scripts see it: the rows, with their state in this moment.
extension Outbox {
    /// A page in ascending order of rows.
    /// - Parameter limit: rows at most; fewer come where the store read no more for one page.
    /// - Returns: the rows, and where the list goes on; `nil` at its end.
    public func rows(
        peer: PeerID?, states: Set<OutboxState>?, after: Int64?, limit: Int
    ) async throws -> (rows: [OutboxView], next: Int64?) {
        // `sending` is a queued row on its way; it is told apart here, where that is known.
        let filter = OutboxFilter(peer: peer, states: states.map { wanted in Set(wanted.map { $0 == .sending ? .queued : $0 }) })
        await finishWriting()
        let live = deliveries.liveRows
        var cursor = after
        while true {
            let page = try await store.read { [cursor] in try $0.outboxPage(filter, limit: limit, after: cursor ?? 0) }
            var views = page.items.map { view(of: $0, isSending: live.contains($0.id)) }.filter { states?.contains($0.state) ?? true }
            guard views.isEmpty, let next = page.next else {
                let labels = labels(of: views.map(\.peer))
                for index in views.indices { views[index].tag = labels[views[index].peer].map(PeerSummary.init) }
                return (views, page.next)
            }
            cursor = next
        }
    }

    /// Waits until the store has what callers were told of, so that who looks there reads the same. Not for long: a disk may hang.
    public func finishWriting(within time: TimeAmount = .milliseconds(200)) async {
        _ = await eventLoop.within(time, otherwise: ()) { done in store.finishWriting { done(()) } }
    }

    /// - Throws: `HexlistError` `notFound`.
    public func row(_ id: Int64) async throws -> OutboxView {
        await finishWriting()
        guard let row = try await store.read({ try $0.outboxRow(id) }) else { throw HexlistError.noOutboxRow(id) }
        let offers = try await store.read { try $0.offers(ofRow: id) }
        var view = view(of: row, isSending: deliveries.liveRows.contains(id))
        if !offers.isEmpty {
            // The files as they are now: their peer may not have asked for them yet.
            let problems = try await node?.transfers.offers.problems(of: offers.map { ($0.path, $0.identity) }) ?? []
            let times = times
            view.offers = zip(offers, problems).map { offer, problem in
                let ends = Timestamp(milliseconds: times.milliseconds(of: store.clock.instant(of: offer.ends)))
                return OutboxOffer(name: offer.name, size: offer.size, ends: ends, problem: problem)
            }
        }
        view.tag = labels(of: [row.peer])[row.peer].map(PeerSummary.init)
        return view
    }

    /// Tries a row again now: a failed or rejected one is queued anew, a waiting one waits no longer.
    /// - Throws: `HexlistError` `notFound`, or `badRequest` for one that has no body any more.
    public func retry(_ id: Int64) async throws -> OutboxView {
        let isQueued = try await retry(.ids([id])).changed > 0
        let row = try await self.row(id)
        guard isQueued else {
            let isDelivered = row.state == .stored || row.state == .held
            throw HexlistError(
                .badRequest, isDelivered ? "Already delivered." : "\(id) is \(row.state.rawValue) and can no longer be sent.",
                hint: isDelivered ? nil : "Send the hex again.")
        }
        return row
    }

    /// - Returns: the row, with whether it was on its way and may have arrived all the same.
    public func cancel(_ id: Int64) async throws -> OutboxView {
        let change = try await cancel(.ids([id]))
        var row = try await self.row(id)
        row.mayHaveArrived = change.mayHaveArrived > 0
        return row
    }

    /// - Parameter rows: as they were.
    private func rowsQueuedAgain(_ rows: [OutboxRow]) {
        let moves = rows.filter { $0.state != .queued }.map { OutboxMove(id: $0.id, peer: $0.peer, from: $0.state, to: .queued) }
        deliveries.retried(moves, of: Set(rows.map(\.peer)), self)
        outboxChanged()
    }

    // MARK: Many at once

    /// The result of a change of many rows.
    public struct OutboxChange: Sendable, Equatable {
        public var changed = 0
        /// Cancelled rows that were on their way, or had been.
        public var mayHaveArrived = 0
        /// Named rows in a state that does not permit the change.
        public var passedOver = 0
        /// The row to go on after; `nil` where that was all.
        public var next: Int64?
    }

    /// Tries rows again now, whatever they wait for. Delivered, cancelled and expired ones are passed over.
    /// - Throws: `HexlistError` `notFound` where a named one is not there; then nothing was changed.
    public func retry(_ selection: OutboxSelection) async throws -> OutboxChange {
        let changed = try await store.retry(selection, lifetime: outboxLifetime)
        rowsQueuedAgain(changed.rows)
        return OutboxChange(changed: changed.rows.count, passedOver: changed.passedOver, next: changed.next)
    }

    /// Takes rows back: named ones that are not delivered, and of a peer those that wait.
    /// - Throws: `HexlistError` `notFound` where a named one is not there; then nothing was changed.
    public func cancel(_ selection: OutboxSelection) async throws -> OutboxChange {
        let live = deliveries.liveRows
        let changed = try await store.cancel(selection, at: clocks.milliseconds)
        let rows = changed.rows
        let arrived = live.union(deliveries.liveRows)
        let mayHaveArrived = rows.count { arrived.contains($0.id) || $0.attempts > 0 }
        node?.transfers.offers.tidyCopies()
        deliveries.cancelled(rows.map { OutboxMove(id: $0.id, peer: $0.peer, from: $0.state, to: .cancelled) })
        outboxChanged()
        return OutboxChange(
            changed: rows.count, mayHaveArrived: mayHaveArrived, passedOver: changed.passedOver, next: changed.next)
    }

    private func view(of row: OutboxRow, isSending: Bool) -> OutboxView {
        let isSending = row.state == .queued && isSending
        var view = OutboxView(
            outboxID: row.id, messageID: row.messageID, peer: row.peer, subject: row.subject, state: isSending ? .sending : row.state,
            attempts: row.attempts, lastError: row.lastError, code: row.code, message: row.message,
            createdAt: Timestamp(milliseconds: row.createdAt), bytes: row.bytes)
        guard row.state == .queued, !isSending else { return view }
        let wait = deliveries.wait(of: row.peer, bytes: row.bytes, self)
        (view.waitingFor, view.nextAttemptAt) = (
            ForwardCompatibleEnum(wait.reason), wait.until.map { Timestamp(milliseconds: times.milliseconds(of: $0)) }
        )
        return view
    }

    /// Sets the reason for waiting on those rows of a send that have no end yet.
    /// - Parameter bytes: the size of the hex that all of them carry.
    func addWaits(to outcomes: inout [SendOutcome], bytes: Int) {
        guard outcomes.contains(where: { $0.state == .queued }) else { return }  // most sends: `liveRows` looks at every session
        let live = deliveries.liveRows
        for index in outcomes.indices where outcomes[index].state == .queued && !live.contains(outcomes[index].outboxID) {
            let wait = deliveries.wait(of: outcomes[index].peer, bytes: bytes, self)
            (outcomes[index].waitingFor, outcomes[index].nextAttemptAt) = (
                ForwardCompatibleEnum(wait.reason), wait.until.map { Timestamp(milliseconds: times.milliseconds(of: $0)) }
            )
        }
    }
}
