import HexlistAPI
import HexlistModel
import HexlistStore
import HexlistTransfers
import HexlistTransport
import HexlistWire

/// The node as the host of file transfers. The reference is weak. If the node no longer exists, it is reported as stopping and without
/// peers.
final class NodeTransfersHost: TransfersHost, @unchecked Sendable {
    /// The node; set once by the node's initialiser, which makes this class `Sendable`.
    weak var node: Node?

    private func onNode<Value: Sendable>(_ body: (isolated Node) -> Value) -> Value? { node?.assumeIsolated(body) }

    var isStopping: Bool { onNode { $0.isStopping } ?? true }

    func isTrusted(_ peer: PeerID) -> Bool { onNode { $0.registry.isTrusted(peer) } ?? false }

    func isTrusted(_ key: Fingerprint) -> Bool { onNode { $0.registry.trust(of: key) == .trusted } ?? false }

    func hasSession(with key: Fingerprint) -> Bool {
        onNode { $0.sessions.sessions(of: key).contains { $0.machine.isOpen } } ?? false
    }

    func presence(of peer: PeerID) -> PeerPresence {
        onNode { node in
            let sessions = node.sessions(with: peer)
            guard sessions.allSatisfy({ $0.machine.peerHello?.servesFiles ?? true }) else { return .withoutFiles }
            return sessions.isEmpty && !node.isVerified(peer) ? .absent : .present
        } ?? .absent
    }

    func label(of peer: PeerID) -> PeerDisplayName? { onNode { $0.peerList.label(of: peer) } ?? nil }

    func dialTargets(of peer: PeerID) -> [DialTarget] {
        onNode { node in
            // The target address of an outbound session is known to work.
            let reached = node.sessions(with: peer).compactMap(\.connection.target)
            return reached + node.endpoints(of: peer).map { DialTarget($0) }.filter { !reached.contains($0) }
        } ?? []
    }

    func openSession(with peer: PeerID, notReached: @escaping @Sendable () -> Void) {
        _ = onNode { node in
            guard node.isVerified(peer), !node.isDialling(peer), node.sessions(with: peer).isEmpty else { return }
            let endpoints = node.endpoints(of: peer)
            guard !endpoints.isEmpty else { return }
            node.dial(peer, endpoints) { _, isConnected in if !isConnected { notReached() } }
        }
    }

    func askToDial(_ peer: PeerID, token: BootNonce) -> Bool {
        onNode { node in
            guard let session = node.sessions(with: peer).last(where: { $0.machine.peerHello?.servesFiles == true }),
                let port = UInt16(exactly: node.port)
            else { return false }
            session.act { $0.askToDialForFiles(DialBack(token: token, port: port), &$1) }
            return true
        } ?? false
    }

    func record(_ type: EventType, peer: PeerID, data: [String: String]) {
        _ = onNode { $0.events.record(type, peer: peer, data: data, from: .fetches(of: peer), $0) }
    }

    func milliseconds(of instant: ContinuousClock.Instant) -> Int64 { onNode { $0.times().milliseconds(of: instant) } ?? 0 }

    func checkRecipients(_ peers: [PeerID]) throws { try present().assumeIsolated { _ = try $0.peerList.recipients(peers) } }

    func notifyWatchers() { node?.notifyWatchers() }

    func peers() async throws -> [PeerView] { try await present().peers.all() }

    func peer(named name: String) async throws -> PeerView { try await present().peers.resolve(name) }

    func peers(named names: [String]) async throws -> [PeerView] {
        try await present().perform { try $0.peerList.resolve(names, comparing: false) }
    }

    private func present() throws -> Node {
        guard let node else { throw HexlistError(.daemonUnreachable, "hexlistd is stopping.") }
        return node
    }
}

extension TransfersConfiguration {
    init(_ configuration: NodeConfiguration) {
        self.init(
            name: configuration.name, cacheBytes: Int64(configuration.files.cacheBytes), cacheDays: configuration.files.cacheDays,
            cacheFolder: configuration.files.cacheFolder, minimumFree: Int64(configuration.limits.diskReserveBytes),
            copyBelow: Int64(configuration.files.copyBelow), downloads: configuration.files.downloads)
    }
}
