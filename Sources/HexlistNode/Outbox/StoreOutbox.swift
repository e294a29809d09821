public import HexlistDelivery
public import HexlistModel
public import HexlistStore

extension HexStore: OutboxStore {
    public func nextBatch(
        for peer: PeerID, after row: Int64, limit: Int, maxBytes: Int, longest: Int,
        completion: @escaping @Sendable (Result<OutgoingBatch, any Error>) -> Void
    ) {
        submitRead({ try $0.outboxBatch(peer, after: row, limit: limit, maxBytes: maxBytes, longest: longest) }, completion: completion)
    }

    public var rejectLimit: Int { HexStore.outboxRejectLimit }
}
