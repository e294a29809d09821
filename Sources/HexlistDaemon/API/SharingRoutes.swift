import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistNode
import Hummingbird

/// `/v1/lists`, `/v1/mine/{id}/share`, `/v1/mine/{id}/seen` and `/v1/mine/{id}/renew`: the hexes of My Hexlist that are shared with other persons, and the offers
/// of these.
struct SharingRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/lists") { request, _ in
            _ = try APIQuery(request)
            let read = { @Sendable [supervisor = api.supervisor] in try await supervisor.node.sharing.all() }
            if EventStreamReply.isWanted(request) {
                return EventStreamReply.response(ChangedValueSource(event: "lists", read: read), api: api)
            }
            return APIReply.json(try await read())
        }
        router.post("/v1/lists/:id/join") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.sharing.join(try RequestInput.id(context)))
        }
        router.post("/v1/lists/:id/decline") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.sharing.decline(try RequestInput.id(context)))
        }
        router.get("/v1/mine/:id/share") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.sharing.hex(try RequestInput.id(context)))
        }
        router.put("/v1/mine/:id/share", use: share)
        router.post("/v1/mine/:id/seen") { request, context in
            _ = try APIQuery(request)
            let wanted: SeenRequest = try await RequestInput.shape(request) ?? SeenRequest()
            if let sequence = wanted.sequence, sequence < 0 {
                throw HexlistError(.badRequest, "`sequence` is the number in `shared` of the hex as it was shown.")
            }
            let count = try await api.node.sharing.markSeen(try RequestInput.id(context), through: wanted.sequence)
            return APIReply.json(ChangeCountJSON(changed: count))
        }
        router.post("/v1/mine/:id/renew") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await api.node.sharing.renew(try RequestInput.id(context)))
        }
    }

    private func share(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let hex = try RequestInput.id(context)
        let wanted: ShareHexRequest = try await RequestInput.requiredShape(request)
        guard (1...Sharing.maximumMembers).contains(wanted.with.count) else {
            throw HexlistError(.badRequest, "One request names 1 to \(Sharing.maximumMembers) peers; \(wanted.with.count) were named.")
        }
        var access: [PeerID: ShareAccess] = [:]
        for member in wanted.with {
            guard let granted = member.access.known else {
                throw HexlistError(
                    .badRequest, "`\(TerminalText.clean(member.access.text, columns: 40))` is no access.",
                    hint: "Access is `read`, `write` or `none`.")
            }
            let peer = granted == .none ? try await self.member(member.peer, of: hex) : try await peer(member.peer)
            guard access.updateValue(granted, forKey: peer) == nil else {
                throw HexlistError(.badRequest, "`\(TerminalText.clean(member.peer, columns: 60))` is named twice.")
            }
        }
        return APIReply.json(try await api.node.sharing.share(hex, with: access))
    }

    /// Returns a member of a shared hex, whose peer may be forgotten meanwhile.
    private func member(_ text: String, of hex: Int64) async throws -> PeerID {
        let shared = try await api.node.sharing.hex(hex)
        if let peer = PeerID(text), shared.peers.contains(where: { $0.uuid == peer }) { return peer }
        let peer = try await peer(text)
        guard shared.peers.contains(where: { $0.uuid == peer }) else {
            throw HexlistError(
                .badRequest, "Hex \(hex) is not shared with `\(TerminalText.clean(text, columns: 60))`.",
                hint: "`hexlist mine share \(hex)` lists its members.")
        }
        return peer
    }

    private func peer(_ text: String) async throws -> PeerID { try await api.node.peers.resolve(text).requiredID() }
}
