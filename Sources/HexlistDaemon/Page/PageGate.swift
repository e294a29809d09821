import HTTPTypes
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistPage
import Hummingbird

#if canImport(Glibc)
    import Glibc
#endif

/// Handles the requests to the page's listener. It serves the files of the page, and exchanges a secret for a token. Requests with a token
/// may use the operations of the API that the page needs. All other requests are refused.
struct PageGate: Sendable {
    let server: PageListenerState
    /// The router of the local API, without `CrossOriginCheck`. `PageGate` makes its own checks instead.
    let api: RouterResponder<BasicRequestContext>
    /// The configuration in effect, with the folder into which files fetched from the page are saved.
    let configuration: EffectiveConfiguration

    /// The operations of the API that the page may use. None of them accepts paths of this machine from the page, or changes its identity,
    /// roster or configuration.
    static let operations = PathMethods([
        ("/v1/web", .get),
        ("/v1/hexes", .get), ("/v1/hexes", .patch), ("/v1/hexes/{id}", .get), ("/v1/hexes/{id}", .patch), ("/v1/hexes/{id}", .delete),
        ("/v1/hexes/accept", .post), ("/v1/search", .get),
        ("/v1/mine", .post), ("/v1/mine/save", .post), ("/v1/mine/check", .post), ("/v1/mine/{id}", .patch), ("/v1/mine/{id}/move", .post),
        ("/v1/mine/log", .get), ("/v1/mine/undo", .post), ("/v1/mine/trash", .get), ("/v1/mine/restore", .post),
        ("/v1/mine/{id}/share", .put), ("/v1/mine/{id}/seen", .post), ("/v1/mine/{id}/renew", .post),
        ("/v1/lists", .get), ("/v1/lists/{number}/join", .post), ("/v1/lists/{number}/decline", .post),
        ("/v1/own/{peer}", .get), ("/v1/own/{peer}", .post), ("/v1/own/{peer}", .delete),
        ("/v1/peers", .get), ("/v1/peers/{peer}", .patch), ("/v1/peers/{peer}/trust", .post),
        ("/v1/peers/{peer}/untrust", .post), ("/v1/peers/{peer}/block", .post), ("/v1/peers/{peer}/unblock", .post),
        ("/v1/peers/{peer}/forget", .post),
        ("/v1/groups", .get), ("/v1/groups/{group}/add", .post), ("/v1/groups/{group}/remove", .post),
        ("/v1/pairings", .get), ("/v1/pairings", .post), ("/v1/pairings", .delete), ("/v1/pairings/{peer}/confirm", .post),
        ("/v1/pairings/{peer}/reject", .post),
        ("/v1/sends", .post), ("/v1/uploads", .post), ("/v1/drafts/{draft}", .get), ("/v1/drafts/{draft}/offer", .post),
        ("/v1/autostart", .delete), ("/v1/feeds", .get), ("/v1/feeds", .post), ("/v1/feeds/{id}", .delete),
        ("/v1/invitations", .get), ("/v1/invitations", .post), ("/v1/invitations/{id}", .get), ("/v1/invitations/{id}", .delete),
        ("/v1/drops", .get), ("/v1/drops", .post), ("/v1/drops/{drop}", .delete),
        ("/v1/outbox", .get), ("/v1/outbox/{id}", .get), ("/v1/outbox/{id}/retry", .post),
        ("/v1/outbox/{id}/cancel", .post),
        ("/v1/transfers", .get), ("/v1/transfers", .post), ("/v1/transfers/summary", .get), ("/v1/transfers/{id}", .get),
        ("/v1/transfers/{id}/cancel", .post), ("/v1/transfers/{id}/retry", .post), ("/v1/transfers/{id}/open", .post),
        ("/v1/transfers/{id}/show", .post), ("/v1/transfers/{id}/image", .get),
        ("/v1/upload-requests", .get), ("/v1/upload-requests/{id}/accept", .post), ("/v1/upload-requests/{id}/refuse", .post),
        ("/v1/services", .get), ("/v1/services/{service}/files", .get), ("/v1/services/{service}/links", .post),
        ("/v1/identity/code", .get), ("/v1/import", .post), ("/v1/export", .post),
    ])

    static let headers: HTTPFields = {
        var fields = HTTPFields()
        let policy =
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'"
        for (name, value) in [
            ("content-security-policy", policy), ("referrer-policy", "no-referrer"), ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"), ("cross-origin-resource-policy", "same-origin"), ("cross-origin-opener-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        return fields
    }()

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        var response: Response
        do {
            response = try await answer(request, context)
        } catch let error as HexlistError {
            response = APIReply.failure(error)
        }
        response.headers.append(contentsOf: Self.headers)
        return response
    }

