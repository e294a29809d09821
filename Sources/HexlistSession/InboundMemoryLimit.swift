import HexlistModel

/// Limits the memory of received hexes that wait to be stored, and decides which sessions may be read (Docs/Protocol.md, "Delivery"). The
/// size of a hex is its weight, an upper bound of its memory in bytes (`IncomingHex.weight`).
///
/// Only hexes of complete frames count, so a slow frame blocks no other session. Each trusted peer has a small share of its own, so it is
/// not blocked by the hexes of others. All strangers have one share together, because anyone can create any number of keys.
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
    /// The weight of all hexes that wait to be stored.
    private(set) var all = 0
    /// The weight of each owner's hexes that wait to be stored. Owners without any have no entry.
    private(set) var weights: [Owner: Int] = [:]
    /// Whether reading is limited: the total weight reached the limit, and has not fallen to three quarters of it since. Without this
    /// hysteresis, sessions would be paused and resumed with every batch.
    private(set) var isFull = false
    /// As `isFull`, for the share of all strangers.
    private(set) var isFullOfStrangers = false

    init(limits: Limits = Limits()) { self.limits = limits }

    /// Adds `weight` to the weight of an owner's hexes that wait to be stored. It is negative if hexes were stored.
    /// - Returns: whether the change affects which sessions of other owners may be read.
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
