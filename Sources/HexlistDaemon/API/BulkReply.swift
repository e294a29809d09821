import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird
import NIOCore
import ServiceLifecycle

/// A stream of hexes, one a line, and the reply to it that is written meanwhile.
///
///     body ──► BulkIntake: lines ──► decoded, signed ──► BulkQueue ──► outbox, durable ──► delivered
///     reply ◄── BulkReplyWriter: refused lines, ends, progress, summary ◄──┴────────────────────┘
///
/// Three tasks: one reads and decodes, one puts into the outbox, one writes the reply. A caller that does not read its
/// reply does not keep its hexes from being taken.
struct BulkReply: Sendable {
    struct Wishes: Sendable {
        var wait: SendWait
        /// The longest wait without progress, in seconds.
        var seconds: Double
        var allowsEmpty: Bool
        var reportsAll: Bool
        var reportsProgress: Bool
    }

    private let node: Node
    private let eventLoop: any EventLoop
    private let bulk: OutgoingSend
    private let wakeups: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation
    private let intake: BulkIntake
    private let writer: BulkReplyWriter

    init(api: APIContext, peers: [PeerID], force: Bool, wishes: Wishes) async throws {
        node = api.node
        eventLoop = api.eventLoop
        // The writing task looks at everything there is, so one wake-up is as good as many.
        let (wakeups, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.wakeups, self.wake) = (wakeups, wake)
        let labels = await node.peers.labels(of: peers)
        bulk = try await node.outbox.beginBulk(to: peers, force: force, reportsAll: wishes.reportsAll) { wake.yield(()) }
        intake = BulkIntake(node: node, bulk: bulk, wishes: wishes) { wake.yield(()) }
        writer = BulkReplyWriter(node: node, bulk: bulk, labels: labels, wishes: wishes, intake: intake)
    }

    func response(to request: Request) -> Response {
        let body = request.body
        return Response(
            status: .ok, headers: [.contentType: LocalAPI.bulkType, .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await node.outbox.following(bulk) { try await run(body, &writer) }
                try await writer.finish(nil)
            })
    }

    private func run(_ body: RequestBody, _ response: inout any ResponseBodyWriter) async throws {
        let interval = TimeAmount(BulkReplyWriter.progressInterval)
        let timer = eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in wake.yield(()) }
        defer { timer.cancel() }
        try await withGracefulShutdownHandler {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await intake.read(body) }
                group.addTask { await intake.accept() }
                defer {
                    group.cancelAll()
                    intake.cancel()
                }
                try await writer.report(wakeups, to: &response)
            }
        } onGracefulShutdown: {
            wake.finish()
        }
    }
}
