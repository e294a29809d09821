import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// The transfers of files to this machine: the queue, and the attempts that are running.
final class FileFetching {
    /// Minimum interval of notifications of watchers about progress.
    private static let noticePause = Duration.milliseconds(300)
    /// Maximum number of transfers for which watchers are notified of each change immediately.
    private static let notifiedAtOnce = 100

    private(set) var queue = TransferQueue()
    private(set) var transfers = QueuedTransfers()
    private var runs: [TransferAttemptID: any FetchAttempt] = [:]
    /// The attempts whose rows are being read from the store, with their slots.
    private var loading: [TransferAttemptID: TransferQueue.Slot] = [:]
    /// The UUIDs that represent remotes in the queue, which has one queue per peer.
    private var remotes: Set<PeerID> = []
    let lists = ListRequests()
    let small = SmallFiles()
    /// The rows that are written together after a batch of files was renamed to final names; `nil` while no batch is being handled.
    private var gathered: [TransferRow]?
    /// The peers whose new hexes are being examined. `true` if another examination has to follow.
    private var scans: [PeerID: Bool] = [:]
    private let timer: DeadlineTimer
    private let noticeTimer: DeadlineTimer
    private var noticedAt: ContinuousClock.Instant

    init(on eventLoop: any EventLoop, _ clocks: Clocks) {
        timer = DeadlineTimer(on: eventLoop, clocks)
        noticeTimer = DeadlineTimer(on: eventLoop, clocks)
        noticedAt = clocks.now
    }

    /// Registers this machine as a source of files, for files that are in the pool. The transfers in the store are then added with `add`.
    func start(_ host: isolated FileTransfers) { carryOut(queue.peerCame(host.id, now: host.clocks.now), host) }

    /// Stops all attempts.
    /// - Returns: the requests to remotes, which were cancelled and end soon.
    func stop(_ host: isolated FileTransfers) -> [Task<Void, Never>] {
        timer.cancel()
        noticeTimer.cancel()
        let copying = runs.values.compactMap { ($0 as? RemoteFetch)?.copying }
        for run in runs.values { run.stop(discarding: false) }
        // Bytes that were reserved for automatic fetches, but have not arrived, are released.
        let automatic = runs.values.map(\.row).filter { $0.reservedBytes != nil }
        if !automatic.isEmpty { host.store.updateTransfers(automatic) { _ in } }
        (runs, loading) = ([:], [:])
        host.connections.stop()
        return copying
    }

    /// Whether files or listings are requested from the peer. Its session is then not idle.
    func hasRequests(for peer: PeerID) -> Bool { lists.hasRequests(for: peer) || transfers.has(peer) }

    // MARK: Requests

    /// Adds transfers to the queue.
    /// - Parameters:
    ///   - new: the rows to add.
    ///   - pooled: the files that the pool has. Fetching them needs no peer.
    func add(_ new: [TransferRow], pooled: Set<PooledOrigin> = [], force: Bool, _ host: isolated FileTransfers) {
        let now = host.clocks.now
        for row in new {
            let id = TransferID(row.id)
            let key = TransferKey(row)
            let isPooled = row.sha256.map { pooled.contains(PooledOrigin(sha256: $0, peer: row.peer)) } ?? false
            let peer = isPooled ? host.id : lane(of: row, host)
            // Small files share a connection only if they come from a peer, and their destination is a folder of the user.
            let isSmall = peer == row.peer && row.place == nil && row.isSmallAndNew
            let (admission, actions) = queue.add(
                id, peer: peer, key: key, isSmall: isSmall, resumes: RemoteLink(row.url) == nil, force: force, now: now)
            if admission == .accepted { transfers.add(row, key: key) }
            if case .known(let other) = admission, other != id {
                // The same file was requested twice at the same time. One transfer suffices.
                var row = row
                (row.state, row.endedAt) = (.cancelled, host.clocks.milliseconds)
                write(row, host)
            }
            carryOut(actions, host)
        }
        for peer in Set(new.map(\.peer)) { kick(peer, host) }
    }

    /// Returns the peer in whose queue a transfer is. For a file of a remote it is the UUID that represents the remote. A remote is always
    /// regarded as connected.
    private func lane(of row: TransferRow, _ host: isolated FileTransfers) -> PeerID {
        guard let lane = RemoteLink(row.url)?.lane else { return row.peer }
        if remotes.insert(lane).inserted { carryOut(queue.peerCame(lane, now: host.clocks.now), host) }
        return lane
    }

    /// Returns the id of the transfer with this key that is in the queue; `nil` if there is none.
    func known(_ key: TransferKey) -> TransferID? { transfers[key] }

    /// Returns the time until which transfers with this key are suspended, so that they start only with `force`; `nil` if they are not
    /// suspended.
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

    /// Cancels a transfer, and deletes its partial file.
    /// - Parameter stored: the transfer's row in the store.
    /// - Returns: whether the transfer was in the queue.
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

    /// Begins an examination of a peer's new hexes. If one is running, another one follows it.
    /// - Returns: whether the caller is to examine the hexes now.
    func beginScan(_ peer: PeerID) -> Bool {
        let isUnderWay = scans[peer] != nil
        scans[peer] = isUnderWay
        return !isUnderWay
    }

    /// Ends an examination of a peer's new hexes.
    /// - Returns: whether another examination has to follow.
    func endScan(_ peer: PeerID) -> Bool { scans.removeValue(forKey: peer) ?? false }

