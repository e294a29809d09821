public import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistJSON
public import HexlistModel
public import HexlistStore
public import NIOCore

extension Outbox {
    /// A page of rows.
    /// - Parameters:
    ///   - offered: whether rows whose files the peer can still fetch are included, in any state.
    ///   - newestFirst: whether the newest rows come first, instead of the order of delivery.
    ///   - limit: maximum number of rows. There may be fewer.
    /// - Returns: the rows, and the cursor of the next page; `nil` at the end.
    public func rows(
        peer: PeerID?, states: Set<OutboxState>?, offered: Bool = false, newestFirst: Bool = false, after: Int64?, limit: Int
    ) async throws -> (rows: [OutboxView], next: Int64?) {
        // The store has the state `queued` for rows in flight; only the scheduler knows which rows are `sending`.
        let filter = OutboxFilter(
            peer: peer, states: states.map { wanted in Set(wanted.map { $0 == .sending ? .queued : $0 }) },
            offeredAt: offered ? store.clock.now : nil)
        await finishWriting()
        let live = deliveries.rowsInFlight
        var cursor = after
        while true {
            let (page, files) = try await store.read { [cursor] reader in
                let page = try reader.outboxPage(filter, newestFirst: newestFirst, limit: limit, after: cursor ?? 0)
                return (page, try reader.outboxFiles(page.items.map(\.id)))
            }
            var views = page.items.map { view(of: $0, files[$0.id], isSending: live.contains($0.id)) }
                .filter { (states?.contains($0.state) ?? true) || offered && $0.state == .stored }
            guard views.isEmpty, let next = page.next else {
                let labels = labels(of: views.map(\.peer))
                for index in views.indices { views[index].tag = labels[views[index].peer].map(PeerSummary.init) }
                return (views, page.next)
            }
            cursor = next
        }
    }

    /// Waits until pending writes are committed, so that a following read contains all results of which callers were notified. The wait is
    /// bounded by `time`, because a disk may hang.
    public func finishWriting(within time: TimeAmount = .milliseconds(200)) async {
        _ = await eventLoop.within(time, otherwise: ()) { done in store.finishWriting { done(()) } }
    }

    /// Returns a row with its hex and its offered files.
    /// - Throws: `HexlistError` `notFound`.
    public func row(_ id: Int64) async throws -> OutboxView {
        await finishWriting()
        guard let row = try await store.read({ try $0.outboxRow(id) }) else { throw HexlistError.noOutboxRow(id) }
        let (offers, files, body) = try await store.read { (try $0.offers(ofRow: id), try $0.outboxFiles([id])[id], try $0.outboxBody(id)) }
        var view = view(of: row, files, isSending: deliveries.rowsInFlight.contains(id))
        view.hex = body.flatMap { try? JSONValue(parsing: $0) }
        if !offers.isEmpty {
            let problems = try await node?.transfers.offers.problems(of: offers.map { ($0.path, $0.identity) }) ?? []
            let times = times
            view.offers = zip(offers, problems).map { offer, problem in
                let ends = Timestamp(milliseconds: times.milliseconds(of: store.clock.instant(of: offer.ends)))
                return OutboxOffer(name: offer.name, size: offer.size, ends: ends, problem: problem, fetched: offer.isFetched)
            }
        }
        view.tag = labels(of: [row.peer])[row.peer].map(PeerSummary.init)
        return view
    }

    /// Retries a row now. A failed or rejected row is queued again.
    /// - Throws: `HexlistError` `notFound`, or `badRequest` for a completed row.
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

    /// Cancels a row. A delivered row stays delivered; only its file offers end.
    /// - Returns: the row, with `mayHaveArrived` if it was in flight.
    public func cancel(_ id: Int64) async throws -> OutboxView {
        let change = try await cancel(.ids([id]))
        var row = try await self.row(id)
        row.mayHaveArrived = change.mayHaveArrived > 0
        return row
    }

    /// Notifies the scheduler of rows that are queued again by the user.
    /// - Parameter rows: the rows before the change.
    private func rowsQueuedAgain(_ rows: [OutboxRow]) {
        let moves = rows.filter { $0.state != .queued }.map { OutboxStateChange(id: $0.id, peer: $0.peer, from: $0.state, to: .queued) }
        deliveries.retried(moves, of: Set(rows.map(\.peer)), self)
        outboxChanged()
    }

    // MARK: Several rows

    /// The result of a change of many rows.
    public struct OutboxChange: Sendable, Equatable {
        public var changed = 0
        /// The number of cancelled rows that are or were in flight.
        public var mayHaveArrived = 0
        /// The number of rows that were given by id and whose state does not permit the change.
        public var passedOver = 0
        /// The row after which to continue; `nil` if all were changed.
        public var next: Int64?
    }

    /// Retries rows now. Delivered, cancelled and expired rows are skipped.
    /// - Throws: `HexlistError` `notFound` if a row given by id does not exist; nothing is changed then.
    public func retry(_ selection: OutboxSelection) async throws -> OutboxChange {
        let changed = try await store.retry(selection, lifetime: outboxLifetime)
        rowsQueuedAgain(changed.rows)
        return OutboxChange(changed: changed.rows.count, passedOver: changed.passedOver, next: changed.next)
    }

