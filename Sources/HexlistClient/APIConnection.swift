import AsyncHTTPClient
#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif
import HexlistAPI
import HexlistJSON
import HexlistModel
import NIOCore
import NIOHTTP1

/// HTTP over the daemon's socket, with errors in the user's terms.
struct APIConnection: Sendable {
    /// The seconds that a reply may take which depends on the daemon only.
    static let replySeconds = 60.0
    /// The most bytes of a reply that is no list: one hex of the longest frame, each byte of it an escape.
    private static let replyBytes = 256 << 20
    /// The most bytes of a socket's path (`sockaddr_un`, less the final zero).
    private static let pathBytes = 107

    private let http: HTTPClient
    private let socketPath: String
    private let startCommand: String

    init(socketPath: String, startCommand: String) {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        // The socket answers or it does not; another attempt would only delay the message.
        configuration.connectionPool.retryConnectionEstablishment = false
        http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        self.socketPath = socketPath
        self.startCommand = startCommand
    }

    /// Closes the connection. Fails only if it was closed before, which does not matter.
    func close() async { try? await http.shutdown() }

    func call<Reply: JSONDecodable>(
        _ method: HTTPMethod, _ path: String, query: URLQuery = URLQuery(), body: [UInt8]? = nil, type: String = LocalAPI.jsonType,
        seconds: Double = replySeconds
    ) async throws(HexlistError) -> Reply {
        let response = try await execute(
            method, path + query.text, accept: LocalAPI.jsonType, body: body.map { .bytes($0) }, type: type, seconds: seconds)
        return try Self.decode(await collect(response))
    }

    /// Calls `body` with each item of a page as it arrives.
    /// - Returns: the cursor of the next page; `nil` at the end of the list.
    func page<Item: JSONDecodable>(_ path: String, query: URLQuery, _ body: (Item) throws -> Void) async throws -> String? {
        let end = try await items(path, query: query, body)
        return try readable { () throws(JSONFault) in try end.optional("next") }
    }

    /// Calls `body` with each item of a page as it arrives.
    /// - Returns: the cursor of the next page, and how many hexes the index of `search` is behind.
    func searchedPage<Item: JSONDecodable>(
        _ path: String, query: URLQuery, _ body: (Item) throws -> Void
    ) async throws -> (next: String?, behind: Int) {
        let end = try await items(path, query: query, body)
        return try readable { () throws(JSONFault) in (try end.optional("next"), try end.optional("behind") ?? 0) }
    }

    private func items<Item: JSONDecodable>(_ path: String, query: URLQuery, _ body: (Item) throws -> Void) async throws -> JSONObject {
        let response = try await execute(
            .GET, path + query.text, accept: LocalAPI.jsonType, body: nil, seconds: Self.replySeconds)
        var parser = PageParser()
        var pieces = response.body.makeAsyncIterator()
        while let piece = try await next(&pieces) {
            for item in try readable({ () throws(JSONFault) in try parser.feed(piece.readableBytesView) }) { try body(Self.decode(item)) }
        }
        return try readable { () throws(JSONFault) in try parser.end() }
    }

    private func next(_ pieces: inout HTTPClientResponse.Body.AsyncIterator) async throws(HexlistError) -> ByteBuffer? {
        do {
            return try await pieces.next()
        } catch {
            throw explain(error)
        }
    }

    private func readable<Value>(_ read: () throws(JSONFault) -> Value) throws(HexlistError) -> Value {
        do {
            return try read()
        } catch {
            throw Self.unreadable(error)
        }
    }

    /// The bytes of a reply.
    func bytes(_ path: String, type: String) async throws(HexlistError) -> [UInt8] {
        try await collect(execute(.GET, path, accept: type, body: nil, seconds: Self.replySeconds))
    }

    /// Calls `body` with each message until it returns `false`. Throws if the daemon ends the stream.
    func stream(
        _ path: String, query: URLQuery, _ body: (StreamMessage) async throws -> Bool
    ) async throws {
        let response = try await execute(
            .GET, path + query.text, accept: LocalAPI.eventStreamType, body: nil, seconds: 366 * 86_400)
        var parser = StreamParser()
        do {
            for try await buffer in response.body {
                for message in try parser.feed(buffer.readableBytesView) {
                    guard try await body(message) else { return }
                }
            }
        } catch let error as HexlistError {
            throw error
        } catch let fault as JSONFault {
            throw Self.unreadable(fault)
        } catch {
            throw explain(error)
        }
        throw HexlistError(
            .daemonUnreachable, "hexlistd closed \(TerminalText.clean(socketPath)).",
            hint: "Start the daemon again with `\(startCommand)`.")
    }

