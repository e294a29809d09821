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

/// Sends requests of the local API as HTTP over the daemon's Unix socket. Its errors are `HexlistError`s, written for users.
struct APIConnection: Sendable {
    /// Maximum bytes of a single reply. Fits one hex of the largest frame with every byte escaped in JSON.
    private static let replyBytes = 256 << 20
    /// Maximum bytes of a socket path (`sockaddr_un`, without the final zero).
    private static let pathBytes = 107

    let socketPath: String
    let startCommand: String
    /// The error to throw if nothing listens on the socket.
    let absent: HexlistError
    /// Timeout in seconds of requests whose reply depends only on the daemon, not on a peer or a large amount of data.
    let replySeconds: Double

    func call<Reply: JSONDecodable>(
        _ method: HTTPMethod, _ path: String, query: URLQuery = URLQuery(), body: [UInt8]? = nil, type: String = LocalAPI.jsonType,
        seconds: Double? = nil
    ) async throws -> Reply {
        let bytes = try await execute(
            method, path + query.text, accept: LocalAPI.jsonType, content: body.map { .bytes($0) }, type: type,
            seconds: seconds ?? replySeconds
        ) { try await Self.collect($1) }
        return try Self.decode(bytes)
    }

    /// Requests a list that has one page.
    func list<Item: JSONShape & Sendable>(_ path: String, query: URLQuery = URLQuery()) async throws -> [Item] {
        let page: Page<Item> = try await call(.GET, path, query: query)
        return page.items
    }

    /// Requests a page of a list and calls `body` with each item as it arrives.
    /// - Returns: the cursor of the next page; `nil` at the end of the list.
    func page<Item: JSONDecodable>(_ path: String, query: URLQuery, _ body: (Item) throws -> Void) async throws -> String? {
        let end = try await items(path, query: query, body)
        return try readable { () throws(JSONFault) in try end.optional("next") }
    }

    /// Requests a page of search results and calls `body` with each item as it arrives.
    /// - Returns: the cursor of the next page, `nil` at the end of the list; and `behind`, the number of hexes that are not in the search
    ///   index yet.
    func searchedPage<Item: JSONDecodable>(
        _ path: String, query: URLQuery, _ body: (Item) throws -> Void
    ) async throws -> (next: String?, behind: Int) {
        let end = try await items(path, query: query, body)
        return try readable { () throws(JSONFault) in (try end.optional("next"), try end.optional("behind") ?? 0) }
    }

    private func items<Item: JSONDecodable>(_ path: String, query: URLQuery, _ body: (Item) throws -> Void) async throws -> JSONObject {
        var parser = ListPageParser()
        try await execute(.GET, path + query.text, accept: LocalAPI.jsonType, seconds: replySeconds) { _, pieces in
            for try await piece in pieces {
                let items = try readable { () throws(JSONFault) in try parser.feed(piece.readableBytesView) }
                for item in items { try body(Self.decode(item)) }
            }
        }
        return try readable { () throws(JSONFault) in try parser.end() }
    }

    private func readable<Value>(_ read: () throws(JSONFault) -> Value) throws(HexlistError) -> Value {
        do {
            return try read()
        } catch {
            throw Self.unreadable(error)
        }
    }

    /// Requests a resource and returns the body of the reply.
    func bytes(_ path: String, type: String) async throws -> [UInt8] {
        try await execute(.GET, path, accept: type, seconds: replySeconds) { try await Self.collect($1) }
    }

    /// Subscribes to an event stream and calls `body` with each message until it returns `false`.
    /// - Throws: `daemonUnreachable` if the daemon closes the stream.
    func stream(
        _ path: String, query: URLQuery, _ body: (ServerSentEvent) async throws -> Bool
    ) async throws {
        var parser = ServerSentEventParser()
        let isDone = try await execute(
            .GET, path + query.text, accept: LocalAPI.eventStreamType, seconds: 366 * 86_400
        ) { _, pieces in
            for try await piece in pieces {
                let messages = try readable { () throws(JSONFault) in try parser.feed(piece.readableBytesView) }
                for message in messages {
                    guard try await body(message) else { return true }
                }
            }
            return false
        }
        guard !isDone else { return }
        throw HexlistError(
            .daemonUnreachable, "hexlistd closed the connection.",
            hint: "Start it again with `\(startCommand)`.")
    }

