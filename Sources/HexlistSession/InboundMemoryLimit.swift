import HexlistModel

/// Limits the memory of received hexes that wait for the store, and decides which sessions may be read (Docs/Protocol.md, "Delivery"). A
/// hex counts with its weight, an upper bound of the memory that it takes (`IncomingHex.weight`).
///
/// Only complete frames count, so that a slow frame blocks no other session. Each trusted peer has a small share of its own, so that none
/// is ever blocked; strangers share one, because anyone can create any number of keys.
struct InboundMemoryLimit {
    enum Owner: Hashable {
        case strangers
        /// A trusted peer, by the key it proved.
        case peer(PeerID)
    }

    struct Limits {
        var all = ProtocolLimits.allSessionsWeight
        var strangers = ProtocolLimits.strangersWeight
        var peer = ProtocolLimits.peerWeight
    }

    private let limits: Limits
    private(set) var all = 0
    /// The weight of each owner with waiting hexes.
    private(set) var weights: [Owner: Int] = [:]
    /// Whether the limit was reached and less than a quarter has become free since. The hysteresis keeps sessions from being paused and resumed
    /// with every batch.
    private(set) var isFull = false
    private(set) var isFullOfStrangers = false

    init(limits: Limits = Limits()) { self.limits = limits }

    /// Changes the weight of an owner's waiting hexes by `weight`, which is negative if hexes were stored.
    /// - Returns: whether this changes which other sessions may be read.
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
