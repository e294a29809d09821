import HexlistEnvelope
import HexlistEventLoop
import HexlistModel
import HexlistStore
import HexlistWire
import Logging
import NIOCore

/// Reads this machine's mailbox on one route: stores the hexes of the envelopes, posts the receipts on the same route, and then removes the
/// envelopes. After a crash an envelope is read again, its hexes are duplicates, and the receipt is the same, so no other state is stored.
///
/// Confined to the event loop of its node; that makes it `Sendable`. One round runs at a time.
final class RouteReader: @unchecked Sendable {
    /// The pause between two rounds, so that a mailbox with any number of envelopes leaves time for other work.
    private static let roundPause = Duration.milliseconds(100)
    /// The delay of a round after an envelope arrived, so that envelopes that are delivered together share it.
    private static let arrivalDelay = Duration.milliseconds(10)
    /// The pauses after failed rounds.
    private static let backoff = Backoff(from: .seconds(1), to: .seconds(60))
    /// The time after which a receipt that cannot be posted is abandoned. The sender then posts its rows again.
    private static let receiptTime = Duration.seconds(600)

    let route: any Route
    private let times: NodeConfiguration.Routes
    private let timer: DeadlineTimer
    private var isWorking = false
    /// The results of the round in progress; empty until its envelopes are opened, and while receipts are posted.
    private var round = Round()
    /// Whether `work` was called during a round, so that another one follows.
    private var isDue = false
    /// The end of the last round; `nil` before the first.
    private var finishedAt: ContinuousClock.Instant?
    private var postponed = PostponedEnvelopes()
    /// The envelopes whose receipt could not be posted, with the instant of the first failure.
    private var unanswered: [String: ContinuousClock.Instant] = [:]
    private var tests = RouteTestLetters()
    /// The number of consecutive failures.
    private var failures = 0
    var counters = RouteCounters()

    init(_ route: any Route, _ times: NodeConfiguration.Routes, on timer: DeadlineTimer) {
        self.route = route
        self.times = times
        self.timer = timer
    }

    func start(_ node: isolated Node) {
        route.start(node)
        work(node)
    }

    func stop() {
        timer.cancel()
        route.stop()
        for completion in tests.endAll() { completion(RouteFault(text: "the route is not used any more")) }
    }

    /// Schedules a round after an envelope arrived. A single envelope is read at once. If many arrive, rounds are `batchTime` apart, so
    /// that envelopes share receipts.
    func envelopeArrived(_ node: isolated Node) {
        let soon = node.clocks.now + Self.arrivalDelay
        guard tests.isEmpty, let finishedAt else { return schedule(soon, node) }
        schedule(max(soon, finishedAt + times.batchTime), node)
    }

    /// Posts a letter to this machine, and waits until it is read and opened. Meanwhile the mailbox is read without `batchTime`.
    /// - Parameter completion: called once, with the fault if the test failed.
    func test(_ node: isolated Node, then completion: @escaping @Sendable (RouteFault?) -> Void) {
        let test = tests.begin(completion)
        let card = node.envelopes.card
        route.post([[]], to: card.fingerprint, card: card, node) { [weak self] result, node in
            guard let self else { return }
            guard let posted = result.posted[0] else {
                let text = result.obstacle.map { $0.text(of: "this machine") } ?? "it was not posted"
                tests.end(test)?(RouteFault(text: text))
                return
            }
            if let completion = tests.posted(test, as: posted.file.id) { return completion(nil) }
            work(node)
        }
        node.eventLoop.scheduleTask(in: TimeAmount(RouteTestLetters.time)) { [weak self] in
            self?.tests.end(test)?(RouteFault(text: "it was not read within \(RouteTestLetters.time.components.seconds) s"))
        }
    }

    // MARK: Rounds

    private func schedule(_ deadline: ContinuousClock.Instant, _ node: isolated Node) {
        timer.set(deadline, node) { [weak self] in self?.work($0) }
    }

