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

    public init(alias: Alias = .kept, receive: PeerReceive? = nil, notify: Bool? = nil) {
        self.alias = alias
        self.receive = receive
        self.notify = notify
    }
}
