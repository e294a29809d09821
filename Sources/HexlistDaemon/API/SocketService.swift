import Logging
import NIOCore
import ServiceLifecycle

/// The listener of the local API. If its socket is deleted, another listener in the state folder takes its place, and `hexlist` finds that by
/// the record of the state folder.
struct SocketService: ServiceLifecycle.Service {
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
                defer { isBound.finish() }  // also if it never was
                try await listen(on: socket) {
                    onRunning()
                    isBound.finish()
                }
            }
            tasks.addTask {
                for await _ in waiting {}
                guard !Task.isCancelled, socket.isBound else { return }
                do {
                    guard try await socket.isDeleted() else { return }
                } catch {
                    return api.logger.warning("the socket cannot be watched for its removal", metadata: ["error": "\(error)"])
                }
                do {
                    guard let spare = try socket.spare() else { return }
                    try await listen(on: spare) {
                        api.logger.warning(
                            "the socket was deleted; listening on another one",
                            metadata: ["deleted": "\(socket.path)", "socket": "\(spare.path)"])
                    }
                    spare.remove()
                } catch {
                    api.logger.error("the socket was deleted, and there is no other one; restart hexlistd", metadata: ["error": "\(error)"])
                }
            }
        }
    }

    private func listen(on socket: ControlSocket, _ onRunning: @escaping @Sendable () -> Void) async throws {
        let server = LocalServer.service(api: api, settings: settings, socket: socket.path, group: group) {
            socket.protect()
            onRunning()
        }
        try await server.run()
    }
}
