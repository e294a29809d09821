import HexlistAPI
import HexlistModel
import HexlistStore

/// The result of an enqueue: the hexes, and the outcome of each hex for which the outbox had capacity.
struct EnqueuedHexes: Sendable {
    let report: EnqueueReport
    let hexes: [PreparedHexes]
    /// The number of `hexes` that precede the first one in the report.
    let start: Int
    let recipients: [PeerContact]
    /// Whether the rows are committed. Before that, they cannot be read and the transaction may fail.
    let isDurable: Bool

    /// Calls `body` with each part of the report, the hexes that contain its first hex, and the index of that hex.
    func forEachPart(_ body: (EnqueueReport.Part, PreparedHexes, Int) -> Void) {
        var parts = report.parts[...]
        var index = start
        for hexes in hexes {
            while index < hexes.count, let part = parts.popFirst() {
                body(part, hexes, index)
                index += part.hexes
            }
            index -= hexes.count
        }
    }

    /// The state changes of existing rows that are queued again, because a hex with the same idempotency key was sent again.
    var requeued: [OutboxStateChange] {
        var moves: [OutboxStateChange] = []
        for part in report.parts {
            guard case .again(let rows) = part else { continue }
            for (recipient, row) in zip(recipients, rows) {
                guard case .requeued(let id, let state) = row else { continue }
                moves.append(OutboxStateChange(id: id, peer: recipient.peer, from: state, to: .queued))
            }
        }
        return moves
    }

    /// The outcomes of a single hex, one for each recipient.
    func outcomes() throws -> [SendOutcome] {
        let rows: [EnqueuedRow]
        switch report.parts.first {
        case .new(_, let first): rows = first.map { .new($0) }
        case .again(let again): rows = again
        case .refused(let error): throw error
        case nil: throw HexlistError(.internal, "The outbox lost a row.")
        }
        guard let messageID = hexes.first?.messageID(0) else { return [] }
        return zip(recipients, rows).map { recipient, row in
            switch row {
            case .new(let id), .requeued(let id, _):
                return SendOutcome(outboxID: id, messageID: messageID, peer: recipient.peer, state: .queued)
            case .existing(let earlier):
                var outcome = SendOutcome(earlier)
                outcome.earlier = true
                return outcome
            }
        }
    }
}
