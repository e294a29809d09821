import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird

struct GroupRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/groups") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(Page(items: try await api.node.groups.all()))
        }
        router.post("/v1/groups/:group/add") { request, context in
            APIReply.json(try await api.node.groups.add(try await peers(request), to: try name(request, context)))
        }
        router.post("/v1/groups/:group/remove") { request, context in
            APIReply.json(try await api.node.groups.remove(try await peers(request), from: try name(request, context)))
        }
        router.delete("/v1/groups/:group") { request, context in
            APIReply.json(try await api.node.groups.delete(try name(request, context)))
        }
    }

    private func name(_ request: Request, _ context: BasicRequestContext) throws -> String {
        _ = try APIQuery(request)
        return try RequestInput.text(context, "group")
    }

    private func peers(_ request: Request) async throws -> [String] {
        let wanted: GroupPeersRequest = try await RequestInput.requiredShape(request)
        guard (1...LocalAPI.pageLimit).contains(wanted.peers.count) else {
            throw HexlistError(.badRequest, "One request takes 1 to \(LocalAPI.pageLimit) peers; \(wanted.peers.count) were named.")
        }
        return wanted.peers
    }
}
