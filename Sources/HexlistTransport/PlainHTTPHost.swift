import HexlistModel
public import NIOCore

/// The server for plain HTTP on the peer port, used by browsers without Hexlist. The transport recognises HTTP by its first byte only; this
/// host does everything else.
public struct PlainHTTPHost: Sendable {
    /// Whether connections are accepted now. If not, the transport closes them, as all connections that do not begin with TLS.
    let isOpen: @Sendable () -> Bool
    /// Adds the handlers for HTTP to the pipeline of an accepted connection. Called on the transport's event loop.
    let serve: @Sendable (any Channel) throws -> Void

    public init(isOpen: @escaping @Sendable () -> Bool, serve: @escaping @Sendable (any Channel) throws -> Void) {
        self.isOpen = isOpen
        self.serve = serve
    }

    /// A host that accepts no connection.
    public static let none = PlainHTTPHost(isOpen: { false }, serve: { $0.close(promise: nil) })
}

/// A channel event that the server sends when a request on the connection had a valid key, token or ticket.
public struct PlainHTTPAuthenticated: Sendable {
    public init() {}
}

/// The connection slots of plain HTTP, which are separate from those of peers. If all are in use, a new connection may take the slot of
/// another one: the oldest connection of the address that has the most. A connection that had a valid key, token or ticket is
/// authenticated. It loses its slot only if all connections are authenticated. Therefore neither a few nor many addresses can lock out the
/// others. Performs no IO.
struct PlainHTTPSlots<Connection: Hashable> {
    enum Entry: Equatable {
        case entered
        /// The new connection took the slot of this other one, which has to be closed.
        case enteredInstead(of: Connection)
        case refused
    }

    private let limit: Int
    private let limitOfAddress: Int
    /// The connections with a slot, oldest first.
    private var slots: [(connection: Connection, network: IPAddress, isAuthenticated: Bool)] = []

    /// - Parameters:
    ///   - limit: the number of slots.
    ///   - limitOfAddress: maximum number of slots for one address. Browsers open six connections.
    init(limit: Int = 32, limitOfAddress: Int = 8) { (self.limit, self.limitOfAddress) = (limit, limitOfAddress) }

    /// Requests a slot for a new connection.
    /// - Parameter network: the address under which it is counted (`Admission.network`).
    mutating func enter(_ connection: Connection, from network: IPAddress) -> Entry {
        let counts = slots.reduce(into: [IPAddress: Int]()) { $0[$1.network, default: 0] += 1 }
        let own = counts[network] ?? 0
        guard own < limitOfAddress else { return .refused }
        var replaced: Connection?
        if slots.count >= limit {
            let unauthenticated = slots.indices.filter { !slots[$0].isAuthenticated }
            let candidates = unauthenticated.isEmpty ? Array(slots.indices) : unauthenticated
            let most = candidates.map { counts[slots[$0].network] ?? 0 }.max() ?? 0
            // The first connection of an address may take any slot of an unauthenticated connection. For further connections, the address
            // that loses a slot must still have at least as many slots as the address that gets one.
            let least = own == 0 && !unauthenticated.isEmpty ? 1 : own + 2
            guard most >= least, let index = candidates.first(where: { counts[slots[$0].network] == most }) else { return .refused }
            replaced = slots.remove(at: index).connection
        }
        slots.append((connection, network, isAuthenticated: false))
        return replaced.map { .enteredInstead(of: $0) } ?? .entered
    }

    /// Records that a connection is authenticated, so that it keeps its slot.
    mutating func authenticate(_ connection: Connection) {
        guard let index = slots.firstIndex(where: { $0.connection == connection }) else { return }
        slots[index].isAuthenticated = true
    }

    mutating func leave(_ connection: Connection) { slots.removeAll { $0.connection == connection } }
}
