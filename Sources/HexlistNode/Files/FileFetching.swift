import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistSession
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// The transfers of files to this machine: what waits, what runs, and the connections that may be used again.
///
/// It has more than 15 properties because it has all that a transfer waits for: its row, its turn, a connection, a name.
final class FileFetching {
    /// The time between two words to those who watch how far transfers are.
    private static let noticePause = Duration.milliseconds(300)
    /// The most transfers of which each change is told at once.
    private static let told = 100
    /// The time for which a connection is waited for that a peer was asked to dial; its dial takes 3 s at most.
    private static let dialTime = TimeAmount.seconds(6)

    typealias Connected = @Sendable (Result<FileClientConnection, FileRun.ConnectFault>) -> Void

    /// A run that waits for a connection that its peer was asked to dial.
    private struct Awaited {
        var token: BootNonce
        var done: Connected
        var timeout: Scheduled<Void>
    }

    private(set) var queue = TransferQueue()
    /// The transfers that are in the queue.
    private(set) var transfers = QueuedTransfers()
    private var runs: [TransferRun: any FileAttempt] = [:]
    /// The runs whose rows are being read from the store.
    private var loading: [TransferRun: TransferQueue.Place] = [:]
    /// Connections without a request, by peer.
    private var idle: [PeerID: [FileClientConnection]] = [:]
    private var here: Set<PeerID> = []
    /// What stands for the remotes in the queue.
    private var remotes: Set<PeerID> = []
    let lists = ListRequests()
    private let lines = FileLines()
    /// By the bytes of the folder's path: one that answers slowly, or not at all, holds up no other.
    private var writes = FileTurns<[UInt8], (run: FileRun, content: WholeFile.Content)>()
    /// By the file system, all of which is made durable at once.
    private var placements = FileTurns<UInt64, (run: any FileAttempt, file: WholeFile)>()
    /// The rows to be written together at the end of a turn of `placements`; `nil` outside of one.
    private var gathered: [TransferRow]?
    /// At most one for each run.
    private var awaited: [PeerID: [Awaited]] = [:]
    /// The peers that did not take a dial and dialled themselves: they are asked at once, until they go.
    private var behind: Set<PeerID> = []
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

    /// Begins with files that are here already, which wait for no peer. What waits since before the start follows, page by page (`add`).
    func start(_ host: isolated some FilesHost) { carryOut(queue.peerCame(host.id, now: host.clocks.now), host) }

    /// - Returns: what services still do, cancelled, which ends soon.
    func stop(_ host: isolated some FilesHost) -> [Task<Void, Never>] {
        timer.cancel()
        noticeTimer.cancel()
        let copying = runs.values.compactMap { ($0 as? RemoteRun)?.copying }
        for run in runs.values { run.stop(discarding: false) }
        // Reserved bytes that have not arrived are given back.
        let automatic = runs.values.map(\.row).filter { $0.reservedBytes != nil }
        if !automatic.isEmpty { host.store.updateTransfers(automatic) { _ in } }
        (runs, loading) = ([:], [:])
        for connection in idle.values.joined() { connection.abort() }
        idle = [:]
        lines.stop()
        for one in awaited.values.joined() { one.timeout.cancel() }
        awaited = [:]
        return copying
    }

    /// Whether a file of this peer is wanted, so that its session is not idle.
    func wants(_ peer: PeerID) -> Bool { lists.wants(peer) || transfers.has(peer) }

    /// Whether files can be fetched from a peer now.
    func isHere(_ peer: PeerID) -> Bool { here.contains(peer) }

    // MARK: Wishes

