import NIOCore
import NIOPosix
import Synchronization

/// A web server that answers with given bytes, also invalid ones.
final class RawWebServer: Sendable {
    enum Answer: Sendable {
        /// These bytes, then the end of the connection.
        case bytes([UInt8])
        /// These bytes, then a gibibyte of `x` for as long as the client reads.
        case endless([UInt8])
        /// These bytes, then one `x` every 20 ms for as long as the connection is open.
        case dripping([UInt8])
        /// The server sends nothing.
        case silence

        /// A response with a body.
        static func page(_ body: String, type: String = "text/html", status: String = "200 OK", fields: String = "") -> Answer {
            page(Array(body.utf8), type: type, status: status, fields: fields)
        }

        static func page(_ body: [UInt8], type: String = "text/html", status: String = "200 OK", fields: String = "") -> Answer {
            .bytes(Array("HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.count)\r\n\(fields)\r\n".utf8) + body)
        }

        static func redirect(_ location: String, status: String = "302 Found") -> Answer {
            .page("<title>no</title>", status: status, fields: "Location: \(location)\r\n")
        }
    }

    private struct State {
        var requests: [String] = []
        var open = 0
        var mostOpen = 0
        var sent = 0
    }

    private let channel: any Channel
    private let state: Counts

    /// The counts of a server, shared with its connections.
    private final class Counts: Sendable {
        let state = Mutex(State())
    }

    /// The received requests, each with its header.
    var requests: [String] { state.state.withLock { $0.requests } }
    /// Maximum number of requests that were open at once.
    var mostOpen: Int { state.state.withLock { $0.mostOpen } }
    var openConnections: Int { state.state.withLock { $0.open } }
    /// Number of bytes that the kernel accepted.
    var sentBytes: Int { state.state.withLock { $0.sent } }
    var port: Int { channel.localAddress?.port ?? 0 }

    /// - Parameter answer: the answer to a request for a resource.
    init(host: String, group: any EventLoopGroup, _ answer: @escaping @Sendable (String) -> Answer) async throws {
        let counts = Counts()
        state = counts
        channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Connection(counts, answer)) }
            }
            .bind(host: host, port: 0).get()
    }

    func close() async throws { try await channel.close() }

    private final class Connection: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let counts: Counts
        private let answer: @Sendable (String) -> Answer
        private var received = ByteBuffer()
        private var isAnswered = false
        private var rest = 0
        private var timer: Scheduled<Void>?

        init(_ counts: Counts, _ answer: @escaping @Sendable (String) -> Answer) { (self.counts, self.answer) = (counts, answer) }

        func channelActive(context: ChannelHandlerContext) {
            counts.state.withLock {
                $0.open += 1
                $0.mostOpen = max($0.mostOpen, $0.open)
            }
        }

        func channelInactive(context: ChannelHandlerContext) {
            timer?.cancel()
            counts.state.withLock { $0.open -= 1 }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received.writeImmutableBuffer(unwrapInboundIn(data))
            // A server without TLS answers a handshake with an error.
            guard received.readableBytesView.first != 0x16 else {
                send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), context)
                return context.close(promise: nil)
            }
            let text = String(buffer: received)
            guard !isAnswered, text.contains("\r\n\r\n") else { return }
            isAnswered = true
            counts.state.withLock { $0.requests.append(text) }
            let words = text.split(separator: " ")
            switch answer(words.count > 1 ? String(words[1]) : "") {
            case .bytes(let bytes):
                send(bytes, context)
                context.close(promise: nil)
            case .endless(let bytes):
                send(bytes, context)
                rest = 1 << 30
                sendMore(context)
            case .dripping(let bytes):
                send(bytes, context)
                drip(context)
            case .silence: break
            }
        }

        func channelWritabilityChanged(context: ChannelHandlerContext) { sendMore(context) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        private func drip(_ context: ChannelHandlerContext) {
            send([UInt8(ascii: "x")], context)
            timer = context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(20)) { self.drip(context) }
        }

        private func sendMore(_ context: ChannelHandlerContext) {
            while rest > 0, context.channel.isWritable {
                rest -= 1 << 15
                send([UInt8](repeating: UInt8(ascii: "x"), count: 1 << 15), context)
            }
        }

        private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
            let written = context.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenSuccess { self.counts.state.withLock { $0.sent += bytes.count } }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: written)
        }
    }
}
