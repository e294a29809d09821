/// A change of one peer by the user, beside its trust.
public struct PeerChange: Sendable, Equatable {
    public enum Alias: Sendable, Equatable {
        case kept
        /// `nil` takes the alias away.
        case set(String?)
    }

    public var alias: Alias
    /// `nil` keeps what is set.
    public var receive: PeerReceive?
    /// Whether desktop notifications tell of it; `nil` keeps what is set.
    public var notify: Bool?
    /// Bytes of a hex, and of a day, up to which files that the peer offers are fetched by themselves; 0: none. `nil` keeps what is set.
    public var fetchLimit: Int64?

    public init(alias: Alias = .kept, receive: PeerReceive? = nil, notify: Bool? = nil, fetchLimit: Int64? = nil) {
        self.alias = alias
        self.receive = receive
        self.notify = notify
        self.fetchLimit = fetchLimit
    }
}
