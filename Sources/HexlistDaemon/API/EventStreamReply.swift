import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird
import NIOCore
import ServiceLifecycle

/// The source of an event stream's messages.
protocol EventStreamSource: Sendable {
    /// Returns the messages that are available now, in order, and whether another call would return more of them.
    mutating func next() async throws -> (messages: [ServerSentEvent], hasMore: Bool)
}

/// A Server-Sent Events reply, which lasts until the caller disconnects or the daemon stops.
enum EventStreamReply {
    static func isWanted(_ request: Request) -> Bool {
        request.headers[values: .accept].contains { $0.contains(LocalAPI.eventStreamType) }
    }

    /// Returns a reply that sends the available messages immediately, and new ones after each change of the node.
    static func response(_ source: some EventStreamSource, api: APIContext) -> Response {
        let body = ResponseBody { writer in
            var source = source
            try await withWakeups(api) { wakeups in
                var iterator = wakeups.makeAsyncIterator()
                var wakeup: Wakeup? = .tick  // the first tick sends a comment, which shows the caller that the request was accepted
                while let current = wakeup {
                    var hasTold = false
                    var hasMore = true
                    while hasMore {
                        let messages: [ServerSentEvent]
                        (messages, hasMore) = try await source.next()
                        guard !messages.isEmpty else { break }
                        try await writer.write(ByteBuffer(bytes: messages.flatMap(\.bytes)))
                        hasTold = true
                    }
                    if !hasTold, current == .tick { try await writer.write(ByteBuffer(bytes: ServerSentEvent.comment)) }
                    wakeup = await iterator.next()
                }
            }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: LocalAPI.eventStreamType, .cacheControl: "no-store"], body: body)
    }

    private enum Wakeup {
        case changed
        /// A keep-alive is due.
        case tick
    }

    /// Runs `body` with a stream of wake-ups. The stream continues if the node is replaced, and ends when the daemon stops. It buffers at
    /// most two wake-ups; more are not needed, because all changes are read after each one.
    private static func withWakeups(_ api: APIContext, _ body: (AsyncStream<Wakeup>) async throws -> Void) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Wakeup.self, bufferingPolicy: .bufferingNewest(2))
        let interval = TimeAmount.seconds(Int64(LocalAPI.commentSeconds))
        let timer = api.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in continuation.yield(.tick) }
        defer { timer.cancel() }
        let first = api.node
        let changes = first.changes()
        try await withGracefulShutdownHandler {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in changes { continuation.yield(.changed) }
                    var stopped = first
                    while !Task.isCancelled, let node = await api.supervisor.successor(of: stopped) {
                        let changes = node.changes()
                        continuation.yield(.changed)
                        for await _ in changes { continuation.yield(.changed) }
                        stopped = node
                    }
                    continuation.finish()
                }
                defer { group.cancelAll() }
                try await body(stream)
            }
        } onGracefulShutdown: {
            continuation.finish()
        }
    }
}
