import HexlistAPI
import HexlistModel
import HexlistNode
import Hummingbird

struct PairingRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/pairings") { request, _ in
            _ = try APIQuery(request)
            let read = { @Sendable [supervisor = api.supervisor] in await supervisor.node.pairing.overview() }
            if EventStreamReply.isWanted(request) {
                return EventStreamReply.response(ChangedValueSource(event: "pairings", read: read), api: api)
            }
            return APIReply.json(await read())
        }
        router.post("/v1/pairings", use: begin)
        router.delete("/v1/pairings") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(await api.node.pairing.close())
        }
        router.post("/v1/pairings/:peer/confirm") { request, context in
            _ = try APIQuery(request)
            let wanted: PairingConfirmation = try await RequestInput.requiredShape(request)
            let peer = try await peer(context)
            return APIReply.json(
                try await api.node.pairing.confirm(with: peer, digits: wanted.digits, number: wanted.id))
        }
        router.post("/v1/pairings/:peer/reject") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.pairing.reject(with: try await peer(context)))
        }
    }

    private func begin(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: PairingRequest? = try await RequestInput.shape(request)
        guard let text = wanted?.peer else { return APIReply.json(await api.node.pairing.open()) }
        let peer = try await api.node.pairing.resolve(text)
        return APIReply.json(try await api.node.pairing.request(with: peer))
    }

    private func peer(_ context: BasicRequestContext) async throws -> PeerID {
        try await api.node.peers.resolve(try RequestInput.text(context, "peer")).requiredID()
    }
}
