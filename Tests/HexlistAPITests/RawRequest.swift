import DaemonTestSupport
import NIOCore
import NIOPosix

/// A reply of the local API with its unparsed bytes.
struct RawReply {
    var status: Int
    var head: String
    var body: String
}

/// Sends one request on its own connection and reads until the daemon closes it.
func ask(_ daemon: TestDaemon, _ text: String) async throws -> RawReply {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(unixDomainSocketPath: daemon.socket) { channel in
            channel.eventLoop.makeCompletedFuture { try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel) }
        }
    let bytes = try await channel.executeThenClose { inbound, outbound in
        try await outbound.write(ByteBuffer(string: text))
        var reply = ByteBuffer()
        for try await part in inbound { reply.writeImmutableBuffer(part) }
        return String(buffer: reply)
    }
    let parts = bytes.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    let status = bytes.dropFirst("HTTP/1.1 ".count).prefix(3)
    return RawReply(status: Int(status) ?? 0, head: String(parts.first ?? ""), body: parts.count == 2 ? String(parts[1]) : "")
}

/// Returns the text of a request, with the field `Connection: close`.
func request(_ line: String, headers: String = "", body: String = "") -> String {
    "\(line) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)"
}
