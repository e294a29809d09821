import HeapModule
import HexlistDelivery
import HexlistEnvelope
import HexlistEventLoop
import HexlistModel
import HexlistStore
import HexlistWire
import Logging

/// Posts the queued rows for trusted peers that are away, on the routes that are used for them.
///
/// A posted row stays queued until the peer's receipt, so a session that opens meanwhile delivers it as well, and the first result counts.
/// Confined to the event loop of its node; that makes it `Sendable`. At most `concurrentPeers` peers are handled at once, each with one
/// step at a time.
final class RouteSender: @unchecked Sendable {
    private static let concurrentPeers = 4
    /// The pause between two checks of a peer with postings.
    private static let interval = Duration.seconds(300)
    /// The pauses after rows could not be posted.
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(300))
    /// Maximum number of rows, and maximum bytes of their bodies, that are read and posted in one step.
    private static let stepRows = 4_096
    private static let stepBytes = 4 << 20

    private let times: NodeConfiguration.Routes
    private let startedAt: ContinuousClock.Instant
    private let timer: DeadlineTimer
    /// The instants at which the last sessions with peers ended, since the start.
    private var awaySince: [PeerID: ContinuousClock.Instant] = [:]
    private var postings: [PeerID: PostedEnvelopes] = [:]
    /// Rows to be posted once more, with the number of earlier posts.
    private var repeated: [PeerID: [(rows: [ClosedRange<Int64>], posts: Int)]] = [:]
    private(set) var conflicts = RouteConflicts()
    /// The reasons why rows of a peer could not be posted in the last attempt, by route.
    private var obstacles: [PeerID: [(route: String, obstacle: RouteObstacle)]] = [:]
    /// The reasons found by the attempts in progress. `finish` moves them to `obstacles`.
    private var attempts: [PeerID: [(route: String, obstacle: RouteObstacle)]] = [:]
    private var failures: [PeerID: Int] = [:]
    /// The numbers of receipts of a peer that were applied to its postings since the start.
    private struct AppliedReceiptCounts {
        var all = 0
        /// The receipts whose results are not in the store yet. Their rows are still queued there.
        var unstored = 0
    }

    private var settlements: [PeerID: AppliedReceiptCounts] = [:]
    /// The peers that may have unposted rows before their last posted row, so that their rows are read from the beginning.
    private var gaps: Set<PeerID> = []
    /// The instants at which peers are handled next.
    private var due: [PeerID: ContinuousClock.Instant] = [:]
    /// An instant at which a peer is handled; outdated if `due` has another one or none.
    private struct DuePeer: Comparable {
        var instant: ContinuousClock.Instant
        var peer: PeerID

        static func < (one: DuePeer, other: DuePeer) -> Bool { (one.instant, one.peer) < (other.instant, other.peer) }
    }

    /// The instants of `due` in ascending order, and outdated ones. `work` skips those of active peers, and `finish` inserts them again.
    private var dueInOrder = Heap<DuePeer>()
    private var active: Set<PeerID> = []

    init(_ times: NodeConfiguration.Routes, startedAt: ContinuousClock.Instant, on timer: DeadlineTimer) {
        self.times = times
        self.startedAt = startedAt
        self.timer = timer
    }

    /// The prefix of the metadata keys in the store for the postings of an identity. The recipient's UUID follows.
    private static func postingsPrefix(_ own: PeerID) -> String { "postings.\(own)." }

    /// The prefix of the metadata keys in the store for the boot nonces in letters. The UUID of the letters' sender follows.
    private static let bootsPrefix = "boots."

    /// The state that earlier runs of the daemon stored.
    struct Stored: Sendable {
        var postings: [PeerID: PostedEnvelopes] = [:]
        var conflicts = RouteConflicts()
    }

    /// Reads the state that earlier runs of the daemon stored.
    static func stored(_ reader: StoreReader, of own: PeerID, for peers: Set<PeerID>) throws -> Stored {
        var postings: [PeerID: PostedEnvelopes] = [:]
        var boots: [PeerID: RouteConflicts.Entry] = [:]
        func forEachPeer(_ prefix: String, _ body: (PeerID, String) -> Void) throws {
            for (name, text) in try reader.meta(withPrefix: prefix) {
                if let peer = PeerID(name), peers.contains(peer) { body(peer, text) }
            }
        }
        try forEachPeer(postingsPrefix(own)) { postings[$0] = PostedEnvelopes(text: $1) }
        try forEachPeer(bootsPrefix) { boots[$0] = RouteConflicts.Entry(text: $1) }
        return Stored(postings: postings, conflicts: RouteConflicts(boots))
    }

    func start(_ stored: Stored, _ node: isolated Node) {
        (postings, conflicts) = (stored.postings, stored.conflicts)
        gaps = Set(postings.keys)
        everyone(at: startedAt + times.startTime, node)
    }

    func stop() { timer.cancel() }

    // MARK: Events

    /// Handles the end of the last session with a peer.
    func peerWent(_ peer: PeerID, _ node: isolated Node) {
        guard node.registry.isTrusted(peer) else { return }
        awaySince[peer] = node.clocks.now
        schedule(peer, at: node.clocks.now + times.awayTime, node)
    }

    /// Schedules posting of newly queued rows.
    /// - Parameter again: the peers with older rows that are queued again.
    func queued(for peers: [PeerID], again: [PeerID], _ node: isolated Node) {
        gaps.formUnion(again.filter { postings[$0] != nil })
        for peer in peers { schedule(peer, at: node.clocks.now + times.batchTime, node) }
    }

    /// Withdraws the envelopes to these peers whose rows are not queued any more, at once: a peer must not read hexes that were cancelled.
    func cancelled(for peers: Set<PeerID>, _ node: isolated Node) {
        for peer in peers where postings[peer] != nil { schedule(peer, at: node.clocks.now, node) }
    }

    /// Schedules all trusted peers, and other peers with postings, for example after a change of routes.
    func everyone(at instant: ContinuousClock.Instant, _ node: isolated Node) {
        for record in node.registry.all where record.trust == .trusted || postings[record.peer] != nil {
            schedule(record.peer, at: instant, node)
        }
    }

    private func schedule(_ peer: PeerID, at instant: ContinuousClock.Instant, _ node: isolated Node) {
        guard !node.routes.all.isEmpty, due[peer].map({ instant < $0 }) ?? true else { return }
        due[peer] = instant
        // Outdated instants remain until they have passed.
        if dueInOrder.count > 2 * due.count + 1_024 { dueInOrder = Heap(due.map { DuePeer(instant: $0.value, peer: $0.key) }) }
        dueInOrder.insert(DuePeer(instant: instant, peer: peer))
        timer.set(instant, node) { [weak self] in self?.work($0) }
    }

    // MARK: For callers

    /// The state of a queued row whose peer is away.
    enum PostingState {
        /// Posted, and without a receipt.
        case posted(PostedEnvelopes.Posting)
        /// Not posted. The reasons by route; empty if there was no attempt yet.
        case unposted([(route: String, obstacle: RouteObstacle)])
    }

    /// The state of a queued row.
    /// - Returns: `nil` if no route is used for the peer.
    func state(of row: Int64, for peer: PeerID, _ node: isolated Node) -> PostingState? {
        if let posting = postings[peer]?.posting(of: row) { return .posted(posting) }
        guard node.registry.isTrusted(peer), !node.routes.routes(for: peer, node).isEmpty else { return nil }
        if let route = conflict(of: peer, node) { return .unposted([(route, .conflict)]) }
        return .unposted(obstacles[peer] ?? [])
    }

    /// Whether rows of a peer are being posted, or will be within `batchTime`. `false` after a failure.
    func isPosting(for peer: PeerID, _ node: isolated Node) -> Bool {
        guard failures[peer] == nil, isAway(peer, node), !node.routes.routes(for: peer, node).isEmpty else { return false }
        return active.contains(peer) || due[peer].map { $0 <= node.clocks.now + times.batchTime } ?? false
    }

    /// The route on which two machines post with the identity of a peer; `nil` if one machine does.
    func conflict(of peer: PeerID, _ node: isolated Node) -> String? { conflicts.route(of: peer, now: node.clocks.milliseconds) }

    /// The peers with envelopes on a route that have no receipt yet.
    func waiting(on route: String) -> [(peer: PeerID, envelopes: Int, bytes: Int)] {
        postings.compactMap { peer, postings in
            let own = postings.all.filter { $0.isOn(route) }
            return own.isEmpty ? nil : (peer, own.count, own.reduce(0) { $0 + $1.bytes })
        }
    }

    // MARK: Letters of peers

    /// Deletes the boot nonces of a peer whose record the user deleted.
    func forget(_ peer: PeerID, _ node: isolated Node) {
        conflicts.forget(peer)
        keepBoots(of: peer, node)
    }

    private func keepBoots(of peer: PeerID, _ node: isolated Node) {
        node.store.setMeta(Self.bootsPrefix + peer.description, conflicts.text(of: peer)) { [logger = node.logger] result in
            if case .failure(let error) = result { logger.warning("boot nonces could not be recorded", metadata: ["error": "\(error)"]) }
        }
    }

    /// Records the boot nonce of the daemon that signed a letter, to detect identity conflicts.
    func record(_ arrival: OpenedEnvelope, on route: String, _ node: isolated Node) {
        let peer = arrival.sender.peerID
        let change = conflicts.record(
            arrival.boot, of: peer, signedAt: arrival.signedAt, on: route, now: node.clocks.milliseconds)
        guard change != .none else { return }
        keepBoots(of: peer, node)
        guard change == .conflict else { return }
        node.logger.warning("two machines post letters with one identity", metadata: ["peer.id": "\(peer)", "route": "\(route)"])
        node.events.record(.conflictIdentity, peer: peer, data: ["route": route], from: .peerPresence(of: peer), node)
        node.notifyWatchers()
    }

    /// Handles a receipt in a letter. A receipt for an envelope that was not posted to the letter's sender is ignored.
    func settle(_ envelope: Envelope.ID, _ receipt: Receipt, of peer: PeerID, _ node: isolated Node) {
        guard let results = postings[peer]?.settle(envelope, receipt), !results.isEmpty else { return }
        keepPostings(of: peer, node)
        settlements[peer, default: AppliedReceiptCounts()].all += 1
        settlements[peer, default: AppliedReceiptCounts()].unstored += 1
        node.store.settle(results, of: peer, next: nil, at: node.clocks.milliseconds, isAwaited: true) { [weak self, weak node] result in
            node?.onLoop { [weak self] node in
                self?.settlements[peer]?.unstored -= 1
                // Continues posting, which pauses while results are not in the store.
                self?.schedule(peer, at: node.clocks.now, node)
                switch result {
                case .success(let moves): node.deliver { deliveries, _ in deliveries.sends.moved(moves) }
                case .failure(let error):
                    // The rows stay queued. They are posted again, and the peer recognises the duplicates.
                    node.logger.error("receipts could not be recorded", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
                }
                node.outbox.outboxChanged()
            }
        }
    }

    // MARK: Work

    private func work(_ node: isolated Node) {
        guard !node.isStopping else { return }
        let now = node.clocks.now
        while active.count < Self.concurrentPeers, let next = dueInOrder.min, next.instant <= now {
            dueInOrder.removeMin()
            guard due[next.peer] == next.instant, !active.contains(next.peer) else { continue }
            due[next.peer] = nil
            active.insert(next.peer)
            tidy(next.peer, node)
        }
        guard active.count < Self.concurrentPeers, let next = dueInOrder.min else { return }  // `finish` calls `work` again
        timer.set(next.instant, node) { [weak self] in self?.work($0) }
    }

    /// Ends the work for a peer, and schedules its next check or attempt.
    /// - Parameter retry: whether rows could not be posted, so that they are retried soon.
    private func finish(_ peer: PeerID, retry: Bool, _ node: isolated Node) {
        active.remove(peer)
        if let instant = due[peer] { dueInOrder.insert(DuePeer(instant: instant, peer: peer)) }
        let found = attempts.removeValue(forKey: peer)
        obstacles[peer] = retry ? found : nil
        failures[peer] = retry ? (failures[peer] ?? 0) + 1 : nil
        if retry {
            schedule(peer, at: node.clocks.now + Self.backoff.pause(after: failures[peer] ?? 1), node)
        } else if postings[peer] != nil {
            schedule(peer, at: node.clocks.now + Self.interval, node)
        }
        node.outbox.outboxChanged()
        node.wakeWaiters()
        // Handles other peers that are due. In the next tick, because `work` may have called this method.
        if !due.isEmpty { timer.set(node.clocks.now, node) { [weak self] in self?.work($0) } }
    }

    /// Whether letters may be posted to the peer now: it is trusted, has neither a session nor a conflict, and counts as away.
    private func isAway(_ peer: PeerID, _ node: isolated Node) -> Bool {
        let now = node.clocks.now
        guard let record = node.registry[peer], record.trust == .trusted, record.fingerprint != nil, node.sessions(with: peer).isEmpty,
            !node.isInConflict(with: peer), conflict(of: peer, node) == nil
        else { return false }
        return now >= countsAsAway(peer)
    }

    /// The instant from which a peer without a session counts as away.
    private func countsAsAway(_ peer: PeerID) -> ContinuousClock.Instant {
        awaySince[peer].map { $0 + times.awayTime } ?? startedAt + times.startTime
    }

    /// Removes the postings whose rows are no longer queued and withdraws their envelopes, then finds the rows to be posted again.
    private func tidy(_ peer: PeerID, _ node: isolated Node) {
        guard let known = postings[peer] else { return post(to: peer, node) }
        let isTrusted = node.registry.isTrusted(peer)
        node.store.submitRead({ reader in
            // If the peer is no longer trusted, all its postings end.
            try known.all.filter { try !isTrusted || !reader.hasQueuedRows($0.rows, of: peer) }.map(\.file)
        }) { [weak self, weak node] result in
            node?.onLoop { [weak self] node in
                guard let self, !node.isStopping else { return }
                self.withdraw(Set((try? result.get()) ?? []), from: peer, node)
                self.findOverdue(peer, node.routes.all[...], present: [], node)
            }
        }
    }

    private func withdraw(_ files: Set<EnvelopeFileName>, from peer: PeerID, _ node: isolated Node) {
        guard !files.isEmpty, let over = postings[peer]?.all.filter({ files.contains($0.file) }) else { return }
        postings[peer]?.remove(files)
        keepPostings(of: peer, node)
        for route in node.routes.all { route.withdraw(over.filter { $0.isOn(route.name) }.map(\.file), of: peer, node) }
    }

    /// Asks each route which overdue envelopes are still in the peer's mailbox.
    private func findOverdue(_ peer: PeerID, _ routes: ArraySlice<any Route>, present: Set<EnvelopeFileName>, _ node: isolated Node) {
        var routes = routes
        let overdue = postings[peer]?.overdue(at: node.clocks.milliseconds) ?? []
        while let route = routes.popFirst() {
            let files = overdue.filter { $0.isOn(route.name) }.map(\.file)
            guard !files.isEmpty else { continue }
            return route.present(files, of: peer, node) { [weak self, routes] found, node in
                self?.findOverdue(peer, routes, present: present.union(found), node)
            }
        }
        let again = postings[peer]?.takeOverdue(at: node.clocks.milliseconds, present: present) ?? []
        if !again.isEmpty {
            repeated[peer, default: []] += again
            keepPostings(of: peer, node)
        }
        post(to: peer, node)
    }

    private func post(to peer: PeerID, _ node: isolated Node) {
        guard isAway(peer, node) else {
            // Rows that were to be posted again are before the last posted row, so they are a gap.
            if repeated.removeValue(forKey: peer) != nil { gaps.insert(peer) }
            // If the peer counts as away already, the reason is an identity conflict, which may end.
            if node.registry.isTrusted(peer), node.sessions(with: peer).isEmpty {
                let (now, start) = (node.clocks.now, countsAsAway(peer))
                schedule(peer, at: now < start ? start : now + Self.interval, node)
            }
            return finish(peer, retry: false, node)
        }
        post(
            to: peer, on: node.routes.routes(for: peer, node)[...],
            after: repeated[peer] == nil && !gaps.contains(peer) ? postings[peer]?.lastRow ?? 0 : 0, node)
    }

    /// Posts the rows after `row` on the first route that accepts them.
    private func post(to peer: PeerID, on routes: ArraySlice<any Route>, after row: Int64, _ node: isolated Node) {
        guard let route = routes.first else {
            if repeated.removeValue(forKey: peer) != nil { gaps.insert(peer) }
            return finish(peer, retry: attempts[peer] != nil, node)
        }
        let hasRoom = postings[peer]?.hasRoom(on: route.name) ?? true
        if let obstacle = route.fault.map({ RouteObstacle.fault($0) }) ?? (hasRoom ? nil : .full) {
            attempts[peer, default: []].append((route.name, obstacle))
            return post(to: peer, on: routes.dropFirst(), after: row, node)
        }
        let settlements = settlements[peer] ?? AppliedReceiptCounts()
        // While results are being written, the store still lists their rows as queued. `settle` schedules the peer again after the write.
        guard settlements.unstored == 0 else { return finish(peer, retry: false, node) }
        let longest = route.payloadBytes - 4 - ProtocolLimits.wrapperBytes
        node.store.nextBatch(for: peer, after: row, limit: Self.stepRows, maxBytes: Self.stepBytes, longest: longest) {
            [weak self, weak node] result in
            node?.onLoop { [weak self] node in
                guard let self, !node.isStopping else { return }
                // Rows may have been settled after the store was read.
                guard self.settlements[peer]?.all ?? 0 == settlements.all else { return self.finish(peer, retry: false, node) }
                guard case .success(let batch) = result, let last = batch.items.last?.id, let key = node.registry[peer]?.fingerprint else {
                    return self.postedAll(peer, on: route, node)
                }
                let posted = self.postings[peer] ?? PostedEnvelopes()
                let rows = row >= posted.lastRow ? batch.items : batch.items.filter { posted.posting(of: $0.id) == nil }
                self.post(rows, to: key, on: route, node) { [weak self] obstacle, node in
                    guard let self else { return }
                    guard self.isAway(peer, node) else { return self.finish(peer, retry: false, node) }
                    if let obstacle {
                        self.attempts[peer, default: []].append((route.name, obstacle))
                        return self.post(to: peer, on: routes.dropFirst(), after: row, node)
                    }
                    guard batch.hasMore else { return self.postedAll(peer, on: route, node) }
                    self.post(to: peer, on: routes, after: last, node)
                }
            }
        }
    }

    /// Ends posting after the last row was handled on `route`. Rows that are too long for it stay a gap if a failed route would take them.
    private func postedAll(_ peer: PeerID, on route: any Route, _ node: isolated Node) {
        repeated[peer] = nil
        // A route that failed may take longer hexes, which were left out.
        let failed = attempts[peer]?.compactMap { node.routes.reader($0.route)?.route } ?? []
        if failed.contains(where: { $0.payloadBytes > route.payloadBytes }) { gaps.insert(peer) } else { gaps.remove(peer) }
        finish(peer, retry: false, node)
    }

    private func post(
        _ rows: [OutgoingHex], to key: Fingerprint, on route: any Route, _ node: isolated Node,
        then completion: @escaping @Sendable (RouteObstacle?, isolated Node) -> Void
    ) {
        let peer = key.peerID
        guard !rows.isEmpty else { return completion(nil, node) }
        let earlier = repeated[peer]?.filter { part in rows.contains { hex in part.rows.contains { $0.contains(hex.id) } } } ?? []
        let posts = (earlier.map(\.posts).max() ?? 0) + 1
        let all = LetterContents.letters(
            rows.map { (key: $0.id, frames: [LetterContents.frame($0)]) }, payloadBytes: route.payloadBytes)
        let letters = Array(all.prefix(postings[peer]?.room(on: route.name) ?? PostedEnvelopes.maximumEnvelopes))
        route.post(letters.map { $0.flatMap(\.frames) }, to: key, card: node.registry.card(of: peer), node) { [weak self] result, node in
            guard let self else { return }
            for (index, part) in letters.enumerated() {
                guard let (file, bytes) = result.posted[index] else { continue }
                var ranges: [ClosedRange<Int64>] = []
                for (row, _) in part { ranges.append(row: row) }
                postings[peer, default: PostedEnvelopes()].add(
                    PostedEnvelopes.Posting(file: file, rows: ranges, bytes: bytes, posts: posts, route: route.name))
                node.routes.reader(route.name)?.counters.posted(at: node.clocks.milliseconds)
                node.metrics.envelopePosted()
            }
            // The letters are numbered from 0: an index of at least the count means that a letter before it was not posted.
            if result.posted.keys.contains(where: { $0 >= result.posted.count }) { gaps.insert(peer) }
            if !result.posted.isEmpty {
                keepPostings(of: peer, node)
                node.logger.info(
                    "letters posted",
                    metadata: ["peer.id": "\(peer)", "route": "\(route.name)", "count": "\(result.posted.count)"])
            }
            completion(result.obstacle ?? (letters.count < all.count ? .full : nil), node)
        }
    }

    /// Records the postings for the next start. If this write is lost, the rows are posted once more, and the peer recognises the
    /// duplicates.
    private func keepPostings(of peer: PeerID, _ node: isolated Node) {
        if postings[peer]?.all.isEmpty ?? false { postings[peer] = nil }
        let text = postings[peer]?.text
        node.store.setMeta(Self.postingsPrefix(node.id) + peer.description, text) { [logger = node.logger] result in
            if case .failure(let error) = result { logger.warning("postings could not be recorded", metadata: ["error": "\(error)"]) }
        }
    }
}
