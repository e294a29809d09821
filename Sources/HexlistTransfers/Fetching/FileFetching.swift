import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// The transfers of files to this machine: those that wait, and those that run.
final class FileFetching {
    /// The minimum time between two notifications of watchers about progress.
    private static let noticePause = Duration.milliseconds(300)
    /// The most transfers of which each change is reported at once.
    private static let notifiedAtOnce = 100

    private(set) var queue = TransferQueue()
    /// The transfers that are in the queue.
    private(set) var transfers = QueuedTransfers()
    private var runs: [TransferAttemptID: any FetchAttempt] = [:]
    /// The runs whose rows are being read from the store.
    private var loading: [TransferAttemptID: TransferQueue.Slot] = [:]
    /// The identifiers that stand for remotes in the queue, which knows peers only.
    private var remotes: Set<PeerID> = []
    let lists = ListRequests()
    let small = SmallFiles()
    /// The rows to be written together at the end of a batch of files that got their names; `nil` outside of one.
    private var gathered: [TransferRow]?
    /// The peers whose new hexes are being looked at, and whether to look again afterwards.
    private var looks: [PeerID: Bool] = [:]
    private let timer: DeadlineTimer
    private let noticeTimer: DeadlineTimer
    private var noticedAt: ContinuousClock.Instant

    init(on eventLoop: any EventLoop, _ clocks: Clocks) {
        timer = DeadlineTimer(on: eventLoop, clocks)
        noticeTimer = DeadlineTimer(on: eventLoop, clocks)
        noticedAt = clocks.now
    }

    /// Makes this machine a source of files that are in the pool. Transfers of earlier runs follow, page by page (`add`).
    func start(_ host: isolated FileTransfers) { carryOut(queue.peerCame(host.id, now: host.clocks.now), host) }

    /// - Returns: the cancelled requests to services, which end soon.
    func stop(_ host: isolated FileTransfers) -> [Task<Void, Never>] {
        timer.cancel()
        noticeTimer.cancel()
        let copying = runs.values.compactMap { ($0 as? RemoteFetch)?.copying }
        for run in runs.values { run.stop(discarding: false) }
        // Releases reserved bytes that have not arrived.
        let automatic = runs.values.map(\.row).filter { $0.reservedBytes != nil }
        if !automatic.isEmpty { host.store.updateTransfers(automatic) { _ in } }
        (runs, loading) = ([:], [:])
        host.connections.stop()
        return copying
    }

    /// Whether a file or a list is requested of the peer, so that its session is not idle.
    func hasRequests(for peer: PeerID) -> Bool { lists.hasRequests(for: peer) || transfers.has(peer) }

    // MARK: Requests

    /// Adds transfers to the queue.
    /// - Parameter pooled: the files of the pool, which need no peer.
    func add(_ new: [TransferRow], pooled: Set<PooledOrigin> = [], force: Bool, _ host: isolated FileTransfers) {
        let now = host.clocks.now
        for row in new {
            let id = TransferID(row.id)
            let key = TransferKey(row)
            let isPooled = row.sha256.map { pooled.contains(PooledOrigin(sha256: $0, peer: row.peer)) } ?? false
            let peer = isPooled ? host.id : lane(of: row, host)
            // Asked of its peer, and for a folder of the user's.
            let isSmall = peer == row.peer && row.place == nil && row.isSmallAndNew
            let (admission, actions) = queue.add(
                id, peer: peer, key: key, isSmall: isSmall, resumes: RemoteLink(row.url) == nil, force: force, now: now)
            if admission == .accepted { transfers.add(row, key: key) }
            if case .known(let other) = admission, other != id {
                // Asked for twice at once: one is enough.
                var row = row
                (row.state, row.endedAt) = (.cancelled, host.clocks.milliseconds)
                write(row, host)
            }
            carryOut(actions, host)
        }
        for peer in Set(new.map(\.peer)) { kick(peer, host) }
    }

    /// The lane of a transfer in the queue: its peer, or the identifier that stands for its remote, which is always reachable.
    private func lane(of row: TransferRow, _ host: isolated FileTransfers) -> PeerID {
        guard let lane = RemoteLink(row.url)?.lane else { return row.peer }
        if remotes.insert(lane).inserted { carryOut(queue.peerCame(lane, now: host.clocks.now), host) }
        return lane
    }

    /// The transfer that fetches the same into the same folder; `nil` if none does.
    func known(_ key: TransferKey) -> TransferID? { transfers[key] }

