import Crypto
import HexlistAPI
import HexlistFiles
import HexlistModel
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
    private var sharesInUse: [ObjectIdentifier: ShareRow] = [:]
    /// How often shares may have changed.
    private var shareChanges = 0
    private var dials: [PeerID: RequestedDials] = [:]
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
        guard open + turns.underWay < Self.perPeer, connections.count + underWay < Self.atOnce, turns.begin(now: .now) else { return }
        dials[peer] = turns
        let target = DialTarget(host: session.connection.remoteAddress, port: request.port)
        host.transport.dialToServeFiles([target], expecting: peer).report.whenSuccess { [weak host] report in
            host?.assumeIsolated { $0.serving.dialEnded(peer, report, $0) }
        }
    }

    private func dialEnded(_ peer: PeerID, _ report: DialReport, _ host: isolated some FilesHost) {
        dials[peer]?.ended(report.isServing, now: .now)
        let result = report.summary.map { "\($0)" } ?? "reached"
        host.logger.debug("dialled to serve files", metadata: ["peer.id": "\(peer)", "result": "\(result)"])
        forgetDials(now: .now)
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

    fileprivate func received(_ request: FileRequest, on connection: FileServerConnection, _ host: isolated some FilesHost) {
        sharesInUse[ObjectIdentifier(connection)] = nil
        guard host.known.trust(of: connection.peer) == .trusted, let target = FileRequestTarget(request.target) else {
            return connection.answer(FileReply.notFound)
        }
        let (peer, now) = (connection.peer.peerID, Timestamp.now.milliseconds)
        let changes = shareChanges
        switch target {
        case .offer(let offer):
            look({ try $0.offer(offer.bytes, to: peer, at: now) }, for: connection, host) { row, host in
                host.serving.open(row, for: request, on: connection, host)
            }
        case .shares:
            look({ try $0.shares(for: peer) }, for: connection, host) { rows, host in
                host.serving.make({ .shares(rows) }, for: request, on: connection, host)
            }
        case .entry(let name, let path, let query):
            look({ try $0.share(name, for: peer) }, for: connection, host) { row, host in
                // What was read may be of before a change that was told meanwhile.
                guard host.serving.shareChanges == changes else { return host.serving.received(request, on: connection, host) }
                // Before the file is opened, so that a share which ends meanwhile ends this too.
                let key = ObjectIdentifier(connection)
                if host.serving.connections[key] != nil { host.serving.sharesInUse[key] = row }
                host.serving.make({ try SharedAnswer(row, path, query) }, for: request, on: connection, host)
            }
        }
    }

    /// Reads the store; `nil` is a 404.
    private func look<Found: Sendable, Host: FilesHost>(
        _ read: @escaping @Sendable (StoreReader) throws -> Found?, for connection: FileServerConnection, _ host: isolated Host,
        then: @escaping @Sendable (Found, isolated Host) -> Void
    ) {
        host.store.submitRead(read) { [host] result in
            host.onLoop { host in
                switch result {
                case .success(let found?): then(found, host)
                case .success(nil): connection.answer(FileReply.notFound)
                case .failure(let error):
                    host.logger.error("files on offer could not be read", metadata: ["error": "\(error)"])
                    connection.answer(FileReply.broken)
                }
            }
        }
    }

    // MARK: Shares

    private func make(
        _ make: @escaping @Sendable () throws -> SharedAnswer, for request: FileRequest,
        on connection: FileServerConnection, _ host: isolated some FilesHost
    ) {
        host.transport.fileThreads.run(on: host.eventLoop, make).whenComplete { [weak host] result in
            host?.assumeIsolated { host in
                // Trust may have ended while the file was opened.
                guard host.known.trust(of: connection.peer) == .trusted else { return connection.answer(FileReply.notFound) }
                switch result {
                case .success(.list(let listing)): connection.answer(FileReply.list(listing))
                case .success(.file(let source, let mediaType)):
                    let identity = source.file.identity
                    let tag = EntityTag(of: identity, key: host.serving.tagKey)
                    connection.answer(
                        FileReply.answer(request, size: identity.size, tag: tag, mediaType: mediaType, source: source, sent: nil))
                case .failure(let error):
                    guard let fault = error as? FileFault, case .system = fault else { return connection.answer(FileReply.notFound) }
                    host.logger.warning("share cannot be read", metadata: ["error": "\(fault)"])
                    connection.answer(FileReply.broken)
                }
            }
        }
    }

    /// Shares, or groups that they are for, may have changed: what is sent out of a share that its receiver may read no more ends.
    func sharesChanged(_ host: isolated some FilesHost) {
        shareChanges += 1
        for (key, share) in sharesInUse {
            guard let connection = connections[key] else { continue }
            let peer = connection.peer.peerID
            host.store.submitRead({ try $0.share(share.name, for: peer) }) { [host] result in
                host.onLoop { host in
                    guard case .success(let now) = result, host.serving.sharesInUse[key] == share else { return }
                    if now.map({ PeerText.areEqual($0.path, share.path) && $0.showsHidden == share.showsHidden }) ?? false { return }
                    host.serving.connections[key]?.abort()
                }
            }
        }
    }

    // MARK: Offers

    private func open(_ row: OfferRow, for request: FileRequest, on connection: FileServerConnection, _ host: isolated some FilesHost) {
        let opened = host.transport.fileThreads.run(on: host.eventLoop) {
            guard let identity = FileIdentity(row.identity) else { throw FileFault.changed }
            return OfferedSource(try OfferedFile(path: row.path, remembered: identity))
        }
        opened.whenComplete { [weak host] result in
            host?.assumeIsolated { host in
                // Trust may have ended while the file was opened.
                guard host.known.trust(of: connection.peer) == .trusted else { return connection.answer(FileReply.notFound) }
                switch result {
                case .success(let source): host.serving.answer(row, source, for: request, on: connection, host)
                case .failure(let error):
                    guard let fault = error as? FileFault, case .system = fault else { return connection.answer(FileReply.changed) }
                    host.logger.warning("offered file cannot be read", metadata: ["error": "\(fault)"])
                    connection.answer(FileReply.broken)
                }
            }
        }
    }

    private func answer(
        _ row: OfferRow, _ source: OfferedSource, for request: FileRequest, on connection: FileServerConnection,
        _ host: isolated some FilesHost
    ) {
        let identity = source.file.identity
        let peer = connection.peer.peerID
        let from = request.range.flatMap { FileRange($0) }?.bytes(ofSize: identity.size)?.lowerBound ?? 0
        host.logger.debug("file asked for", metadata: ["peer.id": "\(peer)", "bytes": "\(identity.size)", "from": "\(from)"])
        let answer = FileReply.answer(
            request, size: identity.size, tag: EntityTag(of: identity, key: tagKey), mediaType: row.mediaType, source: source
        ) { [weak host] in
            host?.assumeIsolated { host in
                host.events.record(
                    .offerFetched, peer: peer, data: ["name": row.name, "bytes": "\(row.size)"], from: .fetches(of: peer), host)
            }
        }
        connection.answer(answer)
    }
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

    func received(_ request: FileRequest, on connection: FileServerConnection) {
        guard let host else { return connection.abort() }
        host.assumeIsolated { $0.serving.received(request, on: connection, $0) }
    }

    func closed(_ connection: FileServerConnection) { host?.assumeIsolated { $0.serving.closed(connection) } }
}