    /// Posts a request and calls `body` with each line of the reply as it arrives.
    /// - Throws: `daemonUnreachable` if the reply ends in the middle of a line.
    func lines(
        _ path: String, query: URLQuery = URLQuery(), body request: [UInt8], type: String = LocalAPI.jsonType, seconds: Double,
        _ body: ([UInt8]) throws -> Void
    ) async throws {
        try await execute(
            .POST, path + query.text, accept: LocalAPI.bulkType, content: .bytes(request), type: type, seconds: seconds
        ) { _, pieces in
            var splitter = LineSplitter(limit: Self.replyBytes)
            var lines: [[UInt8]] = []
            for try await piece in pieces {
                piece.withUnsafeReadableBytes { splitter.feed($0) { if let line = $1 { lines.append(line) } } }
                for line in lines { try body(line) }
                lines.removeAll(keepingCapacity: true)
            }
            var hasRest = false
            splitter.finish { _, _ in hasRest = true }
            if hasRest { throw HTTPExchange.Fault.cutShort }
        }
    }

    /// Posts a request, calls `onProgress` with each progress report in the reply, and returns the result, which is its last line.
    func progress<Result: ProgressResult>(
        _ path: String, query: URLQuery = URLQuery(), body request: [UInt8], type: String = LocalAPI.jsonType, seconds: Double,
        _ onProgress: (Result.Progress) throws -> Void
    ) async throws -> Result {
        var result: Result?
        try await lines(path, query: query, body: request, type: type, seconds: seconds) { line in
            switch try Self.decode(line) as ProgressReply<Result> {
            case .progress(let progress): try onProgress(progress)
            case .result(let end): result = end
            case .error(let error): throw error.hexlistError
            case .other: break
            }
        }
        guard let result else { throw HexlistError(.internal, "hexlistd sent no result.") }
        return result
    }

    /// Downloads a reply and calls `body` with each chunk and the total size of the reply in bytes.
    /// - Throws: `daemonUnreachable` if the reply is incomplete.
    func download(
        _ method: HTTPMethod, _ path: String, type: String, seconds: Double, _ body: (ByteBuffer, _ total: Int64) throws -> Void
    ) async throws {
        try await execute(method, path, accept: type, seconds: seconds) { head, pieces in
            let total = head.headers.first(name: "content-length").flatMap { Int64($0) } ?? 0
            var rest = total
            for try await piece in pieces {
                rest -= Int64(piece.readableBytes)
                try body(piece, total)
            }
            guard rest == 0 else { throw HTTPExchange.Fault.cutShort }
        }
    }

    /// Posts a stream and calls `body` with each line of the reply until it returns `false`. Reads the reply while the stream is still
    /// being sent.
    /// - Parameter lineBytes: maximum bytes of a line.
    /// - Throws: `daemonUnreachable` if the daemon closes the reply too early.
    func exchange<Input: AsyncSequence & Sendable>(
        _ path: String, query: URLQuery, type: String, input: Input, lineBytes: Int, _ body: ([UInt8]) async throws -> Bool
    ) async throws where Input.Element == ByteBuffer {
        let content = HTTPExchange.Content.stream { write in for try await piece in input { try await write(piece) } }
        try await execute(
            .POST, path + query.text, accept: type, content: content, type: type, seconds: 366 * 86_400
        ) { _, pieces in
            var splitter = LineSplitter(limit: lineBytes)
            for try await piece in pieces {
                var lines: [[UInt8]?] = []
                piece.withUnsafeReadableBytes { splitter.feed($0) { lines.append($1) } }
                for line in lines {
                    guard let line else { throw Self.unreadable(JSONFault("a line is longer than \(lineBytes) bytes")) }
                    guard try await body(line) else { return }
                }
            }
            throw HexlistError(
                .daemonUnreachable, "hexlistd closed the connection before the end.",
                hint: "Start it again with `\(startCommand)`; accepted hexes are in the outbox.")
        }
    }

    static func decode<Reply: JSONDecodable>(_ bytes: [UInt8]) throws(HexlistError) -> Reply {
        do {
            return try Reply(jsonBytes: bytes)
        } catch {
            throw unreadable(error)
        }
    }

    /// Sends a request and calls `body` with the reply if its status is a success.
    /// - Throws: errors of `body` and of a content stream unchanged; `HexlistError` for all other failures.
    private func execute<Result: Sendable>(
        _ method: HTTPMethod, _ target: String, accept: String, content: HTTPExchange.Content? = nil, type: String = LocalAPI.jsonType,
        seconds: Double, _ body: (HTTPResponseHead, HTTPReplyBody) async throws -> Result
    ) async throws -> Result {
        try checkOwner()
        var headers: HTTPHeaders = ["accept": accept]
        if content != nil { headers.add(name: "content-type", value: type) }
        let exchange = HTTPExchange(
            socketPath: socketPath, method: method, target: target, headers: headers, content: content, seconds: seconds)
        do {
            return try await exchange.run { head, pieces in
                try checkVersion(head)
                guard (200..<300).contains(head.status.code) else { throw try await Self.failure(head, pieces) }
                return try await body(head, pieces)
            }
        } catch let fault as HTTPExchange.Fault {
            throw explain(fault)
        } catch is CancellationError {
            throw HexlistError(.internal, "The request was cancelled.")
        }
    }