    /// Until when the same is not started again without force; `nil` if it can be started.
    func pause(of key: TransferKey, now: ContinuousClock.Instant) -> ContinuousClock.Instant? { queue.pause(of: key, now: now) }

    /// Retries a transfer now, at the user's request.
    func retry(_ id: TransferID, force: Bool, _ host: isolated FileTransfers) -> TransferQueue.Admission {
        transfers.markRequested(id)
        if let run = runs.values.first(where: { $0.id == id }) as? PeerFetch { run.markRequested() }
        let (admission, actions) = queue.retry(id, force: force, now: host.clocks.now)
        carryOut(actions, host)
        if let entry = transfers.entries[id] { kick(entry.peer, host) }
        return admission
    }

    /// - Parameter stored: the row as the store has it.
    /// - Returns: whether it was in the queue.
    func cancel(_ stored: TransferRow, _ host: isolated FileTransfers) -> Bool {
        let id = TransferID(stored.id)
        guard transfers.contains(id) else { return false }
        var row = transfers.row(id) ?? stored
        let running = runs.values.first { $0.id == id }
        if let running {
            row = running.row
            runs[running.run] = nil
            running.stop(discarding: true)
            leaveConnection(running, host)
        } else {
            discardPart(of: row, host)
        }
        row.reason = nil
        row.error = nil
        transfers.set(row)
        carryOut(queue.cancel(id, now: host.clocks.now), host)
        return true
    }

    /// - Returns: whether a look at the new hexes of a peer may begin; otherwise another follows the one under way.
    func beginLook(_ peer: PeerID) -> Bool {
        let isUnderWay = looks[peer] != nil
        looks[peer] = isUnderWay
        return !isUnderWay
    }

    /// - Returns: whether there is to be another.
    func endLook(_ peer: PeerID) -> Bool { looks.removeValue(forKey: peer) ?? false }

    // MARK: Peers

    /// A session with a peer that hands out files is open.
    func peerCame(_ peer: PeerID, _ host: isolated FileTransfers) {
        host.connections.peerCame(peer)
        lists.peerCame(peer, true)
        carryOut(queue.peerCame(peer, now: host.clocks.now), host)
    }

    func peerWent(_ peer: PeerID, _ host: isolated FileTransfers) {
        guard host.connections.peerWent(peer) else { return }
        carryOut(queue.peerWent(peer, now: host.clocks.now), host)
    }

    /// Interrupts the attempts of a peer that is trusted no more. Its transfers wait, and resume if it is trusted again.
    func trustEnded(_ peer: PeerID) {
        for case let run as PeerFetch in runs.values where run.row.peer == peer { run.cutOff() }
    }

    /// Opens a session with a peer of which files are requested, unless there is one.
    func kick(_ peer: PeerID, _ host: isolated FileTransfers) {
        guard !host.isStopping, !host.connections.isConnected(peer), hasRequests(for: peer) else { return }
        host.node.openSession(with: peer) { [weak host] in host?.assumeIsolated { $0.fetching.lists.peerCame(peer, false) } }
    }

    // MARK: Actions

    private func carryOut(_ actions: [TransferQueue.Action], _ host: isolated FileTransfers) {
        var toRead: [TransferID: TransferAttemptID] = [:]
        var leaving: [TransferAttemptID] = []
        for action in actions {
            switch action {
            case .start(let id, let run, _, let place):
                if let row = transfers.row(id) {
                    start(row, run, place, host)
                } else {
                    loading[run] = place
                    toRead[id] = run
                }
            case .stop(let run):
                loading[run] = nil
                guard let stopped = runs.removeValue(forKey: run) else { continue }
                stopped.stop(discarding: true)
                leaveConnection(stopped, host)
            case .preempt(let run): leaving.append(run)
            case .changed(let id, let state): changed(id, state, host)
            case .arm(let instant):
                timer.cancel()
                timer.set(instant, host) { $0.fetching.carryOut($0.fetching.queue.deadlineReached(now: $0.clocks.now), $0) }
            }
        }
        if !toRead.isEmpty { read(toRead, host) }
        // Last, since each end has actions of its own.
        for run in leaving {
            if loading.removeValue(forKey: run) != nil {
                carryOut(queue.ended(run, .preempted, now: host.clocks.now), host)  // its row is still being read
            } else {
                (runs[run] as? PeerFetch)?.preempt()
            }
        }
        if !actions.isEmpty { notifyWatchers(host) }
    }