    /// Posts a request and calls `body` with each line of the reply as it comes.
    /// - Throws: `daemonUnreachable` where the reply ends in the middle of a line.
    func lines(
        _ path: String, query: URLQuery = URLQuery(), body request: [UInt8], type: String = LocalAPI.jsonType, seconds: Double,
        _ body: ([UInt8]) throws -> Void
    ) async throws {
        let response = try await execute(
            .POST, path + query.text, accept: LocalAPI.bulkType, body: .bytes(request), type: type, seconds: seconds)
        var pieces = response.body.makeAsyncIterator()
        var splitter = LineSplitter(limit: Self.replyBytes)
        var lines: [[UInt8]] = []
        while let piece = try await next(&pieces) {
            piece.withUnsafeReadableBytes { splitter.feed($0) { if let line = $1 { lines.append(line) } } }
            for line in lines { try body(line) }
            lines.removeAll(keepingCapacity: true)
        }
        var hasRest = false
        splitter.finish { _, _ in hasRest = true }
        guard !hasRest else {
            throw HexlistError(
                .daemonUnreachable, "hexlistd closed \(TerminalText.clean(socketPath)) in the middle.",
                hint: "See what it logged, and try again.")
        }
    }

    /// Calls `onProgress` with how far the work is, and returns what came of it.
    func progress<Result: ProgressResult>(
        _ path: String, query: URLQuery = URLQuery(), body request: [UInt8], type: String = LocalAPI.jsonType, seconds: Double,
        _ onProgress: (Result.Progress) -> Void
    ) async throws -> Result {
        var result: Result?
        try await lines(path, query: query, body: request, type: type, seconds: seconds) { line in
            switch try Self.decode(line) as ProgressReply<Result> {
            case .progress(let progress): onProgress(progress)
            case .result(let end): result = end
            case .error(let error): throw error.hexlistError
            case .other: break
            }
        }
        guard let result else { throw HexlistError(.internal, "hexlistd did not say what came of it.") }
        return result
    }

    /// Calls `body` with each piece of a reply as it comes, and with the bytes of the whole.
    /// - Throws: `daemonUnreachable` where the reply ends before its end.
    func download(
        _ method: HTTPMethod, _ path: String, type: String, seconds: Double, _ body: (ByteBuffer, _ total: Int64) throws -> Void
    ) async throws {
        let response = try await execute(method, path, accept: type, body: nil, seconds: seconds)
        let total = response.headers.first(name: "content-length").flatMap { Int64($0) } ?? 0
        var pieces = response.body.makeAsyncIterator()
        var rest = total
        while let piece = try await next(&pieces) {
            rest -= Int64(piece.readableBytes)
            try body(piece, total)
        }
        guard rest == 0 else {
            throw HexlistError(
                .daemonUnreachable, "hexlistd closed \(TerminalText.clean(socketPath)) in the middle.",
                hint: "See what it logged, and try again.")
        }
    }

    /// Posts a stream and calls `body` with each line of the reply as it comes, even while the stream is still being sent, until it returns
    /// `false`. Throws if the daemon ends the reply before.
    /// - Parameter lineBytes: the most bytes of a line.
    func exchange<Input: AsyncSequence & Sendable>(
        _ path: String, query: URLQuery, type: String, input: Input, lineBytes: Int, _ body: ([UInt8]) async throws -> Bool
    ) async throws where Input.Element == ByteBuffer {
        let response = try await execute(
            .POST, path + query.text, accept: type, body: .stream(input, length: .unknown), type: type, seconds: 366 * 86_400)
        var splitter = LineSplitter(limit: lineBytes)
        do {
            for try await buffer in response.body {
                var lines: [[UInt8]?] = []
                buffer.withUnsafeReadableBytes { splitter.feed($0) { lines.append($1) } }
                for line in lines {
                    guard let line else { throw JSONFault("a line is longer than \(lineBytes) bytes") }
                    guard try await body(line) else { return }
                }
            }
        } catch let error as HexlistError {
            throw error
        } catch let fault as JSONFault {
            throw Self.unreadable(fault)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw explain(error)
        }
        try Task.checkCancellation()
        throw HexlistError(
            .daemonUnreachable, "hexlistd closed \(TerminalText.clean(socketPath)) in the middle.",
            hint: "Start it again with `\(startCommand)`; what it accepted is in its outbox.")
    }

    static func decode<Reply: JSONDecodable>(_ bytes: [UInt8]) throws(HexlistError) -> Reply {
        do {
            return try Reply(jsonBytes: bytes)
        } catch {
            throw unreadable(error)
        }
    }

    private func execute(
        _ method: HTTPMethod, _ target: String, accept: String, body: HTTPClientRequest.Body?, type: String = LocalAPI.jsonType,
        seconds: Double
    ) async throws(HexlistError) -> HTTPClientResponse {
        try checkOwner()
        var request = HTTPClientRequest(url: "http+unix://\(PercentEncoding.encode(socketPath))\(target)")
        request.method = method
        request.headers.add(name: "host", value: "localhost")
        request.headers.add(name: "accept", value: accept)
        if let body {
            request.headers.add(name: "content-type", value: type)
            request.body = body
        }
        let response: HTTPClientResponse
        do {
            response = try await http.execute(request, timeout: .milliseconds(Int64(min(seconds, 366 * 86_400) * 1_000)))
        } catch {
            throw explain(error)
        }
        try checkVersion(response)
        guard (200..<300).contains(response.status.code) else { throw try await failure(response) }
        return response
    }

