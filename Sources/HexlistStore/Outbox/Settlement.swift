internal import HexlistModel

// The delivery results of rows as the outbox records them.

/// The final state of rows of the outbox that follow one another.
struct Settlement: Sendable, Equatable {
    var ids: ClosedRange<Int64>
    /// The state: `.stored`, `.held`, `.rejected` or `.failed`.
    var state: OutboxState
    var code: String?
    var message: String?

    init(id: Int64, state: OutboxState, code: String? = nil, message: String? = nil) {
        ids = id...id
        self.state = state
        self.code = code
        self.message = message
    }
}

/// An update of a row that still waits.
struct AttemptRecord: Sendable, Equatable {
    var id: Int64
    /// The number to add to `attempts`.
    var attempts: Int
    /// The number to add to `failures`.
    var failures: Int
    /// Milliseconds since 1970.
    var nextAttemptAt: Int64?
    var waitingFor: String?
    var lastError: String?

    /// The failures of one row, with nothing delivered in between, after which it is given up.
    static let failureLimit = 5

    init(
        id: Int64, attempts: Int = 0, failures: Int = 0, nextAttemptAt: Int64? = nil, waitingFor: String? = nil,
        lastError: String? = nil
    ) {
        self.id = id
        self.attempts = attempts
        self.failures = failures
        self.nextAttemptAt = nextAttemptAt
        self.waitingFor = waitingFor
        self.lastError = lastError
    }
}

extension Settlement {
    /// Appends it, or has the last one settle its rows too, where these follow those of that and have the same result.
    func add(to settlements: inout [Settlement]) {
        guard let last = settlements.last, ids.lowerBound > last.ids.upperBound, ids.lowerBound &- last.ids.upperBound == 1,
            state == last.state, PeerText.areEqual(code, last.code), PeerText.areEqual(message, last.message)
        else { return settlements.append(self) }
        settlements[settlements.count - 1].ids = last.ids.lowerBound...ids.upperBound
    }

    /// The settlement of a row with a final result; `nil` for one that goes on waiting.
    init?(_ row: RowResult) {
        guard let state = row.result.state else { return nil }
        if case .refused(let code, let message, _) = row.result {
            self.init(id: row.id, state: state, code: code.rawValue, message: message)
        } else {
            self.init(id: row.id, state: state)
        }
    }
}

extension AttemptRecord {
    /// The note on a row that was refused for now; `nil` for one with a final result. Only the first refused row counts a failure, and only
    /// if the peer failed on it (`internal`).
    init?(_ row: RowResult, nextAttemptAt: Int64?) {
        guard case .refused(let code, let message, _) = row.result, code.isTemporary else { return nil }
        self.init(
            id: row.id, attempts: 1, failures: row.isFirstRefused && code == .internal ? 1 : 0, nextAttemptAt: nextAttemptAt,
            waitingFor: OutboxWait.retry.rawValue, lastError: message.isEmpty ? code.rawValue : "\(code.rawValue): \(message)")
    }
}
