import Crypto
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

/// The connections on which peers fetch files of this machine. Each request is answered by what is so at that moment: a file only to a
/// trusted peer that it was offered to, or that may read the share it is in; everything else with the same 404.
final class FileServing {
    /// The most connections of one peer, four for files and two for lists beside them, and of all.
    static let perPeer = 6
    static let atOnce = 32
    /// The time for which connections stay without a session of their key.
    static let grace = TimeAmount.seconds(30)

    private var connections: [ObjectIdentifier: FileServerConnection] = [:]
    /// The shares that the last requests of connections were for: out of which something is being sent, or is about to be.
    private var sharesInUse: [ObjectIdentifier: [ShareRow]] = [:]
    /// How often shares may have changed.
    private var shareChanges = 0
    private var dials: [PeerID: RequestedDials] = [:]
    private var lists = ListTurns<List>()
    /// The key of entity tags: of this identity, so that a restart changes none.
    private let tagKey: SymmetricKey

    init(_ identity: Identity) {
        tagKey = SymmetricKey(data: identity.secret(for: "hexlist-files-tag-1"))
    }

    func start<Host: FilesHost>(_ host: isolated Host) {
        host.transport.serveFiles(
            for: FileHost(
                mayServe: { [weak host] key in host?.assumeIsolated { $0.serving.mayServe(key, $0) } ?? false },
                serves: { [weak host] connection in
                    guard let host else { return connection.abort() }
                    host.assumeIsolated { $0.serving.serves(connection, $0) }
                },
                wantsFiles: { [weak host] key in host?.assumeIsolated { $0.fetching.wantsConnection(of: key) } ?? false },
                takesFiles: { [weak host] connection in
                    guard let host else { return connection.abort() }
                    host.assumeIsolated { _ = $0.fetching.dialled(connection) }
                }))
    }

    // MARK: Dials that peers ask for

    /// A peer cannot reach this machine and asks to be dialled (`FileDial`): only where its session comes from, only where it is trusted and
    /// may have a connection, and seldom. Whether it comes is seen by the connection; nothing is answered.
    func dial(_ request: DialBack, for session: PeerSession, _ host: isolated some FilesHost) {
        guard let peer = session.peer, let key = session.connection.peerFingerprint, mayServe(key, host) else { return }
        var turns = dials[peer] ?? RequestedDials()
        let open = connections.values.count { $0.peer == key }
        let underWay = dials.values.reduce(0) { $0 + $1.underWay }
        guard open + turns.underWay < Self.perPeer, connections.count + underWay < Self.atOnce, turns.begin(now: host.clocks.now) else {
            return
        }
        dials[peer] = turns
        let target = DialTarget(host: session.connection.remoteAddress, port: request.port)
        host.transport.dialToServeFiles([target], expecting: peer).report.whenSuccess { [weak host] report in
            host?.assumeIsolated { $0.serving.dialEnded(peer, report, $0) }
        }
    }

    private func dialEnded(_ peer: PeerID, _ report: DialReport, _ host: isolated some FilesHost) {
        dials[peer]?.ended(report.isServing, now: host.clocks.now)
        let result = report.summary.map { "\($0)" } ?? "reached"
        host.logger.debug("dialled to serve files", metadata: ["peer.id": "\(peer)", "result": "\(result)"])
        forgetDials(now: host.clocks.now)
    }

    /// Forgets dials that hold nothing back any more.
    private func forgetDials(now: ContinuousClock.Instant) { dials = dials.filter { !$0.value.isOver(now: now) } }

    /// Whether files are being fetched by a peer, so that its session is not idle.
    func isBusy(with peer: PeerID) -> Bool { connections.values.contains { $0.peer.peerID == peer } }

    private func mayServe(_ key: Fingerprint, _ host: isolated some FilesHost) -> Bool {
        !host.isStopping && host.known.trust(of: key) == .trusted && hasSession(key, host) && connections.count < Self.atOnce
            && connections.values.count { $0.peer == key } < Self.perPeer
    }

    private func hasSession(_ key: Fingerprint, _ host: isolated some FilesHost) -> Bool {
        host.sessions.sessions(of: key).contains { $0.machine.isOpen }
    }

