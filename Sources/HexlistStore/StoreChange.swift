/// What commits changed in the store, for those who show or use it.
public struct StoreChange: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Events were recorded.
    public static let events = StoreChange(rawValue: 1)
    /// Records of peers: some came or went, or their trust, alias or counters changed. Not told of are when and where a peer was seen,
    /// what is queued for it, and what counts as unread because it came into the inbox.
    public static let peers = StoreChange(rawValue: 2)
    /// Hexes were deleted or accepted, or held ones are kept no longer: more may be taken than before. What changes of trust free is not
    /// told of.
    public static let room = StoreChange(rawValue: 4)
}
