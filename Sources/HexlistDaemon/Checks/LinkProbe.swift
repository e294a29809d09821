import HexlistAPI
import HexlistModel
import HexlistTransport
import NIOCore

/// The sequence of requests that find out whether the page of a link exists: HEAD, then GET if the server refuses HEAD. Redirects lead to
/// further requests. Performs no IO: the caller sends the requests.
struct LinkProbe: Sendable, Equatable {
    enum Result: Sendable, Equatable {
        case reachable(status: Int)
        /// The server replied 404 or 410, also to GET.
        case dead(status: Int)
        /// The check did not show whether the page exists. Many servers refuse requests of programs, and failures may be temporary.
        case unclear(LinkCheckReason, status: Int?)
        /// The page was not requested, because the link is not an `http` or `https` URL, or its host is in a network of this machine.
        case skipped(LinkCheckReason)
    }

    enum Step: Sendable, Equatable {
        /// The caller has to send the next request, to `target` with `method`.
        case request
        /// The caller has to repeat the request after this time, and must not send other requests to the host before that.
        case wait(Duration)
        case end(Result)
    }

    /// Maximum time for which a server may postpone a request with `Retry-After`. If it asks for more, the result is `unclear`.
    static let maximumWait = Duration.seconds(30)
    /// Seconds to wait after 429 without `Retry-After`.
    private static let defaultWait = 10

    private(set) var target: HTTPLinkTarget
    private(set) var method = WebMethod.head
    private var redirects = 0
    private var hasWaited = false

    /// - Returns: `nil` if the URL is not an unambiguous `http` or `https` URL.
    init?(_ url: String) {
        guard let target = HTTPLinkTarget(url) else { return nil }
        self.target = target
    }

    /// Returns the step after a response.
    mutating func step(after response: LinkProbeResponse) -> Step {
        let status = response.status
        if let location = response.location {
            redirects += 1
            guard redirects <= TitleRequestSequence.maximumRedirects, let next = target.redirected(to: location) else {
                return .end(.unclear(.redirects, status: status))
            }
            target = next
            return .request
        }
        if status == 429 || status == 503 && response.retryAfter != nil {
            let seconds = response.retryAfter ?? Self.defaultWait
            guard !hasWaited, seconds <= Int(Self.maximumWait.components.seconds) else { return .end(.unclear(.busy, status: status)) }
            hasWaited = true
            return .wait(.seconds(seconds))
        }
        if (200..<400).contains(status) { return .end(.reachable(status: status)) }
        if method == .head {
            method = .get
            return .request
        }
        switch status {
        case 404, 410: return .end(.dead(status: status))
        case 400..<500: return .end(.unclear(.refused, status: status))
        default: return .end(.unclear(.serverFault, status: status))
        }
    }

    /// Returns the result after a request without a response.
    static func result(after fault: WebFault) -> Result {
        switch fault {
        case .addressNotAllowed: .skipped(.ownNetwork)
        case .noAddress: .unclear(.noAddress, status: nil)
        case .unreachable: .unclear(.unreachable, status: nil)
        case .tls: .unclear(.tls, status: nil)
        case .notHTTP: .unclear(.notHTTP, status: nil)
        case .timeout: .unclear(.timeout, status: nil)
        }
    }
}

/// The relevant parts of the head of a response to a probe. The body is not read.
struct LinkProbeResponse: WebResponseReader, Equatable {
    private(set) var status = 0
    /// The address to which the response redirects; `nil` if it does not.
    private(set) var location: String?
    /// The value of `Retry-After`, in seconds; `nil` if it is missing. A date counts as longer than `LinkProbe.maximumWait`.
    private(set) var retryAfter: Int?

    init() {}

    init(status: Int, location: String? = nil, retryAfter: String? = nil) {
        received(status: status, location: location, retryAfter: retryAfter)
    }

    mutating func received(status: Int, fields: WebFields) -> Bool {
        received(status: status, location: fields["Location"], retryAfter: fields["Retry-After"])
        return false
    }

    private mutating func received(status: Int, location: String?, retryAfter: String?) {
        self.status = status
        if [301, 302, 303, 307, 308].contains(status) { self.location = location }
        self.retryAfter = retryAfter.map { text in Int(text).map { max(0, $0) } ?? .max }
    }

    mutating func received(body: ByteBufferView) -> Bool { false }
}
