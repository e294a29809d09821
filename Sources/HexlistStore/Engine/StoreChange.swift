/// The kinds of records that a commit changed. Passed to the store's observer (`HexStore.observe`).
public struct StoreChange: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Events were added to the event log.
    public static let events = StoreChange(rawValue: 1)
    /// Records of peers changed: peers were added or removed, or their keys, trust, aliases or counters changed. Not reported for contact
    /// times, endpoints, counts of queued rows, and arrivals in the inbox.
    public static let peers = StoreChange(rawValue: 2)
    /// Capacity for new hexes was freed: hexes were deleted or accepted, or held hexes were deleted because of their age. Not reported for
    /// a change of trust.
    public static let room = StoreChange(rawValue: 4)
    /// Hexes were added to the inbox. Reported together with `events`.
    public static let inbox = StoreChange(rawValue: 8)
    /// Rows of My Hexlist changed that own machines request by number.
    public static let list = StoreChange(rawValue: 16)
    /// A peer has acknowledged all rows of a list.
    public static let listAcknowledged = StoreChange(rawValue: 32)
}
