import NIOCore
import NIOHTTP1
import NIOPosix

/// One HTTP/1.1 request and its reply, on a connection of its own to a Unix socket, which is closed behind them.
struct HTTPExchange: Sendable {
    /// Why there is no whole reply; beside it there are the errors of NIO.
    enum Fault: Error {
        case timedOut
        /// The connection ended before the reply did.
        case cutShort
    }

    enum Content: Sendable {
        case bytes([UInt8])
        /// Hands its pieces to `write`, which waits while the other side takes none.
        case stream(@Sendable (_ write: @Sendable (ByteBuffer) async throws -> Void) async throws -> Void)
    }

    private typealias Connection = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    let socketPath: String
    var head: HTTPRequestHead
    let content: Content?
    /// The seconds after which the exchange is given up, wherever it is.
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

    /// Calls `read` with the reply as soon as it begins, which may be while the request is still being sent. What is not sent when `read`
    /// returns is not sent any more.
    /// - Throws: what `read` and a stream of content throw, `Fault`, `IOError`, `HTTPParserError`, and `CancellationError`.
    func run<Result: Sendable>(_ read: (HTTPResponseHead, HTTPReplyBody) async throws -> Result) async throws -> Result {
        let connection: Connection = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(unixDomainSocketPath: socketPath) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        let channel = connection.channel
        let end = channel.eventLoop.scheduleTask(in: .milliseconds(Int64(min(seconds, 366 * 86_400) * 1_000))) {
            Self.end(channel, Fault.timedOut)
        }
        defer { end.cancel() }
        return try await connection.executeThenClose { inbound, outbound in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await write(to: outbound, channel) }
                defer { group.cancelAll() }
                var parts = inbound.makeAsyncIterator()
                guard case .head(let head) = try await parts.next() else { throw Fault.cutShort }
                return try await read(head, HTTPReplyBody(parts))
            }
        }
    }

    /// Sends the request. A connection that breaks meanwhile is for the reader to say: the reply may be there already.
    private func write(to outbound: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>, _ channel: any Channel) async {
        do {
            switch content {
            case nil: try await outbound.write(contentsOf: [.head(head), .end(nil)])
            case .bytes(let bytes):
                try await outbound.write(contentsOf: [.head(head), .body(.byteBuffer(ByteBuffer(bytes: bytes))), .end(nil)])
            case .stream(let stream):
                try await outbound.write(.head(head))
                try await stream { try await outbound.write(.body(.byteBuffer($0))) }
                try await outbound.write(.end(nil))
            }
        } catch is ChannelError, is IOError, is NIOAsyncWriterError {
        } catch {
            Self.end(channel, error)
        }
    }

    /// Ends the reading with an error.
    private static func end(_ channel: any Channel, _ error: any Error) {
        channel.pipeline.fireErrorCaught(error)
        channel.close(promise: nil)
    }
}

/// The pieces of a reply's body as they arrive, once. The next is read from the socket when it is asked for.
struct HTTPReplyBody: AsyncSequence {
    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var parts: NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator
        private var hasEnded = false

        fileprivate init(parts: NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator) { self.parts = parts }

        /// - Throws: `HTTPExchange.Fault.cutShort` where the connection ends before the body.
        mutating func next() async throws -> ByteBuffer? {
            guard !hasEnded else { return nil }
            switch try await parts.next() {
            case .body(let piece): return piece
            case .end:
                hasEnded = true
                return nil
            case .head, nil: throw HTTPExchange.Fault.cutShort
            }
        }
    }

    private let parts: NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator

    fileprivate init(_ parts: NIOAsyncChannelInboundStream<HTTPClientResponsePart>.AsyncIterator) { self.parts = parts }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(parts: parts) }
}
