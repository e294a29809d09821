import HexlistDelivery
import HexlistEventLoop
import HexlistModel
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// An in-memory outbox that answers immediately.
final class InMemoryOutbox: OutboxStore {
    struct Content: Sendable {
        var rows: [PeerID: [OutgoingHex]] = [:]
        var states: [Int64: OutboxState] = [:]
        var attempts: [(row: Int64?, counts: Bool, error: String)] = []
    }

    let content = Mutex(Content())
    let rejectLimit = 2

    func add(_ rows: [OutgoingHex], for peer: PeerID) { content.withLock { $0.rows[peer, default: []] += rows } }

    func state(of row: Int64) -> OutboxState? { content.withLock { $0.states[row] } }

    func nextBatch(
        for peer: PeerID, after row: Int64, limit: Int, maxBytes: Int, longest: Int,
        completion: @escaping @Sendable (Result<OutgoingBatch, any Error>) -> Void
    ) {
        let waiting = content.withLock { content in
            (content.rows[peer] ?? []).filter { $0.id > row && content.states[$0.id] == nil && $0.body.count <= longest }
        }
        completion(.success(OutgoingBatch(items: Array(waiting.prefix(limit)), hasMore: waiting.count > limit)))
    }

    func settle(
        _ results: [RowResult], of peer: PeerID, next: Int64?, at now: Int64, isAwaited: Bool,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void
    ) {
        let moves = OutboxStateChange.of(results, peer: peer)
        content.withLock { content in
            for move in moves { for row in move.ids { content.states[row] = move.to } }
        }
        completion(.success(moves))
    }

    func transferFailed(
        to peer: PeerID, blaming row: Int64?, counts: Bool, next: Int64, error: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void
    ) {
        content.withLock { $0.attempts.append((row, counts, error)) }
        completion(.success([]))
    }

    func rejectQueued(
        of peer: PeerID, code: String, message: String, at now: Int64,
        completion: @escaping @Sendable (Result<[OutboxStateChange], any Error>) -> Void
    ) {
        let moves = content.withLock { content in
            let waiting = (content.rows[peer] ?? []).map(\.id).filter { content.states[$0] == nil }.prefix(rejectLimit)
            for row in waiting { content.states[row] = .rejected }
            return waiting.map { OutboxStateChange(id: $0, peer: peer, from: .queued, to: .rejected) }
        }
        completion(.success(moves))
    }
}

/// A courier that stores its rows until a test supplies the results.
///
/// `@unchecked`: used on its host's loop only.
final class InMemoryCourier: Courier, @unchecked Sendable {
    let guarantee: DeliveryGuarantee
    var isOpen = true
    var frameLimit = ProtocolLimits.trustedFrameBytes
    var most = Int.max
    var takesSlot = true
    var wait: CourierWait?
    private(set) var withdrawn: Set<Int64> = []
    private(set) var batches: [[OutgoingHex]] = []
    private(set) var inFlight: Set<Int64> = []

    init(guarantee: DeliveryGuarantee = .stored) { self.guarantee = guarantee }

    var sent: [Int64] { batches.flatMap { $0.map(\.id) } }

    func capacity(of window: CourierWindow) -> CourierCapacity {
        CourierCapacity(hexes: min(window.hexes, most) - inFlight.count, bytes: window.bytes, isIdle: inFlight.isEmpty)
    }

    func send(_ batch: [OutgoingHex]) {
        batches.append(batch)
        inFlight.formUnion(batch.map(\.id))
    }

    func flush() {}

    func close() { isOpen = false }

    func withdraw(_ rows: Set<Int64>) { withdrawn.formUnion(rows) }

    func answered(_ rows: [Int64]) { inFlight.subtract(rows) }
}

/// A host that dials nothing. It records the peers it was asked to dial.
actor TestHost: DeliveryHost {
    nonisolated let eventLoop: any EventLoop
    nonisolated let clocks = Clocks.system
    nonisolated let logger = Logger(label: "test")
    nonisolated let memory = InMemoryOutbox()
    nonisolated var outbox: any OutboxStore { memory }
    private nonisolated let executor: any SerialExecutor
    let isStopping = false
    let deliveries: DeliveryScheduler
    var here: Set<PeerID> = []
    var inConflict: Set<PeerID> = []
    private(set) var reached: [PeerID] = []
    private(set) var forgotten: [PeerID] = []
    private var attempts: [@Sendable (isolated TestHost, Bool) -> Void] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ window: CourierWindow, peers: Int, on eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        executor = eventLoop.executor
        deliveries = DeliveryScheduler(concurrentPeers: peers, window, on: eventLoop, .system)
    }

    func isVerified(_ peer: PeerID) -> Bool { here.contains(peer) }
    func isInConflict(with peer: PeerID) -> Bool { inConflict.contains(peer) }
    func isUndecided(_ peer: PeerID) -> Bool { false }
    func hadRows(for peer: PeerID) -> Bool { false }
    nonisolated func answered(_ results: [RowResult]) {}
    nonisolated func measured(_ time: Duration) {}
    nonisolated func outboxChanged() {}
    func deliveryEnded(with peer: PeerID) { forgotten.append(peer) }

    func reach(_ peer: PeerID, then completion: @escaping @Sendable (isolated TestHost, Bool) -> Void) -> Bool {
        reached.append(peer)
        attempts.append(completion)
        return true
    }

    func failAttempts() {
        let ending = attempts
        attempts = []
        for completion in ending { completion(self, false) }
    }

    func run<Value: Sendable>(_ body: @Sendable (isolated TestHost) -> Value) -> Value { body(self) }

    /// Lets the loop run all tasks submitted so far.
    func settle() async { for _ in 0..<4 { try? await eventLoop.submit {}.get() } }

    static func with(
        window: CourierWindow = CourierWindow(hexes: 1_024, bytes: 8 << 20), peers: Int = 4, _ body: (TestHost) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        try await body(TestHost(window, peers: peers, on: group.next()))
        try await group.shutdownGracefully()
    }
}
