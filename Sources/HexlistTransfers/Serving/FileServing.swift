import Crypto
import HexlistAPI
import HexlistEventLoop
import HexlistFiles
import HexlistModel
import HexlistStore
import HexlistTransport
import HexlistWire
import Logging
import NIOCore

/// The connections on which peers fetch files of this machine. The permission is checked for each request. A trusted peer gets files that
/// were offered to it, and files in shares that it may read. All other requests get the same answer, 404.
final class FileServing {
    /// Maximum number of connections of a peer: four for files and two for listings.
    static let perPeer = 6
    /// Maximum number of connections of all peers.
    static let atOnce = 32
    /// Time for which connections stay open after the last session with their peer ended.
    static let grace = TimeAmount.seconds(30)

    private var connections: [ObjectIdentifier: FileServerConnection] = [:]
    /// The shares that the last requests on each connection concern. Their data is being sent, or will be.
    private var sharesInUse: [ObjectIdentifier: [ShareRow]] = [:]
    /// Number of times at which shares may have changed.
    private var shareChanges = 0
    private var dials: [PeerID: DialRequestLimit] = [:]
    private var lists = ListScheduler<List>()
    /// The key for entity tags. It is derived from the identity, so tags are the same after a restart.
    private let tagKey: SymmetricKey

    init(_ identity: Identity) {
        tagKey = SymmetricKey(data: identity.secret(for: "hexlist-files-tag-1"))
    }

    func start(_ host: isolated FileTransfers) {
        host.transport.serveFiles(
            for: FileConnectionHost(
                mayServe: { [weak host] key in host?.assumeIsolated { $0.serving.mayServe(key, $0) } ?? false },
                onServerConnection: { [weak host] connection in
                    guard let host else { return connection.abort() }
                    host.assumeIsolated { $0.serving.serves(connection, $0) }
                },
                expectsFiles: { [weak host] key in host?.assumeIsolated { $0.connections.expectsConnection(of: key) } ?? false },
                onClientConnection: { [weak host] connection in
                    guard let host else { return connection.abort() }
                    host.assumeIsolated { _ = $0.connections.dialled(connection) }
                }))
    }

    // MARK: Dials requested by peers

    /// Dials a peer that has requested it (`FileDial`), because it cannot reach this machine. The peer must be trusted, and may not have
    /// too many connections. Only the address of its session is dialled, and at a limited rate. The request gets no other answer than the
    /// connection.
    func dial(_ request: DialBack, for key: Fingerprint, at address: String, _ host: isolated FileTransfers) {
        guard mayServe(key, host) else { return }
        let peer = key.peerID
        var limit = dials[peer] ?? DialRequestLimit()
        let open = connections.values.count { $0.peer == key }
        let inProgress = dials.values.reduce(0) { $0 + $1.inProgress }
        guard open + limit.inProgress < Self.perPeer, connections.count + inProgress < Self.atOnce, limit.begin(now: host.clocks.now) else {
            return
        }
        dials[peer] = limit
        let target = DialTarget(host: address, port: request.port)
        host.transport.dialToServeFiles([target], expecting: peer).report.whenSuccess { [weak host] report in
            host?.assumeIsolated { $0.serving.dialEnded(peer, report, $0) }
        }
    }

    private func dialEnded(_ peer: PeerID, _ report: DialReport, _ host: isolated FileTransfers) {
        dials[peer]?.ended(report.isServing, now: host.clocks.now)
        let result = report.summary.map { "\($0)" } ?? "reached"
        host.logger.debug("dialled to serve files", metadata: ["peer.id": "\(peer)", "result": "\(result)"])
        forgetDials(now: host.clocks.now)
    }

    /// Removes the rate limits of peers for which they no longer apply.
    private func forgetDials(now: ContinuousClock.Instant) { dials = dials.filter { !$0.value.isOver(now: now) } }

    /// Whether files are being served to a peer. Its session is then not idle.
    func isBusy(with peer: PeerID) -> Bool { connections.values.contains { $0.peer.peerID == peer } }

    private func mayServe(_ key: Fingerprint, _ host: isolated FileTransfers) -> Bool {
        !host.isStopping && host.node.isTrusted(key) && host.node.hasSession(with: key) && connections.count < Self.atOnce
            && connections.values.count { $0.peer == key } < Self.perPeer
    }

    private func serves(_ connection: FileServerConnection, _ host: isolated FileTransfers) {
        connections[ObjectIdentifier(connection)] = connection
        host.logger.debug("files asked for", metadata: ["peer.id": "\(connection.peer.peerID)", "address": "\(connection.remoteAddress)"])
        connection.serve(with: FileServingDelegate(host))
    }

    fileprivate func closed(_ connection: FileServerConnection) {
        connections[ObjectIdentifier(connection)] = nil
        sharesInUse[ObjectIdentifier(connection)] = nil
    }

    /// Closes the connections of a peer that is no longer trusted.
    func trustEnded(_ peer: PeerID) {
        for connection in connections.values where connection.peer.peerID == peer { connection.abort() }
    }

    /// Handles the end of the last session with a peer. Its connections stay open for `grace`, because the peer may reconnect.
    func sessionsEnded(_ host: isolated FileTransfers) {
        guard !connections.isEmpty, !host.isStopping else { return }
        host.eventLoop.scheduleTask(in: Self.grace) { [weak host] in
            host?.assumeIsolated { $0.serving.endUnaccompanied($0) }
        }
    }

