/// A change of a peer's settings by the user, except trust.
public struct PeerChange: Sendable, Equatable {
    public enum Alias: Sendable, Equatable {
        case unchanged
        /// `nil` removes the alias.
        case set(String?)
    }

    public var alias: Alias
    /// `nil` for no change.
    public var receive: PeerReceive?
    /// Whether desktop notifications are shown for its hexes; `nil` for no change.
    public var notify: Bool?
    /// Limit in bytes, per hex and per day, for fetching offered files automatically; 0 disables it. `nil` for no change.
    public var fetchLimit: Int64?

    public init(alias: Alias = .unchanged, receive: PeerReceive? = nil, notify: Bool? = nil, fetchLimit: Int64? = nil) {
        self.alias = alias
        self.receive = receive
        self.notify = notify
        self.fetchLimit = fetchLimit
    }
}
