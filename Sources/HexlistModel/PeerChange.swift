/// A change of a peer's settings by the user. Does not include trust.
public struct PeerChange: Sendable, Equatable {
    public enum Alias: Sendable, Equatable {
        case unchanged
        /// Sets the alias, or removes it if the value is `nil`.
        case set(String?)
    }

    public var alias: Alias
    /// The treatment of hexes from the peer; `nil` for no change.
    public var receive: PeerReceiveSetting?
    /// Whether desktop notifications are shown for hexes of the peer; `nil` for no change.
    public var notify: Bool?
    /// Maximum bytes of offered files that are fetched automatically, per hex and per day; 0 disables fetching. `nil` for no change.
    public var fetchLimit: Int64?
    /// The destination of automatically fetched files; `nil` for no change.
    public var fetchTo: AutomaticFetchDestination?
    /// Maximum number of links of a hex that are opened in the browser when it arrives; 0 for none. `nil` for no change.
    public var openLinks: Int?
    /// The PIN that a device requires of senders; empty to delete it, `nil` for no change.
    public var pin: String?

    /// Maximum bytes of a PIN.
    public static let pinBytes = 64
    /// Highest value of `openLinks`.
    public static let mostOpenLinks = 6

    /// The routes that may be used for the peer; `nil` for no change.
    public var routes: RouteSelection?

    public init(
        alias: Alias = .unchanged, receive: PeerReceiveSetting? = nil, notify: Bool? = nil, fetchLimit: Int64? = nil,
        fetchTo: AutomaticFetchDestination? = nil, openLinks: Int? = nil, pin: String? = nil, routes: RouteSelection? = nil
    ) {
        self.alias = alias
        self.receive = receive
        self.notify = notify
        self.fetchLimit = fetchLimit
        self.fetchTo = fetchTo
        self.openLinks = openLinks
        self.pin = pin
        self.routes = routes
    }
}
