import HexlistModel
import NIOCore
import NIOHTTP1

/// An HTTP/1.1 connection of a LocalSend device. Only one request is handled at a time, and the next one is not read meanwhile. Used on its
/// event loop only.
final class DeviceServerConnection: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Maximum time until the first request.
    static let firstHead = TimeAmount.seconds(10)
    /// Maximum time without bytes of a body, or without the next request.
    static let idleTimeout = TimeAmount.seconds(60)
    /// Maximum bytes of a refused body that are read. The device can then receive the answer. After that the connection is closed.
    static let discardedBytes = 1 << 20

    private let certificate: DeviceCertificate
    private let remoteAddress: IPAddress
    /// Closes the socket without the close_notify of TLS. With it, NIOSSL would read on until the device sends its own.
    let closeSocket: () -> Void
    private var receive: ((IncomingDeviceRequest) -> Void)?
    private var context: ChannelHandlerContext?
    private var exchange: IncomingDeviceRequest?
    /// Parts of later requests that were received together with the current request. They are bounded by one read of the socket.
    private var queued = CircularBuffer<HTTPServerRequestPart>()
    /// Whether the answer was written. The next request is handled when the body has ended as well.
    private var isAnswerWritten = false
    private var isPaused = false
    private var isReadHeld = false
    private var hasFailed = false
    private var isDraining = false
    private var timer: Scheduled<Void>?

    /// - Parameters:
    ///   - closeSocket: closes the socket without the close_notify of TLS.
    ///   - receive: called with each request.
    init(
        certificate: DeviceCertificate, remoteAddress: IPAddress, closeSocket: @escaping () -> Void,
        _ receive: @escaping (IncomingDeviceRequest) -> Void
    ) {
        self.certificate = certificate
        self.remoteAddress = remoteAddress
        self.closeSocket = closeSocket
        self.receive = receive
    }

    static var decoder: NIOHTTPDecoderLimitConfiguration { FileLimits.decoder }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        setTimer(Self.firstHead)
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    private func end() {
        timer?.cancel()
        timer = nil
        receive = nil
        context = nil
        queued.removeAll()
        let exchange = exchange
        self.exchange = nil
        exchange?.aborted()
    }

    func abort() { context?.close(promise: nil) }

    // MARK: Reading

    /// Whether the socket may be read: for a body whose receiver is known, or for the next request.
    private var mayRead: Bool {
        guard !isPaused, queued.isEmpty else { return false }
        switch exchange?.body {
        case nil, .collecting, .streaming, .discarding: return true
        case .unclaimed, .ended: return false
        }
    }

    func read(context: ChannelHandlerContext) {
        if mayRead { context.read() } else { isReadHeld = true }
    }

    private func readMore() {
        drain()
        guard mayRead, isReadHeld else { return }
        isReadHeld = false
        context?.read()
    }

    func setPaused(_ isPaused: Bool) {
        self.isPaused = isPaused
        // The timeout limits the time that the device takes. While the body waits to be written to the disk, there is no timeout.
        if isPaused { timer?.cancel() } else { setTimer(Self.idleTimeout) }
        if !isPaused { readMore() }
    }

    func bodyClaimed() { readMore() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        queued.append(unwrapInboundIn(data))
        drain()
    }

    /// Handles the received parts, until one of them has to wait.
    private func drain() {
        // This prevents recursion: an answer that is given inside the loop calls this method again, which would take a stack frame for each
        // queued request.
        guard !isDraining else { return }
        isDraining = true
        defer { isDraining = false }
        while !hasFailed, let part = queued.first {
            switch part {
            case .head(let head):
                guard exchange == nil else { return }
                queued.removeFirst()
                begin(head)
            case .body(let bytes):
                if case .unclaimed? = exchange?.body { return }
                if isPaused { return }
                queued.removeFirst()
                setTimer(Self.idleTimeout)
                exchange?.received(bytes)
            case .end:
                if case .unclaimed? = exchange?.body { return }
                if isPaused { return }
                queued.removeFirst()
                timer?.cancel()
                exchange?.bodyEnded(isWhole: true)
                finish()
            }
        }
    }

    private func begin(_ head: HTTPRequestHead) {
        setTimer(Self.idleTimeout)
        isAnswerWritten = false
        let exchange = IncomingDeviceRequest(head, certificate: certificate, remoteAddress: remoteAddress, connection: self)
        self.exchange = exchange
        receive?(exchange)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError, exchange == nil, !hasFailed else { return context.close(promise: nil) }
        hasFailed = true
        let head = HTTPResponseHead(version: .http1_1, status: .badRequest, headers: ["Content-Length": "0", "Connection": "close"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).assumeIsolated().whenComplete { _ in context.close(promise: nil) }
    }

    // MARK: Writing

    func write(_ status: Int, _ json: [UInt8], of exchange: IncomingDeviceRequest) {
        guard let context, self.exchange === exchange else { return }
        switch exchange.body {
        case .unclaimed, .streaming, .collecting: exchange.body = .discarding(Self.discardedBytes)
        case .discarding, .ended: break
        }
        isPaused = false
        var headers = HTTPHeaders()
        if status != 204 { headers.add(name: "Content-Length", value: "\(json.count)") }
        if !json.isEmpty { headers.add(name: "Content-Type", value: "application/json") }
        if !exchange.keepsAlive { headers.add(name: "Connection", value: "close") }
        let head = HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !json.isEmpty { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: json)))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        isAnswerWritten = true
        setTimer(Self.idleTimeout)
        finish()
        readMore()
    }

    /// Ends the exchange, once its body has ended and its answer was written.
    private func finish() {
        guard let exchange, isAnswerWritten, case .ended = exchange.body else { return }
        self.exchange = nil
        if !exchange.keepsAlive {
            context?.close(promise: nil)
        } else {
            setTimer(Self.idleTimeout)
        }
    }

    // MARK: Timeouts

    private func setTimer(_ time: TimeAmount) {
        timer?.cancel()
        timer = context?.eventLoop.assumeIsolated().scheduleTask(in: time) { [weak self] in self?.abort() }
    }
}
