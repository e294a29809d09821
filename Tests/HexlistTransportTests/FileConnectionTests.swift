import HexlistModel
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import HexlistTransport

/// File connections against foreign servers and clients, and against each other.
@Suite(.timeLimit(.minutes(5))) struct FileConnectionTests {
    // MARK: Server

    /// Answers each request: `/small/TEXT` with that text, all others with a large file. Of a pipeline it answers the first three.
    private final class Echo: FileServerDelegate, FileSource {
        func received(_ requests: [FileRequest], on connection: FileServerConnection) {
            connection.answer(
                requests.prefix(3).map { request in
                    let body: FileAnswer.Body =
                        request.target.hasPrefix("/small/")
                        ? .bytes(ByteBuffer(string: String(request.target.dropFirst(7)))) : .file(self, 0..<Echo.size)
                    return FileAnswer(status: 200, fields: [("ETag", "\"1\"")], body: body)
                })
        }

        func closed(_ connection: FileServerConnection) {}

        static let size: Int64 = 1_000_000
        /// The bytes of the file, computed once.
        static let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 % 251) }

        func read(_ count: Int, at offset: Int64, isLast: Bool) throws -> ByteBuffer {
            ByteBuffer(bytes: Self.content[Int(offset)..<Int(offset) + count])
        }
    }

    private func serving(_ mayServe: Bool = true) async throws -> Endpoint {
        let endpoint = try await Endpoint()
        endpoint.transport.serveFiles(
            for: FileConnectionHost(firstHead: .minutes(4), mayServe: { _ in mayServe }, onServerConnection: { $0.serve(with: Echo()) }))
        return endpoint
    }

    private static func client(_ protocols: [String]) throws -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.applicationProtocols = protocols
        configuration.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(Fixtures.certificate.utf8)).map { .certificate($0) }
        configuration.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(Fixtures.key.utf8), format: .pem))
        return configuration
    }

    @Test(
        "an invalid request gets a 400, and the connection is closed",
        arguments: [
            "GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
            "GET /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n",
            "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "nonsense\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: x\r\nLong: " + String(repeating: "a", count: 20_000) + "\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: x\r\n" + (0..<100).map { "A\($0): b\r\n" }.joined() + "\r\n",
        ])
    func badRequest(_ text: String) async throws {
        let server = try await serving()
        let (peer, channel) = try await RawPeer.connect(to: server.port, tls: Self.client(["hexlist-files/1"]))
        try await channel.writeAndFlush(ByteBuffer(string: text))
        let answer = String(decoding: try await peer.bytes(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(answer.prefix(80))")
        #expect(!answer.dropFirst(12).contains("HTTP/1.1"))
        await server.transport.shutdown()
    }

    @Test(
        "an unauthorised client is closed after the handshake, as is one without a common protocol",
        arguments: [
            (false, ["hexlist-files/1"]), (true, ["h2"]), (true, []),
        ])
    func closed(mayServe: Bool, protocols: [String]) async throws {
        let server = try await serving(mayServe)
        let (peer, channel) = try await RawPeer.connect(to: server.port, tls: Self.client(protocols))
        try? await channel.writeAndFlush(ByteBuffer(string: "GET /x HTTP/1.1\r\nHost: x\r\n\r\n"))
        #expect(try await peer.bytes().isEmpty)
        await server.transport.shutdown()
    }

    // MARK: Client

    /// The response to one request, recorded as it arrives.
    private final class Receiver: FileClientDelegate, Sendable {
        enum Event: Sendable, Equatable {
            case head(FileAnswerHead)
            case end([UInt8])
            case failed(FileConnectionFault)
        }

        let events = Inbox<Event>()
        private let taken = Inbox<[UInt8]>()

        func answered(_ head: FileAnswerHead, on connection: FileClientConnection) { events.put(.head(head)) }

        func bodyArrived(on connection: FileClientConnection) {
            var bytes = ByteBuffer()
            let isEnd = connection.takeBody(into: &bytes)
            taken.put(Array(bytes.readableBytesView))
            if isEnd { events.put(.end(taken.now.flatMap { $0 })) }
        }

        func failed(_ fault: FileConnectionFault, on connection: FileClientConnection) { events.put(.failed(fault)) }

        func last() async throws -> (head: FileAnswerHead?, end: Event) {
            var head: FileAnswerHead?
            while true {
                let event = try await events.next()
                guard case .head(let next) = event else { return (head, event) }
                head = next
            }
        }
    }

    @Test("a file arrives unchanged, and the connection is reused")
    func both() async throws {
        let server = try await serving()
        let client = try await Endpoint()
        let report = try await client.transport.dialForFiles([server.target], expecting: server.identity.peerID).report.get()
        let connection = try #require(report.files)
        #expect(report.connection == nil && report.summary == nil)
        for _ in 0..<2 {
            let receiver = Receiver()
            try await client.transport.eventLoop.submit { connection.get("/x", from: 0, ifStill: nil, receiver) }.get()
            let (head, end) = try await receiver.last()
            #expect(head == FileAnswerHead(status: 200, length: Echo.size, entityTag: "\"1\"", contentRange: nil))
            #expect(end == .end(Echo.content))
        }
        await client.transport.shutdown()
        await server.transport.shutdown()
    }

    @Test("requests are pipelined; responses come in order, also if some requests are cancelled")
    func together() async throws {
        let server = try await serving()
        let client = try await Endpoint()
        let report = try await client.transport.dialForFiles([server.target], expecting: server.identity.peerID).report.get()
        let connection = try #require(report.files)
        let targets = (0..<40).map { $0 == 17 ? "/large" : "/small/\($0)" }
        let receivers = targets.map { _ in Receiver() }
        let givenUp = [0, 5, 39]
        try await client.transport.eventLoop.submit {
            for (target, receiver) in zip(targets, receivers) { connection.get(target, from: 0, ifStill: nil, receiver) }
            for index in givenUp { connection.cancelResponse(to: receivers[index]) }
        }.get()
        for (index, receiver) in receivers.enumerated() where !givenUp.contains(index) {
            let (head, end) = try await receiver.last()
            #expect(head?.status == 200)
            #expect(end == .end(index == 17 ? Echo.content : Array("\(index)".utf8)))
        }
        // The connection continues. When it closes, all pending requests fail.
        let others = (0..<3).map { _ in Receiver() }
        try await client.transport.eventLoop.submit {
            for receiver in others { connection.get("/large", from: 0, ifStill: nil, receiver) }
            connection.abort()
        }.get()
        for receiver in others.dropFirst() { #expect(try await receiver.last().end == .failed(.closed)) }
        for index in givenUp { #expect(receivers[index].events.now.isEmpty) }
        #expect(others[0].events.now.isEmpty)
        await client.transport.shutdown()
        await server.transport.shutdown()
    }

    @Test("a peer that was asked to dial serves files; an unexpected one is closed", arguments: [true, false])
    func dialerServes(isAsked: Bool) async throws {
        let (owner, fetcher) = (try await serving(), try await Endpoint())
        let connections = Inbox<FileClientConnection>()
        let key = owner.identity.fingerprint
        fetcher.transport.serveFiles(
            for: FileConnectionHost(
                mayServe: { _ in false }, onServerConnection: { $0.abort() }, expectsFiles: { isAsked && $0 == key },
                onClientConnection: { connections.put($0) })
        )
        let report = try await owner.transport.dialToServeFiles([fetcher.target], expecting: fetcher.identity.peerID).report.get()
        #expect(report.isServing && report.summary == nil && report.connection == nil && report.files == nil)
        if isAsked {
            let connection = try await connections.next()
            #expect(connection.peer == key)
            let receiver = Receiver()
            try await fetcher.transport.eventLoop.submit { connection.get("/x", from: 0, ifStill: nil, receiver) }.get()
            let (head, end) = try await receiver.last()
            #expect(head?.status == 200 && end == .end(Echo.content))
        }
        await owner.transport.shutdown()
        await fetcher.transport.shutdown()
        #expect(connections.now.isEmpty)
        // No dial is made for a peer that may not be served.
        let (refusing, other) = (try await serving(false), try await Endpoint())
        let refused = try await refusing.transport.dialToServeFiles([other.target], expecting: other.identity.peerID).report.get()
        #expect(!refused.isServing && refused.summary != nil)
        await refusing.transport.shutdown()
        await other.transport.shutdown()
    }

    /// Sends a text once it has received data, and closes.
    private final class Liar: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        private let answer: String

        init(_ answer: String) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let channel = context.channel
            context.writeAndFlush(NIOAny(ByteBuffer(string: answer))).whenComplete { _ in channel.close(promise: nil) }
        }
    }

    private func answers(_ text: String) async throws -> (head: FileAnswerHead?, end: Receiver.Event) {
        let identity = try Identity.ephemeral()
        let contexts = try TLSContexts(identity: identity)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers([contexts.makeServerHandler(), Liar(text)])
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port.flatMap(UInt16.init(exactly:)))
        let client = try await Endpoint()
        let target = DialTarget(host: "127.0.0.1", port: port)
        let report = try await client.transport.dialForFiles([target], expecting: identity.peerID).report.get()
        let connection = try #require(report.files)
        let receiver = Receiver()
        try await client.transport.eventLoop.submit { connection.get("/x", from: 0, ifStill: nil, receiver) }.get()
        let result = try await receiver.last()
        await client.transport.shutdown()
        try await server.close()
        return result
    }

    @Test(
        "an invalid response is the sender's fault",
        arguments: [
            "HTTP/1.1 200 OK\r\n\r\nabc", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Encoding: gzip\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 5000\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTP/1.1 200 OK\r\nLong: " + String(repeating: "a", count: 100_000),
        ])
    func strange(_ text: String) async throws {
        let (_, end) = try await answers(text)
        guard case .failed(.answer) = end else {
            Issue.record("\(end)")
            return
        }
    }

    @Test("a short body fails, a long one is cut off, and redirects are not followed")
    func lengths() async throws {
        let less = try await answers("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        guard case .failed = less.end else {
            Issue.record("\(less.end)")
            return
        }
        let more = try await answers("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef")
        #expect(more.end == .end(Array("abc".utf8)))
        let redirect = try await answers("HTTP/1.1 302 Found\r\nLocation: https://example.org/\r\nContent-Length: 0\r\n\r\n")
        #expect(redirect.head?.status == 302 && redirect.head?.isFile == false)
    }
}
