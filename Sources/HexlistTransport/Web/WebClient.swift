package import HexlistModel
package import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// Receives one response of a web server, on the event loop of the connection.
package protocol WebResponseReader: Sendable {
    /// Handles the header of the response.
    /// - Parameter fields: the header. Its names are case-insensitive.
    /// - Returns: whether to receive the body.
    mutating func received(status: Int, fields: WebFields) -> Bool
    /// Handles bytes of the body.
    /// - Returns: whether to receive more of the body.
    mutating func received(body: ByteBufferView) -> Bool
}

/// The fields in the header of a response.
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
    /// One of the addresses of the host name is not allowed.
    case addressNotAllowed
    /// The host name has no address.
    case noAddress
    /// The connection was not established, or it ended before the header of the response had arrived.
    case unreachable
    /// The TLS handshake failed, for example because the certificate is not valid.
    case tls
    case notHTTP
    /// The header of the response did not arrive before the deadline.
    case timeout
}

/// Requests pages from web servers: HTTP/1.1, one request per connection, without cookies, proxies or credentials. Redirects are not
/// followed. Thread-safe.
///
/// `addresses(of:allowing:)` resolves a host name and checks its addresses. `send` connects to an address and resolves no name. A name that
/// is later resolved to another address therefore cannot lead to an address that was not checked.
package final class WebClient: Sendable {
    /// The limits for the header of a response, the same as for responses with files.
    private static let decoder = FileLimits.decoder
    /// The threads for resolving names. They are used for nothing else, so that a DNS server that does not answer delays no other part of
    /// the program.
    private static let threads: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 4)
        pool.start()
        return pool
    }()

    /// The resolver and the TLS context. Used on the event loop only.
    private struct State {
        let eventLoop: any EventLoop
        /// The resolver. It is created for the first name, because its threads are started then.
        lazy var resolver = NameResolver(eventLoop: eventLoop, threads: WebClient.threads)
        /// The TLS context. It is created for the first request with TLS, because it reads the certificates of the system.
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

    /// Returns the addresses of a server. Only the system's resolver limits the time for it.
    /// - Throws: `WebFault.noAddress`; `.addressNotAllowed` if one of the addresses is not allowed.
    package func addresses(of target: HTTPLinkTarget, allowing isAllowed: @escaping @Sendable (IPAddress) -> Bool) async throws
        -> [IPAddress]
    {
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

    /// Sends a request (`send`) to the first of several addresses that can be reached.
    package func send<Reader: WebResponseReader>(
        _ method: WebMethod, _ target: HTTPLinkTarget, toOneOf addresses: [IPAddress], until deadline: NIODeadline, reader: Reader
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

    /// Waits for a result. If the task is cancelled, throws a `CancellationError` immediately. The lookup or the connection then ends at
    /// its own timeout.
    private static func value<Value: Sendable>(of promise: EventLoopPromise<Value>) async throws -> Value {
        try await withTaskCancellationHandler {
            try await promise.futureResult.get()
        } onCancel: {
            promise.fail(CancellationError())
        }
    }

    /// Sends a request, and passes the response to `reader` until the reader wants no more of it.
    /// - Parameters:
    ///   - address: an address that `addresses(of:allowing:)` has returned.
    ///   - deadline: the deadline for connection, handshake and response together.
    /// - Returns: the reader, after the end of the response.
    /// - Throws: `WebFault`.
    package func send<Reader: WebResponseReader>(
        _ method: WebMethod, _ target: HTTPLinkTarget, to address: IPAddress, until deadline: NIODeadline, reader: Reader
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
                        // A numeric address must not be sent as the server's name (RFC 6066, section 3). The certificate is then checked
                        // for the address.
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

/// One request with its connection. The connection is closed at the end of the response, or at the deadline.
private final class WebExchange<Reader: WebResponseReader>: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let method: WebMethod
    private let target: HTTPLinkTarget
    private let deadline: NIODeadline
    private var reader: Reader
    /// The promise for the result; `nil` after the exchange has ended.
    private var promise: EventLoopPromise<Reader>?
    private var timer: Scheduled<Void>?
    private var hasHead = false

    init(
        _ method: WebMethod, _ target: HTTPLinkTarget, _ reader: Reader, _ deadline: NIODeadline, _ promise: EventLoopPromise<Reader>
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

    // If the body is incomplete at the deadline or at the end of the connection, the received part is accepted.

    func channelInactive(context: ChannelHandlerContext) { end(context, hasHead ? .success(reader) : .failure(WebFault.unreachable)) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(context, hasHead ? .success(reader) : .failure(Self.fault(error)))
    }

    private func end(_ context: ChannelHandlerContext, _ result: Result<Reader, any Error>) {
        guard let promise else { return }
        self.promise = nil
        timer?.cancel()
        promise.completeWith(result)
        // Stops reading: TLS would otherwise read on until the server closes the connection.
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
