import Foundation
import HexlistDiscovery
import HexlistModel
import HexlistStore
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import HexlistNode

/// A host that dials nobody: it remembers whom it was asked to dial.
private actor StandIn: DeliveryHost {
    nonisolated let store: HexStore
    nonisolated let eventLoop: any EventLoop
    nonisolated let logger = Logger(label: "test")
    nonisolated let watchers = Watchers()
    private nonisolated let executor: any SerialExecutor
    let configuration = NodeConfiguration(name: "test")
    let isStopping = false
    let deliveries: DeliveryScheduler
    var sends = SendTracker()
    var here: Set<PeerID> = []
    var inConflict: Set<PeerID> = []
    private(set) var dialled: [PeerID] = []
    private var dials: [@Sendable (isolated StandIn, Bool) -> Void] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ store: HexStore, on eventLoop: any EventLoop) {
        self.store = store
        self.eventLoop = eventLoop
        executor = eventLoop.executor
        deliveries = DeliveryScheduler(NodeConfiguration(name: "test").send, on: eventLoop)
    }

    func isInConflict(with peer: PeerID) -> Bool { inConflict.contains(peer) }
    func isVerified(_ peer: PeerID) -> Bool { here.contains(peer) }
    func endpoints(of peer: PeerID) -> [Endpoint] { [Endpoint(host: "192.0.2.1", port: 1, via: .static)] }
    func hadRows(for peer: PeerID) -> Bool { false }
    func wakeWaiters() {}

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
}

@Suite("The scheduler of deliveries")
struct DeliverySchedulerTests {
    private static let peers = (1...2).map { PeerID(UUIDBytes(high: $0, low: 0)) }
    private static let row = PeerDeliveryTests.row(1)

    private static func withHost(_ body: (StandIn) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hexlist-scheduler-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let store = try HexStore(path: folder.appending(path: "hexlist.sqlite").path)
        try await body(StandIn(store, on: group.next()))
        try store.close()
        try await group.shutdownGracefully()
        try FileManager.default.removeItem(at: folder)
    }

    @Test("what a row waits for, and whether that is worth waiting for", arguments: ["conflict", "draining", "away", "here"])
    func waiting(situation: String) async throws {
        try await Self.withHost { host in
            let (reason, isWorthIt) = await host.run { host in
                let peer = Self.peers[0]
                if situation != "away" { host.here = [peer] }
                if situation == "conflict" { host.inConflict = [peer] }
                if situation == "draining" { host.deliveries.drain {} }
                host.deliveries.queued([peer: [Self.row]], again: [], host)
                return (
                    host.deliveries.wait(of: peer, bytes: 10, host).reason,
                    host.deliveries.isWorthWaiting(for: peer, bytes: 10, until: .now + .seconds(9), host)
                )
            }
            let expected: [String: OutboxWait] = ["conflict": .conflict, "draining": .conflict, "away": .peer, "here": .session]
            #expect(reason == expected[situation])
            #expect(isWorthIt == (situation == "here"))
            #expect(await host.dialled == (situation == "here" ? [Self.peers[0]] : []))
        }
    }

    @Test("a peer is dialled once for all its rows; after a failure not before the pause is over, unless a person asks")
    func failures() async throws {
        try await Self.withHost { host in
            let peer = Self.peers[0]
            await host.run { host in
                host.here = Set(Self.peers)
                for _ in 0..<3 { host.deliveries.queued([peer: [Self.row]], again: [], host) }
            }
            #expect(await host.dialled == [peer])
            await host.failDials()
            let (reason, until) = await host.run { host in
                host.deliveries.queued([peer: [Self.row]], again: [peer], host)
                return host.deliveries.wait(of: peer, bytes: 10, host)
            }
            #expect(reason == .retry && until != nil)
            #expect(await host.dialled == [peer])
            await host.run { $0.deliveries.retryNow([peer], $0) }
            #expect(await host.dialled == [peer, peer])
        }
    }

    @Test("while it drains nobody is dialled; afterwards everyone rows wait for is")
    func draining() async throws {
        try await Self.withHost { host in
            let isDrained = await host.run { host in
                host.here = Set(Self.peers)
                nonisolated(unsafe) var isDrained = false
                host.deliveries.drain { isDrained = true }
                host.deliveries.queued([Self.peers[0]: [Self.row], Self.peers[1]: [Self.row]], again: [], host)
                return isDrained
            }
            #expect(isDrained)  // nothing was on its way
            #expect(await host.dialled.isEmpty)
            await host.run { $0.deliveries.resume($0) }
            #expect(await Set(host.dialled) == Set(Self.peers))
        }
    }
}
