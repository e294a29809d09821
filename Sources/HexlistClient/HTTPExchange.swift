import NIOCore
import NIOHTTP1
import NIOPosix

/// One HTTP/1.1 request and its reply, on its own connection to a Unix socket.
struct HTTPExchange: Sendable {
    /// Reasons why no complete reply was received.
    enum Fault: Error {
        case timedOut
        /// The connection was closed before the reply was complete.
        case cutShort
        /// The received data is not an HTTP/1.1 reply.
        case foreign
        /// The socket failed with this `errno`.
        case socket(CInt)
        /// The stream that produces the request body threw this error.
        case content(any Error)

        /// Converts an error of NIO to a `Fault`. Returns other errors unchanged.
        fileprivate static func of(_ error: any Error) -> any Error {
            switch error {
            case let error as IOError: Fault.socket(error.errnoCode)
            case HTTPParserError.invalidEOFState, is ChannelError: Fault.cutShort
            case is HTTPParserError, is NIOHTTPDecoderError: Fault.foreign
            default: error
            }
        }
    }

    enum Content: Sendable {
        case bytes([UInt8])
        /// A body produced while it is sent. The closure passes each chunk to `write`, which suspends it for back-pressure.
        case stream(@Sendable (_ write: @Sendable (ByteBuffer) async throws -> Void) async throws -> Void)
    }

    private typealias Connection = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    let socketPath: String
    var head: HTTPRequestHead
    let content: Content?
    /// Timeout in seconds for the whole exchange.
    let seconds: Double

    init(socketPath: String, method: HTTPMethod, target: String, headers: HTTPHeaders, content: Content?, seconds: Double) {
        self.socketPath = socketPath
        self.content = content
        self.seconds = seconds
        head = HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: headers)
        head.headers.add(name: "host", value: "localhost")
        switch content {
        case .stream: head.headers.add(name: "transfer-encoding", value: "chunked")
        case .bytes(let bytes): head.headers.add(name: "content-length", value: String(bytes.count))
        case nil: if method != .GET { head.headers.add(name: "content-length", value: "0") }
        }
    }

    /// Sends the request and calls `read` as soon as the head of the reply has arrived, even while the request is still being sent. When
    /// `read` returns, the connection is closed and any unsent rest of the request is dropped.
    /// - Throws: the errors of `read`, `Fault`, and `CancellationError`.
    func run<Result: Sendable>(_ read: (HTTPResponseHead, HTTPReplyBody) async throws -> Result) async throws -> Result {
        let connection = try await connected()
        let channel = connection.channel
        let end = channel.eventLoop.scheduleTask(in: .milliseconds(Int64(min(seconds, 366 * 86_400) * 1_000))) {
            Self.end(channel, Fault.timedOut)
        }
        defer { end.cancel() }
        return try await connection.executeThenClose { inbound, outbound in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await write(to: outbound, channel) }
                defer { group.cancelAll() }
                var parts = HTTPReplyParts(inbound: inbound.makeAsyncIterator())
                guard case .head(let head) = try await parts.next() else { throw Fault.foreign }
                return try await read(head, HTTPReplyBody(parts: parts))
            }
        }
    }

    private func connected() async throws -> Connection {
        do {
            let loop = MultiThreadedEventLoopGroup.currentEventLoop  // set if `MainThreadEventLoop` runs this task
            return try await ClientBootstrap(group: loop ?? MultiThreadedEventLoopGroup.singleton)
                .connect(unixDomainSocketPath: socketPath) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHTTPClientHandlers()
                        return try Connection(wrappingChannelSynchronously: channel)
                    }
                }
        } catch {
            throw Fault.of(error)
        }
    }

    /// Sends the request. Ignores write errors, because the task that reads the reply reports the failure. If the reply is already
    /// complete, a write error does not matter.
    private func write(to outbound: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>, _ channel: any Channel) async {
        switch content {
        case nil: try? await outbound.write(contentsOf: [.head(head), .end(nil)])
        case .bytes(let bytes):
            try? await outbound.write(contentsOf: [.head(head), .body(.byteBuffer(ByteBuffer(bytes: bytes))), .end(nil)])
        case .stream(let stream):
            struct Broken: Error {}
            do {
                try? await outbound.write(.head(head))
                try await stream { piece in
                    do { try await outbound.write(.body(.byteBuffer(piece))) } catch { throw Broken() }
                }
                try? await outbound.write(.end(nil))
            } catch is Broken {
            } catch {
                Self.end(channel, Fault.content(error))
            }
        }
    }

    /// Closes the channel and makes the task that reads the reply fail with `error`.
    private static func end(_ channel: any Channel, _ error: any Error) {
        channel.pipeline.fireErrorCaught(error)
        channel.close(promise: nil)
    }
}

/// Reads the parts of a reply from the socket on demand.
private struct HTTPReplyParts {
    var inbound: NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator

    /// Waits for the next part.
    /// - Throws: `HTTPExchange.Fault`, `CancellationError`.
    mutating func next() async throws -> HTTPClientResponsePart {
        do {
            if let part = try await inbound.next() { return part }
        } catch {
            throw HTTPExchange.Fault.of(error)
        }
        try Task.checkCancellation()
        throw HTTPExchange.Fault.cutShort
    }
}

/// The body of a reply as a sequence of chunks. Can be iterated once.
struct HTTPReplyBody: AsyncSequence {
    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var parts: HTTPReplyParts
        private var hasEnded = false

        fileprivate init(parts: HTTPReplyParts) { self.parts = parts }

        /// Returns the next chunk; `nil` at the end of the body.
        /// - Throws: `HTTPExchange.Fault.cutShort` if the connection is closed before the end of the body; other `HTTPExchange.Fault`s;
        ///   `CancellationError`.
        mutating func next() async throws -> ByteBuffer? {
            guard !hasEnded else { return nil }
            switch try await parts.next() {
            case .body(let piece): return piece
            case .end:
                hasEnded = true
                return nil
            case .head: throw HTTPExchange.Fault.foreign
            }
        }
    }

    private let parts: HTTPReplyParts

    fileprivate init(parts: HTTPReplyParts) { self.parts = parts }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(parts: parts) }
}
