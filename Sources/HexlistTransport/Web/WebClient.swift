package import HexlistModel
package import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// Receives one response of a web server, on the event loop of the connection.
package protocol WebResponseReader: Sendable {
    /// - Parameter fields: the header; names are compared without regard to case.
    /// - Returns: whether the body is wanted.
    mutating func received(status: Int, fields: WebFields) -> Bool
    /// - Returns: whether more of the body is wanted.
    mutating func received(body: ByteBufferView) -> Bool
}

/// The header of a response.
package struct WebFields: Sendable {
    fileprivate var fields: HTTPHeaders

    /// The first value of a field; `nil` if there is none.
    package subscript(_ name: String) -> String? { fields.first(name: name) }
}

/// The method of a request to a web server.
package enum WebMethod: Sendable {
    case get, head
}

/// The reason why a request to a web server got no response.
package enum WebFault: Error, Sendable, Equatable {
    /// The name has an address that is not allowed.
    case addressNotAllowed
    /// No address of the name was found.
    case noAddress
    /// The connection was not established, or it ended before the response was complete.
    case unreachable
    /// The certificate is not valid, or the TLS handshake failed.
    case tls
    case notHTTP
    case timeout
}

/// Sends requests for pages to web servers: HTTP/1.1, one request per connection, without cookies, proxies and credentials. Redirects are
/// not followed. Thread-safe.
///
/// `addresses(of:allowing:)` resolves a name and checks the addresses; `send` connects to the address that it is given and resolves nothing,
/// so a name that resolves differently the next time cannot lead elsewhere.
package final class WebClient: Sendable {
    /// Maximum bytes of a header, like that of file responses.
    private static let decoder = FileLimits.decoder
    /// Lookups block a thread of their own pool, so that an unreachable DNS server does not delay other parts of the program.
    private static let threads: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 4)
        pool.start()
        return pool
    }()

    /// The resolver and the TLS context of the client. Confined to the event loop.
    private struct State {
        let eventLoop: any EventLoop
        /// The resolver; created for the first name, because it starts threads.
        lazy var resolver = NameResolver(eventLoop: eventLoop, threads: WebClient.threads)
        /// The TLS context; created for the first request over TLS, because it contains the certificates of the system.
        var tls: NIOSSLContext?

        mutating func context() throws -> NIOSSLContext {
            if let tls { return tls }
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.applicationProtocols = ["http/1.1"]
            configuration.shutdownTimeout = .milliseconds(500)
            let context = try NIOSSLContext(configuration: configuration)
            tls = context
            return context
        }
    }

    private let eventLoop: any EventLoop
    private let state: NIOLoopBoundBox<State>

    package init(eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        state = .makeBoxSendingValue(State(eventLoop: eventLoop), eventLoop: eventLoop)
    }

    /// Returns the addresses of a server. A lookup has no time limit of its own; that of the resolver of the system applies.
    /// - Throws: `WebFault.noAddress`, or `.addressNotAllowed` if any address is not allowed.
    package func addresses(of target: WebTarget, allowing isAllowed: @escaping @Sendable (IPAddress) -> Bool) async throws -> [IPAddress] {
        if let address = IPAddress(target.host) {
            guard isAllowed(address) else { throw WebFault.addressNotAllowed }
            return [address]
        }
        let promise = eventLoop.makePromise(of: [IPAddress].self)
        eventLoop.execute { [self] in
            state.value.resolver.resolve(target.host) { result in
                switch result {
                case .success(let found) where found.isEmpty: promise.fail(WebFault.noAddress)
                case .success(let found) where !found.allSatisfy(isAllowed): promise.fail(WebFault.addressNotAllowed)
                case .success(let found): promise.succeed(found)
                case .failure: promise.fail(WebFault.noAddress)
                }
            }
        }
        return try await Self.value(of: promise)
    }

    /// Sends a request to the first of these addresses that can be reached (`send`).
    package func send<Reader: WebResponseReader>(
        _ method: WebMethod, _ target: WebTarget, toOneOf addresses: [IPAddress], until deadline: NIODeadline, reader: Reader
    ) async throws -> Reader {
        for address in addresses.dropLast() {
            do {
                return try await send(method, target, to: address, until: deadline, reader: reader)
            } catch WebFault.unreachable {
                continue
            }
        }
        guard let address = addresses.last else { throw WebFault.noAddress }
        return try await send(method, target, to: address, until: deadline, reader: reader)
    }

    /// Waits for a result. If the task is cancelled, the wait ends with a `CancellationError`; a lookup or a connection that is still open
    /// ends after its own timeout.
    private static func value<Value: Sendable>(of promise: EventLoopPromise<Value>) async throws -> Value {
        try await withTaskCancellationHandler {
            try await promise.futureResult.get()
        } onCancel: {
            promise.fail(CancellationError())
        }
    }

    /// Sends a request, and passes the response to `reader` until it wants no more.
    /// - Parameters:
    ///   - address: one of `addresses(of:allowing:)`.
    ///   - deadline: the end of the time for connection, handshake and response together.
    /// - Returns: the reader at the end of the response.
    /// - Throws: `WebFault`.
    package func send<Reader: WebResponseReader>(
        _ method: WebMethod, _ target: WebTarget, to address: IPAddress, until deadline: NIODeadline, reader: Reader
    ) async throws -> Reader {
        guard let socket = address.socketAddress(port: target.port) else { throw WebFault.unreachable }
        let left = deadline - .now()
        guard left > .zero else { throw WebFault.timeout }
        let promise = eventLoop.makePromise(of: Reader.self)
        let state = state
        ClientBootstrap(group: eventLoop)
            .connectTimeout(left)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try SocketOptions.apply(to: channel)
                    let pipeline = channel.pipeline.syncOperations
                    if target.isTLS {
                        // An address must not be sent as a server name (RFC 6066, 3). The certificate is then checked for the address.
                        let name = IPAddress(target.host) == nil ? target.host : nil
                        try pipeline.addHandler(NIOSSLClientHandler(context: state.value.context(), serverHostname: name))
                    }
                    try pipeline.addHandlers([
                        HTTPRequestEncoder(),
                        ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: Self.decoder)),
                        WebExchange(method, target, reader, deadline, promise),
                    ])
                }
            }
            .connect(to: socket)
            .whenFailure { error in promise.fail(WebExchange<Reader>.fault(error)) }
        return try await Self.value(of: promise)
    }
}

