import HexlistAPI
import HexlistEventLoop
import HexlistModel
import HexlistStore
import HexlistTransport
import Logging
import NIOPosix
import Synchronization
import TestSupport

@testable import HexlistTransfers

/// The files of one machine without a node: real TLS over loopback, real SQLite in its own folder.
struct Side {
    let transfers: FileTransfers
    let peers: Peers
    let store: HexStore
    let transport: PeerTransport
    let group: MultiThreadedEventLoopGroup
    let folder: TemporaryFolder

    var id: PeerID { transport.identity.peerID }

    /// - Parameter folder: an empty folder.
    init(in folder: TemporaryFolder) async throws {
        self.folder = folder
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var logger = Logger(label: "transfers")
        logger.logLevel = .error
        let identity = try Identity.ephemeral()
        store = try HexStore(path: "\(folder.path)/hexlist.sqlite")
        transport = try PeerTransport(identity: identity, eventLoop: group.next(), logger: logger)
        peers = Peers()
        let configuration = TransfersConfiguration(name: "side", cacheBytes: 1 << 20, cacheDays: 1, cacheFolder: nil, minimumFree: 0)
        transfers = FileTransfers(
            configuration, node: peers, identity: identity, store: store, transport: transport, remotes: nil, on: group.next(), .system,
            logger: logger)
        await transfers.serve()
        let port = try await transport.listen(addresses: ["127.0.0.1"], port: 0) { $0.abort() }
        peers.port.withLock { $0 = port }
        try await transfers.start(fetchingFrom: [])
    }

    /// Trusts another side and has a session with it.
    func meets(_ other: Side) async throws {
        let (peer, port) = (other.id, other.peers.port.withLock { $0 })
        peers.friend.withLock { $0 = (peer, DialTarget(host: "127.0.0.1", port: UInt16(port))) }
        try await group.next().submit { [transfers] in transfers.peerCame(peer) }.get()
    }

    func stop() async throws {
        peers.isOver.withLock { $0 = true }
        await transfers.stop()
        await transport.shutdown()
        try store.close()
        try await group.shutdownGracefully()
    }
}

/// A host with one trusted peer and a session.
final class Peers: TransfersHost {
    let friend = Mutex<(peer: PeerID, target: DialTarget)?>(nil)
    let isOver = Mutex(false)
    let port = Mutex(0)
    let events = Mutex<[EventType]>([])

    private var peer: PeerID? { friend.withLock { $0?.peer } }

    var isStopping: Bool { isOver.withLock { $0 } }
    func isTrusted(_ peer: PeerID) -> Bool { peer == self.peer }
    func isTrusted(_ key: Fingerprint) -> Bool { key.peerID == peer }
    func hasSession(with key: Fingerprint) -> Bool { key.peerID == peer }
    func presence(of peer: PeerID) -> PeerPresence { peer == self.peer ? .present : .absent }
    func label(of peer: PeerID) -> PeerDisplayName? { nil }
    func dialTargets(of peer: PeerID) -> [DialTarget] { friend.withLock { $0.map { [$0.target] } ?? [] } }
    func openSession(with peer: PeerID, notReached: @escaping @Sendable () -> Void) { notReached() }
    func askToDial(_ peer: PeerID, token: BootNonce) -> Bool { false }
    func record(_ type: EventType, peer: PeerID, data: [String: String]) { events.withLock { $0.append(type) } }
    func milliseconds(of instant: ContinuousClock.Instant) -> Int64 { 0 }
    func checkRecipients(_ peers: [PeerID]) throws {}
    func notifyWatchers() {}
    func peers() async throws -> [PeerView] { [] }
    func peer(named name: String) async throws -> PeerView { throw HexlistError(.notFound, "There is no peer \(name).") }
    func peers(named names: [String]) async throws -> [PeerView] { [] }
}
