import HexlistModel
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// One request to a LocalSend device, with its connection and its response. The connection is closed after the response, even if the device
/// responds before the request's body was sent. Every member is used on its event loop only; that makes the class `Sendable`.
public final class OutgoingDeviceRequest: ChannelGateOwner, @unchecked Sendable {
    private enum Phase {
        case connecting
        /// - Parameters:
        ///   - offset: the offset of the first byte of the file that was not read yet.
        ///   - pieces: the number of chunks that are being read, or that the kernel has not accepted yet.
        ///   - isReading: whether a chunk is being read. Only one is read at a time, so the chunks are written in order.
        case sending(offset: Int64, pieces: Int, isReading: Bool)
        case awaitingResponse
        case receiving(DeviceResponse)
        case ended
    }

    private let request: DeviceRequest
    private let expected: Fingerprint
    private let state: TransportState
    private var phase = Phase.connecting
    private var completion: ((Result<DeviceResponse, DeviceRequestFault>) -> Void)?
    private var host = ""
    private var gate: ChannelGate?
    private var channel: (any Channel)?
    private var certificate: DeviceCertificate?
    /// The fingerprint of the device's certificate, if another one was expected.
    private var other: Fingerprint?
    private var deadline: NIODeadline
    private var timer: (task: Scheduled<Void>, at: NIODeadline)?

    init(
        _ request: DeviceRequest, expecting expected: Fingerprint, state: TransportState,
        _ completion: @escaping (Result<DeviceResponse, DeviceRequestFault>) -> Void
    ) {
        self.request = request
        self.expected = expected
        self.state = state
        self.completion = completion
        deadline = .now() + request.dialTime
    }

