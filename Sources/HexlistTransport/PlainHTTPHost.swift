import HexlistModel
public import NIOCore

/// The server of plain HTTP on the peer port, for browsers without Hexlist. The transport recognises HTTP by the first byte, and knows
/// nothing else about it.
public struct PlainHTTPHost: Sendable {
    /// Whether connections are accepted now. If not, the transport closes them like other connections that do not begin with TLS.
    let isOpen: @Sendable () -> Bool
    /// Adds the handlers of an accepted connection to its pipeline before it returns. Called on the transport's event loop.
    let serve: @Sendable (any Channel) throws -> Void

    public init(isOpen: @escaping @Sendable () -> Bool, serve: @escaping @Sendable (any Channel) throws -> Void) {
        self.isOpen = isOpen
        self.serve = serve
    }

    /// A host that accepts no connection.
    public static let none = PlainHTTPHost(isOpen: { false }, serve: { $0.close(promise: nil) })
}

/// A user event from the server of plain HTTP: a request on this connection had a valid key, token or ticket.
public struct PlainHTTPAuthenticated: Sendable {
    public init() {}
}

/// The connection slots of plain HTTP, separate from those of peers. If all are in use, a new connection gets the slot of another one: the
/// oldest of the address that has most of them. A connection that had a valid key, token or ticket is authenticated. It loses its slot only
/// if all are authenticated, so neither a few nor many addresses can lock out the others. Performs no IO.
struct PlainHTTPSlots<Connection: Hashable> {
    enum Entry: Equatable {
        case entered
        /// The connection got the slot of another one, which has to be closed.
        case enteredInstead(of: Connection)
        case refused
    }

    private let limit: Int
    private let limitOfAddress: Int
    /// Oldest first.
    private var slots: [(connection: Connection, network: IPAddress, isAuthenticated: Bool)] = []

    /// - Parameters:
    ///   - limit: number of slots.
    ///   - limitOfAddress: slots of one address. Browsers open six connections.
    init(limit: Int = 32, limitOfAddress: Int = 8) { (self.limit, self.limitOfAddress) = (limit, limitOfAddress) }

    /// - Parameter network: the unit of counting (`Admission.network`).
    mutating func enter(_ connection: Connection, from network: IPAddress) -> Entry {
        let counts = slots.reduce(into: [IPAddress: Int]()) { $0[$1.network, default: 0] += 1 }
        let own = counts[network] ?? 0
        guard own < limitOfAddress else { return .refused }
        var replaced: Connection?
        if slots.count >= limit {
            let unauthenticated = slots.indices.filter { !slots[$0].isAuthenticated }
            let candidates = unauthenticated.isEmpty ? Array(slots.indices) : unauthenticated
            let most = candidates.map { counts[slots[$0].network] ?? 0 }.max() ?? 0
            // The first connection of an address gets any slot that is not authenticated. Otherwise the address that loses a slot keeps at
            // least as many as the new one gets.
            let least = own == 0 && !unauthenticated.isEmpty ? 1 : own + 2
            guard most >= least, let index = candidates.first(where: { counts[slots[$0].network] == most }) else { return .refused }
            replaced = slots.remove(at: index).connection
        }
        slots.append((connection, network, isAuthenticated: false))
        return replaced.map { .enteredInstead(of: $0) } ?? .entered
    }

    /// Protects the slot of a connection that had a valid key, token or ticket.
    mutating func authenticate(_ connection: Connection) {
        guard let index = slots.firstIndex(where: { $0.connection == connection }) else { return }
        slots[index].isAuthenticated = true
    }

    mutating func leave(_ connection: Connection) { slots.removeAll { $0.connection == connection } }
}
