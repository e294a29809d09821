internal import HexlistModel

/// A final state of consecutive rows of the outbox.
struct Settlement: Sendable, Equatable {
    var ids: ClosedRange<Int64>
    /// `.stored`, `.held`, `.rejected` or `.failed`.
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

/// A failed attempt to deliver a row that stays queued.
struct AttemptRecord: Sendable, Equatable {
    var id: Int64
    /// The increment of the row's `attempts`.
    var attempts: Int
    /// The increment of the row's `failures`.
    var failures: Int
    /// Milliseconds since 1970.
    var nextAttemptAt: Int64?
    var waitingFor: String?
    var lastError: String?

    /// Failures of a row, without a delivery in between, after which it becomes `failed`.
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
    /// Appends the settlement, or extends the last one if the rows are consecutive and the result is the same.
    func add(to settlements: inout [Settlement]) {
        guard let last = settlements.last, ids.lowerBound > last.ids.upperBound, ids.lowerBound &- last.ids.upperBound == 1,
            state == last.state, PeerText.areEqual(code, last.code), PeerText.areEqual(message, last.message)
        else { return settlements.append(self) }
        settlements[settlements.count - 1].ids = last.ids.lowerBound...ids.upperBound
    }

    /// The settlement for a final result; `nil` if the row stays queued.
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
    /// The record of a temporary refusal; `nil` for a final result. Only the first refused row counts a failure, and only if the peer
    /// failed on it (`internal`).
    init?(_ row: RowResult, nextAttemptAt: Int64?) {
        guard case .refused(let code, let message, _) = row.result, code.isTemporary else { return nil }
        self.init(
            id: row.id, attempts: 1, failures: row.isFirstRefused && code == .internal ? 1 : 0, nextAttemptAt: nextAttemptAt,
            waitingFor: OutboxWait.retry.rawValue, lastError: message.isEmpty ? code.rawValue : "\(code.rawValue): \(message)")
    }
}