    private func endUnaccompanied(_ host: isolated FileTransfers) {
        for connection in connections.values where !host.node.hasSession(with: connection.peer) { connection.abort() }
    }

    // MARK: Requests

    fileprivate func received(_ requests: [FileRequest], on connection: FileServerConnection, _ host: isolated FileTransfers) {
        let key = ObjectIdentifier(connection)
        sharesInUse[key] = nil
        guard host.node.isTrusted(connection.peer) else { return connection.answer(requests.map { _ in FileAnswers.notFound }) }
        let peer = connection.peer.peerID
        let changes = shareChanges
        let files = PeerFileRequests(peer: peer, store: host.store, tagKey: tagKey, now: host.clocks.milliseconds) { [weak host] row in
            host?.assumeIsolated { host in
                if !row.isFetched { host.store.recordFetch(of: row.id, by: peer) }
                host.node.record(.offerFetched, peer: peer, data: ["name": row.name, "bytes": "\(row.size)"])
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

    /// Requests on a connection, with the value of `shareChanges` before they were looked up.
    private struct Asked: Sendable {
        var requests: [FileRequest]
        var connection: FileServerConnection
        var shareChanges: Int
    }

    /// A listing of a folder that is being read. It answers the request for which `made` has the last reply.
    private struct List: Sendable {
        var reading: FolderPageReader
        var asked: Asked
        var made: [PeerFileRequests.Reply]
    }

    private func step(_ list: List, _ host: isolated FileTransfers) {
        host.transport.fileThreads.run(on: host.eventLoop) { try list.reading.step() }.whenComplete { [weak host] result in
            host?.assumeIsolated { $0.serving.stepped(list, result, $0) }
        }
    }

    private func stepped(_ list: List, _ result: Result<SharedFolder.Page?, any Error>, _ host: isolated FileTransfers) {
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

    private func found(_ made: [PeerFileRequests.Reply], _ asked: Asked, _ host: isolated FileTransfers) {
        let connection = asked.connection
        // The trust may have ended while the files were being opened.
        guard host.node.isTrusted(connection.peer) else { return connection.answer(made.map { _ in FileAnswers.notFound }) }
        // The shares may have changed since the store was read. The requests are then looked up again.
        guard shareChanges == asked.shareChanges || made.allSatisfy({ $0.share == nil }) else {
            return received(asked.requests, on: connection, host)
        }
        answer(made, on: connection, host)
    }

    private func answer(_ made: [PeerFileRequests.Reply], on connection: FileServerConnection, _ host: isolated FileTransfers) {
        let shares = made.compactMap(\.share)
        if !shares.isEmpty, connections[ObjectIdentifier(connection)] != nil { sharesInUse[ObjectIdentifier(connection)] = shares }
        for one in made {
            if let fault = one.fault { host.logger.warning("files cannot be read for a peer", metadata: ["error": "\(fault)"]) }
            if let (offer, problem, outbox) = one.lost {
                let peer = connection.peer.peerID
                var data = ["name": offer.name, "reason": problem.rawValue]
                if let outbox { data["outboxID"] = "\(outbox)" }
                if offer.problem != problem.rawValue {
                    host.store.recordFailedFetch(of: offer.id, by: peer, reason: problem.rawValue)
                }
                host.node.record(.offerFailed, peer: peer, data: data)
            }
            guard let offered = one.offered else { continue }
            host.logger.debug(
                "file asked for",
                metadata: ["peer.id": "\(connection.peer.peerID)", "bytes": "\(offered.bytes)", "from": "\(offered.from)"])
        }
        connection.answer(made.map(\.answer))
    }

    /// Closes connections on which data of a share is sent that the peer may no longer read. Called when shares or groups may have changed.
    func sharesChanged(_ host: isolated FileTransfers) {
        shareChanges += 1
        for (key, shares) in sharesInUse {
            guard let connection = connections[key] else { continue }
            let peer = connection.peer.peerID
            host.store.submitRead({ reader in try shares.map { try reader.share($0.name, for: peer) } }) { [host] result in
                host.onLoop { host in
                    guard case .success(let now) = result, host.serving.sharesInUse[key] == shares else { return }
                    if zip(now, shares).allSatisfy({ now, share in now?.givesSameAccess(as: share) ?? false }) { return }
                    host.serving.connections[key]?.abort()
                }
            }
        }
    }
}

extension ShareRow {
    /// Whether both shares give access to the same files.
    fileprivate func givesSameAccess(as other: ShareRow) -> Bool {
        PeerTextComparison.areEqual(path, other.path) && showsHidden == other.showsHidden
    }
}

/// Passes the requests on one connection to `FileServing`.
private final class FileServingDelegate: FileServerDelegate {
    private weak var host: FileTransfers?

    init(_ host: FileTransfers) { self.host = host }

    func received(_ requests: [FileRequest], on connection: FileServerConnection) {
        guard let host else { return connection.abort() }
        host.assumeIsolated { $0.serving.received(requests, on: connection, $0) }
    }

    func closed(_ connection: FileServerConnection) { host?.assumeIsolated { $0.serving.closed(connection) } }
}
