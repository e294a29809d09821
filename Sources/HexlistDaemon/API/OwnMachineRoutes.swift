import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird

/// `/v1/own`: the user's other machines, with which My Hexlist is exchanged.
struct OwnMachineRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/own") { request, _ in
            _ = try APIQuery(request)
            let read = { @Sendable [supervisor = api.supervisor] in Page(items: try await supervisor.node.ownMachines.all()) }
            if EventStreamReply.isWanted(request) {
                return EventStreamReply.response(ChangedValueSource(event: "own", read: read), api: api)
            }
            return APIReply.json(try await read())
        }
        router.get("/v1/own/:peer") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.ownMachines.preview(try await peer(context)))
        }
        router.post("/v1/own/:peer") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.ownMachines.add(try await peer(context)))
        }
        router.delete("/v1/own/:peer") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.ownMachines.remove(try await peer(context)))
        }
    }

    private func peer(_ context: BasicRequestContext) async throws -> PeerID {
        try await api.node.peers.resolve(try RequestInput.text(context, "peer")).requiredID()
    }
}
