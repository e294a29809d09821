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

    /// The path and query of the request, percent-encoded.
    public var target: String
    public var body: Body
    /// Maximum bytes of the response's body.
    public var limit: Int
    /// Timeout of the TCP connection and the TLS handshake together.
    public var dialTime = TimeAmount.seconds(5)
    /// Maximum time without progress of the request's body.
    public var idleTime = TimeAmount.seconds(60)
    /// Maximum time from the end of the request's body to the end of the response.
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
    /// The certificate whose key the device proved.
    public var certificate: DeviceCertificate
}

/// The reason why a request to a device failed.
public enum DeviceRequestFault: Error, Sendable, Equatable {
    /// The server has another certificate, with this fingerprint. No byte of the request was sent to it.
    case otherCertificate(Fingerprint)
    /// No connection was established: it was refused, there is no route, or no answer came in time. The text is the end of a sentence.
    case unreachable(String)
    /// The response, or progress of the request, did not come in time.
    case timeout
    /// The connection was closed before the response was complete.
    case closed
    /// A file of the request cannot be read, or has changed. The text is the end of a sentence that begins with the file's name.
    case file(String)
    case cancelled
    /// The peer is not a LocalSend device: its TLS handshake or its response is invalid. The text is the end of a sentence.
    case failed(String)

    /// The end of a sentence that begins with the name of the device.
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
    /// Sends one request to a device, on a connection of its own. No byte of the request is sent before the server has proved its
    /// certificate. Redirects are not followed, and no proxy is used. Called on the event loop.
    /// - Parameters:
    ///   - fingerprint: the fingerprint that the device's certificate must have.
    ///   - completion: called exactly once, after this method has returned.
    /// - Returns: the request, which can be cancelled.
    @discardableResult
    public func send(
        _ request: DeviceRequest, to address: IPAddress, port: Int, expecting fingerprint: Fingerprint,
        then completion: @escaping (Result<DeviceResponse, DeviceRequestFault>) -> Void
    ) -> OutgoingDeviceRequest {
        let call = OutgoingDeviceRequest(request, expecting: fingerprint, state: state.value, completion)
        let identity = identity
        eventLoop.assumeIsolated().execute {
            guard let port = UInt16(exactly: port), let socket = address.socketAddress(port: port),
                let tls = try? DeviceTLS(identity: identity)
            else { return call.fail(.failed("has an invalid address")) }
            call.start(socket, host: HostPort.text("\(address.withoutScope)", port), tls: tls)
        }
        return call
    }

    /// Sends JSON to a device, in the same way as `send`. Thread-safe.
    /// - Parameter timeout: maximum time from the dial to the end of the response.
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
