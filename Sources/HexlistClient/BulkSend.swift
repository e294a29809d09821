import AsyncHTTPClient
public import HexlistAPI
public import NIOCore

/// Many hexes in one request.
extension HexlistClient {
    /// What a stream of hexes is for.
    public struct BulkSend: Sendable {
        /// PEERs; empty with `toAll`.
        public var peers: [String]
        /// Every trusted peer.
        public var toAll: Bool
        public var wait: SendWait
        /// Seconds without progress.
        public var timeout: Double
        public var allowsEmpty: Bool
        public var force: Bool
        /// A line of the reply for every row, not only for those that ended otherwise than stored or held.
        public var reportsAll: Bool
        /// About twice a second.
        public var reportsProgress: Bool

        public init(
            peers: [String], toAll: Bool = false, wait: SendWait = .stored, timeout: Double = 10, allowsEmpty: Bool = false,
            force: Bool = false, reportsAll: Bool = false, reportsProgress: Bool = false
        ) {
            self.peers = peers
            self.toAll = toAll
            self.wait = wait
            self.timeout = timeout
            self.allowsEmpty = allowsEmpty
            self.force = force
            self.reportsAll = reportsAll
            self.reportsProgress = reportsProgress
        }

        var query: URLQuery {
            var query = URLQuery()
            for peer in peers { query.add("to", peer) }
            if toAll { query.add("toAll", "true") }
            query.add("wait", wait.rawValue)
            query.add("timeout", "\(timeout)")
            if allowsEmpty { query.add("allowEmpty", "true") }
            if force { query.add("force", "true") }
            if reportsAll { query.add("results", "all") }
            if reportsProgress { query.add("progress", "true") }
            return query
        }
    }

    /// Sends hexes, one HexJM a line, while they come, and hands out the lines of the reply meanwhile. Holds one piece of the
    /// input and one line of the reply, whatever their number; takes as long as the input and the peers take.
    /// - Parameters:
    ///   - input: pieces of NDJSON, which need not end where lines end. It is asked for the next as the daemon takes them, and
    ///     should end when its task is cancelled.
    ///   - onLine: each line, in order, the summary last; `false` for no more, which leaves what was accepted in the outbox.
    /// - Throws: `HexlistError`; an `error` line is no error here.
    public func sendBulk<Input: AsyncSequence & Sendable>(
        _ send: BulkSend, input: Input, onLine: (BulkLine) async throws -> Bool
    ) async throws where Input.Element == ByteBuffer {
        try await connection.exchange(
            "/v1/sends", query: send.query, type: LocalAPI.bulkType, input: input, lineBytes: LocalAPI.replyLineBytes
        ) { line in
            let line: BulkLine = try APIConnection.decode(line)
            guard try await onLine(line) else { return false }
            if case .summary = line { return false }
            return true
        }
    }
}
