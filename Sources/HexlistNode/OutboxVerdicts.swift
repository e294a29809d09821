import HexlistModel
import HexlistStore

// Conversion of a peer's answers to what the outbox records.

extension Settlement {
    /// `nil` for a row that is tried again.
    init?(_ verdict: PeerDelivery.Verdict) {
        switch verdict.state {
        case .stored: self.init(id: verdict.id, state: .stored)
        case .held: self.init(id: verdict.id, state: .held)
        case .rejected(let code, let message): self.init(id: verdict.id, state: .rejected, code: code.rawValue, message: message)
        case .refusedForNow: return nil
        }
    }
}

extension RowMove {
    init(_ move: OutboxMove, peer: PeerID) { self.init(id: move.id, peer: peer, from: move.from, to: move.to) }

    /// `nil` for another verdict than `stored` and `held`.
    init?(delivered verdict: PeerDelivery.Verdict, peer: PeerID) {
        switch verdict.state {
        case .stored: self.init(id: verdict.id, peer: peer, from: .queued, to: .stored)
        case .held: self.init(id: verdict.id, peer: peer, from: .queued, to: .held)
        case .rejected, .refusedForNow: return nil
        }
    }
}

extension AttemptNote {
    /// One note for each row refused for now. Only the first refused row counts a failure, and only if the peer failed on it (`internal`):
    /// the rows after it were refused because of it.
    static func refusals(in verdicts: [PeerDelivery.Verdict], nextAttemptAt: Int64?) -> [AttemptNote] {
        var notes: [AttemptNote] = []
        for verdict in verdicts {
            guard case .refusedForNow(let code, let message) = verdict.state else { continue }
            notes.append(
                AttemptNote(
                    id: verdict.id, attempts: 1, failures: verdict.leads && code == .internal ? 1 : 0, nextAttemptAt: nextAttemptAt,
                    waitingFor: OutboxWait.retry.rawValue, lastError: message.isEmpty ? code.rawValue : "\(code.rawValue): \(message)"))
        }
        return notes
    }
}

extension StoreWriter {
    /// Failures that count against one row before it is given up.
    static let failureLimit = 5

    /// Gives up rows the peer has failed on too often, with nothing delivered in between.
    /// - Returns: those.
    func giveUp(_ notes: [AttemptNote], of peer: PeerID, at now: Int64) throws -> [OutboxMove] {
        let blamed = notes.filter { $0.failures > 0 }.map(\.id)
        guard !blamed.isEmpty else { return [] }
        let failed = try outboxRows(blamed).filter { $0.state == .queued && $0.failures >= Self.failureLimit }
        return try settle(
            failed.map {
                Settlement(
                    id: $0.id, state: .failed, code: "retryLimit",
                    message: "The peer failed on it \(Self.failureLimit) times. Last: \($0.lastError ?? "no reason given")")
            }, of: peer, at: now)
    }
}