/// One request on its connection. Closes the connection at the end of the response or at the deadline.
private final class WebExchange<Reader: WebResponseReader>: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let method: WebMethod
    private let target: WebTarget
    private let deadline: NIODeadline
    private var reader: Reader
    /// The promise of the result; `nil` after the exchange has ended.
    private var promise: EventLoopPromise<Reader>?
    private var timer: Scheduled<Void>?
    private var hasHead = false

    init(
        _ method: WebMethod, _ target: WebTarget, _ reader: Reader, _ deadline: NIODeadline, _ promise: EventLoopPromise<Reader>
    ) {
        self.method = method
        self.target = target
        self.reader = reader
        self.deadline = deadline
        self.promise = promise
    }

    func handlerAdded(context: ChannelHandlerContext) {
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            self.end(context, self.hasHead ? .success(self.reader) : .failure(WebFault.timeout))
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelActive(context: ChannelHandlerContext) {
        let headers: HTTPHeaders = [
            "Host": target.authority, "User-Agent": "Hexlist/\(ProtocolLimits.appVersion)", "Accept": "text/html, */*;q=0.1",
            "Accept-Encoding": "identity", "Connection": "close",
        ]
        let head = HTTPRequestHead(version: .http1_1, method: method == .get ? .GET : .HEAD, uri: target.resource, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard promise != nil else { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            hasHead = true
            if !reader.received(status: Int(head.status.code), fields: WebFields(fields: head.headers)) { end(context, .success(reader)) }
        case .body(let bytes): if !reader.received(body: bytes.readableBytesView) { end(context, .success(reader)) }
        case .end: end(context, .success(reader))
        }
    }

    // A body that ends early, or is incomplete at the deadline, is accepted as far as it was received.

    func channelInactive(context: ChannelHandlerContext) { end(context, hasHead ? .success(reader) : .failure(WebFault.unreachable)) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(context, hasHead ? .success(reader) : .failure(Self.fault(error)))
    }

    private func end(_ context: ChannelHandlerContext, _ result: Result<Reader, any Error>) {
        guard let promise else { return }
        self.promise = nil
        timer?.cancel()
        promise.completeWith(result)
        // Stops reading, even while TLS waits for the server to close the connection.
        context.channel.setOption(.autoRead, value: false).whenFailure { _ in }
        context.close(promise: nil)
    }

    static func fault(_ error: any Error) -> WebFault {
        switch error {
        case let fault as WebFault: fault
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: .tls
        case is HTTPParserError: .notHTTP
        case ChannelError.connectTimeout: .timeout
        default: .unreachable
        }
    }
}
