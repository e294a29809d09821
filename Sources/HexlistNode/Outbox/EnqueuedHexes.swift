import HexlistAPI
import HexlistModel
import HexlistStore

/// Hexes on their way into the outbox, with the outcome of those that it had room for.
struct EnqueuedHexes: Sendable {
    let report: EnqueueReport
    let hexes: [PreparedHexes]
    /// The number of hexes before the first one that the report tells of.
    let start: Int
    let recipients: [ContactInfo]
    /// Whether the rows are committed. Until then they cannot be read, and may come to nothing.
    let isDurable: Bool

    /// Calls `body` with each part of the report, and the hexes it begins with: the index of the first, in those it is one of.
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

    /// The rows that were there before, by their hex's key, and are queued anew.
    var requeued: [OutboxMove] {
        var moves: [OutboxMove] = []
        for part in report.parts {
            guard case .again(let rows) = part else { continue }
            for (recipient, row) in zip(recipients, rows) {
                guard case .requeued(let id, let state) = row else { continue }
                moves.append(OutboxMove(id: id, peer: recipient.peer, from: state, to: .queued))
            }
        }
        return moves
    }

    /// The outcomes of one hex, one a recipient.
    func outcomes() throws -> [SendOutcome] {
        let rows: [Enqueued]
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