    private func answer(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
        try checkSource(request)
        let path = request.uri.path
        // Paths with empty components are refused: the router would ignore these components, but the comparisons below would not.
        guard path == "/" || !path.contains("//") && !path.hasSuffix("/") else {
            throw HexlistError(.forbidden, "The page cannot do this.", hint: "Use `hexlist`: `hexlist --help`.")
        }
        if let file = PageFile.all.first(where: { $0.path == path }) { return try Self.response(file, request) }
        if path == "/session" { return try await session(request) }
        if path == "/proof" { return try proof(request) }
        let token = try validToken(request)
        if path == "/session/reload" { return try renewal(request, token) }
        guard Self.operations.allowed(at: path).contains(request.method) else {
            throw HexlistError(.forbidden, "The page cannot do this.", hint: "Use `hexlist`: `hexlist --help`.")
        }
        guard !LocalAPI.isStream(request.headers[.contentType]) else {
            throw HexlistError(.forbidden, "The page can only send one hex at a time.")
        }
        var request = request
        if request.method == .post, path.hasPrefix("/v1/services/") { try await checkLinks(&request) }
        if request.method == .post, path == "/v1/transfers" { try await setDestination(&request) }
        if request.method == .post, path == "/v1/invitations" { try await checkInvitation(&request) }
        guard EventStreamReply.isWanted(request) else { return try await api.respond(to: request, context: context) }
        guard path == "/v1/web" else { throw HexlistError(.forbidden, "The page has only the event stream /v1/web.") }
        return try await stream(request, context, token)
    }

    // MARK: Origin

    /// Checks the headers `Host`, `Origin` and `Sec-Fetch-Site`.
    /// - Throws: `forbidden` for another host name, and for requests of other web sites.
    private func checkSource(_ request: Request) throws(HexlistError) {
        let host = server.host
        // The check of the Host header protects against DNS rebinding.
        guard request.head.authority == host else {
            throw HexlistError(.forbidden, "The page is only at http://\(host)/.", hint: "Open it with `hexlist web`.")
        }
        for origin in request.headers[values: .origin] where origin != "http://\(host)" {
            throw HexlistError(.forbidden, "Requests of other sites are refused.")
        }
        let isDocument = request.uri.path == "/"
        for site in Self.values("sec-fetch-site", request) {
            switch site {
            case "same-origin": break
            case "none" where !request.uri.path.hasPrefix("/v1/") && request.uri.path != "/session": break
            // A navigation from another site to the page is permitted, because `hexlist web` opens a local file that redirects to it.
            case "cross-site"
            where isDocument && request.method == .get && Self.values("sec-fetch-mode", request) == ["navigate"]
                && Self.values("sec-fetch-dest", request) == ["document"]:
                break
            default: throw HexlistError(.forbidden, "Requests of other sites are refused.")
            }
        }
    }

    private static func values(_ name: String, _ request: Request) -> [String] {
        HTTPField.Name(name).map { request.headers[values: $0] } ?? []
    }

    /// Checks the body of a request for links to files of a service.
    /// - Throws: `forbidden` if the request revokes links.
    private func checkLinks(_ request: inout Request) async throws {
        let body = try await RequestInput.body(request)
        request.body = RequestBody(buffer: ByteBuffer(bytes: body))
        guard (try? ServiceLinksRequest(jsonBytes: body))?.revoke != true else {
            throw HexlistError(.forbidden, "The page cannot revoke links.", hint: "Use `hexlist link --revoke`.")
        }
    }

    /// Checks the body of a request that invites guests.
    /// - Throws: `forbidden` if it names paths of this machine.
    private func checkInvitation(_ request: inout Request) async throws {
        let body = try await RequestInput.body(request)
        request.body = RequestBody(buffer: ByteBuffer(bytes: body))
        guard (try? InvitationRequest(jsonBytes: body))?.paths == nil else {
            throw HexlistError(.forbidden, "The page cannot offer files to guests by their paths.", hint: "Use `hexlist invite FILE`.")
        }
    }

