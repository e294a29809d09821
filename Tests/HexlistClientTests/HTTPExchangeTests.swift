import HexlistAPI
import HexlistModel
import NIOCore
import NIOHTTP1
import NIOPosix
import TestSupport
import Testing

@testable import HexlistClient

@Suite("The client against servers that are not hexlistd", .timeLimit(.minutes(5)))
struct HTTPExchangeTests {
    /// Serves one fixed response, either after the first bytes of a request or immediately.
    private final class Answer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let text: String
        private let closes: Bool
        private let waits: Bool
        private var isGiven = false

        init(_ text: String, closes: Bool, waits: Bool) {
            self.text = text
            self.closes = closes
            self.waits = waits
        }

        func channelActive(context: ChannelHandlerContext) { if !waits { answer(context) } }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { answer(context) }

        private func answer(_ context: ChannelHandlerContext) {
            guard !isGiven else { return }
            isGiven = true
            context.writeAndFlush(NIOAny(ByteBuffer(string: text)), promise: nil)
            if closes { context.close(promise: nil) }
        }
    }

    private static let head = "HTTP/1.1 200 OK\r\nHexlist-Version: \(LocalAPI.version) 1.0\r\nContent-Type: application/json\r\n"

    private func answering(
        _ text: String, closes: Bool = true, waits: Bool = true, _ body: (HexlistClient, _ path: String) async throws -> Void
    ) async throws {
        try await TemporaryFolder.with { folder in
            let path = "\(folder.path)/control.sock"
            let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Answer(text, closes: closes, waits: waits))
                    }
                }
                .bind(unixDomainSocketPath: path).get()
            try await body(HexlistClient(socketPath: path), path)
            try await server.close()
        }
    }

    @Test(
        "an invalid or truncated response is reported as such",
        arguments: [
            ("", "closed in the middle of the answer"),
            (head, "closed in the middle of the answer"),
            (head + "Content-Length: 100\r\n\r\n{\"name\":", "closed in the middle of the answer"),
            (head + "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"name\":\r\n", "closed in the middle of the answer"),
            ("220 mail.example.org ESMTP\r\n", "is not a hexlistd that this hexlist supports"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "is not a hexlistd that this hexlist supports"),
            (head + "Content-Length: 2\r\n\r\n{}", "could not be read"),
        ])
    func foreign(_ text: String, _ message: String) async throws {
        try await answering(text) { client, _ in
            let error = try await #require(throws: HexlistError.self) { try await client.status() }
            #expect(error.message.contains(message), "\(error.message)")
        }
    }

    @Test("a response that does not arrive times out")
    func silence() async throws {
        try await answering("", closes: false) { _, path in
            let exchange = HTTPExchange(socketPath: path, method: .GET, target: "/", headers: [:], content: nil, seconds: 0.05)
            let error = try await #require(throws: HTTPExchange.Fault.self) { try await exchange.run { head, _ in head.status.code } }
            guard case .timedOut = error else { return #expect(Bool(false)) }
            let client = HexlistClient(socketPath: path, replySeconds: 0.05)
            let said = try await #require(throws: HexlistError.self) { try await client.status() }
            #expect(said.message.contains("did not answer"), "\(said.message)")
        }
    }

    @Test("a response that arrives during an upload ends the upload")
    func earlyAnswer() async throws {
        let error = #"{"error":{"code":"outboxFull","message":"No room.","hint":null}}"#
        let text = Self.head.replacing("200 OK", with: "507 Insufficient Storage") + "Content-Length: \(error.utf8.count)\r\n\r\n\(error)"
        try await answering(text, closes: false) { client, _ in
            let endless = AsyncStream { Task.isCancelled ? nil : ByteBuffer(repeating: 0x20, count: 1 << 16) }
            let found = try await #require(throws: HexlistError.self) {
                try await client.sendBulk(HexlistClient.BulkSend(peers: ["ada"]), input: endless) { _ in true }
            }
            #expect(found.code == .outboxFull && found.message == "No room.")
        }
    }

    @Test("an error of the uploaded stream is the error of the exchange")
    func brokenStream() async throws {
        struct Broken: Error {}
        try await answering("", closes: false) { client, _ in
            let broken = AsyncThrowingStream<ByteBuffer, any Error> { throw Broken() }
            await #expect(throws: Broken.self) {
                try await client.sendBulk(HexlistClient.BulkSend(peers: ["ada"]), input: broken) { _ in true }
            }
            let closed = AsyncThrowingStream<ByteBuffer, any Error> { throw ChannelError.ioOnClosedChannel }
            await #expect(throws: ChannelError.self) {
                try await client.sendBulk(HexlistClient.BulkSend(peers: ["ada"]), input: closed) { _ in true }
            }
        }
    }

    @Test("a response before the request is refused: it is not hexlistd")
    func hasty() async throws {
        try await answering(Self.head + "Content-Length: 2\r\n\r\n{}", closes: false, waits: false) { client, _ in
            let silent = AsyncStream<ByteBuffer> {
                try? await Task.sleep(for: .seconds(3600))
                return nil
            }
            await #expect(throws: HexlistError.self) {
                try await client.sendBulk(HexlistClient.BulkSend(peers: ["ada"]), input: silent) { _ in true }
            }
        }
    }

    @Test("a cancelled request reports cancellation")
    func cancelled() async throws {
        try await answering("", closes: false) { client, _ in
            let request = Task { try await client.status() }
            request.cancel()
            let error = await #expect(throws: HexlistError.self) { try await request.value }
            #expect(error?.message == "The request was cancelled.")
        }
    }
}
