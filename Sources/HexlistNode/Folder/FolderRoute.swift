import HexlistDelivery
import HexlistEnvelope
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import HexlistSystem
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// Delivers hexes to trusted peers that are away, through mailboxes in one shared folder (Docs/Protocol.md, "Envelopes").
///
/// A posted row stays queued until the peer's receipt, so a session that opens meanwhile delivers it as well, and the first result counts.
/// Confined to the event loop of its node. `work` reads this machine's mailbox, and then posts the rows that wait for peers that are away.
/// One `work` runs at a time. Files are read and written on the file threads.
final class FolderRoute {
    /// The pause between two rounds without an event, for folders whose changes the kernel does not report.
    private static let interval = Duration.seconds(300)
    /// The pause after a failure.
    private static let retryTime = Duration.seconds(60)
    /// The time after which a receipt that cannot be posted is abandoned. The sender then posts its rows again.
    private static let receiptTime = Duration.seconds(600)
    /// The time after an identity conflict during which no letters are posted to the peer.
    private static let conflictTime = Duration.seconds(24 * 3_600)

    private let mailbox: Mailbox
    private let times: NodeConfiguration.Mailbox
    private let startedAt: ContinuousClock.Instant
    private let timer: DeadlineTimer
    private var watch: FolderWatch?
    private var isWorking = false
    /// Whether `work` was called while it ran, so that it runs again.
    private var isDue = false
    /// The instants at which the last sessions with peers ended, since the start.
    private var awaySince: [PeerID: ContinuousClock.Instant] = [:]
    private var postings: [PeerID: PostedEnvelopes] = [:]
    /// Rows to be posted once more, with the number of earlier posts.
    private var repeated: [PeerID: [(rows: [ClosedRange<Int64>], posts: Int)]] = [:]
    private var boots: [PeerID: BootHistory] = [:]
    private var conflicts: [PeerID: ContinuousClock.Instant] = [:]
    /// The files of envelopes whose receipt could not be posted, with the instant of the first failure.
    private var unanswered: [String: ContinuousClock.Instant] = [:]

    /// - Parameter path: an absolute path.
    /// - Throws: an error of the cryptographic library.
    init(
        path: String, _ times: NodeConfiguration.Mailbox, identity: Identity, boot: BootNonce, on eventLoop: any EventLoop, _ clocks: Clocks
    ) throws {
        mailbox = try Mailbox(path: path, identity: identity, boot: boot)
        self.times = times
        startedAt = clocks.now
        timer = DeadlineTimer(on: eventLoop, clocks)
    }

    /// The key of the postings from an identity to a peer, in the store's metadata.
    private static func metaKey(_ own: PeerID, _ peer: PeerID) -> String { "postings.\(own).\(peer)" }

    /// Restores the postings of earlier runs and begins to work.
    func start(_ postings: [PeerID: PostedEnvelopes], _ node: isolated Node) {
        self.postings = postings
        work(node)
        timer.set(startedAt + times.startTime, node) { $0.folderRoute?.work($0) }
    }

    func stop() {
        timer.cancel()
        watch?.cancel()
    }

    // MARK: Events

    /// Handles the end of the last session with a peer.
    func peerWent(_ peer: PeerID, _ node: isolated Node) {
        guard node.registry.isTrusted(peer) else { return }
        awaySince[peer] = node.clocks.now
        timer.set(node.clocks.now + times.awayTime, node) { $0.folderRoute?.work($0) }
    }

    /// Schedules `work`, after rows were queued or a file arrived.
    func somethingCame(_ node: isolated Node) {
        timer.set(node.clocks.now + times.batchTime, node) { $0.folderRoute?.work($0) }
    }

    // MARK: Reading

    private func work(_ node: isolated Node) {
        guard !node.isStopping else { return }
        guard !isWorking else { return isDue = true }
        isWorking = true
        if watch == nil {
            watch = try? FolderWatch.additions(in: mailbox.ownPath) { [weak node] in node?.onLoop { $0.folderRoute?.somethingCame($0) } }
        }
        read(node)
    }

    private func finish(after pause: Duration, _ node: isolated Node) {
        isWorking = false
        let now = node.clocks.now
        let pause = isDue ? times.batchTime : pause
        isDue = false
        // The timer has fired and has only one deadline, so the instants from which peers count as away have to be set again.
        let ends = [startedAt + times.startTime] + awaySince.values.map { $0 + times.awayTime }
        timer.set(ends.filter { $0 > now }.reduce(now + pause, min), node) { $0.folderRoute?.work($0) }
    }