    /// Sets the destination of a fetch to the download folder. Creates this folder if needed.
    /// - Throws: `forbidden` if the request names a destination.
    private func setDestination(_ request: inout Request) async throws {
        let wanted: TransferRequest = try await RequestInput.requiredShape(request)
        var fetch = wanted
        (fetch.to, fetch.cache, fetch.keep, fetch.umask) = (nil, nil, nil, nil)
        guard fetch == wanted else { throw HexlistError(.forbidden, "The page can only fetch files into the download folder.") }
        let downloadFolder = configuration.downloadFolder
        if mkdir(downloadFolder, 0o755) != 0, errno != EEXIST { throw HexlistError(.badRequest, "\(downloadFolder) cannot be created.") }
        fetch.to = downloadFolder
        request.body = RequestBody(buffer: ByteBuffer(bytes: fetch.jsonBytes))
    }

    // MARK: Keys

    private func session(_ request: Request) async throws -> Response {
        guard request.method == .post else { throw HexlistError(.methodNotAllowed, "/session takes POST.") }
        let wanted: PageSecret = try await RequestInput.requiredShape(request)
        guard let session = server.exchange(wanted.secret) else {
            throw HexlistError(.forbidden, "This address was already used, or has expired.", hint: "Run `hexlist web` to open a new page.")
        }
        return APIReply.json(session)
    }

    /// Replies to a challenge of a page, before the page sends its token again. The HMAC-SHA-256 of the nonce, with `proof` as the key,
    /// proves that the page is still connected to the same listener.
    private func proof(_ request: Request) throws(HexlistError) -> Response {
        guard request.method == .get, let query = request.uri.query, query.hasPrefix("nonce="), query.utf8.count == 70 else {
            throw HexlistError(.badRequest, "/proof takes GET and a nonce of 64 digits.")
        }
        return APIReply.json(PageSecret(secret: server.answer(to: String(query.dropFirst(6)))))
    }

    /// Replies with a new reload secret for the page, which needs it after a restart of the daemon, because a restart invalidates the
    /// earlier one.
    private func renewal(_ request: Request, _ token: String) throws(HexlistError) -> Response {
        guard request.method == .post else { throw HexlistError(.methodNotAllowed, "/session/reload takes POST.") }
        return APIReply.json(PageSecret(secret: server.renewReload(of: token)))
    }

    /// Returns the token of a request.
    /// - Throws: `forbidden` if the request has no token, or if the token does not belong to an open page.
    private func validToken(_ request: Request) throws(HexlistError) -> String {
        guard let token = request.bearerToken, server.admits(token) else {
            throw HexlistError(.forbidden, "This page has expired.", hint: "Run `hexlist web` to open a new one.")
        }
        return token
    }

    // MARK: Replies

    private static func response(_ file: PageFile, _ request: Request) throws(HexlistError) -> Response {
        guard request.method == .get || request.method == .head else {
            throw HexlistError(.methodNotAllowed, "\(file.path) takes GET.")
        }
        let bytes = request.method == .head ? [] : file.bytes
        return Response(status: .ok, headers: [.contentType: file.mediaType], body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// Returns the event stream of a page. While it is open, it counts towards `PageKeys.maximumStreams`. If there are more streams, the
    /// oldest one ends at its next message or comment.
    private func stream(_ request: Request, _ context: BasicRequestContext, _ token: String) async throws -> Response {
        let response = try await api.respond(to: request, context: context)
        guard response.status == .ok else { return response }
        var headers = response.headers
        if let name = HTTPField.Name("hexlist-proof") { headers[name] = server.proof }
        let body = response.body
        return Response(
            status: .ok, headers: headers,
            body: ResponseBody { [server] writer in
                let number = server.streamBegan(token)
                defer { server.streamEnded(number) }
                let counted = EvictableStreamWriter(writer: writer) { server.isOpen(stream: number) }
                try await body.write(counted)
            })
    }
}

/// Writes an event stream. Throws at the first write after the stream was replaced by a newer one (`PageKeys.maximumStreams`).
private struct EvictableStreamWriter: ResponseBodyWriter {
    var writer: any ResponseBodyWriter
    let isOpen: @Sendable () -> Bool

    private struct StreamReplaced: Error {}

    mutating func write(_ buffer: ByteBuffer) async throws {
        guard isOpen() else { throw StreamReplaced() }
        try await writer.write(buffer)
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { try await writer.finish(trailingHeaders) }
}

extension Request {
    /// The token in the header `Authorization`; `nil` if this header is missing, occurs several times or has another scheme than `Bearer`.
    var bearerToken: String? {
        let fields = headers[values: .authorization]
        let scheme = "Bearer "
        return fields.count == 1 && fields[0].hasPrefix(scheme) ? String(fields[0].dropFirst(scheme.count)) : nil
    }
}
