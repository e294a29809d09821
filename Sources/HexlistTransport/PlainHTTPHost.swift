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

/// The connection slots of plain HTTP, separate from those of peers. If all are in use, a new address gets a slot of the address that has
/// most of them, so that a few addresses cannot lock out the others. Performs no IO.
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
    private var slots: [(connection: Connection, network: IPAddress)] = []

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
            let most = counts.values.max() ?? 0
            guard own + 1 < most, let freed = slots.firstIndex(where: { counts[$0.network] == most }) else { return .refused }
            replaced = slots.remove(at: freed).connection
        }
        slots.append((connection, network))
        return replaced.map { .enteredInstead(of: $0) } ?? .entered
    }

    mutating func leave(_ connection: Connection) { slots.removeAll { $0.connection == connection } }
}
