import Crypto
import HTTPTypes
import HexlistAPI
import HexlistModel
import HexlistStore
import Hummingbird
import NIOCore

/// Answers the requests to the listener of feed addresses. Only `GET` and `HEAD` of `/feed/KEY` are allowed; they read one feed.
struct FeedResponder: Sendable {
    let api: APIContext
    let port: Int

    private static let prefix = "/feed/"

    /// Returns the SHA-256 digest of a key. The store has only this digest.
    static func digest(of key: String) -> [UInt8] { Array(SHA256.hash(data: Array(key.utf8))) }

    /// Returns the URL of a feed address.
    static func url(port: Int, key: String) -> String { "http://127.0.0.1:\(port)\(prefix)\(key)" }

    func respond(to request: Request) async -> Response {
        var response: Response
        do {
            response = try await answer(request)
        } catch {
            response = APIReply.failure(ReplyMiddleware.fault(error, at: Self.prefix, api.logger))
        }
        // With these headers a browser executes nothing in a feed, and does not let other sites load it.
        for (name, value) in [
            ("content-security-policy", "default-src 'none'; sandbox"), ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"), ("cross-origin-resource-policy", "same-origin"), ("cache-control", "private, no-cache"),
        ] {
            if let name = HTTPField.Name(name) { response.headers[name] = value }
        }
        return response
    }

    private func answer(_ request: Request) async throws -> Response {
        // The check of the Host header protects against DNS rebinding.
        guard ["127.0.0.1:\(port)", "localhost:\(port)"].contains(request.head.authority) else {
            throw HexlistError(.forbidden, "Feeds are only at http://127.0.0.1:\(port)/.")
        }
        guard request.method == .get || request.method == .head else { throw HexlistError(.methodNotAllowed, "A feed takes GET.") }
        let path = request.uri.path
        let now = Timestamp.now.milliseconds
        guard path.hasPrefix(Self.prefix),
            let address = try await api.store.useFeedAddress(
                keyDigest: Self.digest(of: String(path.dropFirst(Self.prefix.count))), at: now)
        else {
            throw HexlistError(.notFound, "There is no feed at this address.", hint: "It may have been removed: `hexlist feed --list`.")
        }
        let xml = try await AtomFeedBuilder(api: api).xml(of: address)
        let tag = "\"\(Hexadecimal.encode(SHA256.hash(data: Array(xml.utf8)).prefix(16)).lowercased())\""
        var headers: HTTPFields = [.contentType: "application/atom+xml; charset=utf-8", .eTag: tag]
        if request.headers[values: .ifNoneMatch].contains(where: { $0.contains(tag) }) {
            headers[.contentType] = nil
            return Response(status: .notModified, headers: headers)
        }
        let bytes = request.method == .head ? ByteBuffer() : ByteBuffer(string: xml)
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: bytes))
    }
}
