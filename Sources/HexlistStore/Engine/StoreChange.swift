/// What commits changed in the store, for observers (`HexStore.observe`).
public struct StoreChange: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// New events in the log.
    public static let events = StoreChange(rawValue: 1)
    /// Records of peers: new or removed ones, their key, trust, alias and counters. Excludes times and places of contacts, counts of queued rows,
    /// and what arrives in the inbox.
    public static let peers = StoreChange(rawValue: 2)
    /// Room for hexes: some were deleted or accepted, or held ones are too old. Excludes the room that a change of trust makes.
    public static let room = StoreChange(rawValue: 4)
}
