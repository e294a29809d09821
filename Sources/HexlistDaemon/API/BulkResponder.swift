import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird
import NIOCore
import ServiceLifecycle

/// A bulk send: a stream of hexes, one per line, with a reply that is streamed at the same time.
///
///     body ──► BulkIntake ──► BulkQueue ──► outbox ──► peers
///                  │ refused lines           │ outcomes
///     reply ◄──────┴───── BulkReplyWriter ◄──┘
///
/// There are three tasks: one reads and decodes, one stores, one writes the reply. Input is therefore accepted even if the caller does not
/// read the reply.
struct BulkResponder: Sendable {
    struct Options: Sendable {
        var wait: SendWaitGoal
        /// Maximum seconds to wait without progress, for room in the outbox or for delivery outcomes.
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

    init(api: APIContext, peers: [PeerID], force: Bool, options: Options) async throws {
        node = api.node
        eventLoop = api.eventLoop
        // The writer reports all changes at each wake-up, so one buffered wake-up is enough.
        let (wakeups, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.wakeups, self.wake) = (wakeups, wake)
        let labels = await node.peers.labels(of: peers)
        bulk = try await node.outbox.beginBulk(to: peers, force: force, reportsAll: options.reportsAll) { wake.yield(()) }
        intake = BulkIntake(node: node, bulk: bulk, options: options) { wake.yield(()) }
        writer = BulkReplyWriter(node: node, bulk: bulk, labels: labels, options: options, intake: intake)
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
