import Hummingbird
import HummingbirdCore
import Logging
import NIOCore

/// An HTTP server on 127.0.0.1 for the processes of this user.
struct LoopbackServer: Sendable {
    /// The port to listen on; 0 for a free port.
    let port: Int
    /// Maximum number of connections; further ones wait.
    let connections: Int
    let api: APIContext
    let respond: @Sendable (Request, BasicRequestContext) async throws -> Response

    /// Serves requests until `ended` finishes, or until the task is cancelled.
    /// - Parameters:
    ///   - onEnd: called before the connections are closed.
    ///   - onOpen: called with the listening channel; no request is answered before it returns.
    func run(
        until ended: AsyncStream<Void>, onEnd: @escaping @Sendable () -> Void = {}, onOpen: @escaping @Sendable (any Channel) async -> Void
    ) async throws {
        // Informational messages of Hummingbird are dropped, because they are not constant strings.
        var logger = api.logger
        logger.logLevel = max(logger.logLevel, .notice)
        let server = Server(
            childChannelSetup: OwnUserChannel(
                http: LocalServer.channel(settings: Settings.API(), logger: logger, respond: respond), staysOnLoop: false
            ) { channel in
                channel.eventLoop.makeCompletedFuture { try LoopbackConnectionUser.user(of: channel) }
            },
            configuration: ServerConfiguration(
                address: .hostname("127.0.0.1", port: port),
                availableConnectionsDelegate: MaximumAvailableConnections(connections, logger: logger)),
            onServerRunning: onOpen, eventLoopGroup: api.eventLoop, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            group.addTask {
                for await _ in ended {}
                onEnd()
                try await server.shutdownGracefully()
            }
            try await group.next()
            group.cancelAll()
            try await group.waitForAll()
        }
    }
}