    /// Refuses a socket of another user, who would receive what is sent and could make up the replies.
    private func checkOwner() throws(HexlistError) {
        let path = TerminalText.clean(socketPath)
        guard socketPath.utf8.count <= Self.pathBytes else { throw Self.tooLong(path) }
        var status = stat()
        guard stat(socketPath, &status) == 0 else { throw explain(errno: errno, path: path) }
        guard status.st_uid == geteuid() else { throw Self.ofAnotherUser(path) }
    }

    private func collect(_ response: HTTPClientResponse) async throws(HexlistError) -> [UInt8] {
        do {
            return Array(try await response.body.collect(upTo: Self.replyBytes).readableBytesView)
        } catch {
            throw explain(error)
        }
    }

    /// The error in a reply, with the daemon's own words if there are any.
    private func failure(_ response: HTTPClientResponse) async throws(HexlistError) -> HexlistError {
        let bytes = try await collect(response)
        guard let shape = try? ErrorShape(jsonBytes: bytes) else {
            return HexlistError(.internal, "hexlistd answered \(response.status.code) without saying why.")
        }
        return shape.hexlistError
    }

    private func checkVersion(_ response: HTTPClientResponse) throws(HexlistError) {
        let parts = (response.headers.first(name: LocalAPI.versionHeader) ?? "").split(separator: " ", maxSplits: 1)
        guard let version = parts.first else {
            throw HexlistError(.versionMismatch, "What answers on \(TerminalText.clean(socketPath)) is no hexlistd this hexlist knows.")
        }
        guard version == String(LocalAPI.version) else {
            let app = parts.count == 2 ? " \(TerminalText.clean(parts[1], columns: 40))" : ""
            throw HexlistError(
                .versionMismatch,
                "hexlistd\(app) speaks version \(TerminalText.clean(version, columns: 10)) of the local API, this hexlist"
                    + " \(ProtocolLimits.appVersion) version \(LocalAPI.version); use the two of one release.")
        }
    }

    private static func unreadable(_ fault: JSONFault) -> HexlistError {
        HexlistError(
            .versionMismatch, "The reply of hexlistd could not be read (\(TerminalText.clean(fault.description, columns: 80))).",
            hint: "Use hexlist and hexlistd of one release.")
    }

    private func explain(_ error: any Error) -> HexlistError {
        let path = TerminalText.clean(socketPath)
        if let error = error as? IOError { return explain(errno: error.errnoCode, path: path) }
        // The connection may have been closed before the request was written, or after.
        if error as? HTTPClientError == .remoteConnectionClosed || error as? ChannelError == .ioOnClosedChannel {
            return HexlistError(
                .daemonUnreachable, "What listens on \(path) closed the connection without an answer.", hint: "See what hexlistd logged.")
        }
        if let error = error as? HTTPClientError {
            if error == .deadlineExceeded || error == .connectTimeout || error == .readTimeout {
                return HexlistError(
                    .daemonUnreachable, "hexlistd did not answer on \(path) in time.",
                    hint: "See what it logged; stop it and start it again.")
            }
        }
        if error is CancellationError { return HexlistError(.internal, "The request was given up.") }
        return HexlistError(.internal, "The request to \(path) failed: \(TerminalText.clean("\(error)", columns: 120))")
    }

    private func explain(errno code: CInt, path: String) -> HexlistError {
        switch code {
        case ENOENT, ECONNREFUSED, ENOTDIR:
            HexlistError(.daemonUnreachable, "Nothing is listening on \(path).", hint: "Start the daemon with `\(startCommand)`.")
        case EACCES, EPERM: Self.ofAnotherUser(path)
        case ENAMETOOLONG: Self.tooLong(path)
        case ECONNRESET, EPIPE:
            HexlistError(.daemonUnreachable, "hexlistd closed the connection on \(path).", hint: "See what it logged.")
        default:
            HexlistError(.daemonUnreachable, "\(path) cannot be reached (\(String(cString: strerror(code)))).")
        }
    }

    private static func ofAnotherUser(_ path: String) -> HexlistError {
        HexlistError(.daemonUnreachable, "\(path) belongs to another user.", hint: "Run hexlist as the user hexlistd runs as.")
    }

    private static func tooLong(_ path: String) -> HexlistError {
        HexlistError(
            .configuration, "The socket path \(path) is too long; \(pathBytes) bytes fit.", hint: "Set HEXLIST_SOCKET to a shorter one.")
    }
}
