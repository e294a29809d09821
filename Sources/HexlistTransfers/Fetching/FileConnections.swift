import HexlistFiles
import HexlistModel
import HexlistTransport
import NIOCore

/// The connections on which this machine fetches files: idle ones, those that small files share, and those that peers dial at this
/// machine's request.
final class FileConnections {
    typealias Connected = @Sendable (Result<FileClientConnection, ConnectFault>) -> Void

    /// Maximum time between a request to dial and the peer's connection. The dial of a peer takes at most 3 s.
    private static let dialTime = TimeAmount.seconds(6)

    /// A request to a peer to dial this machine, made by an attempt or for a listing.
    private struct DialRequest {
        var token: BootNonce
        var done: Connected
        var timeout: Scheduled<Void>
    }

    /// The peers that have a session and serve files.
    private var connectedPeers: Set<PeerID> = []
    /// The peers that could not be dialled, but have dialled this machine at its request. Until their session ends, they are not dialled,
    /// but requested immediately to dial.
    private var firewalledPeers: Set<PeerID> = []
    /// The open connections on which nothing is requested now, by peer.
    private var idle: [PeerID: [FileClientConnection]] = [:]
    /// The requests to which no connection has followed yet, at most one for each attempt.
    private var dialRequests: [PeerID: [DialRequest]] = [:]
    private let shared = SharedConnections()

    func stop() {
        for connection in idle.values.joined() { connection.abort() }
        idle = [:]
        shared.stop()
        for one in dialRequests.values.joined() { one.timeout.cancel() }
        dialRequests = [:]
    }

    // MARK: Peers

    /// Whether the peer has a session and serves files.
    func isConnected(_ peer: PeerID) -> Bool { connectedPeers.contains(peer) }

    func peerCame(_ peer: PeerID) { connectedPeers.insert(peer) }

    /// Handles the end of the last session with a peer.
    /// - Returns: whether the peer serves files.
    func peerWent(_ peer: PeerID) -> Bool {
        guard connectedPeers.remove(peer) != nil else { return false }
        firewalledPeers.remove(peer)
        for one in dialRequests.removeValue(forKey: peer) ?? [] {
            one.timeout.cancel()
            one.done(.failure(.unreachable("Its owner went away.")))
        }
        abortIdle(peer)
        return true
    }

    func abortIdle(_ peer: PeerID) {
        for connection in idle.removeValue(forKey: peer) ?? [] { connection.abort() }
    }

    // MARK: Connections

    /// Opens a connection to the peer for one user. It is an idle connection, one that this machine dials, or one that the peer dials.
    /// - Parameter done: called once with the connection, or the reason why there is none.
    func connect(to peer: PeerID, _ host: isolated FileTransfers, _ done: @escaping Connected) {
        while let connection = idle[peer]?.popLast() {
            if connection.isIdle { return done(.success(connection)) }
        }
        let targets = host.node.dialTargets(of: peer)
        guard !targets.isEmpty, !firewalledPeers.contains(peer) else {
            return askToDial(peer, host, done, otherwise: "No address is known at which its owner takes connections.")
        }
        host.transport.dialForFiles(targets, expecting: peer).report.whenSuccess { [weak host] report in
            if let connection = report.files { return done(.success(connection)) }
            let why = "Its owner could not be reached: \(report.summary.map { "\($0)" } ?? "")."
            guard let host, report.summary?.mayBeFirewall == true else { return done(.failure(.unreachable(why))) }
            host.assumeIsolated { $0.connections.askToDial(peer, $0, done, otherwise: why) }
        }
    }

    /// Stores an idle connection for the next request, or closes it if the peer has enough of them.
    func keep(_ connection: FileClientConnection, to peer: PeerID) {
        guard connectedPeers.contains(peer), connection.isIdle, idle[peer, default: []].count < FileServing.perPeer else {
            return connection.abort()
        }
        idle[peer, default: []].append(connection)
    }

    /// Passes the connection to `done` that the small files in a slot of the queue share.
    func share(_ run: TransferAttemptID, _ slot: Int, of peer: PeerID, _ host: isolated FileTransfers, _ done: @escaping Connected) {
        shared.join(run, slot, of: peer, host, done)
    }

    /// Reports that an attempt no longer uses its shared connection.
    func leave(_ run: TransferAttemptID, of peer: PeerID) {
        if let connection = shared.leave(run) { keep(connection, to: peer) }
    }

    // MARK: Connections that the peer dials

    /// Requests a peer, over its session, to dial this machine (`FileDial`).
    /// - Parameter why: the reason for `ConnectFault` if the request cannot be sent.
    private func askToDial(_ peer: PeerID, _ host: isolated FileTransfers, _ done: @escaping Connected, otherwise why: String) {
        guard !host.isStopping else { return done(.failure(.unreachable(why))) }
        let token = BootNonce.random
        let timeout = host.eventLoop.scheduleTask(in: Self.dialTime) { [weak host] in
            guard let host else { return }
            host.assumeIsolated { $0.connections.notDialled(token, by: peer, why) }
        }
        // The request is stored before it is sent, because sending may end the session.
        dialRequests[peer, default: []].append(DialRequest(token: token, done: done, timeout: timeout))
        guard !host.node.askToDial(peer, token: token), let one = takeDialRequest(token, of: peer) else { return }
        one.timeout.cancel()
        done(.failure(.unreachable(why)))
    }

    private func notDialled(_ token: BootNonce, by peer: PeerID, _ why: String) {
        guard let one = takeDialRequest(token, of: peer) else { return }
        firewalledPeers.remove(peer)
        one.done(.failure(.unreachable("\(why) Nor did it come from there when it was asked to.")))
    }

    private func takeDialRequest(_ token: BootNonce, of peer: PeerID) -> DialRequest? {
        guard let index = dialRequests[peer]?.firstIndex(where: { $0.token == token }), let one = dialRequests[peer]?.remove(at: index)
        else {
            return nil
        }
        if dialRequests[peer]?.isEmpty == true { dialRequests[peer] = nil }
        return one
    }

    /// Whether a request to dial was sent to this peer, and its connection has not followed yet.
    func expectsConnection(of key: Fingerprint) -> Bool { dialRequests[key.peerID]?.isEmpty == false }

    /// Handles a connection that a peer has dialled at this machine's request.
    /// - Returns: `false` if there was no request. The connection is closed then.
    @discardableResult
    func dialled(_ connection: FileClientConnection) -> Bool {
        let peer = connection.peer.peerID
        guard var waiting = dialRequests[peer], !waiting.isEmpty else {
            connection.abort()
            return false
        }
        let one = waiting.removeFirst()
        dialRequests[peer] = waiting.isEmpty ? nil : waiting
        one.timeout.cancel()
        firewalledPeers.insert(peer)
        one.done(.success(connection))
        return true
    }
}

/// The reason why no connection could be opened, as a sentence for users.
enum ConnectFault: Error {
    case unreachable(String)
}

extension DialError {
    /// Whether the peer may be online, but behind a firewall.
    fileprivate var mayBeFirewall: Bool {
        switch self {
        case .refused, .unreachable, .timeout, .nameNotFound: true
        case .closed, .notHexlist, .otherIdentity, .cancelled, .failed: false
        }
    }
}
