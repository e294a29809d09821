public import HexlistModel
public import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// The response of a device to a request.
public struct DeviceResponse: Sendable {
    public var status: Int
    public var body: [UInt8]
    /// The certificate that the device proved.
    public var certificate: DeviceCertificate
}

/// Why a request to a device failed.
public enum DeviceRequestFault: Error, Sendable, Equatable {
    /// The server has another certificate. Nothing was sent to it.
    case otherCertificate(Fingerprint)
    case refused, timeout, closed
    case failed(String)

    /// The end of a sentence that begins with the device's name.
    public var text: String {
        switch self {
        case .otherCertificate: "has another certificate"
        case .refused: "refuses connections"
        case .timeout: "does not answer"
        case .closed: "closes the connection"
        case .failed(let why): why
        }
    }
}

extension PeerTransport {
    /// Sends one request to a device on a connection of its own. No byte of the request is sent before the server proved its certificate.
    /// No redirect is followed. Thread-safe.
    /// - Parameters:
    ///   - fingerprint: the SHA-256 of the expected certificate.
    ///   - body: JSON.
    ///   - limit: maximum bytes of the response's body.
    ///   - timeout: the time for the whole exchange.
    /// - Returns: a future on the transport's event loop that fails with a `DeviceRequestFault`.
    public func postToDevice(
        at address: IPAddress, port: Int, expecting fingerprint: Fingerprint, path: String, body: [UInt8], limit: Int, timeout: TimeAmount
    ) -> EventLoopFuture<DeviceResponse> {
        let promise = eventLoop.makePromise(of: DeviceResponse.self)
        let (state, identity) = (state, identity)
        eventLoop.execute {
            let request = DeviceRequest(fingerprint: fingerprint, path: path, body: body, limit: limit, promise: promise)
            guard let port = UInt16(exactly: port), let socket = address.socketAddress(port: port),
                let tls = try? DeviceTLS(identity: identity)
            else { return promise.fail(DeviceRequestFault.failed("has an invalid address")) }
            request.start(socket, host: address.host, tls: tls, timeout: timeout, state: state.value)
        }
        return promise.futureResult
    }
}

/// One request to a device. Confined to its event loop.
private final class DeviceRequest: ChannelInboundHandler, ChannelGateOwner {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let fingerprint: Fingerprint
    private let path: String
    private let body: [UInt8]
    private let limit: Int
    private let promise: EventLoopPromise<DeviceResponse>
    private var gate: ChannelGate?
    private var channel: (any Channel)?
    private var state: TransportState?
    private var host = ""
    private var other: Fingerprint?
    private var response: DeviceResponse?
    private var certificate: DeviceCertificate?
    private var deadline: Scheduled<Void>?
    private var isEnded = false

    init(fingerprint: Fingerprint, path: String, body: [UInt8], limit: Int, promise: EventLoopPromise<DeviceResponse>) {
        self.fingerprint = fingerprint
        self.path = path
        self.body = body
        self.limit = limit
        self.promise = promise
    }

    func start(_ address: SocketAddress, host: String, tls: DeviceTLS, timeout: TimeAmount, state: TransportState) {
        guard !state.isStopping else { return fail(.closed) }
        self.host = host
        self.state = state
        deadline = state.eventLoop.assumeIsolated().scheduleTask(in: timeout) { self.fail(.timeout) }
        let bound = NIOLoopBound(self, eventLoop: state.eventLoop)
        ClientBootstrap(group: state.eventLoop)
            .connectTimeout(timeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try bound.value.install(on: channel, tls) }
            }
            .connect(to: address)
            .assumeIsolated().whenFailure { error in
                switch DialAttempt.classify(error) {
                case .refused: self.fail(.refused)
                case .timeout: self.fail(.timeout)
                default: self.fail(.failed("cannot be reached"))
                }
            }
    }

    private func install(on channel: any Channel, _ tls: DeviceTLS) throws {
        guard !isEnded else { throw ChannelError.ioOnClosedChannel }
        try SocketOptions.apply(to: channel)
        let gate = ChannelGate(phase: .handshaking(bytes: 0), owner: self)
        self.gate = gate
        let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
        let handler = try tls.makeClientHandler(expecting: fingerprint) { bound.value.other = $0 }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandlers([
            gate, handler,
            DeviceHandshake(tls: handler) { handshake, result in
                switch result {
                case .success(let certificate): self.send(certificate, on: channel, replacing: handshake)
                case .failure(.closed): self.fail(.closed)
                case .failure: self.fail(.failed("does not complete the TLS handshake"))
                }
            },
        ])
    }

    private func send(_ certificate: DeviceCertificate, on channel: any Channel, replacing handshake: DeviceHandshake) {
        guard !isEnded, let gate else { return }
        guard certificate.fingerprint == fingerprint else {
            other = certificate.fingerprint
            return fail(.closed)
        }
        self.certificate = certificate
        gate.handshakeCompleted()
        do {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandlers([
                HTTPRequestEncoder(),
                ByteToMessageHandler(
                    HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: DeviceServerConnection.decoder)),
                self,
            ])
            pipeline.removeHandler(handshake, promise: nil)
        } catch {
            return fail(.failed("\(error)"))
        }
        let headers: HTTPHeaders = [
            "Host": host, "Content-Type": "application/json", "Content-Length": "\(body.count)", "Connection": "close",
        ]
        channel.write(
            HTTPClientRequestPart.head(HTTPRequestHead(version: .http1_1, method: .POST, uri: path, headers: headers)), promise: nil)
        channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
        channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            guard let certificate else { return }
            response = DeviceResponse(status: Int(head.status.code), body: [], certificate: certificate)
        case .body(let bytes):
            guard (response?.body.count ?? 0) + bytes.readableBytes <= limit else { return fail(.failed("answers too much")) }
            response?.body.append(contentsOf: bytes.readableBytesView)
        case .end:
            guard let response else { return fail(.closed) }
            end(.success(response))
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail(.failed("does not answer as LocalSend does")) }

    private func fail(_ fault: DeviceRequestFault) {
        end(.failure(other.map { .otherCertificate($0) } ?? fault))
        gate?.abort()
    }

    private func end(_ result: Result<DeviceResponse, DeviceRequestFault>) {
        guard !isEnded else { return }
        isEnded = true
        deadline?.cancel()
        deadline = nil
        promise.completeWith(result.mapError { $0 })
    }

    // MARK: ChannelGateOwner

    func activated(_ channel: any Channel) -> Bool {
        guard !isEnded, let gate else { return false }
        self.channel = channel
        state?.opened(channel, gate)
        return true
    }

    func firstByte(_ byte: UInt8, on channel: any Channel) -> ChannelGate.FirstByte { .refused }  // never called: this side dialled

    func ended() {
        if let channel {
            fail(.closed)
            state?.ended(channel)
        }
        channel = nil
        gate = nil
    }
}
