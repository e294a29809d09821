import NIOCore
import NIOPosix

/// A reply of a server, as text.
public struct RawHTTPReply: Sendable {
    public var status = 0
    /// The head in lower case, or all received bytes if they are not a reply.
    public var head = ""
    public var body = ""
}

/// Sends one request to 127.0.0.1 on its own connection.
public enum RawHTTP {
    /// The part of the reply to wait for.
    public enum End: Sendable {
        case none
        /// Return after the head, because a stream does not end.
        case head
        case closed
    }

    /// - Parameters:
    ///   - line: method and target.
    ///   - rest: called after the body was sent; returns more of it.
    ///   - end: the part of the reply to wait for.
    ///   - mayReset: whether a connection that is reset without a reply is an empty reply instead of an error.
    public static func ask(
        _ port: Int, _ line: String, fields: [String], body: String, rest: (@Sendable () async throws -> String)? = nil,
        until end: End = .closed, mayReset: Bool = false
    ) async throws -> RawHTTPReply {
        let text = "\(line) HTTP/1.1\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n" + body
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(host: "127.0.0.1", port: port) {
            channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(FirstBytes(text))
                return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
            }
        }
        let bytes = try await channel.executeThenClose { inbound, outbound in
            if let rest { try await outbound.write(ByteBuffer(string: rest())) }
            var reply = ByteBuffer()
            guard end != .none else { return "" }
            do {
                for try await part in inbound {
                    reply.writeImmutableBuffer(part)
                    if end == .head, String(buffer: reply).contains("\r\n\r\n") { break }
                }
            } catch  where mayReset || reply.readableBytes > 0 {
                // The listener stops reading at a head that is too long, so the reply may be followed by a reset.
            }
            return String(buffer: reply)
        }
        guard let end = bytes.firstRange(of: "\r\n\r\n") else { return RawHTTPReply(head: bytes) }
        return RawHTTPReply(
            status: Int(bytes.dropFirst("HTTP/1.1 ".count).prefix(3)) ?? 0, head: String(bytes[..<end.lowerBound]).lowercased(),
            body: String(bytes[end.upperBound...]))
    }
}

/// Sends the first bytes of a connection as soon as it is established. The peer port closes connections that are silent for 5 s. A task could
/// exceed this, because it has to wait for a thread while other tests compute.
private final class FirstBytes: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let text: String

    init(_ text: String) { self.text = text }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        context.fireChannelActive()
    }
}
