import Crypto
import HexlistAPI
import HexlistFormats
import HexlistModel
import HexlistNode
import HexlistStore
import HexlistSystem
import Hummingbird

/// `/v1/drops`: lists, adds and removes drop tokens.
struct DropTokenRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/drops") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(Page(items: try await api.store.read { try $0.dropTokens() }.map { Self.view($0) }))
        }
        router.post("/v1/drops") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(try await add(try await RequestInput.requiredShape(request)))
        }
        router.delete("/v1/drops/:drop") { request, context in
            _ = try APIQuery(request)
            return APIReply.json(try await remove(try RequestInput.text(context, "drop")))
        }
    }

    private static func view(_ token: DropToken) -> DropTokenView {
        DropTokenView(
            uuid: token.peer, name: token.name, createdAt: Timestamp(milliseconds: token.createdAt),
            usedAt: token.usedAt.map(Timestamp.init(milliseconds:)))
    }

    private func add(_ wanted: DropTokenRequest) async throws -> DropTokenView {
        let name = wanted.name
        guard name.count <= DropToken.nameLength, name.utf8.count <= 4 * DropToken.nameLength, NormalizedName(name) != nil,
            TerminalText.clean(name).utf8.elementsEqual(name.utf8)
        else {
            throw HexlistError(.badRequest, "The name of a drop token is 1 to \(DropToken.nameLength) printable characters.")
        }
        let status = await api.node.status()
        let hosts = try GuestAddresses.hosts(
            wanted.address, listen: await api.node.configuration.listen,
            hostName: status.discovery.state.known == .running ? MachineName.host() : "")
        let text = GuestKey.random()
        let token = DropToken(
            peer: PeerID(MessageID.random().uuid), name: name, sha256: GuestKey.hash(text), createdAt: Timestamp.now.milliseconds)
        try await api.store.add(token)
        api.drops.add(token)
        let urls = hosts.map { "http://\(HostPort.text($0, status.port))\(DropResponder.path)\(text)" }
        var view = Self.view(token)
        (view.url, view.urls, view.qr) = (urls[0], Array(urls.dropFirst()), QRCode(urls[0])?.svg)
        return view
    }

    /// Removes a drop token.
    /// - Parameter text: the name or the UUID of the token.
    private func remove(_ text: String) async throws -> DropTokenView {
        let key = NormalizedName(text)
        let tokens = try await api.store.read { try $0.dropTokens() }
        guard let token = tokens.first(where: { PeerID(text) == $0.peer || key?.isKey(of: $0.name) ?? false }),
            try await api.store.removeDropToken(token.peer)
        else {
            throw HexlistError(
                .notFound, "There is no drop token \(TerminalText.clean(text, columns: 60)).", hint: "`hexlist drop list` lists them.")
        }
        api.drops.remove(token.peer)
        return Self.view(token)
    }
}
