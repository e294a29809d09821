import HTTPTypes
import HexlistAPI
import HexlistJSON
import HexlistModel
import Hummingbird
import Logging
import NIOHTTP1

/// Replies of the local API.
enum APIReply {
    static func json(_ value: some JSONEncodable, status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status, headers: [.contentType: LocalAPI.jsonType], body: ResponseBody(byteBuffer: ByteBuffer(bytes: value.jsonBytes)))
    }

    /// Encodes one page of a list: at most `LocalAPI.pageBytes` of JSON, but at least one item.
    /// - Parameters:
    ///   - rows: the rows read for the page.
    ///   - next: the cursor after the last row; `nil` at the end of the list.
    ///   - behind: the number of hexes that are not in the search index yet; `nil` for lists that do not use the index.
    ///   - cursor: returns the cursor after a row.
    static func page<Row, Cursor: CustomStringConvertible>(
        _ rows: [Row], next: Cursor?, behind: Int64? = nil, cursor: (Row) -> Cursor, shape: (Row) -> some JSONEncodable
    ) -> Response {
        var json = Array(#"{"items":["#.utf8)
        var next = next
        for (index, row) in rows.enumerated() {
            let item = shape(row).jsonBytes
            if index > 0, json.count + item.count > LocalAPI.pageBytes {
                next = cursor(rows[index - 1])
                break
            }
            if index > 0 { json.append(UInt8(ascii: ",")) }
            json += item
        }
        let more = behind.map { #","behind":\#($0)"# } ?? ""
        json += Array(#"],"next":\#(next.map { "\"\($0)\"" } ?? "null")\#(more)}"#.utf8)
        return Response(status: .ok, headers: [.contentType: LocalAPI.jsonType], body: ResponseBody(byteBuffer: ByteBuffer(bytes: json)))
    }

    static func failure(_ error: HexlistError) -> Response { json(ErrorJSON(error), status: status(of: error.code)) }

    static func status(of code: HexlistError.Code) -> HTTPResponse.Status {
        switch code {
        case .badRequest, .configuration: .badRequest
        case .forbidden: .forbidden
        case .tooLarge: .contentTooLarge
        case .headTooLarge: .requestHeaderFieldsTooLarge
        case .notFound: .notFound
        case .methodNotAllowed: .methodNotAllowed
        case .ambiguous, .keyConflict, .changed, .recentlyFailed, .alreadyRunning, .refused, .portInUse: .conflict
        case .gone: .gone
        case .outboxFull, .storageFull: .init(code: 507, reasonPhrase: "Insufficient Storage")
        case .notSupported: .notImplemented
        case .daemonUnreachable: .serviceUnavailable
        case .versionMismatch: .badRequest
        case .identity, .storeUnusable, .stateFolder, .internal: .internalServerError
        }
    }
}

/// Adds the version header to every reply, and converts errors to `ErrorJSON`.
struct ReplyMiddleware: RouterMiddleware {
    typealias Context = BasicRequestContext

    let logger: Logger
    let methods: PathMethods
    let admit: @Sendable (Request) throws -> Void

    func handle(
        _ request: Request, context: BasicRequestContext, next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        var response: Response
        do {
            try admit(request)
            response = try await next(request, context)
        } catch let error as HTTPParserError {
            response = APIReply.failure(ConnectionHandler.explain(error))  // thrown while the body of the request was read
        } catch let error as HTTPError where error.status == .notFound {
            response = unknown(request)
        } catch {
            response = APIReply.failure(Self.fault(error, at: request.uri.path, logger))
        }
        if let name = HTTPField.Name(LocalAPI.versionHeader) {
            response.headers[name] = "\(LocalAPI.version) \(ProtocolLimits.appVersion)"
        }
        return response
    }

    /// Converts an error for the caller. An unexpected error is logged, and becomes `internal`.
    static func fault(_ error: any Error, at path: String, _ logger: Logger) -> HexlistError {
        if let error = error as? HexlistError { return error }
        logger.error("request failed", metadata: ["request.path": "\(path)", "error": "\(error)"])
        return HexlistError(.internal, "hexlistd failed on this request.", hint: "See its log.")
    }

    private func unknown(_ request: Request) -> Response {
        let allowed = methods.allowed(at: request.uri.path)
        let path = TerminalText.clean(request.uri.path, columns: 80)
        guard !allowed.isEmpty else {
            return APIReply.failure(
                HexlistError(
                    .notFound, "There is no \(request.method.rawValue) \(path) in this version.", hint: "Docs/API.md lists all requests."))
        }
        let names = allowed.map(\.rawValue).joined(separator: ", ")
        var response = APIReply.failure(
            HexlistError(.methodNotAllowed, "\(path) takes no \(request.method.rawValue).", hint: "It takes \(names)."))
        response.headers[.allow] = names
        return response
    }
}
