import HexlistModel

/// Weight of the hexes of all sessions that wait for the store, and whose sessions may be read on (Docs/Protocol.md, "Delivery").
///
/// Only whole frames count: one that was begun, however slowly it comes, keeps nobody out. Of a trusted peer a little may wait whatever
/// the others have waiting, so that none of them is ever shut out; strangers, whose keys cost nothing, have one part together.
struct InboundRoom {
    enum Owner: Hashable {
        case strangers
        /// A trusted one, by the key it proved.
        case peer(PeerID)
    }

    struct Limits {
        var all = ProtocolLimits.allSessionsWeight
        var strangers = ProtocolLimits.strangersWeight
        var peer = ProtocolLimits.peerWeight
    }

    private let limits: Limits
    private(set) var all = 0
    /// Of whoever has something waiting.
    private(set) var weights: [Owner: Int] = [:]
    /// From the bound until a quarter of it is free again: so sessions are not held and let go with every batch.
    private(set) var isFull = false
    private(set) var isFullOfStrangers = false

    init(limits: Limits = Limits()) { self.limits = limits }

    /// What waits of an owner became more, or less.
    /// - Returns: whether others may be read now who might not before, or the other way round.
    mutating func change(_ owner: Owner, by weight: Int) -> Bool {
        all += weight
        let own = weights[owner, default: 0] + weight
        weights[owner] = own == 0 ? nil : own
        let before = (isFull, isFullOfStrangers)
        isFull = Self.isFull(isFull, all, limits.all)
        if owner == .strangers { isFullOfStrangers = Self.isFull(isFullOfStrangers, own, limits.strangers) }
        return before != (isFull, isFullOfStrangers)
    }

    private static func isFull(_ wasFull: Bool, _ weight: Int, _ limit: Int) -> Bool { weight >= (wasFull ? limit / 4 * 3 : limit) }

    func mayRead(_ owner: Owner) -> Bool {
        switch owner {
        case .strangers: !isFull && !isFullOfStrangers
        case .peer: !isFull || weights[owner, default: 0] < limits.peer
        }
    }
}
