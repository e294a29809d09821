/// A queued hex for one peer: a row of the outbox with its body.
public struct OutgoingHex: Sendable, Equatable {
    /// The ID of the outbox row. Rows are delivered in the order of their IDs.
    public var id: Int64
    public var messageID: MessageID
    /// The HexJM in its wire form, in a buffer that may be shared with other rows.
    public var body: ArraySlice<UInt8>

    public init(id: Int64, messageID: MessageID, body: ArraySlice<UInt8>) {
        self.id = id
        self.messageID = messageID
        self.body = body
    }
}

/// The next outbox rows for one peer, in ascending order.
public struct OutgoingBatch: Sendable, Equatable {
    public var items: [OutgoingHex]
    /// Whether a limit was reached, so that more rows may follow.
    public var hasMore: Bool

    public init(items: [OutgoingHex], hasMore: Bool) {
        self.items = items
        self.hasMore = hasMore
    }
}

/// The delivery result of one row of the outbox.
public struct RowResult: Sendable, Equatable {
    public var id: Int64
    public var result: DeliveryResult
    /// Whether this is the first refused row since the last one was sent. The refusal of the following rows is a consequence of it.
    public var isFirstRefused = false

    public init(id: Int64, _ result: DeliveryResult, isFirstRefused: Bool = false) {
        self.id = id
        self.result = result
        self.isFirstRefused = isFirstRefused
    }
}

/// A change of state of consecutive outbox rows for one peer.
public struct OutboxMove: Sendable, Equatable {
    public var ids: ClosedRange<Int64>
    public var peer: PeerID
    public var from: OutboxState
    public var to: OutboxState

    public init(ids: ClosedRange<Int64>, peer: PeerID, from: OutboxState, to: OutboxState) {
        self.ids = ids
        self.peer = peer
        self.from = from
        self.to = to
    }

    public init(id: Int64, peer: PeerID, from: OutboxState, to: OutboxState) { self.init(ids: id...id, peer: peer, from: from, to: to) }

    /// The state changes for delivery results of queued rows, merged where possible. Rows that stay queued have none.
    public static func of(_ results: [RowResult], peer: PeerID) -> [OutboxMove] {
        var moves: [OutboxMove] = []
        for row in results {
            guard let state = row.result.state else { continue }
            if let last = moves.last, last.to == state, last.ids.upperBound + 1 == row.id {
                moves[moves.count - 1].ids = last.ids.lowerBound...row.id
            } else {
                moves.append(OutboxMove(id: row.id, peer: peer, from: .queued, to: state))
            }
        }
        return moves
    }
}