    private func read(_ node: isolated Node) {
        // While another machine uses this machine's identity, the mailbox is not read, because it belongs to both.
        guard !node.isInConflict(with: node.id) else { return finish(after: Self.retryTime, node) }
        var trusts: [Fingerprint: Trust] = [:]
        for record in node.registry.all { if let key = record.fingerprint { trusts[key] = record.trust } }
        let now = node.clocks.milliseconds
        onThreads(node) { [mailbox, trusts] in
            try mailbox.arrivals(now: now) { trusts[$0] ?? .stranger }
        } then: { route, result, node in
            switch result {
            case .success(let arrivals): route.take(arrivals.letters[...], Round(arrivals), node)
            case .failure(let error):
                node.logger.warning("mailbox cannot be read", metadata: ["error": "\(error)"])
                route.finish(after: Self.retryTime, node)
            }
        }
    }

    /// The outcome of reading a part of the mailbox.
    private struct Round: Sendable {
        /// Whether there may be more envelopes.
        var hasMore: Bool
        /// The files to remove.
        var removals: [String]
        /// Receipts by sender, with the files that they answer.
        var receipts: [Fingerprint: [(file: String, frames: [[UInt8]])]] = [:]
        /// Whether the store refused a hex temporarily.
        var isDeferred = false

        init(_ arrivals: Mailbox.Arrivals) {
            hasMore = arrivals.hasMore
            removals = arrivals.removals
        }
    }

    private func take(_ letters: ArraySlice<Mailbox.Arrival>, _ round: Round, _ node: isolated Node) {
        var round = round
        var letters = letters
        while let arrival = letters.popFirst() {
            let peer = arrival.sender.peerID
            guard peer != node.id else {
                round.removals.append(arrival.file)
                continue
            }
            record(arrival, node)
            for (envelope, receipt) in arrival.contents.receipts { settle(envelope, receipt, of: peer, node) }
            guard arrival.contents.isReceiptOwed, node.registry[peer]?.receive != .nothing else {
                round.removals.append(arrival.file)
                continue
            }
            let sender = Sender(peer: peer, fingerprint: arrival.sender, name: node.registry[peer]?.name ?? "", address: "folder")
            return keep(arrival.contents.hexes[...], from: sender, [], node) { [round, letters] route, results, node in
                route.kept(arrival, results, letters, round, node)
            }
        }
        answer(round, node)
    }

    /// Stores hexes, in batches as large as those of a session.
    private func keep(
        _ hexes: ArraySlice<IncomingHex>, from sender: Sender, _ results: [DeliveryResult], _ node: isolated Node,
        then completion: @escaping @Sendable (FolderRoute, [DeliveryResult], isolated Node) -> Void
    ) {
        var rows = 0
        let batch = hexes.prefix { hex in
            rows += hex.rows
            return rows <= ProtocolLimits.batchRows || rows == hex.rows
        }
        guard !batch.isEmpty else { return completion(self, results, node) }
        node.keep(Array(batch), from: sender) { node, new in
            node.folderRoute?.keep(hexes.dropFirst(batch.count), from: sender, results + new, node, then: completion)
        }
    }

    private func kept(
        _ arrival: Mailbox.Arrival, _ results: [DeliveryResult], _ letters: ArraySlice<Mailbox.Arrival>, _ round: Round,
        _ node: isolated Node
    ) {
        var round = round
        if let receipts = arrival.contents.receipts(of: arrival.id, results) {
            round.receipts[arrival.sender, default: []].append((arrival.file, receipts.map { LetterContents.frame($0) }))
        } else {
            round.isDeferred = true
        }
        take(letters, round, node)
    }

    /// Records the boot nonce of the daemon that signed a letter, to detect identity conflicts.
    private func record(_ arrival: Mailbox.Arrival, _ node: isolated Node) {
        let peer = arrival.sender.peerID
        var history = boots[peer] ?? BootHistory(present: arrival.boot, since: arrival.signedAt)
        if history.record(arrival.boot, signedAt: arrival.signedAt) {
            conflicts[peer] = node.clocks.now + Self.conflictTime
            node.logger.warning("two machines post letters with one identity", metadata: ["peer.id": "\(peer)"])
        }
        boots[peer] = history
    }

