import HexlistAPI
import HexlistFormats
import HexlistModel
import HexlistNode
import Hummingbird

/// `/v1/invitations`: lists, makes and ends guest invitations.
struct InvitationRoutes: Sendable {
    let api: APIContext

    private static let defaultSeconds = 600
    /// Maximum number of paths in an invitation.
    private static let paths = 1_000

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/invitations") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(Page(items: api.guests.active))
        }
        router.post("/v1/invitations") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(try await invite(try await RequestInput.shape(request) ?? InvitationRequest()))
        }
        router.get("/v1/invitations/:id") { request, context in
            _ = try APIQuery(request)
            let id = try id(context)
            let read = { @Sendable [api] in
                guard let invitation = api.guests.invitation(id) else { throw Self.none(id) }
                return invitation
            }
            guard EventStreamReply.isWanted(request) else { return APIReply.json(try read()) }
            return EventStreamReply.response(ChangedValueSource(event: "invitation", read: read), api: api)
        }
        router.delete("/v1/invitations/:id") { request, context in
            _ = try APIQuery(request)
            let id = try id(context)
            guard let ended = api.guests.end(id) else { throw Self.none(id) }
            return APIReply.json(ended)
        }
    }

    private func id(_ context: BasicRequestContext) throws(HexlistError) -> Int { Int(clamping: try RequestInput.id(context)) }

    private static func none(_ id: Int) -> HexlistError {
        HexlistError(.notFound, "There is no invitation \(id).", hint: "`hexlist invite --list` lists active invitations.")
    }

    private func invite(_ wanted: InvitationRequest) async throws -> Invitation {
        let seconds = wanted.seconds ?? Self.defaultSeconds
        guard InvitationRequest.durations.contains(seconds) else {
            throw HexlistError(.badRequest, "An invitation lasts 1 minute to 24 hours.")
        }
        let paths = wanted.paths ?? []
        guard paths.count <= Self.paths, paths.allSatisfy({ $0.hasPrefix("/") }) else {
            throw HexlistError(.badRequest, "An invitation takes at most \(Self.paths) paths, and they are absolute.")
        }
        let node = api.node
        let hosts = try GuestAddresses.hosts(wanted.address, listen: await node.configuration.listen)
        let content = try await GuestReadableContent.read(
            hexes: wanted.hexes ?? [], paths: paths, node: node, protecting: await api.ownFolders())
        let options = GuestInvitations.Options(
            time: .seconds(seconds), isOnce: wanted.once ?? false, isHeld: wanted.held ?? false)
        return try api.guests.invite(content, options, hosts: hosts, port: await node.nameAndPort().port) { QRCode($0)?.svg ?? "" }
    }
}
