/// An outbox row to be sent: one hex for one peer, with its JSON.
public struct OutgoingHex: Sendable, Equatable {
    /// The ID of the outbox row. Rows are delivered in the order of their IDs.
    public var id: Int64
    public var messageID: MessageID
    /// The hex as HexJM, the JSON that is sent. It may be a slice of a buffer that other rows share.
    public var body: ArraySlice<UInt8>

    public init(id: Int64, messageID: MessageID, body: ArraySlice<UInt8>) {
        self.id = id
        self.messageID = messageID
        self.body = body
    }
}

/// Consecutive outbox rows for one peer, in ascending order of their IDs, to be sent next.
public struct OutgoingBatch: Sendable, Equatable {
    public var items: [OutgoingHex]
    /// Whether the batch was limited in size, so that more rows may follow.
    public var hasMore: Bool

    public init(items: [OutgoingHex], hasMore: Bool) {
        self.items = items
        self.hasMore = hasMore
    }
}

/// The delivery result of one outbox row.
public struct RowResult: Sendable, Equatable {
    public var id: Int64
    public var result: DeliveryResult
    /// Whether this is the first temporary refusal since a row was last sent. The peer refuses the rows after it only to keep them in order
    /// (`RefusalOrder`).
    public var isFirstRefused = false

    public init(id: Int64, _ result: DeliveryResult, isFirstRefused: Bool = false) {
        self.id = id
        self.result = result
        self.isFirstRefused = isFirstRefused
    }
}

/// A change of the delivery state of consecutive outbox rows for one peer.
public struct OutboxStateChange: Sendable, Equatable {
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

    /// Returns the state changes that delivery results cause, merged for consecutive rows with the same state. A row that stays queued has
    /// no state change.
    public static func of(_ results: [RowResult], peer: PeerID) -> [OutboxStateChange] {
        var moves: [OutboxStateChange] = []
        for row in results {
            guard let state = row.result.state else { continue }
            if let last = moves.last, last.to == state, last.ids.upperBound + 1 == row.id {
                moves[moves.count - 1].ids = last.ids.lowerBound...row.id
            } else {
                moves.append(OutboxStateChange(id: row.id, peer: peer, from: .queued, to: state))
            }
        }
        return moves
    }
}
