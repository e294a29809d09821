import HexlistAPI
public import HexlistDelivery
public import HexlistEventLoop
public import HexlistModel
import HexlistStore
import HexlistTransport
public import Logging
public import NIOCore

/// The outbox of a node: enqueues hexes, reports their results, and lists, retries and cancels rows. Owns the `DeliveryScheduler`.
///
/// Its executor is the event loop of the node, so that calls between the two need no hop.
public actor Outbox {
    nonisolated let store: HexStore
    public nonisolated let eventLoop: any EventLoop
    public nonisolated let clocks: Clocks
    public nonisolated let logger: Logger
    private nonisolated let metrics: NodeMetrics
    private nonisolated let watchers: Watchers
    private nonisolated let executor: any SerialExecutor
    let limits: NodeConfiguration.Outbox
    public internal(set) var isStopping = false
    public let deliveries: DeliveryScheduler
    /// The node that delivers. `nil` before `connect` and after the node's deinitialisation; no row is sent then.
    weak var node: Node?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(
        _ store: HexStore, _ configuration: NodeConfiguration, on eventLoop: any EventLoop, _ clocks: Clocks,
        watchers: Watchers, metrics: NodeMetrics, logger: Logger
    ) {
        self.store = store
        self.eventLoop = eventLoop
        self.clocks = clocks
        self.watchers = watchers
        self.metrics = metrics
        self.logger = logger
        executor = eventLoop.executor
        limits = configuration.outbox
        let send = configuration.send
        deliveries = DeliveryScheduler(
            concurrentPeers: send.concurrentTransfers, CourierWindow(hexes: send.windowFrames, bytes: send.windowBytes), on: eventLoop,
            clocks)
    }

    /// Starts to deliver for a node. Must be called on the event loop.
    nonisolated func connect(to node: Node) { assumeIsolated { $0.node = node } }

    /// Stops sending. Callers that wait for results wait until `Node.stop` calls `wakeWaiters`.
    func stop() { isStopping = true }

    /// Runs `body` with the node.
    /// - Throws: `daemonUnreachable` if the node no longer exists.
    func withNode<Value: Sendable>(_ body: (isolated Node) throws -> Value) throws -> Value {
        guard let node else { throw HexlistError(.daemonUnreachable, "hexlistd is stopping.") }
        return try node.assumeIsolated(body)
    }

    func labels(of peers: [PeerID]) -> [PeerID: PeerDisplayName] { node?.assumeIsolated { $0.peerList.labels(of: peers) } ?? [:] }

    /// Converts instants of the monotonic clock for display.
    var times: MonotonicToWallClock {
        node?.assumeIsolated { $0.times() } ?? MonotonicToWallClock(wall: clocks.milliseconds, steady: clocks.now)
    }

    // MARK: Change of identity

    /// Stops sending new rows and waits for the results of rows in flight, so that no hex is sent under both the old and the new identity.
    public func drain(for timeout: TimeAmount = .seconds(5)) async {
        _ = await eventLoop.within(timeout, otherwise: false) { done in deliveries.drain { done(true) } }
        deliveries.stopWaitingToDrain()
    }

    /// Resumes sending after `drain`.
    public func resume() { deliveries.resume(self) }
}

extension Outbox: DeliveryHost {
    public nonisolated var outbox: any OutboxStore { store }

    public func isVerified(_ peer: PeerID) -> Bool {
        node?.assumeIsolated { $0.isVerified(peer) || $0.devices.isOnline(peer, $0) } ?? false
    }

    public func isInConflict(with peer: PeerID) -> Bool { node?.assumeIsolated { $0.isInConflict(with: peer) } ?? true }

    public func isUndecided(_ peer: PeerID) -> Bool { node?.assumeIsolated { $0.isUndecided(peer) } ?? true }

    public func hadRows(for peer: PeerID) -> Bool {
        node?.assumeIsolated { ($0.registry[peer] ?? $0.registry.devices[peer])?.queued ?? 0 > 0 } ?? false
    }

    public func reach(_ peer: PeerID, then completion: @escaping @Sendable (isolated Outbox, _ isReached: Bool) -> Void) -> Bool {
        node?.assumeIsolated { node in
            if node.devices.connect(peer, node) {
                onLoop { completion($0, true) }
                return true
            }
            let endpoints = node.endpoints(of: peer)
            guard !endpoints.isEmpty else { return false }
            node.dial(peer, endpoints) { _, isReached in self.assumeIsolated { completion($0, isReached) } }
            return true
        } ?? false
    }

    public nonisolated func answered(_ results: [RowResult]) { metrics.sent(results) }

    public nonisolated func measured(_ time: Duration) { metrics.send.recordNanoseconds(time.nanoseconds) }

    public nonisolated func outboxChanged() { watchers.notify() }

    public func deliveryEnded(with peer: PeerID) { node?.assumeIsolated { $0.deliveryEnded(with: peer) } }
}

/// A send in progress: a single hex or a stream, with its recipients.
public struct OutgoingSend: Sendable {
    let tracked: TrackedSend
    let recipients: [PeerContact]
    /// Whether hexes that failed for a recipient within the last 3 minutes are refused.
    let warns: Bool
}

/// A hex of a stream that was not enqueued.
public struct RefusedHex: Sendable {
    public var line: Int
    public var error: HexlistError
}