    private func serves<Host: FilesHost>(_ connection: FileServerConnection, _ host: isolated Host) {
        connections[ObjectIdentifier(connection)] = connection
        host.logger.debug("files asked for", metadata: ["peer.id": "\(connection.peer.peerID)", "address": "\(connection.remoteAddress)"])
        connection.serve(with: ServedConnection(host))
    }

    fileprivate func closed(_ connection: FileServerConnection) {
        connections[ObjectIdentifier(connection)] = nil
        sharesInUse[ObjectIdentifier(connection)] = nil
    }

    /// A peer is trusted no more: what it fetches ends now.
    func trustEnded(_ peer: PeerID) {
        for connection in connections.values where connection.peer.peerID == peer { connection.abort() }
    }

    /// A last session with a peer ended. Its connections go on for a moment, in which the session may come back.
    func sessionsEnded(_ host: isolated some FilesHost) {
        guard !connections.isEmpty, !host.isStopping else { return }
        host.eventLoop.scheduleTask(in: Self.grace) { [weak host] in
            host?.assumeIsolated { $0.serving.endUnaccompanied($0) }
        }
    }

    private func endUnaccompanied(_ host: isolated some FilesHost) {
        for connection in connections.values where !hasSession(connection.peer, host) { connection.abort() }
    }

    // MARK: Requests

    fileprivate func received<Host: FilesHost>(_ requests: [FileRequest], on connection: FileServerConnection, _ host: isolated Host) {
        let key = ObjectIdentifier(connection)
        sharesInUse[key] = nil
        guard host.known.trust(of: connection.peer) == .trusted else { return connection.answer(requests.map { _ in FileReply.notFound }) }
        let peer = connection.peer.peerID
        let changes = shareChanges
        let files = RequestedFiles(peer: peer, store: host.store, tagKey: tagKey) { [weak host] row in
            host?.assumeIsolated { host in
                host.events.record(
                    .offerFetched, peer: peer, data: ["name": row.name, "bytes": "\(row.size)"], from: .fetches(of: peer), host)
            }
        }
        host.transport.fileThreads.run(on: host.eventLoop) { files.answers(to: requests) }.whenComplete { [weak host] result in
            host?.assumeIsolated { host in
                guard case .success(let made) = result else { return connection.abort() }
                let asked = Asked(requests: requests, connection: connection, shareChanges: changes)
                guard let reading = made.last?.reading else { return host.serving.found(made, asked, host) }
                let list = List(reading: reading, asked: asked, made: made)
                if host.serving.lists.begin(list, of: peer) { host.serving.step(list, host) }
            }
        }
    }

    /// Requests of a connection, and how often shares may have changed before they were looked at.
    private struct Asked: Sendable {
        var requests: [FileRequest]
        var connection: FileServerConnection
        var shareChanges: Int
    }

    /// A list of a folder that is being read: the last of `made`.
    private struct List: Sendable {
        var reading: FolderReading
        var asked: Asked
        var made: [RequestedFiles.Made]
    }

    private func step(_ list: List, _ host: isolated some FilesHost) {
        host.transport.fileThreads.run(on: host.eventLoop) { try list.reading.step() }.whenComplete { [weak host] result in
            host?.assumeIsolated { $0.serving.stepped(list, result, $0) }
        }
    }

    private func stepped(_ list: List, _ result: Result<SharedFolder.Page?, any Error>, _ host: isolated some FilesHost) {
        let connection = list.asked.connection
        let before = Array(list.made.dropLast())
        var isUnfinished = false
        switch result {
        case .success(let page?): found(before + [list.made[before.count].with(page.listing)], list.asked, host)
        case .success(nil): isUnfinished = connections[ObjectIdentifier(connection)] != nil
        case .failure(let fault as FileFault): found(before + [.failed(fault)], list.asked, host)
        case .failure: connection.abort()
        }
        if let next = lists.next(of: connection.peer.peerID, unfinished: isUnfinished ? list : nil) { step(next, host) }
    }