    private func work(_ node: isolated Node) {
        guard !node.isStopping else { return }
        guard !isWorking else { return isDue = true }
        isWorking = true
        // While another machine uses this machine's identity, the mailbox is not read, because it belongs to both.
        guard !node.isInConflict(with: node.id) else { return finish(after: Self.backoff.longest, node) }
        var trusts: [Fingerprint: Trust] = [:]
        for record in node.registry.all { if let key = record.fingerprint { trusts[key] = record.trust } }
        route.open(trusts, leavingOut: postponed, node) { [weak self] result, node in
            guard let self else { return }
            switch result {
            case .success(let arrivals):
                failures = 0
                postpone(arrivals.postponed, node)
                for (_, fault) in arrivals.dropped { dropped(fault, node) }
                take(arrivals, node)
            case .failure(let error):
                node.logger.warning("mailbox cannot be read", metadata: ["route": "\(route.name)", "error": "\(error)"])
                failures += 1
                finish(after: Self.backoff.pause(after: failures), node)
            }
        }
    }

    private func finish(after pause: Duration, _ node: isolated Node) {
        isWorking = false
        let now = node.clocks.now
        finishedAt = now
        let next = now + (isDue ? times.batchTime : pause)
        isDue = false
        schedule(min(next, postponed.next(after: now) ?? next), node)
    }

    /// Leaves envelopes in the mailbox and skips them in the next rounds, for a time that grows each time the same envelope is postponed.
    private func postpone(_ envelopes: [String], _ node: isolated Node) {
        for envelope in envelopes { postponed.postpone(envelope, now: node.clocks.now) }
    }

    /// Removes envelopes from the mailbox.
    private func remove(_ envelopes: [String], _ node: isolated Node) {
        route.remove(envelopes, node) { [weak self] left, node in
            guard let self else { return }
            for envelope in envelopes { postponed.removed(envelope) }
            // Envelopes that cannot be removed would otherwise be read and answered in each round.
            postpone(left, node)
        }
    }

    func dropped(_ reason: EnvelopeFault.Reason, _ node: isolated Node) {
        counters.dropped[reason, default: 0] += 1
        node.metrics.dropped(reason)
    }

    private func dropped(_ fault: EnvelopeFault, _ node: isolated Node) {
        dropped(fault.reason, node)
        if fault.reason == .early, let sender = fault.sender { counters.early = (sender.peerID, fault.lead) }
        node.logger.debug("envelope dropped", metadata: ["route": "\(route.name)", "reason": "\(fault.reason)"])
    }

    /// The results of a round in progress.
    private struct Round {
        var hasMore = false
        /// The envelopes to remove.
        var removals: [String] = []
        /// The number of letters whose hexes are being stored.
        var unstored = 0
        /// Receipts by sender, with the envelopes that they answer.
        var receipts: [Fingerprint: [(file: String, frames: [[UInt8]])]] = [:]
    }

    /// Handles the letters of a round. Letters of different senders are stored at the same time, so that they share transactions.
    private func take(_ arrivals: MailboxRoundResult, _ node: isolated Node) {
        round = Round(hasMore: arrivals.hasMore, removals: arrivals.dropped.map(\.file))
        var letters: [(arrival: OpenedEnvelope, sender: Sender)] = []
        for arrival in arrivals.letters {
            let peer = arrival.sender.peerID
            guard peer != node.id else {
                tests.read(arrival.id)?(nil)
                round.removals.append(arrival.file)
                continue
            }
            counters.arrived(at: node.clocks.milliseconds)
            if counters.early?.peer == peer { counters.early = nil }
            node.metrics.envelopeArrived()
            node.routes.sender.record(arrival, on: route.name, node)
            node.registry.rememberCard(arrival.card, node)
            for (envelope, receipt) in arrival.contents.receipts { node.routes.sender.settle(envelope, receipt, of: peer, node) }
            guard arrival.contents.isReceiptOwed, node.registry[peer]?.receive != .nothing else {
                round.removals.append(arrival.file)
                continue
            }
            let sender = Sender(peer: peer, fingerprint: arrival.sender, name: node.registry[peer]?.name ?? "", address: route.name)
            letters.append((arrival, sender))
        }
        round.unstored = letters.count
        guard !letters.isEmpty else { return answer(node) }
        for letters in Dictionary(grouping: letters, by: \.sender.peer).values { keep(letters[...], node) }
    }

