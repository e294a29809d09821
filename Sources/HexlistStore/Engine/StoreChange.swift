/// The kinds of records that commits changed, for the observer (`HexStore.observe`).
public struct StoreChange: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// New events in the log.
    public static let events = StoreChange(rawValue: 1)
    /// Records of peers: added or removed peers, keys, trust, aliases and counters. Excludes times and addresses of contacts, counts of
    /// queued rows and arrivals in the inbox.
    public static let peers = StoreChange(rawValue: 2)
    /// Capacity for hexes: hexes were deleted or accepted, or held hexes became too old. Excludes the effect of a change of trust.
    public static let room = StoreChange(rawValue: 4)
}
