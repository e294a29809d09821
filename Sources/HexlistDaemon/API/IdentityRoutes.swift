import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird

/// The routes of `/v1/identity`.
struct IdentityRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/identity/rotate", use: rotate)
        router.post("/v1/identity/keep") { request, _ in
            _ = try APIQuery(request)
            try await api.supervisor.keepIdentity()
            return APIReply.json(try await api.status())
        }
    }

    /// Rotates the identity. Replies with the node's status once the node with the new identity is up.
    private func rotate(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        do {
            try await api.supervisor.rotate()
        } catch {
            // Without a node there is nothing to serve; the restarted daemon will use the identity on the disk.
            if await api.supervisor.failure != nil { api.endDaemon() }
            throw error
        }
        return APIReply.json(try await api.status())
    }
}
