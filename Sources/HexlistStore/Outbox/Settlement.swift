internal import HexlistModel

/// The final state of consecutive outbox rows with the same result.
struct Settlement: Sendable, Equatable {
    var ids: ClosedRange<Int64>
    /// `.stored`, `.held`, `.rejected` or `.failed`.
    var state: OutboxState
    var code: String?
    var message: String?

    /// The code of a row that a device has confirmed.
    static let delivered = "delivered"

    init(id: Int64, state: OutboxState, code: String? = nil, message: String? = nil) {
        ids = id...id
        self.state = state
        self.code = code
        self.message = message
    }
}

/// A failed attempt to deliver a row that stays queued.
struct FailedAttempt: Sendable, Equatable {
    var id: Int64
    /// The increment of the row's `attempts`.
    var attempts: Int
    /// The increment of the row's `failures`.
    var failures: Int
    /// Milliseconds since 1970.
    var nextAttemptAt: Int64?
    var waitingFor: String?
    var lastError: String?

    /// Number of failures after which a row becomes `failed`. A delivery to the same peer resets the count.
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
    /// Appends this settlement to a list. If the rows of the list's last settlement directly precede these rows and have the same result,
    /// extends that settlement instead.
    func add(to settlements: inout [Settlement]) {
        guard let last = settlements.last, ids.lowerBound > last.ids.upperBound, ids.lowerBound &- last.ids.upperBound == 1,
            state == last.state, PeerTextComparison.areEqual(code, last.code), PeerTextComparison.areEqual(message, last.message)
        else { return settlements.append(self) }
        settlements[settlements.count - 1].ids = last.ids.lowerBound...ids.upperBound
    }

    /// Creates a settlement from a final delivery result; `nil` if the row stays queued.
    init?(_ row: RowResult) {
        guard let state = row.result.state else { return nil }
        switch row.result {
        case .stored, .held, .duplicate: self.init(id: row.id, state: state)
        case .refused(let code, let message, _): self.init(id: row.id, state: state, code: code.rawValue, message: message)
        case .delivered(let note): self.init(id: row.id, state: state, code: Self.delivered, message: note)
        case .undelivered(_, let code, let message):
            self.init(id: row.id, state: state, code: code, message: message.isEmpty ? nil : message)
        }
    }
}

extension FailedAttempt {
    /// Creates the record of a temporary refusal; `nil` for a final result. Only the first refused row gets a failure, and only if the peer
    /// refused it with `internal`, because the refusals of later rows are a consequence.
    init?(_ row: RowResult, nextAttemptAt: Int64?) {
        guard case .refused(let code, let message, _) = row.result, code.isTemporary else { return nil }
        self.init(
            id: row.id, attempts: 1, failures: row.isFirstRefused && code == .internal ? 1 : 0, nextAttemptAt: nextAttemptAt,
            waitingFor: OutboxWaitReason.retry.rawValue, lastError: message.isEmpty ? code.rawValue : "\(code.rawValue): \(message)")
    }
}