    /// Cancels the undelivered ones of the rows given by id, or the queued rows of a peer. Of delivered rows given by id, only the file
    /// offers end.
    /// - Throws: `HexlistError` `notFound` if a row given by id does not exist; nothing is changed then.
    public func cancel(_ selection: OutboxSelection) async throws -> OutboxChange {
        let live = deliveries.rowsInFlight
        let changed = try await store.cancel(selection, at: clocks.milliseconds)
        let rows = changed.rows
        let arrived = live.union(deliveries.rowsInFlight)
        let mayHaveArrived = rows.count { arrived.contains($0.id) || $0.attempts > 0 || isPosted($0.id, for: $0.peer) }
        node?.transfers.offers.tidyCopies()
        // Reloads the records, so that the directory stops probing for devices that have no more rows.
        node?.onLoop { if !$0.devices.waiting.isEmpty { $0.registry.reloadSoon($0) } }
        withdraw(from: Set(rows.map(\.peer)))
        deliveries.cancelled(rows.map { OutboxStateChange(id: $0.id, peer: $0.peer, from: $0.state, to: .cancelled) })
        outboxChanged()
        return OutboxChange(
            changed: rows.count, mayHaveArrived: mayHaveArrived, passedOver: changed.passedOver, next: changed.next)
    }

    private func view(of row: OutboxRow, _ files: OutboxFilesRow?, isSending: Bool) -> OutboxView {
        let isSending = row.state == .queued && isSending
        var view = OutboxView(
            outboxID: row.id, messageID: row.messageID, peer: row.peer, subject: row.subject, state: isSending ? .sending : row.state,
            attempts: row.attempts, lastError: row.lastError, code: row.code, message: row.message,
            createdAt: Timestamp(milliseconds: row.createdAt), bytes: row.bytes)
        view.files = files.map { OutboxFiles($0, of: row.state, now: store.clock.now) }
        guard row.state == .queued, !isSending else { return view }
        let wait = deliveries.wait(of: row.peer, bytes: row.bytes, self)
        (view.waitingFor, view.nextAttemptAt) = (
            ForwardCompatibleEnum(wait.reason), wait.until.map { Timestamp(milliseconds: times.milliseconds(of: $0)) }
        )
        switch route(of: row.id, for: row.peer, wait.reason) {
        case .posted(let posting)?:
            view.waitingFor = ForwardCompatibleEnum(.receipt)
            (view.via, view.posts) = (posting.route, posting.posts)
            view.postedAt = Timestamp(milliseconds: posting.file.postedAt)
        case .unposted(let text)?:
            view.waitingFor = ForwardCompatibleEnum(.route)
            view.lastError = text
        case nil: break
        }
        return view
    }

    /// Withdraws the envelopes to these peers whose rows are not queued any more.
    private func withdraw(from peers: Set<PeerID>) {
        node?.assumeIsolated { $0.routes.sender.cancelled(for: peers, $0) }
    }

    /// Whether an envelope with the row was posted, so that the peer may have it.
    func isPosted(_ row: Int64, for peer: PeerID) -> Bool {
        node?.assumeIsolated { node in
            if case .posted? = node.routes.sender.state(of: row, for: peer, node) { true } else { false }
        } ?? false
    }

    private enum RouteState {
        case posted(PostedEnvelopes.Posting)
        /// The reasons why the row could not be posted on any route, as a text.
        case unposted(String)
    }

    /// The state of a row on the routes; `nil` if its peer is not away, or if the row was not posted and no route reports a reason.
    private func route(of row: Int64, for peer: PeerID, _ wait: OutboxWaitReason) -> RouteState? {
        guard wait == .peer else { return nil }
        return node?.assumeIsolated { node -> RouteState? in
            switch node.routes.sender.state(of: row, for: peer, node) {
            case .posted(let posting)?: return .posted(posting)
            case .unposted(let obstacles)? where !obstacles.isEmpty:
                let name = node.peerList.text(of: peer)
                return .unposted(obstacles.map { "\($0.route): \($0.obstacle.text(of: name))" }.joined(separator: "; "))
            case .unposted?, nil: return nil
            }
        }
    }

    /// Adds to the outcomes of a single hex the reasons why queued rows wait.
    /// - Parameter bytes: the size of the hex.
    func addWaits(to outcomes: inout [SendOutcome], bytes: Int) {
        guard outcomes.contains(where: { $0.state == .queued }) else { return }  // `rowsInFlight` is costly
        let live = deliveries.rowsInFlight
        for index in outcomes.indices where outcomes[index].state == .queued && !live.contains(outcomes[index].outboxID) {
            let wait = deliveries.wait(of: outcomes[index].peer, bytes: bytes, self)
            (outcomes[index].waitingFor, outcomes[index].nextAttemptAt) = (
                ForwardCompatibleEnum(wait.reason), wait.until.map { Timestamp(milliseconds: times.milliseconds(of: $0)) }
            )
            switch route(of: outcomes[index].outboxID, for: outcomes[index].peer, wait.reason) {
            case .posted(let posting)?:
                outcomes[index].waitingFor = ForwardCompatibleEnum(.receipt)
                (outcomes[index].via, outcomes[index].postedAt) = (posting.route, Timestamp(milliseconds: posting.file.postedAt))
            case .unposted(let text)?:
                (outcomes[index].waitingFor, outcomes[index].message) = (ForwardCompatibleEnum(.route), text)
            case nil: break
            }
        }
    }
}
