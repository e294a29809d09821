import HexlistModel
import HexlistTransport
import NIOCore

/// The connection of the request handled by the current task.
enum CallerConnection {
    @TaskLocal static var channel: (any Channel)?

    /// The address of the caller; `nil` on a Unix socket.
    static var remoteAddress: IPAddress? { channel?.remoteAddress?.ipAddress.flatMap { IPAddress.withZone($0)?.address } }

    /// Protects the connection from eviction, because its request has a valid key or token.
    static func markAuthenticated() { channel?.pipeline.fireUserInboundEventTriggered(PlainHTTPAuthenticated()) }

    /// Runs work, and cancels it when the connection is closed. A caller that closed only its sending side still gets the reply.
    /// - Throws: `badRequest` if the connection was closed before `work` was done. `work` has ended by then.
    static func whileOpen<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        guard let channel else { return try await work() }
        let (closing, isClosed) = AsyncStream.makeStream(of: Void.self)
        channel.closeFuture.whenComplete { _ in isClosed.finish() }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                for await _ in closing {}
                return nil
            }
            defer { group.cancelAll() }
            if let value = try await group.next() ?? nil { return value }
            throw HexlistError(.badRequest, "The connection was closed before the request was complete.", hint: "Send it again.")
        }
    }
}
