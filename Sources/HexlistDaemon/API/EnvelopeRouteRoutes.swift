import HexlistAPI
import HexlistNode
import Hummingbird

/// `/v1/routes`: the routes for hexes to peers that are away.
struct EnvelopeRouteRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/routes") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(Page(items: await api.node.routeList.all()))
        }
        router.post("/v1/routes/:route/test") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.routeList.test(try RequestInput.text(context, "route")))
        }
    }
}
