import HexlistModel
import HexlistTransport
import NIOCore

/// The connection of the request that the current task handles.
enum CallerConnection {
    @TaskLocal static var channel: (any Channel)?

    /// The address of the caller; `nil` on a Unix socket.
    static var remoteAddress: IPAddress? { channel?.remoteAddress?.ipAddress.flatMap { IPAddress.withZone($0)?.address } }

    /// Marks the connection as authenticated, because its request has a valid key or token. It then keeps its slot when the peer port has
    /// too many HTTP connections.
    static func markAuthenticated() { channel?.pipeline.fireUserInboundEventTriggered(PlainHTTPAuthenticated()) }

    /// Runs work, and cancels it when the connection is closed. The connection stays open if the caller closes only its sending direction.
    /// - Throws: `badRequest` if the connection was closed before `work` was done. This is thrown after `work` has ended.
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
