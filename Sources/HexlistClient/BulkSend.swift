public import HexlistAPI
public import NIOCore

// Sending many hexes in one request.
extension HexlistClient {
    /// The parameters of a bulk send.
    public struct BulkSend: Sendable {
        /// PEER arguments that name the recipients; empty if `toAll` is set.
        public var peers: [String]
        /// Whether to send to all trusted peers.
        public var toAll: Bool
        public var wait: SendWaitGoal
        /// Maximum time in seconds to wait without progress.
        public var timeout: Double
        public var allowsEmpty: Bool
        public var force: Bool
        /// Whether the reply has a line for every row, not only for failed ones.
        public var reportsAll: Bool
        /// Whether the reply has a progress line about twice a second.
        public var reportsProgress: Bool

        public init(
            peers: [String], toAll: Bool = false, wait: SendWaitGoal = .stored, timeout: Double = 10, allowsEmpty: Bool = false,
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

    /// Sends hexes, one HexJM per line, and calls `onLine` with the lines of the reply while it sends. Keeps only one chunk of the input
    /// and one line of the reply in memory.
    /// - Parameters:
    ///   - input: chunks of NDJSON; a chunk may end anywhere in a line. Read with back-pressure. It should end when its task is cancelled.
    ///   - onLine: called with each line of the reply in order, the summary last. If it returns `false`, the send stops; hexes that the
    ///     daemon has already accepted stay in the outbox.
    /// - Throws: `HexlistError`. An `error` line of the reply is not thrown but passed to `onLine`.
    public func sendBulk<Input: AsyncSequence & Sendable>(
        _ send: BulkSend, input: Input, onLine: (BulkReplyLine) async throws -> Bool
    ) async throws where Input.Element == ByteBuffer {
        try await connection.exchange(
            "/v1/sends", query: send.query, type: LocalAPI.bulkType, input: input, lineBytes: LocalAPI.replyLineBytes
        ) { line in
            let line: BulkReplyLine = try APIConnection.decode(line)
            guard try await onLine(line) else { return false }
            if case .summary = line { return false }
            return true
        }
    }
}