    private func found(_ made: [RequestedFiles.Made], _ asked: Asked, _ host: isolated some FilesHost) {
        let connection = asked.connection
        // Trust may have ended while the files were opened.
        guard host.known.trust(of: connection.peer) == .trusted else { return connection.answer(made.map { _ in FileReply.notFound }) }
        // The store may have been read before a change that came meanwhile.
        guard shareChanges == asked.shareChanges || made.allSatisfy({ $0.share == nil }) else {
            return received(asked.requests, on: connection, host)
        }
        answer(made, on: connection, host)
    }

    private func answer(_ made: [RequestedFiles.Made], on connection: FileServerConnection, _ host: isolated some FilesHost) {
        let shares = made.compactMap(\.share)
        if !shares.isEmpty, connections[ObjectIdentifier(connection)] != nil { sharesInUse[ObjectIdentifier(connection)] = shares }
        for one in made {
            if let fault = one.fault { host.logger.warning("files cannot be read for a peer", metadata: ["error": "\(fault)"]) }
            if let (offer, problem, outbox) = one.lost {
                let peer = connection.peer.peerID
                var data = ["name": offer.name, "reason": problem.rawValue]
                if let outbox { data["outboxID"] = "\(outbox)" }
                host.events.record(.offerFailed, peer: peer, data: data, from: .fetches(of: peer), host)
            }
            guard let offered = one.offered else { continue }
            host.logger.debug(
                "file asked for",
                metadata: ["peer.id": "\(connection.peer.peerID)", "bytes": "\(offered.bytes)", "from": "\(offered.from)"])
        }
        connection.answer(made.map(\.answer))
    }

    /// Shares, or groups that they are for, may have changed: what is sent out of a share that its receiver may read no more ends.
    func sharesChanged(_ host: isolated some FilesHost) {
        shareChanges += 1
        for (key, shares) in sharesInUse {
            guard let connection = connections[key] else { continue }
            let peer = connection.peer.peerID
            host.store.submitRead({ reader in try shares.map { try reader.share($0.name, for: peer) } }) { [host] result in
                host.onLoop { host in
                    guard case .success(let now) = result, host.serving.sharesInUse[key] == shares else { return }
                    if zip(now, shares).allSatisfy({ now, share in now?.leadsWhere(share) ?? false }) { return }
                    host.serving.connections[key]?.abort()
                }
            }
        }
    }
}

extension ShareRow {
    /// Whether the same files are in it.
    fileprivate func leadsWhere(_ other: ShareRow) -> Bool { PeerText.areEqual(path, other.path) && showsHidden == other.showsHidden }
}

/// The dials that one peer asked for, to be served files on: so few that it makes this machine dial no more than it would itself.
struct RequestedDials {
    /// Dials in one `window`.
    static let most = 16
    static let window = Duration.seconds(10)

    private(set) var underWay = 0
    private var count = 0
    private var windowEnds: ContinuousClock.Instant?
    /// The end of the rest after a dial that led nowhere.
    private var restEnds: ContinuousClock.Instant?

    /// - Returns: whether one more may begin; each that does has to be `ended`.
    mutating func begin(now: ContinuousClock.Instant) -> Bool {
        if let restEnds, now < restEnds { return false }
        if windowEnds.map({ now >= $0 }) ?? true { (count, windowEnds) = (0, now + Self.window) }
        guard count < Self.most else { return false }
        count += 1
        underWay += 1
        return true
    }

    mutating func ended(_ reached: Bool, now: ContinuousClock.Instant) {
        underWay -= 1
        restEnds = reached ? nil : now + Self.window
    }

    /// Whether nothing of it counts any more.
    func isOver(now: ContinuousClock.Instant) -> Bool {
        underWay == 0 && (windowEnds ?? now) <= now && (restEnds ?? now) <= now
    }
}

/// Hands the requests of one connection to the node.
private final class ServedConnection<Host: FilesHost>: FileServerDelegate {
    private weak var host: Host?

    init(_ host: Host) { self.host = host }

    func received(_ requests: [FileRequest], on connection: FileServerConnection) {
        guard let host else { return connection.abort() }
        host.assumeIsolated { $0.serving.received(requests, on: connection, $0) }
    }

    func closed(_ connection: FileServerConnection) { host?.assumeIsolated { $0.serving.closed(connection) } }
}
