import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore
import Hummingbird

struct PeerRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/peers", use: list)
        router.get("/v1/peers/:peer") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await peer(context))
        }
        router.patch("/v1/peers/:peer", use: patch)
        router.post("/v1/peers/:peer/trust", use: trust)
        router.post("/v1/peers/:peer/untrust") { request, context in
            try await change(request, context, from: .trusted, hint: "To unblock it: `hexlist peer unblock`.")
        }
        router.post("/v1/peers/:peer/unblock") { request, context in
            try await change(request, context, from: .blocked, hint: "To stop trusting it: `hexlist peer untrust`.")
        }
        router.post("/v1/peers/:peer/block") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.peers.setTrust(try await id(context), .blocked))
        }
        router.post("/v1/peers/:peer/takeover") { request, context in
            _ = try APIQuery(request)
            let wanted: TakeoverRequest = try await RequestInput.requiredShape(request)
            let old = try await api.node.peers.resolve(wanted.from).requiredID()
            return APIReply.json(try await api.node.peers.takeOver(from: old, by: try await id(context)))
        }
        router.post("/v1/peers/:peer/forget") { request, context in
            _ = try APIQuery(request)
            let peer = try await peer(context)
            try await api.node.peers.forget(try peer.requiredID())
            return APIReply.json(peer)
        }
    }

    private func list(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        let all = try APIQuery(request, allowing: ["all"]).flag("all")
        let read = { @Sendable [supervisor = api.supervisor] in
            Page(items: try await supervisor.node.peers.all().filter { all || $0.state == .verified })
        }
        if EventStreamReply.isWanted(request) { return EventStreamReply.response(ChangedValueSource(event: "peers", read: read), api: api) }
        return APIReply.json(try await read())
    }

    private func patch(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let change: PeerChange = try await RequestInput.requiredShape(request)
        return APIReply.json(try await api.node.peers.change(try await id(context), change))
    }

    /// Trusts a peer. Trust is given to a key, so the request has to contain the whole UUID or the fingerprint.
    private func trust(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let wanted: TrustRequest? = try await RequestInput.shape(request)
        let peer = try await peer(context)
        guard try PeerID(RequestInput.text(context, "peer")) != nil || wanted?.fingerprint != nil else {
            throw HexlistError(
                .badRequest, "To trust a peer, give its whole UUID, or its fingerprint in the body.", hint: "`hexlist peers` lists UUIDs.")
        }
        if let expected = wanted?.fingerprint, Fingerprint(expected) != peer.fingerprint {
            throw HexlistError(
                .badRequest, "The fingerprint of \(peer.uuid?.description ?? "this peer") differs from the given one.",
                hint: "Check it again: `hexlist peer show`.")
        }
        return APIReply.json(try await api.node.peers.setTrust(try peer.requiredID(), .trusted, name: wanted?.name))
    }

    /// Makes a trusted or blocked peer a stranger.
    /// - Parameters:
    ///   - trust: the trust that the request ends, `trusted` or `blocked`. A peer with the opposite trust is refused with `badRequest`.
    ///   - hint: the advice in the error for a peer with the opposite trust.
    private func change(
        _ request: Request, _ context: BasicRequestContext, from trust: Trust, hint: String
    ) async throws -> Response {
        _ = try APIQuery(request)
        let peer = try await peer(context)
        guard peer.trust.known == trust || peer.trust == .stranger else {
            throw HexlistError(.badRequest, "\(peer.uuid?.description ?? "This peer") is \(peer.trust.text).", hint: hint)
        }
        return APIReply.json(try await api.node.peers.setTrust(try peer.requiredID(), .stranger))
    }

    private func peer(_ context: BasicRequestContext) async throws -> PeerView {
        try await api.node.peers.resolve(try RequestInput.text(context, "peer"))
    }

    private func id(_ context: BasicRequestContext) async throws -> PeerID { try await peer(context).requiredID() }
}
