import Logging
import NIOCore
import ServiceLifecycle

/// Listens for connections to the local API. If the socket file is deleted, this service listens on a spare socket in the state folder, and
/// records that path in the lock file, where `hexlist` finds it. Connections to a deleted socket stay open.
struct SocketService: DaemonService {
    let api: APIContext
    let settings: Settings.API
    let socket: ControlSocket
    let group: any EventLoopGroup
    /// Called once the socket is bound.
    let onRunning: @Sendable () -> Void

    func run() async throws {
        let (waiting, isBound) = AsyncStream.makeStream(of: Void.self)
        try await withThrowingDiscardingTaskGroup { tasks in
            tasks.addTask {
                defer { isBound.finish() }  // also if binding failed
                try await listen(on: socket) {
                    onRunning()
                    isBound.finish()
                }
            }
            tasks.addTask {
                for await _ in waiting {}
                guard !Task.isCancelled, socket.isBound else { return }
                await replaceDeleted()
            }
        }
    }

    /// Waits until the socket is deleted, and replaces it by the spare socket. Then watches the spare socket in the same way.
    private func replaceDeleted() async {
        await withDiscardingTaskGroup { tasks in
            var lost = socket
            while true {
                do {
                    guard try await lost.isDeleted() else { return }
                } catch {
                    return api.logger.warning("the socket cannot be watched for its removal", metadata: ["error": "\(error)"])
                }
                // While a program deletes the state folder, it may delete each new spare socket, so there is a pause before the next one.
                if lost !== socket, await !Self.pause() { return }
                let spare: ControlSocket
                do {
                    // The spare socket is the only replacement. If it is deleted too, it is bound again.
                    guard let next = lost === socket ? try socket.spare() : lost else { return }
                    spare = next
                } catch {
                    return Self.logMissing(error, api.logger)
                }
                let deleted = lost.path
                let (waiting, isBound) = AsyncStream.makeStream(of: Void.self)
                tasks.addTask {
                    defer { isBound.finish() }  // also if binding failed
                    do {
                        try await listen(on: spare) {
                            api.logger.warning(
                                "the socket was deleted; listening on another one",
                                metadata: ["deleted": "\(deleted)", "socket": "\(spare.path)"])
                            isBound.yield()
                        }
                        spare.remove()
                    } catch {
                        Self.logMissing(error, api.logger)
                    }
                }
                var bound = waiting.makeAsyncIterator()
                guard await bound.next() != nil else { return }
                lost = spare
            }
        }
    }

    /// Waits a second.
    /// - Returns: `false` if the daemon stops meanwhile.
    private static func pause() async -> Bool {
        await cancelWhenGracefulShutdown { (try? await Task.sleep(for: .seconds(1))) != nil }
    }

    private static func logMissing(_ error: any Error, _ logger: Logger) {
        logger.error("the socket was deleted, and there is no other one; restart hexlistd", metadata: ["error": "\(error)"])
    }

    private func listen(on socket: ControlSocket, _ onRunning: @escaping @Sendable () -> Void) async throws {
        let server = LocalServer.service(api: api, settings: settings, socket: socket.path, group: group) {
            socket.protect()
            onRunning()
        }
        try await server.run()
    }
}