    /// Reads the rows of runs that are to start, and starts those that were not stopped meanwhile.
    private func read(_ wanted: [TransferID: TransferAttemptID], _ host: isolated FileTransfers) {
        host.store.submitRead({ try $0.transfers(wanted.keys.map(\.value)) }) { [host] result in
            host.onLoop { host in
                if case .failure(let error) = result {
                    host.logger.error("transfers could not be read", metadata: ["error": "\(error)"])
                }
                let rows = (try? result.get()) ?? []
                let found = Dictionary(rows.map { (TransferID($0.id), $0) }) { first, _ in first }
                for (id, run) in wanted { host.fetching.hasRead(found[id], run, isLost: (try? result.get()) != nil, host) }
            }
        }
    }

    /// - Parameter isLost: whether a row that was not found is not there; otherwise it can be read later.
    private func hasRead(_ row: TransferRow?, _ run: TransferAttemptID, isLost: Bool, _ host: isolated FileTransfers) {
        guard let place = loading.removeValue(forKey: run), !host.isStopping else { return }
        guard let row else { return carryOut(queue.ended(run, isLost ? .final : .diskFull, now: host.clocks.now), host) }
        start(row, run, place, host)
    }

    private func start(_ stored: TransferRow, _ run: TransferAttemptID, _ place: TransferQueue.Slot, _ host: isolated FileTransfers) {
        guard !host.isStopping else { return carryOut(queue.ended(run, .final, now: host.clocks.now), host) }
        var row = stored
        row.attempts += 1
        if transfers.entries[TransferID(row.id)]?.isRequested == true { row.reservedBytes = nil }
        let dependencies = FetchDependencies(
            store: host.store, pool: host.pool, threads: host.transport.fileThreads, eventLoop: host.eventLoop,
            clocks: host.clocks, minimumFree: host.configuration.minimumFree)
        if let link = RemoteLink(row.url), let remotes = host.remotes {
            let remoteRun = RemoteFetch(
                run, row, link, of: remotes, with: dependencies,
                progressed: { [weak host] run in host?.assumeIsolated { $0.fetching.progressed(run, $0) } },
                whole: { [weak host] run, file in host?.assumeIsolated { $0.fetching.isWhole(run, file, nil, $0) } },
                ended: { [weak host] run, end in host?.assumeIsolated { $0.fetching.ended(run, end, nil, $0) } })
            runs[run] = remoteRun
            return remoteRun.start()
        }
        guard let link = FileLink(row.url) else {
            (row.reason, row.error) = (TransferRow.badLink, TransferRow.linkFault(row.url))
            transfers.set(row)
            return carryOut(queue.ended(run, .final, now: host.clocks.now), host)
        }
        let peer = row.peer
        let fileRun = PeerFetch(
            run, row, link, sharesConnection: place.isShared, with: dependencies,
            progressed: { [weak host] run in host?.assumeIsolated { $0.fetching.progressed(run, $0) } },
            arrived: { [weak host] run, content in host?.assumeIsolated { $0.fetching.small.write(run, content, $0) } },
            whole: { [weak host] run, file, free in host?.assumeIsolated { $0.fetching.isWhole(run, file, free, $0) } },
            ended: { [weak host] run, end, free in host?.assumeIsolated { $0.fetching.ended(run, end, free, $0) } })
        runs[run] = fileRun
        fileRun.start { [weak host] done in
            host?.assumeIsolated { host in
                guard place.isShared else { return host.connections.connect(to: peer, host, done) }
                host.connections.share(run, place.number, of: peer, host, done)
            }
        }
    }

    /// A run makes no more requests on the connection it shares.
    private func leaveConnection(_ run: any FetchAttempt, _ host: isolated FileTransfers) {
        host.connections.leave(run.run, of: run.row.peer)
    }

    private func progressed(_ run: any FetchAttempt, _ host: isolated FileTransfers) {
        guard runs[run.run] === run else { return }
        transfers.progressed(run.id, bytes: run.row.bytes)
        queue.progressed(run.run, arrived: run.arrivedBytes)
        let now = host.clocks.now
        guard now - noticedAt >= Self.noticePause else { return }
        noticedAt = now
        host.node.notifyWatchers()
    }

