import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird

/// `/v1/shares`: lists, adds and ends shares, the folders of this machine that peers may read.
struct ShareRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/shares") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(Page(items: try await api.node.transfers.shares.all()))
        }
        router.post("/v1/shares") { request, _ in
            _ = try APIQuery(request)
            let wanted: ShareRequest = try await RequestInput.requiredShape(request)
            return APIReply.json(try await api.node.transfers.shares.add(wanted, protecting: await api.ownFolders()))
        }
        router.delete("/v1/shares/:share") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.transfers.shares.end(try RequestInput.text(context, "share")))
        }
    }
}
