import HexlistAPI
import HexlistFormats
import HexlistModel
import HexlistNode
import HexlistSystem
import Hummingbird

struct IdentityRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.get("/v1/identity") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(api.node.ownKeys)
        }
        router.get("/v1/identity/code") { request, _ in
            _ = try APIQuery(request)
            let status = await api.node.status()
            let listen = ListenAddresses(await api.node.configuration.listen)
            let addresses = OwnAddresses.list(port: status.port, listen: listen)
            var uri = PeerURI(fingerprint: status.fingerprint, name: status.name, addresses: addresses)
            if uri.text.utf8.count > QRCode.longestText { uri.name = "" }
            guard let code = QRCode(uri.text) else { throw HexlistError(.internal, "The QR code of this machine cannot be created.") }
            return APIReply.json(IdentityQRCode(uri: uri.text, svg: code.svg))
        }
        router.post("/v1/identity/rotate", use: rotate)
        router.post("/v1/identity/keep") { request, _ in
            _ = try APIQuery(request)
            try await api.supervisor.keepIdentity()
            return APIReply.json(try await api.status())
        }
    }

    /// Rotates the identity. Replies with the status once the node with the new identity has started.
    private func rotate(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        _ = try APIQuery(request)
        let former = api.node.id
        do {
            try await api.supervisor.rotate()
        } catch {
            // Without a node the daemon cannot serve requests, so it ends. After its restart it uses the identity on the disk.
            if await api.supervisor.failure != nil { api.endDaemon() }
            throw error
        }
        var status = try await api.status()
        let envelopes = await api.node.routeList.envelopes(for: former)
        status.formerEnvelopes = envelopes > 0 ? envelopes : nil
        return APIReply.json(status)
    }
}
