import HexlistDiscovery
import HexlistEventLoop
import HexlistModel
import HexlistSession
import NIOCore
import NIOPosix

@testable import HexlistNode

/// A host that dials nothing. It records the peers it was asked to dial.
actor StandIn: RefusedPeersNotifierHost {
    nonisolated let eventLoop: any EventLoop
    nonisolated let clocks = Clocks.system
    private nonisolated let executor: any SerialExecutor
    let isStopping = false
    let refusedPeersNotifier = RefusedPeersNotifier()
    let registry: PeerRegistry
    var here: Set<PeerID> = []
    var inConflict: Set<PeerID> = []
    private(set) var dialled: [PeerID] = []
    private var dials: [@Sendable (isolated StandIn, Bool) -> Void] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(on eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        executor = eventLoop.executor
        registry = PeerRegistry(on: eventLoop, .system)
    }

    func isQuarantined(_ peer: PeerID) -> Bool { inConflict.contains(peer) }
    func isVerified(_ peer: PeerID) -> Bool { here.contains(peer) }
    func endpoints(of peer: PeerID) -> [Endpoint] { [Endpoint(host: "192.0.2.1", port: 1, via: .static)] }
    func sessions(with peer: PeerID) -> [PeerSession] { [] }
    func isDialling(_ peer: PeerID) -> Bool { false }
    func sendHello(_ session: PeerSession, always: Bool) {}

    func dial(_ peer: PeerID, _ endpoints: [Endpoint], then completion: @escaping @Sendable (isolated StandIn, Bool) -> Void) {
        dialled.append(peer)
        dials.append(completion)
    }

    func failDials() {
        let ending = dials
        dials = []
        for completion in ending { completion(self, false) }
    }

    func run<Value: Sendable>(_ body: @Sendable (isolated StandIn) -> Value) -> Value { body(self) }

    static func with(_ body: (StandIn) async throws -> Void) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        try await body(StandIn(on: group.next()))
        try await group.shutdownGracefully()
    }
}
