import HexlistFormats
import HexlistModel
import HexlistTransport
import NIOCore

/// The sequence of requests for the title of one page: a request for its URL, and one for each redirect. Performs no IO: the caller sends
/// the requests.
struct TitleRequestSequence: Sendable, Equatable {
    static let maximumRedirects = 5

    enum Result: Sendable, Equatable {
        case title(String)
        /// The page has no usable title. Another attempt would have the same result.
        case none
        /// There was no usable response. A later attempt may get one.
        case unavailable
    }

    enum Step: Sendable, Equatable {
        case request(HTTPLinkTarget)
        case end(Result)
    }

    private var target: HTTPLinkTarget
    private var redirects = 0

    /// - Returns: `nil` if the URL is not an unambiguous `http` or `https` URL.
    init?(_ url: String) {
        guard let target = HTTPLinkTarget(url) else { return nil }
        self.target = target
    }

    var first: HTTPLinkTarget { target }

    /// Returns the step after a response.
    mutating func step(after response: TitleResponse) -> Step {
        switch response.kind {
        case .page(let page): return .end(page.text.map(Result.title) ?? .none)
        case .other: return .end(.none)
        case .unavailable: return .end(.unavailable)
        case .redirect(let location):
            redirects += 1
            guard redirects <= Self.maximumRedirects, let next = target.redirected(to: location) else { return .end(.none) }
            target = next
            return .request(next)
        }
    }

    /// Returns the result after a request without a response.
    static func result(after fault: WebFault) -> Result {
        switch fault {
        case .addressNotAllowed, .tls, .notHTTP: .none
        case .noAddress, .unreachable, .timeout: .unavailable
        }
    }
}

/// Reads the response to a request for a title, up to the end of the title.
struct TitleResponse: WebResponseReader {
    enum Kind: Sendable {
        case page(PageTitle)
        case redirect(String)
        /// The response is neither a readable page nor a redirect.
        case other
        /// The server reports a temporary problem, with a status such as 429 or 503.
        case unavailable
    }

    private(set) var kind = Kind.other

    mutating func received(status: Int, fields: WebFields) -> Bool {
        received(
            status: status, type: fields["Content-Type"], encoding: fields["Content-Encoding"], location: fields["Location"])
    }

    /// - Parameter encoding: the value of `Content-Encoding`. A compressed page is not read, because the request did not ask for
    ///   compression.
    /// - Returns: whether to read the body.
    mutating func received(status: Int, type: String?, encoding: String?, location: String?) -> Bool {
        switch status {
        case 200..<300:
            guard encoding.map({ $0.isEmpty || $0.lowercased() == "identity" }) ?? true, let page = PageTitle(contentType: type) else {
                return false
            }
            kind = .page(page)
            return true
        case 301, 302, 303, 307, 308: kind = location.map(Kind.redirect) ?? .other
        case 408, 425, 429, 500...: kind = .unavailable
        default: kind = .other
        }
        return false
    }

    mutating func received(body: ByteBufferView) -> Bool {
        guard case .page(var page) = kind else { return false }
        kind = .other  // releases the second reference to the page, so that `append` does not copy its bytes
        let isOpen = page.append(body)
        kind = .page(page)
        return isOpen
    }
}