    /// - Parameter host: the value of the header `Host`.
    func start(_ address: SocketAddress, host: String, tls: DeviceTLS) {
        guard completion != nil else { return }
        guard !state.isStopping else { return fail(.closed) }
        self.host = host
        watch()
        let bound = NIOLoopBound(self, eventLoop: state.eventLoop)
        ClientBootstrap(group: state.eventLoop)
            .connectTimeout(request.dialTime)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try bound.value.install(on: channel, tls) }
            }
            .connect(to: address)
            .assumeIsolated().whenFailure { error in
                switch DialAttempt.classify(error) {
                case .refused: self.fail(.unreachable("refuses connections"))
                case .timeout: self.fail(.unreachable("does not answer"))
                default: self.fail(.unreachable("cannot be reached"))
                }
            }
    }

    /// Ends the request, and closes its connection immediately. Calls the completion with `cancelled`, unless it was called before.
    public func cancel() { fail(.cancelled) }

    private func install(on channel: any Channel, _ tls: DeviceTLS) throws {
        guard completion != nil else { throw ChannelError.ioOnClosedChannel }
        try SocketOptions.apply(to: channel)
        let gate = ChannelGate(phase: .handshaking(bytes: 0), owner: self)
        self.gate = gate
        let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
        let handler = try tls.makeClientHandler(expecting: expected) { bound.value.other = $0 }
        try channel.pipeline.syncOperations.addHandlers([
            gate, handler,
            DeviceHandshake(tls: handler) { handshake, result in
                switch result {
                case .success(let certificate): self.send(certificate, on: channel, replacing: handshake)
                case .failure: self.fail(.failed("does not complete the TLS handshake"))
                }
            },
        ])
    }

    // MARK: Request

    private func send(_ certificate: DeviceCertificate, on channel: any Channel, replacing handshake: DeviceHandshake) {
        guard completion != nil, let gate else { return }
        // The callback for verification is not called for a resumed TLS session, so the certificate is compared again.
        guard certificate.fingerprint == expected else {
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
                DeviceCallHandler(self),
            ])
            pipeline.removeHandler(handshake, promise: nil)
        } catch {
            return fail(.failed("\(error)"))
        }
        let (type, length) =
            switch request.body {
            case .json(let bytes): ("application/json", Int64(bytes.count))
            case .bytes(let bytes): ("application/octet-stream", Int64(bytes.count))
            case .file(_, let length): ("application/octet-stream", length)
            }
        let headers: HTTPHeaders = ["Host": host, "Content-Type": type, "Content-Length": "\(length)", "Connection": "close"]
        channel.write(
            HTTPClientRequestPart.head(HTTPRequestHead(version: .http1_1, method: .POST, uri: request.target, headers: headers)),
            promise: nil)
        phase = .sending(offset: 0, pieces: 0, isReading: false)
        restart(request.idleTime)
        switch request.body {
        case .json(let bytes), .bytes(let bytes):
            channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: bytes))), promise: nil)
            bodyEnded()
        case .file:
            channel.flush()
            sendMore()
        }
    }

    /// Reads the next chunk of the file, if fewer than `FileLimits.pieces` are in memory.
    private func sendMore() {
        guard case .sending(let offset, let pieces, isReading: false) = phase, case .file(let source, let length) = request.body else {
            return
        }
        guard offset < length else {
            if pieces == 0 { bodyEnded() }
            return
        }
        guard pieces < FileLimits.pieces else { return }
        let count = Int(min(length - offset, Int64(FileLimits.pieceBytes)))
        let isLast = offset + Int64(count) == length
        phase = .sending(offset: offset + Int64(count), pieces: pieces + 1, isReading: true)
        state.fileThreads.run(on: state.eventLoop) { try source.read(count, at: offset, isLast: isLast) }
            .assumeIsolated().whenComplete { self.chunkRead($0) }
    }

    private func chunkRead(_ result: Result<ByteBuffer, any Error>) {
        guard case .sending(let offset, let pieces, _) = phase, let channel else { return }
        phase = .sending(offset: offset, pieces: pieces, isReading: false)
        switch result {
        case .failure(let error): fail(.file("\(error)"))
        case .success(let piece):
            let taken = state.eventLoop.makePromise(of: Void.self)
            taken.futureResult.assumeIsolated().whenSuccess { self.chunkTaken() }
            channel.writeAndFlush(HTTPClientRequestPart.body(.byteBuffer(piece)), promise: taken)
            sendMore()
        }
    }

    private func chunkTaken() {
        guard case .sending(let offset, let pieces, let isReading) = phase else { return }
        phase = .sending(offset: offset, pieces: pieces - 1, isReading: isReading)
        restart(request.idleTime)
        sendMore()
    }

    private func bodyEnded() {
        guard let channel else { return }
        phase = .awaitingResponse
        restart(request.responseTime)
        channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    }

    // MARK: Response

    fileprivate func received(_ part: HTTPClientResponsePart, _ context: ChannelHandlerContext) {
        switch part {
        case .head(let head):
            switch phase {
            case .sending, .awaitingResponse:
                guard let certificate else { return }
                phase = .receiving(DeviceResponse(status: Int(head.status.code), body: [], certificate: certificate))
            case .connecting, .receiving, .ended: fail(.failed("answers more than once"))
            }
        case .body(let bytes):
            guard case .receiving(var response) = phase else { return }
            guard response.body.count + bytes.readableBytes <= request.limit else { return fail(.failed("answers too much")) }
            response.body.append(contentsOf: bytes.readableBytesView)
            phase = .receiving(response)
        case .end:
            guard case .receiving(let response) = phase else { return }
            end(.success(response))
            context.close(promise: nil)
        }
    }

    fileprivate func failed(_ error: any Error) {
        fail(error is HTTPParserError ? .failed("does not answer in LocalSend's protocol") : .closed)
    }

    // MARK: End of the call

    func fail(_ fault: DeviceRequestFault) {
        let gate = gate
        end(.failure(other.map { .otherCertificate($0) } ?? fault))
        gate?.abort()
    }

    private func end(_ result: Result<DeviceResponse, DeviceRequestFault>) {
        timer?.task.cancel()
        timer = nil
        phase = .ended
        let completion = completion
        self.completion = nil
        completion?(result)
    }

    /// Moves the deadline. If the timer fires before the new deadline, it is set again then. If it would fire after it, it is replaced.
    private func restart(_ time: TimeAmount) {
        deadline = .now() + time
        guard let timer, deadline < timer.at else { return }
        timer.task.cancel()
        watch()
    }

    private func watch() {
        let task = state.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            guard NIODeadline.now() >= self.deadline else { return self.watch() }
            if case .connecting = self.phase { self.fail(.unreachable("does not answer")) } else { self.fail(.timeout) }
        }
        timer = (task, deadline)
    }

    // MARK: ChannelGateOwner

    func activated(_ channel: any Channel) -> Bool {
        guard completion != nil, let gate else { return false }
        self.channel = channel
        state.opened(channel, gate)
        return true
    }

    func firstByte(_ byte: UInt8, on channel: any Channel) -> ChannelGate.FirstByte { .refused }  // never called for a dialled connection

    func ended() {
        if let channel {
            fail(.closed)
            state.ended(channel)
        }
        channel = nil
        gate = nil
    }
}

/// Connects a `OutgoingDeviceRequest` to the end of its channel's pipeline.
private final class DeviceCallHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private let call: OutgoingDeviceRequest

    init(_ call: OutgoingDeviceRequest) { self.call = call }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { call.received(unwrapInboundIn(data), context) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { call.failed(error) }
}