    /// Handles a small file that is written and waits for its final name. The next one is requested meanwhile.
    private func isWhole(_ run: any FetchAttempt, _ file: WholeFile, _ free: FileClientConnection?, _ host: isolated FileTransfers) {
        if let free { host.connections.keep(free, to: run.row.peer) }
        leaveConnection(run, host)
        guard runs[run.run] === run else { return run.stop(discarding: true) }
        transfers.progressed(run.id, bytes: run.row.bytes)
        small.place(run, file, host)
        carryOut(queue.received(run.run, now: host.clocks.now), host)
    }

    func placed(_ results: [(any FetchAttempt, Result<PartFile.Placement, any Error>)], _ host: isolated FileTransfers) {
        gathered = []
        for (run, result) in results where runs[run.run] === run { run.placed(result) }
        let rows = gathered.take() ?? []
        if !rows.isEmpty { write(rows, host) }
    }

    private func ended(_ run: any FetchAttempt, _ end: FetchEnd, _ free: FileClientConnection?, _ host: isolated FileTransfers) {
        if let free { host.connections.keep(free, to: run.row.peer) }
        leaveConnection(run, host)
        guard runs.removeValue(forKey: run.run) != nil else { return }
        var row = run.row
        row.reason = end.reason
        row.error = end.message
        transfers.set(row)
        if end.outcome != .done, end.outcome != .preempted {
            host.logger.info("transfer interrupted", metadata: ["transfer": "\(run.id)", "reason": "\(end.reason ?? "")"])
        }
        carryOut(queue.ended(run.run, end.outcome, now: host.clocks.now), host)
        // The row of a transfer that stays in the queue is written for the next start.
        if transfers.contains(run.id) { write(row, host) }
    }

    private func changed(_ id: TransferID, _ state: TransferState, _ host: isolated FileTransfers) {
        let end: StoredTransferState
        switch state {
        case .waiting, .running, .paused: return
        case .done: end = .done
        case .failed: end = .failed
        case .cancelled: end = .cancelled
        }
        defer { transfers.remove(id) }
        guard var row = transfers.row(id) else { return }
        row.state = end
        if end == .failed { discardPart(of: row, host) }
        row.endedAt = host.clocks.milliseconds
        write(row, host)
    }

    /// Deletes what is there of a file that no run has open.
    private func discardPart(of row: TransferRow, _ host: isolated FileTransfers) {
        guard let specification = PartFile.Specification(row, 0) else { return }
        let (folder, pooled) = (row.folder, row.place.map { host.pool.folder($0) })
        _ = host.transport.fileThreads.run(on: host.eventLoop) {
            PartFile.discard(folder: folder, specification: specification)
            if let pooled, let digest = row.sha256 { pooled.removeEmpty(digest) }
        }
    }

    private func write(_ row: TransferRow, _ host: isolated FileTransfers) {
        guard gathered == nil else {
            gathered?.append(row)
            return
        }
        write([row], host)
    }

    private func write(_ rows: [TransferRow], _ host: isolated FileTransfers) {
        host.store.updateTransfers(rows) { [host] result in
            if case .failure(let error) = result {
                host.logger.error("transfers could not be recorded", metadata: ["transfer": "\(rows[0].id)", "error": "\(error)"])
            }
            let mayMoveFiles = rows.contains { $0.state == .done && $0.place != nil } && host.pool.hasKeptFiles
            let isSaved = if case .success = result { true } else { false }
            host.onLoop { host in
                if isSaved { for row in rows { host.fetching.transfers.saved(row) } }
                if mayMoveFiles { host.cache.reconcile() }
                host.fetching.notifyWatchers(host)
            }
        }
    }

    /// Notifies watchers; if there are many transfers, at most once in `noticePause`.
    private func notifyWatchers(_ host: isolated FileTransfers) {
        guard transfers.count > Self.notifiedAtOnce else { return host.node.notifyWatchers() }
        noticeTimer.set(max(host.clocks.now, noticedAt + Self.noticePause), host) {
            $0.fetching.noticedAt = $0.clocks.now
            $0.node.notifyWatchers()
        }
    }
}

extension TransferKey {
    /// Digest and peer of a file that goes to the pool or the kept ones, which is the same file by any link; else link and folder.
    init(_ row: TransferRow) {
        self =
            if row.place != nil, let digest = row.sha256 { TransferKey(digest: digest, peer: row.peer) } else {
                TransferKey(url: row.url, folder: row.folder)
            }
    }
}
