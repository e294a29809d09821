import HTTPTypes
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistPage
import Hummingbird

/// What is answered at the page's address: its files, the exchange of a secret for a token, and with that token the operations the page
/// needs. Everything else is refused, whatever asks.
struct PageGate: Sendable {
    let desk: PageServer
    /// The local API without its check for web pages: it is this one that decides.
    let api: RouterResponder<BasicRequestContext>

    /// What a page may do: what it does, and no more. Nothing that names paths of this machine, nothing of its identity, roster and
    /// configuration; of files only that it hands over some itself.
    static let operations = PathMethods([
        ("/v1/web", .get),
        ("/v1/hexes", .get), ("/v1/hexes/{id}", .get), ("/v1/hexes/{id}", .patch), ("/v1/hexes/{id}", .delete),
        ("/v1/hexes/accept", .post), ("/v1/search", .get),
        ("/v1/mine", .post), ("/v1/mine/save", .post), ("/v1/mine/{id}", .patch), ("/v1/mine/{id}/move", .post),
        ("/v1/peers", .get), ("/v1/peers/{peer}", .patch), ("/v1/peers/{peer}/trust", .post),
        ("/v1/peers/{peer}/untrust", .post), ("/v1/peers/{peer}/block", .post), ("/v1/peers/{peer}/unblock", .post),
        ("/v1/peers/{peer}/forget", .post),
        ("/v1/groups", .get), ("/v1/groups/{group}/add", .post), ("/v1/groups/{group}/remove", .post),
        ("/v1/pairings", .get), ("/v1/pairings", .post), ("/v1/pairings", .delete), ("/v1/pairings/{peer}/confirm", .post),
        ("/v1/pairings/{peer}/reject", .post),
        ("/v1/sends", .post), ("/v1/uploads", .post), ("/v1/drafts/{draft}", .get), ("/v1/drafts/{draft}/offer", .post),
        ("/v1/autostart", .delete),
        ("/v1/outbox", .get), ("/v1/outbox/{id}", .get), ("/v1/outbox/{id}/retry", .post),
        ("/v1/outbox/{id}/cancel", .post),
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
        if let file = PageFile.all.first(where: { $0.path == path }) { return try Self.response(file, request) }
        if path == "/session" { return try await session(request) }
        let token = try admitted(request)
        guard Self.operations.allowed(at: path).contains(request.method) else {
            throw HexlistError(.forbidden, "The page does not do this.", hint: "`hexlist` does: `hexlist --help`.")
        }
        guard !LocalAPI.isStream(request.headers[.contentType]) else {
            throw HexlistError(.forbidden, "The page sends one hex at a time.")
        }
        var request = request
        if request.method == .patch { try await checkChange(&request) }
        guard EventStreamReply.isWanted(request) else { return try await api.respond(to: request, context: context) }
        guard path == "/v1/web" else { throw HexlistError(.forbidden, "The page has one stream of events, that of /v1/web.") }
        return try await stream(request, context, token)
    }

    // MARK: Where a request comes from

    /// - Throws: `forbidden` unless the request is for this very address, and no other site had it made.
    private func checkSource(_ request: Request) throws(HexlistError) {
        let host = desk.host
        // A name that was rebound to 127.0.0.1 is another `Host`.
        guard request.head.authority == host else {
            throw HexlistError(.forbidden, "The page is at http://\(host)/ and nowhere else.", hint: "`hexlist web` opens it.")
        }
        for origin in request.headers[values: .origin] where origin != "http://\(host)" {
            throw HexlistError(.forbidden, "Other pages are not answered.")
        }
        let isDocument = request.uri.path == "/"
        for site in Self.values("sec-fetch-site", request) {
            switch site {
            case "same-origin": break
            case "none" where !request.uri.path.hasPrefix("/v1/") && request.uri.path != "/session": break
            // The file `hexlist web` makes redirects to the page.
            case "cross-site"
            where isDocument && request.method == .get && Self.values("sec-fetch-mode", request) == ["navigate"]
                && Self.values("sec-fetch-dest", request) == ["document"]:
                break
            default: throw HexlistError(.forbidden, "Other pages are not answered.")
            }
        }
    }

    private static func values(_ name: String, _ request: Request) -> [String] {
        HTTPField.Name(name).map { request.headers[values: $0] } ?? []
    }

    /// Reads the body of a change.
    /// - Throws: `forbidden` for one of a peer that has its files fetched by themselves.
    private func checkChange(_ request: inout Request) async throws {
        let body = try await APIInput.body(request)
        request.body = RequestBody(buffer: ByteBuffer(bytes: body))
        guard (try? PeerChange(jsonBytes: body))?.fetchLimit == nil else {
            throw HexlistError(.forbidden, "The page fetches no files.", hint: "`hexlist peer set` has a peer's fetched.")
        }
    }

    // MARK: Keys

    private func session(_ request: Request) async throws -> Response {
        guard request.method == .post else { throw HexlistError(.methodNotAllowed, "/session takes POST.") }
        let wanted: PageSecret = try await APIInput.requiredShape(request)
        guard let session = desk.exchange(wanted.secret) else {
            throw HexlistError(.forbidden, "This address was used already, or is too old.", hint: "`hexlist web` opens the page anew.")
        }
        return APIReply.json(session)
    }

    /// The token of the request.
    /// - Throws: `forbidden` where there is none, or no page has it.
    private func admitted(_ request: Request) throws(HexlistError) -> String {
        let marked = request.headers[values: .authorization]
        guard marked.count == 1, marked[0].hasPrefix("Bearer "), case let token = String(marked[0].dropFirst(7)), desk.admits(token) else {
            throw HexlistError(.forbidden, "This page is over.", hint: "`hexlist web` opens it anew.")
        }
        return token
    }

    // MARK: Replies

    private static func response(_ file: PageFile, _ request: Request) throws(HexlistError) -> Response {
        guard request.method == .get || request.method == .head else {
            throw HexlistError(.methodNotAllowed, "\(file.path) takes GET.")
        }
        let bytes = request.method == .head ? [] : file.bytes
        return Response(status: .ok, headers: [.contentType: file.type], body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// The event stream of a page, counted while it is open. One too many ends the oldest, at its next message or comment.
    private func stream(_ request: Request, _ context: BasicRequestContext, _ token: String) async throws -> Response {
        let response = try await api.respond(to: request, context: context)
        guard response.status == .ok else { return response }
        var headers = response.headers
        if let name = HTTPField.Name("hexlist-proof") { headers[name] = desk.proof }
        let body = response.body
        return Response(
            status: .ok, headers: headers,
            body: ResponseBody { [desk] writer in
                let number = desk.streamBegan(token)
                defer { desk.streamEnded(number) }
                let counted = CountedWriter(writer: writer) { desk.isOpen(stream: number) }
                try await body.write(counted)
            })
    }
}

/// Writes as long as the stream is one of those that are open.
private struct CountedWriter: ResponseBodyWriter {
    var writer: any ResponseBodyWriter
    let isOpen: @Sendable () -> Bool

    private struct Superseded: Error {}

    mutating func write(_ buffer: ByteBuffer) async throws {
        guard isOpen() else { throw Superseded() }
        try await writer.write(buffer)
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws { try await writer.finish(trailingHeaders) }
}