    /// Throws if the socket belongs to another user. That user could read the requests and forge replies.
    private func checkOwner() throws(HexlistError) {
        let path = TerminalText.clean(socketPath)
        guard socketPath.utf8.count <= Self.pathBytes else { throw Self.tooLong(path) }
        var status = stat()
        guard stat(socketPath, &status) == 0 else { throw explain(errno: errno, path: path) }
        guard status.st_uid == geteuid() else { throw Self.ofAnotherUser(path) }
    }

    private static func collect(_ pieces: HTTPReplyBody) async throws -> [UInt8] {
        do {
            return Array(try await pieces.collect(upTo: replyBytes).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw HexlistError(.internal, "The response of hexlistd is longer than \(replyBytes >> 20) MiB.")
        }
    }

    /// Converts an error reply to a `HexlistError`, with the message of the daemon if the reply contains one.
    private static func failure(_ head: HTTPResponseHead, _ pieces: HTTPReplyBody) async throws -> HexlistError {
        guard let shape = try? ErrorJSON(jsonBytes: try await collect(pieces)) else {
            return HexlistError(.internal, "hexlistd answered \(head.status.code) without a reason.")
        }
        return shape.hexlistError
    }

    private func checkVersion(_ head: HTTPResponseHead) throws(HexlistError) {
        let parts = (head.headers.first(name: LocalAPI.versionHeader) ?? "").split(separator: " ", maxSplits: 1)
        guard let version = parts.first else {
            throw HexlistError(
                .versionMismatch, "The program on \(TerminalText.clean(socketPath)) is not a hexlistd that this hexlist supports.")
        }
        guard version == String(LocalAPI.version) else {
            let app = parts.count == 2 ? " \(TerminalText.clean(parts[1], columns: 40))" : ""
            throw HexlistError(
                .versionMismatch,
                "hexlistd\(app) speaks version \(TerminalText.clean(version, columns: 10)) of the local API, this hexlist"
                    + " \(ProtocolLimits.appVersion) version \(LocalAPI.version). Install both from the same release.")
        }
    }

    private static func unreadable(_ fault: JSONFault) -> HexlistError {
        HexlistError(
            .versionMismatch, "The reply of hexlistd could not be read (\(TerminalText.clean(fault.description, columns: 80))).",
            hint: "Install hexlist and hexlistd from the same release.")
    }

    /// Converts a fault of the connection to an error for users. Errors of a content stream stay unchanged.
    private func explain(_ fault: HTTPExchange.Fault) -> any Error {
        let path = TerminalText.clean(socketPath)
        return switch fault {
        case .socket(let code): explain(errno: code, path: path)
        case .timedOut:
            HexlistError(
                .daemonUnreachable, "hexlistd did not answer on \(path) in time.",
                hint: "Check its log, then restart it.")
        case .cutShort:
            HexlistError(
                .daemonUnreachable, "The connection on \(path) closed in the middle of the answer.",
                hint: "Check the log of hexlistd, and try again.")
        case .foreign: HexlistError(.versionMismatch, "The program on \(path) is not a hexlistd that this hexlist supports.")
        case .content(let error): error
        }
    }

    private func explain(errno code: CInt, path: String) -> HexlistError {
        switch code {
        case ENOENT, ECONNREFUSED, ENOTDIR:
            absent
        case EACCES, EPERM:
            HexlistError(
                .daemonUnreachable, "\(path) cannot be reached (\(String(cString: strerror(code)))).",
                hint: "Run hexlist as the same user as hexlistd.")
        case ENAMETOOLONG: Self.tooLong(path)
        case ECONNRESET, EPIPE:
            HexlistError(.daemonUnreachable, "hexlistd closed the connection on \(path).", hint: "Check its log.")
        default:
            HexlistError(.daemonUnreachable, "\(path) cannot be reached (\(String(cString: strerror(code)))).")
        }
    }

    private static func ofAnotherUser(_ path: String) -> HexlistError {
        HexlistError(.daemonUnreachable, "\(path) belongs to another user.", hint: "Run hexlist as the same user as hexlistd.")
    }

    private static func tooLong(_ path: String) -> HexlistError {
        HexlistError(
            .configuration, "The socket path \(path) is longer than \(pathBytes) bytes.", hint: "Set HEXLIST_SOCKET to a shorter one.")
    }
}
