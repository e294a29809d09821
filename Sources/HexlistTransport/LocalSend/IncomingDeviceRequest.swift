public import HexlistModel
public import NIOCore
import NIOHTTP1

/// One request of a LocalSend device, and the answer to it. Every member is used on the connection's event loop only; that makes the class
/// `Sendable`.
public final class IncomingDeviceRequest: @unchecked Sendable {
    public enum Method: Sendable, Equatable {
        case get, post, other
    }

    public let method: Method
    /// The path of the request, percent-encoded, without the query.
    public let path: String
    /// The certificate whose key the device proved.
    public let certificate: DeviceCertificate
    public let remoteAddress: IPAddress
    /// The announced length of the body in bytes; `nil` if the body is chunked.
    public let contentLength: Int64?
    private let query: [(name: String, value: String)]

    /// Called once, if the connection is closed before the request was answered.
    public var onAbort: (() -> Void)?

    enum Body {
        /// The receiver of the body is not known yet. Reading is paused.
        case unclaimed
        /// The body is collected in memory, up to `limit` bytes.
        case collecting([UInt8], limit: Int, (Result<[UInt8], BodyFault>) -> Void)
        /// The body is passed on in chunks.
        case streaming((ByteBuffer) -> Void, ended: (_ isWhole: Bool) -> Void)
        /// The rest of the body is discarded, at most this number of bytes.
        case discarding(Int)
        case ended
    }

    /// The reason why a body could not be collected.
    public enum BodyFault: Error, Sendable {
        case tooLarge
        case closed
    }

    var body = Body.unclaimed
    private(set) var isAnswered = false
    private(set) var keepsAlive: Bool
    private weak var connection: DeviceServerConnection?

    init(_ head: HTTPRequestHead, certificate: DeviceCertificate, remoteAddress: IPAddress, connection: DeviceServerConnection) {
        method =
            switch head.method {
            case .GET: .get
            case .POST: .post
            default: .other
            }
        let target = head.uri.utf8.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        path = target.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        query = target.dropFirst().first.map(Self.query) ?? []
        contentLength = head.headers.first(name: "content-length").flatMap { Int64($0) }
        keepsAlive = head.isKeepAlive
        self.certificate = certificate
        self.remoteAddress = remoteAddress
        self.connection = connection
    }

    private static func query(_ text: some Collection<UInt8>) -> [(name: String, value: String)] {
        text.split(separator: UInt8(ascii: "&")).map { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
                .map { PercentEncoding.decode(String(decoding: $0, as: UTF8.self)) ?? "" }
            return (parts.first ?? "", parts.count > 1 ? parts[1] : "")
        }
    }

    /// Returns the decoded value of a parameter of the query; `nil` if it is missing or empty.
    public func parameter(_ name: StaticString) -> String? {
        query.first { $0.name.utf8.elementsEqual(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)) }
            .flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    /// Reads the whole body into memory.
    /// - Parameter completion: called once, immediately or later.
    public func collect(limit: Int, completion: @escaping (Result<[UInt8], BodyFault>) -> Void) {
        body = .collecting([], limit: limit, completion)
        if let contentLength, contentLength > Int64(limit) { return fail(.tooLarge) }
        connection?.bodyClaimed()
    }

    /// Passes the body on in chunks.
    /// - Parameter ended: called once, at the end of the body. `isWhole` is `false` if the connection was closed before the end.
    public func stream(_ receive: @escaping (ByteBuffer) -> Void, ended: @escaping (_ isWhole: Bool) -> Void) {
        body = .streaming(receive, ended: ended)
        connection?.bodyClaimed()
    }

    /// Pauses or resumes the reading of the body.
    public func setPaused(_ isPaused: Bool) { connection?.setPaused(isPaused) }

    /// Answers the request. The rest of the body is discarded. No effect if the request was answered, or the connection is closed.
    /// - Parameter json: the body of the answer; empty for none.
    public func answer(_ status: Int, _ json: [UInt8] = []) {
        guard !isAnswered else { return }
        isAnswered = true
        onAbort = nil
        connection?.write(status, json, of: self)
    }

    /// Answers the request, and closes the connection. The next request of the device therefore needs another handshake.
    public func refuse(_ status: Int) {
        keepsAlive = false
        answer(status)
    }

    // MARK: Calls of the connection

    func received(_ bytes: ByteBuffer) {
        switch body {
        case .unclaimed, .ended: break
        case .collecting(var collected, let limit, let completion):
            guard collected.count + bytes.readableBytes <= limit else { return fail(.tooLarge) }
            body = .ended  // otherwise the array would be copied
            collected.append(contentsOf: bytes.readableBytesView)
            body = .collecting(collected, limit: limit, completion)
        case .streaming(let receive, _): receive(bytes)
        case .discarding(let rest):
            body = .discarding(rest - bytes.readableBytes)
            if rest < bytes.readableBytes { connection?.closeSocket() }
        }
    }

    /// - Parameter isWhole: `false` if the connection was closed before the end of the body.
    func bodyEnded(isWhole: Bool) {
        let body = body
        self.body = .ended
        switch body {
        case .collecting(let bytes, _, let completion): completion(isWhole ? .success(bytes) : .failure(.closed))
        case .streaming(_, let ended): ended(isWhole)
        case .unclaimed, .discarding, .ended: break
        }
    }

    private func fail(_ fault: BodyFault) {
        guard case .collecting(_, _, let completion) = body else { return }
        body = .discarding(DeviceServerConnection.discardedBytes)
        completion(.failure(fault))
    }

    func aborted() {
        bodyEnded(isWhole: false)
        guard !isAnswered else { return }
        isAnswered = true
        let onAbort = onAbort
        self.onAbort = nil
        onAbort?()
    }
}
