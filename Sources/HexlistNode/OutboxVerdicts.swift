import HexlistModel
import HexlistStore

// Conversion of a peer's answers to what the outbox records.

extension Settlement {
    /// The settlements of answers: one of consecutive rows with the same result, none of rows that are tried again.
    static func all(in verdicts: [PeerDelivery.Verdict]) -> [Settlement] {
        var settlements: [Settlement] = []
        for verdict in verdicts { Settlement(verdict)?.add(to: &settlements) }
        return settlements
    }

    private init?(_ verdict: PeerDelivery.Verdict) {
        switch verdict.state {
        case .stored: self.init(id: verdict.id, state: .stored)
        case .held: self.init(id: verdict.id, state: .held)
        case .rejected(let code, let message): self.init(id: verdict.id, state: .rejected, code: code.rawValue, message: message)
        case .refusedForNow: return nil
        }
    }
}

extension RowMove {
    init(_ move: OutboxMove, peer: PeerID) { self.init(ids: move.ids, peer: peer, from: move.from, to: move.to) }

    /// `nil` for a settlement of rows that were not delivered.
    init?(delivered settlement: Settlement, peer: PeerID) {
        guard settlement.state.isDelivered else { return nil }
        self.init(ids: settlement.ids, peer: peer, from: .queued, to: settlement.state)
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
