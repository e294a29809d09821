public import HexlistModel
public import NIOCore

/// A request to a LocalSend device.
public struct DeviceRequest: Sendable {
    public enum Body: Sendable {
        case json([UInt8])
        case bytes([UInt8])
        /// The first `length` bytes of a file.
        case file(any FileSource, length: Int64)
    }

    /// The request target, percent-encoded, with its query.
    public var target: String
    public var body: Body
    /// Maximum bytes of the response's body.
    public var limit: Int
    /// Timeout for the connection and its handshake together.
    public var dialTime = TimeAmount.seconds(5)
    /// Timeout without progress of the body.
    public var idleTime = TimeAmount.seconds(60)
    /// Timeout from the end of the body until the complete response.
    public var responseTime = TimeAmount.seconds(30)

    public init(_ target: String, _ body: Body, limit: Int) {
        self.target = target
        self.body = body
        self.limit = limit
    }
}

/// The response of a device to a request.
public struct DeviceResponse: Sendable {
    public var status: Int
    public var body: [UInt8]
    /// The certificate that the device proved.
    public var certificate: DeviceCertificate
}

/// The reason why a request to a device failed.
public enum DeviceRequestFault: Error, Sendable, Equatable {
    /// The server has another certificate. Nothing was sent to it.
    case otherCertificate(Fingerprint)
    /// There is no connection: it was refused, there is no route, or no answer came in time. The text is the end of a sentence.
    case unreachable(String)
    /// There was no response, or no progress of the request, in time.
    case timeout
    /// The connection was closed before the response.
    case closed
    /// A file of the request cannot be read as it was offered. The text is the end of a sentence that begins with the file's name.
    case file(String)
    case cancelled
    /// The TLS handshake or the response is not that of a device. The text is the end of a sentence.
    case failed(String)

    /// The end of a sentence that begins with the device's name.
    public var text: String {
        switch self {
        case .otherCertificate: "has another certificate"
        case .unreachable(let why), .failed(let why): why
        case .timeout: "does not answer"
        case .closed: "closes the connection"
        case .file(let why): "was to get a file that \(why)"
        case .cancelled: "is not asked any more"
        }
    }
}

extension PeerTransport {
    /// Sends one request to a device on a connection of its own. No byte of the request is sent before the server proved its certificate.
    /// No redirect is followed, and no proxy is used. On the event loop.
    /// - Parameters:
    ///   - fingerprint: the SHA-256 of the expected certificate.
    ///   - completion: called exactly once, and never before this method returns.
    /// - Returns: the request, which can be cancelled.
    @discardableResult
    public func send(
        _ request: DeviceRequest, to address: IPAddress, port: Int, expecting fingerprint: Fingerprint,
        then completion: @escaping (Result<DeviceResponse, DeviceRequestFault>) -> Void
    ) -> DeviceCall {
        let call = DeviceCall(request, expecting: fingerprint, state: state.value, completion)
        let identity = identity
        eventLoop.assumeIsolated().execute {
            guard let port = UInt16(exactly: port), let socket = address.socketAddress(port: port),
                let tls = try? DeviceTLS(identity: identity)
            else { return call.fail(.failed("has an invalid address")) }
            call.start(socket, host: HostPort.text("\(address.withoutScope)", port), tls: tls)
        }
        return call
    }

    /// Sends JSON to a device, as `send` does. Thread-safe.
    /// - Parameter timeout: the time for the whole exchange.
    /// - Returns: a future on the transport's event loop that fails with a `DeviceRequestFault`.
    public func postToDevice(
        at address: IPAddress, port: Int, expecting fingerprint: Fingerprint, path: String, body: [UInt8], limit: Int, timeout: TimeAmount
    ) -> EventLoopFuture<DeviceResponse> {
        let promise = eventLoop.makePromise(of: DeviceResponse.self)
        eventLoop.execute { [self] in
            var request = DeviceRequest(path, .json(body), limit: limit)
            (request.dialTime, request.responseTime) = (timeout, timeout)
            let call = send(request, to: address, port: port, expecting: fingerprint) { promise.completeWith($0.mapError { $0 }) }
            let timer = eventLoop.assumeIsolated().scheduleTask(in: timeout) { call.fail(.timeout) }
            promise.futureResult.whenComplete { _ in timer.cancel() }
        }
        return promise.futureResult
    }
}
