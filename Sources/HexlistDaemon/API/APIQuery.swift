import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistStore
import Hummingbird
import NIOCore
import Synchronization

/// The query parameters of a request. A request with an unknown parameter is refused.
struct APIQuery {
    private let query: URLQuery

    init(_ request: Request, allowing names: [String] = []) throws(HexlistError) {
        guard let query = URLQuery(parsing: request.uri.query ?? "") else {
            throw HexlistError(.badRequest, "The query of the request is not percent-encoded UTF-8.")
        }
        for item in query.items where !names.contains(item.name) {
            let hint = names.isEmpty ? "This request takes none." : "It takes \(names.map { "`\($0)`" }.joined(separator: ", "))."
            throw HexlistError(
                .badRequest, "The query parameter `\(TerminalText.clean(item.name, columns: 40))` is unknown.", hint: hint)
        }
        self.query = query
    }

    func texts(_ name: String) -> [String] { query.values(name) }

    /// The value of a text parameter; `nil` if it is missing or empty.
    func text(_ name: String) throws(HexlistError) -> String? {
        try value(name).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The value of a parameter, which may be empty; `nil` if it is missing.
    private func value(_ name: String) throws(HexlistError) -> String? {
        let values = query.values(name)
        guard values.count <= 1 else { throw HexlistError(.badRequest, "`\(name)` is given twice.") }
        return values.first
    }

    /// The value of a flag: `false` if it is missing, `true` if it has no value.
    func flag(_ name: String) throws(HexlistError) -> Bool {
        guard query.items.contains(where: { $0.name == name }) else { return false }
        switch try text(name) {
        case nil, "true", "1": return true
        case "false", "0": return false
        case let other?: throw Self.notAllowed(name, other, "`true` or `false`")
        }
    }

    func number(_ name: String, _ range: ClosedRange<Int64>) throws(HexlistError) -> Int64? {
        guard let text = try value(name) else { return nil }
        guard let number = Int64(text), range.contains(number) else {
            throw Self.notAllowed(name, text, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// The value of a parameter that has to be one of `choices`; `nil` if it is missing.
    func choice<Choice: RawRepresentable>(_ name: String, among choices: [Choice]) throws(HexlistError) -> Choice?
    where Choice.RawValue == String {
        guard let text = try text(name) else { return nil }
        return try Self.choice(text, of: name, among: choices)
    }

    func choice<Choice: RawRepresentable & CaseIterable>(_ name: String, _ fallback: Choice) throws(HexlistError) -> Choice
    where Choice.RawValue == String {
        guard let text = try text(name) else { return fallback }
        return try Self.choice(text, of: name)
    }

    static func choice<Choice: RawRepresentable & CaseIterable>(_ text: String, of name: String) throws(HexlistError) -> Choice
    where Choice.RawValue == String {
        try choice(text, of: name, among: Array(Choice.allCases))
    }

    private static func choice<Choice: RawRepresentable>(
        _ text: String, of name: String, among choices: [Choice]
    ) throws(HexlistError) -> Choice where Choice.RawValue == String {
        guard let choice = choices.first(where: { $0.rawValue.utf8.elementsEqual(text.utf8) }) else {
            throw notAllowed(name, text, "one of \(choices.map { "`\($0.rawValue)`" }.joined(separator: ", "))")
        }
        return choice
    }

    /// The value of `limit`, the maximum number of items in a page, or its default.
    func limit() throws(HexlistError) -> Int {
        Int(try number("limit", 1...Int64(LocalAPI.pageLimit)) ?? Int64(LocalAPI.defaultPageLimit))
    }

    /// The value of `after`: the cursor after which a page begins; `nil` for the first page.
    func cursor() throws(HexlistError) -> Int64? {
        let cursor: HexCursor? = try hexCursor()
        guard cursor?.orderKey == nil else { throw Self.noCursor }
        return cursor?.number
    }

    /// The value of `after` for a list of hexes or of their links.
    func hexCursor() throws(HexlistError) -> HexCursor? {
        guard let text = try text("after") else { return nil }
        guard let cursor = HexCursor(text) else { throw Self.noCursor }
        return cursor
    }

    private static let noCursor = HexlistError(.badRequest, "`after` needs the `next` of an earlier page.")

    /// The value of a parameter with a time in RFC 3339; `nil` if it is missing.
    func time(_ name: String) throws(HexlistError) -> Timestamp? {
        guard let text = try text(name) else { return nil }
        guard let time = Timestamp(text) else { throw Self.notAllowed(name, text, "a time as `2031-04-05T06:07:08.009Z`") }
        return time
    }

    /// The value of a parameter with a duration such as `250ms` or `2m`, in seconds, or `fallback` if it is missing.
    func seconds(_ name: String, fallback: Double) throws(HexlistError) -> Double {
        guard let text = try text(name) else { return fallback }
        guard let seconds = DurationText.seconds(text), seconds <= LocalAPI.longestWaitSeconds else {
            throw Self.notAllowed(name, text, "seconds up to \(Int(LocalAPI.longestWaitSeconds))")
        }
        return seconds
    }

    private static func notAllowed(_ name: String, _ value: String, _ allowed: String) -> HexlistError {
        HexlistError(.badRequest, "`\(name)` cannot be `\(TerminalText.clean(value, columns: 40))`.", hint: "It takes \(allowed).")
    }
}

/// Parses path parameters and bodies of requests.
enum RequestInput {
    /// The value of a path parameter. Percent-decodes it, because the router does not.
    static func text(_ context: BasicRequestContext, _ name: String) throws(HexlistError) -> String {
        guard let raw = context.parameters.get(name), let text = PercentEncoding.decode(raw), !text.isEmpty else {
            throw HexlistError(.badRequest, "The path of the request is not percent-encoded UTF-8.")
        }
        return text
    }

    /// The value of the path parameter `id`, a positive number.
    static func id(_ context: BasicRequestContext) throws(HexlistError) -> Int64 {
        let text = try text(context, "id")
        guard let id = Int64(text), id > 0 else {
            throw HexlistError(
                .badRequest, "`\(TerminalText.clean(text, columns: 40))` is not an id.", hint: "Ids are the numbers that lists print.")
        }
        return id
    }

    static func body(_ request: Request, limit: Int = LocalAPI.bodyBytes) async throws -> [UInt8] {
        do {
            return Array(try await request.body.collect(upTo: limit).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw HexlistError(.tooLarge, "The body of the request is longer than \(limit) bytes.", hint: "Split it.")
        }
    }

    /// The time at which the last chunk of a body arrived; shared by the task that reads and the task that checks the time limits.
    private final class LastChunkTime: Sendable {
        let at = Mutex(ContinuousClock.now)
    }

    /// Default of the maximum time between two chunks in `read`.
    private static let longestPause = Duration.seconds(60)
    /// Default of the maximum time for the whole body in `read`. Shorter than `APIContext.importWait`, for which the next import waits.
    private static let longestBody = Duration.seconds(9 * 60)

    /// Feeds a body to a reader, chunk by chunk as it arrives.
    /// - Returns: the reader after the last chunk.
    /// - Throws: errors of `feed`; `badRequest` if no chunk arrives for `pause`, or the body is not complete within `limit`.
    static func read<Reader: Sendable>(
        _ body: RequestBody, into reader: Reader, pause: Duration = longestPause, limit: Duration = longestBody,
        _ feed: @escaping @Sendable (inout Reader, UnsafeRawBufferPointer) throws -> Void
    ) async throws -> Reader {
        let lastPiece = LastChunkTime()
        let end = ContinuousClock.now + limit
        return try await withThrowingTaskGroup(of: Reader?.self) { group in
            group.addTask {
                var reader = reader
                for try await buffer in body {
                    lastPiece.at.withLock { $0 = .now }
                    try buffer.withUnsafeReadableBytes { try feed(&reader, $0) }
                }
                return reader
            }
            group.addTask {
                while case let left = min(lastPiece.at.withLock({ $0 }) + pause, end) - .now, left > .zero {
                    try await Task.sleep(for: left)
                }
                return nil
            }
            defer { group.cancelAll() }
            if let reader = try await group.next() ?? nil { return reader }
            throw HexlistError(
                .badRequest,
                ContinuousClock.now >= end
                    ? "The request's body did not end within \(limit.components.seconds) s."
                    : "Nothing of the request's body arrived for \(pause.components.seconds) s.",
                hint: "Nothing was changed. Send it again.")
        }
    }

    /// Decodes the JSON body of a request.
    /// - Returns: `nil` for an empty body.
    static func shape<Shape: JSONDecodable>(_ request: Request) async throws -> Shape? {
        let bytes = try await body(request)
        guard !bytes.isEmpty else { return nil }
        do {
            return try Shape(jsonBytes: bytes)
        } catch {
            throw HexlistError(.badRequest, "The body of the request is not valid: \(error.description).")
        }
    }

    static func requiredShape<Shape: JSONDecodable>(_ request: Request) async throws -> Shape {
        guard let shape: Shape = try await shape(request) else {
            throw HexlistError(.badRequest, "The request has no body.", hint: "It takes JSON.")
        }
        return shape
    }
}