    // MARK: Peers

    /// Handles the beginning of a session with a peer that serves files.
    func peerCame(_ peer: PeerID, _ host: isolated FileTransfers) {
        host.connections.peerCame(peer)
        lists.peerCame(peer, true)
        carryOut(queue.peerCame(peer, now: host.clocks.now), host)
    }

    func peerWent(_ peer: PeerID, _ host: isolated FileTransfers) {
        guard host.connections.peerWent(peer) else { return }
        carryOut(queue.peerWent(peer, now: host.clocks.now), host)
    }

    /// Interrupts the attempts from a peer that is no longer trusted. The transfers stay in the queue, and resume if the peer is trusted
    /// again.
    func trustEnded(_ peer: PeerID) {
        for case let run as PeerFetch in runs.values where run.row.peer == peer { run.cutOff() }
    }

    /// Dials a peer from which files or listings are requested, unless it has a session.
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
            case .start(let id, let run, _, let slot):
                if let row = transfers.row(id) {
                    start(row, run, slot, host)
                } else {
                    loading[run] = slot
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
        // Preempted attempts end last, because each end leads to further actions.
        for run in leaving {
            if loading.removeValue(forKey: run) != nil {
                carryOut(queue.ended(run, .preempted, now: host.clocks.now), host)  // its row is still being read
            } else {
                (runs[run] as? PeerFetch)?.preempt()
            }
        }
        if !actions.isEmpty { notifyWatchers(host) }
    }

    /// Reads the rows of attempts that are to start. Attempts that were stopped meanwhile are not started.
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

    /// Starts an attempt whose row was read. Ends it if there is no row.
    /// - Parameter isLost: whether a missing row no longer exists. If `false`, the read failed and may be repeated.
    private func hasRead(_ row: TransferRow?, _ run: TransferAttemptID, isLost: Bool, _ host: isolated FileTransfers) {
        guard let slot = loading.removeValue(forKey: run), !host.isStopping else { return }
        guard let row else { return carryOut(queue.ended(run, isLost ? .final : .diskFull, now: host.clocks.now), host) }
        start(row, run, slot, host)
    }

    private func start(_ stored: TransferRow, _ run: TransferAttemptID, _ slot: TransferQueue.Slot, _ host: isolated FileTransfers) {
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
            run, row, link, sharesConnection: slot.isShared, with: dependencies,
            progressed: { [weak host] run in host?.assumeIsolated { $0.fetching.progressed(run, $0) } },
            arrived: { [weak host] run, content in host?.assumeIsolated { $0.fetching.small.write(run, content, $0) } },
            whole: { [weak host] run, file, free in host?.assumeIsolated { $0.fetching.isWhole(run, file, free, $0) } },
            ended: { [weak host] run, end, free in host?.assumeIsolated { $0.fetching.ended(run, end, free, $0) } })
        runs[run] = fileRun
        fileRun.start { [weak host] done in
            host?.assumeIsolated { host in
                guard slot.isShared else { return host.connections.connect(to: peer, host, done) }
                host.connections.share(run, slot.number, of: peer, host, done)
            }
        }
    }

    /// Reports that an attempt no longer uses its shared connection.
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

    /// Handles a file that is complete but does not have its final name. The slot of its attempt is released, to be used for another file.
    private func isWhole(_ run: any FetchAttempt, _ file: VerifiedPartFile, _ free: FileClientConnection?, _ host: isolated FileTransfers) {
        if let free { host.connections.keep(free, to: run.row.peer) }
        leaveConnection(run, host)
        guard runs[run.run] === run else { return run.stop(discarding: true) }
        transfers.progressed(run.id, bytes: run.row.bytes)
        small.place(run, file, host)
        carryOut(queue.received(run.run, now: host.clocks.now), host)
    }

    /// Reports to attempts whether their files have got their final names. Their rows are then written together.
    func placed(_ results: [(any FetchAttempt, Result<PartFile.Placement, any Error>)], _ host: isolated FileTransfers) {
        gathered = []
        for (run, result) in results where runs[run.run] === run { run.placed(result) }
        let rows = gathered.take() ?? []
        if !rows.isEmpty { write(rows, host) }
    }

    private func ended(_ run: any FetchAttempt, _ end: FetchResult, _ free: FileClientConnection?, _ host: isolated FileTransfers) {
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
        // A transfer that stays in the queue has its row stored for the next start of the daemon.
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

    /// Deletes the partial file of a transfer that has no running attempt.
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

    /// Notifies watchers. If there are more than `notifiedAtOnce` transfers, at most once per `noticePause`.
    private func notifyWatchers(_ host: isolated FileTransfers) {
        guard transfers.count > Self.notifiedAtOnce else { return host.node.notifyWatchers() }
        noticeTimer.set(max(host.clocks.now, noticedAt + Self.noticePause), host) {
            $0.fetching.noticedAt = $0.clocks.now
            $0.node.notifyWatchers()
        }
    }
}

extension TransferKey {
    /// Creates the key of a transfer. For a file of the pool it consists of digest and peer, because several links may lead to the same
    /// content. For other files it consists of link and folder.
    init(_ row: TransferRow) {
        self =
            if row.place != nil, let digest = row.sha256 { TransferKey(digest: digest, peer: row.peer) } else {
                TransferKey(url: row.url, folder: row.folder)
            }
    }
}