    /// Stores the hexes of one sender's letters. One letter follows the other, so that the hexes stay in order.
    private func keep(_ letters: ArraySlice<(arrival: OpenedEnvelope, sender: Sender)>, _ node: isolated Node) {
        var letters = letters
        guard let (arrival, sender) = letters.popFirst() else { return }
        keep(arrival.contents.hexes[...], from: sender, [], node) { [weak self, letters] results, node in
            self?.kept(arrival, results, node)
            self?.keep(letters, node)
        }
    }

    /// Stores hexes in batches that are at most as large as those of a session.
    private func keep(
        _ hexes: ArraySlice<IncomingHex>, from sender: Sender, _ results: [DeliveryResult], _ node: isolated Node,
        then completion: @escaping @Sendable ([DeliveryResult], isolated Node) -> Void
    ) {
        var rows = 0
        let batch = hexes.prefix { hex in
            rows += hex.rows
            return rows <= ProtocolLimits.batchRows || rows == hex.rows
        }
        guard !batch.isEmpty else { return completion(results, node) }
        node.keep(Array(batch), from: sender) { [weak self] node, new in
            guard !node.isStopping else { return }
            self?.keep(hexes.dropFirst(batch.count), from: sender, results + new, node, then: completion)
        }
    }

    private func kept(_ arrival: OpenedEnvelope, _ results: [DeliveryResult], _ node: isolated Node) {
        if let receipts = arrival.contents.receipts(of: arrival.id, results) {
            round.receipts[arrival.sender, default: []].append((arrival.file, receipts.map { LetterContents.frame($0) }))
        } else {
            // A hex was refused temporarily, so this envelope is read again later. The round continues with the other envelopes.
            postpone([arrival.file], node)
        }
        round.unstored -= 1
        if round.unstored == 0 { answer(node) }
    }

    // MARK: Receipts

    /// Posts the receipts, then removes the envelopes that they answer.
    private func answer(_ node: isolated Node) {
        let round = round
        self.round = Round()
        remove(round.removals, node)
        answer(round.receipts.map { (sender: $0.key, answers: $0.value) }[...], hasMore: round.hasMore, node)
    }

    private func answer(
        _ receipts: ArraySlice<(sender: Fingerprint, answers: [(file: String, frames: [[UInt8]])])>, hasMore: Bool, _ node: isolated Node
    ) {
        var receipts = receipts
        guard let (sender, answers) = receipts.popFirst() else { return finish(after: hasMore ? Self.roundPause : route.interval, node) }
        let parts = LetterContents.letters(answers.map { (key: $0.file, frames: $0.frames) }, payloadBytes: route.payloadBytes)
        let card = node.registry.card(of: sender.peerID)
        route.post(parts.map { $0.flatMap(\.frames) }, to: sender, card: card, node) { [weak self, receipts] result, node in
            guard let self else { return }
            let now = node.clocks.now
            for (index, part) in parts.enumerated() {
                let files = part.map(\.key)
                guard result.posted[index] == nil else {
                    counters.posted(at: node.clocks.milliseconds)
                    node.metrics.envelopePosted()
                    for file in files { unanswered[file] = nil }
                    remove(files, node)
                    continue
                }
                if unanswered.count >= PostponedEnvelopes.limit { unanswered = [:] }
                for file in files where unanswered[file] == nil { unanswered[file] = now }
                let abandoned = files.filter { unanswered[$0].map { now - $0 >= Self.receiptTime } ?? false }
                for file in abandoned { unanswered[file] = nil }
                remove(abandoned, node)
                postpone(files.filter { !abandoned.contains($0) }, node)
            }
            answer(receipts, hasMore: hasMore, node)
        }
    }
}