    /// Takes transfers of the store into the queue.
    /// - Parameter pooled: files that are here, because their peer sent them, and need not be fetched: they wait for no peer, but for their turn.
    func add(_ new: [TransferRow], here pooled: Set<PooledOrigin> = [], force: Bool, _ host: isolated some FilesHost) {
        let now = host.clocks.now
        for row in new {
            let id = TransferID(row.id)
            let key = TransferKey(row)
            let isHere = row.sha256.map { pooled.contains(PooledOrigin(sha256: $0, peer: row.peer)) } ?? false
            let peer = isHere ? host.id : lane(of: row, host)
            // Asked of its peer, and for a folder of the user's.
            let isSmall = peer == row.peer && row.place == nil && row.isSmallAndNew
            let (admission, actions) = queue.add(
                id, peer: peer, key: key, isSmall: isSmall, resumes: RemoteLink(row.url) == nil, force: force, now: now)
            if admission == .taken { transfers.add(row, key: key) }
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

    /// The place of a transfer in the queue: its peer, or what stands for its remote, which always is there.
    private func lane(of row: TransferRow, _ host: isolated some FilesHost) -> PeerID {
        guard let lane = RemoteLink(row.url)?.lane else { return row.peer }
        if remotes.insert(lane).inserted { carryOut(queue.peerCame(lane, now: host.clocks.now), host) }
        return lane
    }

    /// The transfer that fetches the same into the same folder; `nil` if none does.
    func known(_ key: TransferKey) -> TransferID? { transfers[key] }

    /// Until when the same is not started again without force; `nil` if it can be started.
    func pause(of key: TransferKey, now: ContinuousClock.Instant) -> ContinuousClock.Instant? { queue.pause(of: key, now: now) }

    /// Tries a transfer now, as one that somebody asks for.
    func retry(_ id: TransferID, force: Bool, _ host: isolated some FilesHost) -> TransferQueue.Admission {
        transfers.markRequested(id)
        if let run = runs.values.first(where: { $0.id == id }) as? FileRun { run.markRequested() }
        let (admission, actions) = queue.retry(id, force: force, now: host.clocks.now)
        carryOut(actions, host)
        if let entry = transfers.entries[id] { kick(entry.peer, host) }
        return admission
    }

    /// - Parameter stored: the row as the store has it.
    /// - Returns: whether it was in the queue.
    func cancel(_ stored: TransferRow, _ host: isolated some FilesHost) -> Bool {
        let id = TransferID(stored.id)
        guard transfers.contains(id) else { return false }
        var row = transfers.row(id) ?? stored
        let running = runs.values.first { $0.id == id }
        if let running {
            row = running.row
            runs[running.run] = nil
            running.stop(discarding: true)
            leaveLine(running)
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
    func peerCame(_ peer: PeerID, _ host: isolated some FilesHost) {
        here.insert(peer)
        lists.peerCame(peer, true)
        carryOut(queue.peerCame(peer, now: host.clocks.now), host)
    }

    func peerWent(_ peer: PeerID, _ host: isolated some FilesHost) {
        guard here.remove(peer) != nil else { return }
        behind.remove(peer)
        for one in awaited.removeValue(forKey: peer) ?? [] {
            one.timeout.cancel()
            one.done(.failure(.unreachable("Its owner went away.")))
        }
        for connection in idle.removeValue(forKey: peer) ?? [] { connection.abort() }
        carryOut(queue.peerWent(peer, now: host.clocks.now), host)
    }

    /// A peer is trusted no more: nothing more of it is taken. What is under way waits, and goes on if it is trusted again.
    func trustEnded(_ peer: PeerID) {
        for connection in idle.removeValue(forKey: peer) ?? [] { connection.abort() }
        for case let run as FileRun in runs.values where run.row.peer == peer { run.cutOff() }
    }

    /// Makes a session with a peer that files are wanted of, where it is here and there is none.
    func kick(_ peer: PeerID, _ host: isolated some FilesHost) {
        guard !host.isStopping, !here.contains(peer), wants(peer), host.isVerified(peer), !host.isDialling(peer),
            host.sessions(with: peer).isEmpty
        else { return }
        let endpoints = host.endpoints(of: peer)
        guard !endpoints.isEmpty else { return }
        host.dial(peer, endpoints) { host, isConnected in
            // Otherwise the session's Hello says the rest.
            if !isConnected { host.fetching.lists.peerCame(peer, false) }
        }
    }

    // MARK: Actions

    private func carryOut(_ actions: [TransferQueue.Action], _ host: isolated some FilesHost) {
        var toRead: [TransferID: TransferRun] = [:]
        var leaving: [TransferRun] = []
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
                leaveLine(stopped)
            case .giveWay(let run): leaving.append(run)
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
                carryOut(queue.ended(run, .gaveWay, now: host.clocks.now), host)  // its row is still being read
            } else {
                (runs[run] as? FileRun)?.giveWay()
            }
        }
        if !actions.isEmpty { tell(host) }
    }

    /// Reads the rows of runs that are to start, and starts those that were not stopped meanwhile.
    private func read(_ wanted: [TransferID: TransferRun], _ host: isolated some FilesHost) {
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
    private func hasRead(_ row: TransferRow?, _ run: TransferRun, isLost: Bool, _ host: isolated some FilesHost) {
        guard let place = loading.removeValue(forKey: run), !host.isStopping else { return }
        guard let row else { return carryOut(queue.ended(run, isLost ? .final : .diskFull, now: host.clocks.now), host) }
        start(row, run, place, host)
    }

    private func start(_ stored: TransferRow, _ run: TransferRun, _ place: TransferQueue.Place, _ host: isolated some FilesHost) {
        guard !host.isStopping else { return carryOut(queue.ended(run, .final, now: host.clocks.now), host) }
        var row = stored
        row.attempts += 1
        if transfers.entries[TransferID(row.id)]?.isRequested == true { row.reservedBytes = nil }
        let means = FileRun.Means(
            store: host.store, pool: host.pool, threads: host.transport.fileThreads, eventLoop: host.eventLoop,
            clocks: host.clocks, minimumFree: Int64(host.configuration.limits.diskReserveBytes))
        if let link = RemoteLink(row.url), let remotes = host.remotes {
            let remoteRun = RemoteRun(
                run, row, link, of: remotes, with: means,
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
        let fileRun = FileRun(
            run, row, link, sharesConnection: place.isShared, with: means,
            progressed: { [weak host] run in host?.assumeIsolated { $0.fetching.progressed(run, $0) } },
            arrived: { [weak host] run, content in host?.assumeIsolated { $0.fetching.hasArrived(run, content, $0) } },
            whole: { [weak host] run, file, free in host?.assumeIsolated { $0.fetching.isWhole(run, file, free, $0) } },
            ended: { [weak host] run, end, free in host?.assumeIsolated { $0.fetching.ended(run, end, free, $0) } })
        runs[run] = fileRun
        fileRun.start { [weak host] done in
            host?.assumeIsolated { host in
                guard place.isShared else { return host.fetching.connect(to: peer, host, done) }
                host.fetching.lines.join(run, place.number, of: peer, host, done)
            }
        }
    }

    /// A run asks nothing more on the connection it shares.
    private func leaveLine(_ run: any FileAttempt) {
        if let connection = lines.leave(run.run) { keep(connection, to: run.row.peer) }
    }

    func connect(to peer: PeerID, _ host: isolated some FilesHost, _ done: @escaping Connected) {
        while let connection = idle[peer]?.popLast() {
            if connection.isIdle { return done(.success(connection)) }
        }
        // Where a session of this side's own dial leads is where the peer is.
        let dialled = host.sessions(with: peer).compactMap(\.connection.target)
        let targets = dialled + host.endpoints(of: peer).map { DialTarget($0) }.filter { !dialled.contains($0) }
        guard !targets.isEmpty, !behind.contains(peer) else {
            return askToDial(peer, host, done, otherwise: "No address is known at which its owner takes connections.")
        }
        host.transport.dialForFiles(targets, expecting: peer).report.whenSuccess { [weak host] report in
            if let connection = report.files { return done(.success(connection)) }
            let why = "Its owner could not be reached: \(report.summary.map { "\($0)" } ?? "")."
            guard let host, report.summary?.mayBeFirewall == true else { return done(.failure(.unreachable(why))) }
            host.assumeIsolated { $0.fetching.askToDial(peer, $0, done, otherwise: why) }
        }
    }

    /// Keeps a connection without a request for the next one.
    func keep(_ connection: FileClientConnection, to peer: PeerID) {
        guard here.contains(peer), connection.isIdle, idle[peer, default: []].count < FileServing.perPeer else { return connection.abort() }
        idle[peer, default: []].append(connection)
    }

    // MARK: Connections that the owner dials

    /// Asks the owner of a file to dial this machine, over the session there is (`FileDial`).
    private func askToDial(_ peer: PeerID, _ host: isolated some FilesHost, _ done: @escaping Connected, otherwise why: String) {
        guard let session = host.sessions(with: peer).last(where: { $0.machine.peerHello?.servesFiles == true }),
            let port = UInt16(exactly: host.port), !host.isStopping
        else { return done(.failure(.unreachable(why))) }
        let request = DialBack(token: .random, port: port)
        let timeout = host.eventLoop.scheduleTask(in: Self.dialTime) { [weak host] in
            guard let host else { return }
            host.assumeIsolated { $0.fetching.notDialled(request.token, by: peer, why) }
        }
        awaited[peer, default: []].append(Awaited(token: request.token, done: done, timeout: timeout))
        session.act { $0.askToDialForFiles(request, &$1) }
    }

    private func notDialled(_ token: BootNonce, by peer: PeerID, _ why: String) {
        guard let index = awaited[peer]?.firstIndex(where: { $0.token == token }), let one = awaited[peer]?.remove(at: index) else {
            return
        }
        if awaited[peer]?.isEmpty == true { awaited[peer] = nil }
        behind.remove(peer)
        one.done(.failure(.unreachable("\(why) Nor did it come from there when it was asked to.")))
    }

    /// Whether a connection is waited for that a peer was asked to dial.
    func wantsConnection(of key: Fingerprint) -> Bool { awaited[key.peerID]?.isEmpty == false }

    /// A peer dialled that was asked to.
    /// - Returns: whether it was waited for; otherwise it is closed.
    @discardableResult
    func dialled(_ connection: FileClientConnection) -> Bool {
        let peer = connection.peer.peerID
        guard var waiting = awaited[peer], !waiting.isEmpty else {
            connection.abort()
            return false
        }
        let one = waiting.removeFirst()
        awaited[peer] = waiting.isEmpty ? nil : waiting
        one.timeout.cancel()
        behind.insert(peer)
        one.done(.success(connection))
        return true
    }

    private func progressed(_ run: any FileAttempt, _ host: isolated some FilesHost) {
        guard runs[run.run] === run else { return }
        transfers.progressed(run.id, bytes: run.row.bytes)
        queue.progressed(run.run, arrived: run.arrivedBytes)
        let now = host.clocks.now
        guard now - noticedAt >= Self.noticePause else { return }
        noticedAt = now
        host.watchers.notify()
    }

    /// All bytes of a small file are here.
    private func hasArrived(_ run: FileRun, _ content: WholeFile.Content, _ host: isolated some FilesHost) {
        let (item, lane) = ((run: run, content: content), Array(content.folder.utf8))
        if writes.begin(item, in: lane) { write([item], lane, host) }
    }

    private func write(_ items: [(run: FileRun, content: WholeFile.Content)], _ lane: [UInt8], _ host: isolated some FilesHost) {
        host.transport.fileThreads.run(on: host.eventLoop) { WholeFile.write(items.map(\.content)) }.whenComplete { [weak host] result in
            host?.assumeIsolated { host in
                for (index, item) in items.enumerated() { item.run.written(result.flatMap { $0[index].mapError { $0 as any Error } }) }
                let next = host.fetching.writes.next(in: lane)
                if !next.isEmpty { host.fetching.write(next, lane, host) }
            }
        }
    }

    /// A small file is written and waits for its name; the next one is asked for meanwhile.
    private func isWhole(_ run: any FileAttempt, _ file: WholeFile, _ free: FileClientConnection?, _ host: isolated some FilesHost) {
        if let free { keep(free, to: run.row.peer) }
        leaveLine(run)
        guard runs[run.run] === run else { return run.stop(discarding: true) }
        transfers.progressed(run.id, bytes: run.row.bytes)
        let item = (run: run, file: file)
        if placements.begin(item, in: file.device) { place([item], file.device, host) }
        carryOut(queue.received(run.run, now: host.clocks.now), host)
    }

    private func place(_ items: [(run: any FileAttempt, file: WholeFile)], _ lane: UInt64, _ host: isolated some FilesHost) {
        let (store, candidates) = (host.store, items.map { WholeFile.Candidate(folder: $0.run.row.folder, file: $0.file) })
        host.transport.fileThreads.run(on: host.eventLoop) {
            try WholeFile.place(candidates) { placements in
                try store.placeTransfers(placements.map { (items[$0.index].run.id.value, $0.placement.fileInode, $0.placement.name) })
            }
        }.whenComplete { [weak host] result in
            host?.assumeIsolated { host in
                let results = items.indices.map { index in result.flatMap { $0[index].mapError { $0 as any Error } } }
                host.fetching.placed(zip(items, results).map { ($0.run, $1) }, host)
                let next = host.fetching.placements.next(in: lane)
                if !next.isEmpty { host.fetching.place(next, lane, host) }
            }
        }
    }

    private func placed(_ results: [(any FileAttempt, Result<PartFile.Placement, any Error>)], _ host: isolated some FilesHost) {
        gathered = []
        for (run, result) in results where runs[run.run] === run { run.placed(result) }
        let rows = gathered.take() ?? []
        if !rows.isEmpty { write(rows, host) }
    }

    private func ended(_ run: any FileAttempt, _ end: FileRun.End, _ free: FileClientConnection?, _ host: isolated some FilesHost) {
        if let free { keep(free, to: run.row.peer) }
        leaveLine(run)
        guard runs.removeValue(forKey: run.run) != nil else { return }
        var row = run.row
        row.reason = end.reason
        row.error = end.message
        transfers.set(row)
        if end.outcome != .done, end.outcome != .gaveWay {
            host.logger.info("transfer interrupted", metadata: ["transfer": "\(run.id)", "reason": "\(end.reason ?? "")"])
        }
        carryOut(queue.ended(run.run, end.outcome, now: host.clocks.now), host)
        // What is left in the queue is written for the next start.
        if transfers.contains(run.id) { write(row, host) }
    }

    private func changed(_ id: TransferID, _ state: TransferState, _ host: isolated some FilesHost) {
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
    private func discardPart(of row: TransferRow, _ host: isolated some FilesHost) {
        guard let goal = PartFile.Goal(row, 0) else { return }
        let (folder, pooled) = (row.folder, row.place.map { host.pool.folder($0) })
        _ = host.transport.fileThreads.run(on: host.eventLoop) {
            PartFile.discard(folder: folder, goal: goal)
            if let pooled, let digest = row.sha256 { pooled.removeEmpty(digest) }
        }
    }

    private func write(_ row: TransferRow, _ host: isolated some FilesHost) {
        guard gathered == nil else {
            gathered?.append(row)
            return
        }
        write([row], host)
    }

    private func write(_ rows: [TransferRow], _ host: isolated some FilesHost) {
        host.store.updateTransfers(rows) { [host] result in
            if case .failure(let error) = result {
                host.logger.error("transfers could not be recorded", metadata: ["transfer": "\(rows[0].id)", "error": "\(error)"])
            }
            let settles = rows.contains { $0.state == .done && $0.place != nil } && host.pool.keeps
            let isSaved = if case .success = result { true } else { false }
            host.onLoop { host in
                if isSaved { for row in rows { host.fetching.transfers.saved(row) } }
                if settles { host.settlePool() }
                host.fetching.tell(host)
            }
        }
    }

    /// Tells those who watch; of many transfers not of each.
    private func tell(_ host: isolated some FilesHost) {
        guard transfers.count > Self.told else { return host.watchers.notify() }
        noticeTimer.set(max(host.clocks.now, noticedAt + Self.noticePause), host) {
            $0.fetching.noticedAt = $0.clocks.now
            $0.watchers.notify()
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

extension DialError {
    /// Whether the peer may be there and only not take connections.
    fileprivate var mayBeFirewall: Bool {
        switch self {
        case .refused, .unreachable, .timeout, .nameNotFound: true
        case .closed, .notHexlist, .otherIdentity, .cancelled, .failed: false
        }
    }
}