    private func settle(_ envelope: Envelope.ID, _ receipt: Receipt, of peer: PeerID, _ node: isolated Node) {
        guard let results = postings[peer]?.settle(envelope, receipt), !results.isEmpty else { return }
        keepPostings(of: peer, node)
        node.store.settle(results, of: peer, next: nil, at: node.clocks.milliseconds, isAwaited: true) { [weak node] result in
            node?.onLoop { node in
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

    // MARK: Receipts

    /// Posts the receipts and removes the envelopes that they answer.
    private func answer(_ round: Round, _ node: isolated Node) {
        let now = node.clocks.milliseconds
        onThreads(node) { [mailbox] in
            var removals = round.removals
            var failed: [String] = []
            for (sender, answers) in round.receipts {
                for part in Mailbox.letters(answers.map { (key: $0.file, frames: $0.frames) }) {
                    let files = part.map(\.key)
                    let isPosted = (try? mailbox.post(part.flatMap(\.frames), to: sender, at: now)) ?? nil != nil
                    if isPosted { removals += files } else { failed += files }
                }
            }
            for file in removals { mailbox.remove(file) }
            return failed
        } then: { route, result, node in
            let failed = (try? result.get()) ?? []
            let abandoned = route.abandoned(failed, node)
            if !abandoned.isEmpty {
                route.onThreads(node) { [mailbox = route.mailbox] in
                    abandoned.forEach(mailbox.remove)
                } then: { _, _, _ in
                }
            }
            if round.hasMore, failed.isEmpty, !round.isDeferred { return route.read(node) }
            route.post(route.peersAway(node)[...], retries: !failed.isEmpty || round.isDeferred, node)
        }
    }

    /// - Returns: the files of envelopes whose receipt could not be posted for `receiptTime`.
    private func abandoned(_ failed: [String], _ node: isolated Node) -> [String] {
        let now = node.clocks.now
        unanswered = Dictionary(uniqueKeysWithValues: Set(failed).map { ($0, unanswered[$0] ?? now) })
        return unanswered.filter { now - $0.value >= Self.receiptTime }.map(\.key)
    }

    // MARK: Posting

    /// The trusted peers that have been away for long enough.
    private func peersAway(_ node: isolated Node) -> [PeerID] {
        let now = node.clocks.now
        return node.registry.all.filter { record in
            guard record.trust == .trusted, record.fingerprint != nil, node.sessions(with: record.peer).isEmpty,
                !node.isInConflict(with: record.peer), conflicts[record.peer].map({ $0 <= now }) ?? true
            else { return false }
            return now >= (awaySince[record.peer].map { $0 + times.awayTime } ?? startedAt + times.startTime)
        }.map(\.peer)
    }

    private func post(_ peers: ArraySlice<PeerID>, retries: Bool, _ node: isolated Node) {
        var peers = peers
        guard let peer = peers.popFirst() else { return finish(after: retries ? Self.retryTime : Self.interval, node) }
        let known = postings[peer] ?? PostedEnvelopes()
        let now = node.clocks.milliseconds
        onThreads(node) { [mailbox] in
            var postings = known
            let due = postings.due(at: now) { mailbox.contains($0, of: peer) }
            return (postings, due, mailbox.hasMailbox(peer))
        } then: { [peers] route, result, node in
            guard case .success(let (postings, due, hasMailbox)) = result else { return route.post(peers, retries: true, node) }
            // No other code changes the postings while `work` runs.
            route.postings[peer] = postings
            if !due.isEmpty { route.repeated[peer, default: []] += due }
            if postings != known { route.keepPostings(of: peer, node) }
            guard hasMailbox, !postings.isFull else { return route.post(peers, retries: retries, node) }
            route.load(for: peer, after: due.isEmpty && route.repeated[peer] == nil ? postings.lastRow : 0, then: peers, retries, node)
        }
    }

    private func load(for peer: PeerID, after row: Int64, then peers: ArraySlice<PeerID>, _ retries: Bool, _ node: isolated Node) {
        let longest = Letter.maximumPayloadBytes - 4 - ProtocolLimits.wrapperBytes
        node.store.nextBatch(for: peer, after: row, limit: 4_096, maxBytes: 4 << 20, longest: longest) { [weak node] result in
            node?.onLoop { node in
                guard let route = node.folderRoute else { return }
                guard case .success(let batch) = result, let last = batch.items.last?.id else {
                    route.repeated[peer] = nil
                    return route.post(peers, retries: retries, node)
                }
                let posted = route.postings[peer]?.all.flatMap(\.rows) ?? []
                let new = batch.items.filter { hex in !posted.contains { $0.contains(hex.id) } }
                route.post(new, to: peer, node) { route, isPosted, node in
                    let isDone = !isPosted || !batch.hasMore || route.postings[peer]?.isFull ?? false
                    guard isDone else { return route.load(for: peer, after: last, then: peers, retries, node) }
                    route.repeated[peer] = nil
                    route.post(peers, retries: retries || !isPosted, node)
                }
            }
        }
    }

    private func post(
        _ rows: [OutgoingHex], to peer: PeerID, _ node: isolated Node,
        then completion: @escaping @Sendable (FolderRoute, _ isPosted: Bool, isolated Node) -> Void
    ) {
        guard !rows.isEmpty, let key = node.registry[peer]?.fingerprint, node.sessions(with: peer).isEmpty else {
            return completion(self, rows.isEmpty, node)
        }
        let earlier = repeated[peer]?.filter { part in rows.contains { hex in part.rows.contains { $0.contains(hex.id) } } } ?? []
        let posts = (earlier.map(\.posts).max() ?? 0) + 1
        let now = node.clocks.milliseconds
        let room = PostedEnvelopes.maximumEnvelopes - (postings[peer]?.all.count ?? 0)
        onThreads(node) { [mailbox] in
            var posted: [PostedEnvelopes.Posting] = []
            for part in Mailbox.letters(rows.map { (key: $0.id, frames: [LetterContents.frame($0)]) }).prefix(room) {
                guard let file = try mailbox.post(part.flatMap(\.frames), to: key, at: now) else { return posted }
                var ranges: [ClosedRange<Int64>] = []
                for (row, _) in part { ranges.append(row: row) }
                posted.append(PostedEnvelopes.Posting(file: file.name, rows: ranges, bytes: file.bytes, posts: posts))
            }
            return posted
        } then: { route, result, node in
            let posted = (try? result.get()) ?? []
            if case .failure(let error) = result {
                node.logger.warning("letters cannot be posted", metadata: ["peer.id": "\(peer)", "error": "\(error)"])
            }
            for posting in posted { route.postings[peer, default: PostedEnvelopes()].add(posting) }
            if !posted.isEmpty {
                route.keepPostings(of: peer, node)
                node.logger.info("letters posted", metadata: ["peer.id": "\(peer)", "count": "\(posted.count)"])
            }
            completion(route, !posted.isEmpty, node)
        }
    }

    // MARK: Shell

    /// Records the postings for the next start. If this write is lost, the rows are posted once more, and the peer recognises the
    /// duplicates.
    private func keepPostings(of peer: PeerID, _ node: isolated Node) {
        let text = postings[peer]?.text ?? ""
        node.store.setMeta(Self.metaKey(node.id, peer), text.isEmpty ? nil : text) { [logger = node.logger] result in
            if case .failure(let error) = result { logger.warning("postings could not be recorded", metadata: ["error": "\(error)"]) }
        }
    }

    private func onThreads<Value: Sendable>(
        _ node: isolated Node, _ work: @escaping @Sendable () throws -> Value,
        then completion: @escaping @Sendable (FolderRoute, Result<Value, any Error>, isolated Node) -> Void
    ) {
        node.transport.fileThreads.run(on: node.eventLoop, work).whenComplete { [weak node] result in
            node?.assumeIsolated { node in
                guard let route = node.folderRoute, !node.isStopping else { return }
                completion(route, result, node)
            }
        }
    }
}

extension FolderRoute {
    /// The postings of earlier runs.
    static func postings(_ reader: StoreReader, of own: PeerID, for peers: [PeerID]) throws -> [PeerID: PostedEnvelopes] {
        var postings: [PeerID: PostedEnvelopes] = [:]
        for peer in peers { if let text = try reader.meta(metaKey(own, peer)) { postings[peer] = PostedEnvelopes(text: text) } }
        return postings
    }
}
