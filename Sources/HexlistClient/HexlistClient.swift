public import HexlistAPI
public import HexlistModel

/// The local API, typed. Every call throws `HexlistError` and nothing else.
public struct HexlistClient: Sendable {
    let connection: APIConnection

    /// Connects nowhere before the first call, and says nothing on a socket of another user. `close()` must be called.
    /// - Parameter startCommand: what errors name to start the daemon with.
    public init(socketPath: String, startCommand: String = "hexlistd") {
        connection = APIConnection(socketPath: socketPath, startCommand: startCommand)
    }

    public func close() async { await connection.close() }

    public func status() async throws -> StatusShape { try await connection.call(.GET, "/v1/status") }

    /// The configuration that counts now.
    public func configuration() async throws -> ConfigurationShape { try await connection.call(.GET, "/v1/config") }

    /// A new identity for this machine; returns once the daemon runs with it.
    public func rotateIdentity() async throws -> StatusShape { try await connection.call(.POST, "/v1/identity/rotate") }

    /// Says that the identity is this machine's, though its state folder came from another one.
    public func keepIdentity() async throws -> StatusShape { try await connection.call(.POST, "/v1/identity/keep") }

    /// Each look at the network may take some seconds.
    /// - Parameter peer: a PEER to look at, too.
    public func doctor(peer: String?) async throws -> DoctorReport {
        var query = URLQuery()
        query.add("peer", peer)
        return try await connection.call(.POST, "/v1/doctor", query: query, seconds: 300)
    }
}

/// Lists.
extension HexlistClient {
    /// A page as a whole.
    private static func collected<Item>(_ list: ((Item) throws -> Void) async throws -> String?) async throws -> Page<Item> {
        var items: [Item] = []
        let next = try await list { items.append($0) }
        return Page(items: items, next: next)
    }
}

/// Peers.
extension HexlistClient {
    /// - Parameter all: `away` ones and ghosts too.
    public func peers(all: Bool) async throws -> [PeerShape] {
        let page: Page<PeerShape> = try await connection.call(.GET, "/v1/peers", query: Self.all(all))
        return page.items
    }

    /// Calls `body` with the list as it is, and again after each change, until it answers `false`.
    public func watchPeers(all: Bool, _ body: ([PeerShape]) async throws -> Bool) async throws {
        try await connection.stream("/v1/peers", query: Self.all(all)) { message in
            let page: Page<PeerShape> = try APIConnection.decode(Array(message.data.utf8))
            return try await body(page.items)
        }
    }

    public func peer(_ peer: String) async throws -> PeerShape { try await connection.call(.GET, Self.path(peer)) }

    /// - Parameter fingerprint: the one that was shown and confirmed; another one in the meantime is refused.
    public func trust(_ peer: String, fingerprint: String?, name: String? = nil) async throws -> PeerShape {
        try await connection.call(.POST, Self.path(peer) + "/trust", body: TrustRequest(fingerprint: fingerprint, name: name).jsonBytes)
    }

    public func untrust(_ peer: String) async throws -> PeerShape { try await connection.call(.POST, Self.path(peer) + "/untrust") }

    public func block(_ peer: String) async throws -> PeerShape { try await connection.call(.POST, Self.path(peer) + "/block") }

    public func unblock(_ peer: String) async throws -> PeerShape { try await connection.call(.POST, Self.path(peer) + "/unblock") }

    public func forget(_ peer: String) async throws -> PeerShape { try await connection.call(.POST, Self.path(peer) + "/forget") }

    public func rename(_ peer: String, alias: String?) async throws -> PeerShape {
        try await connection.call(.PATCH, Self.path(peer), body: PeerPatch(alias: alias).jsonBytes)
    }

    /// Who is trusted, blocked or has an alias, one `RosterPeer` a line.
    public func exportRoster() async throws -> [UInt8] { try await connection.bytes("/v1/roster", type: LocalAPI.bulkType) }

    /// - Parameter roster: as `exportRoster` gives it.
    public func importRoster(_ roster: [UInt8]) async throws -> RosterImport {
        try await connection.call(.POST, "/v1/roster", body: roster, type: LocalAPI.bulkType)
    }

    private static func path(_ peer: String) -> String { "/v1/peers/\(PercentEncoding.encode(peer))" }

    private static func all(_ all: Bool) -> URLQuery {
        var query = URLQuery()
        if all { query.add("all", "true") }
        return query
    }
}

/// Pairing.
extension HexlistClient {
    public func pairings() async throws -> PairingsShape { try await connection.call(.GET, Self.pairingsPath) }

    /// Calls `body` with what there is, and again after each change, until it answers `false`.
    public func watchPairings(_ body: (PairingsShape) async throws -> Bool) async throws {
        try await connection.stream(Self.pairingsPath, query: URLQuery()) { message in
            try await body(APIConnection.decode(Array(message.data.utf8)))
        }
    }

    /// Takes requests for two minutes.
    public func openPairing() async throws -> PairingsShape {
        try await connection.call(.POST, Self.pairingsPath, body: PairingRequest().jsonBytes)
    }

    public func closePairing() async throws -> PairingsShape { try await connection.call(.DELETE, Self.pairingsPath) }

    /// Asks a peer, for two minutes.
    public func pair(with peer: String) async throws -> PairingShape {
        try await connection.call(.POST, Self.pairingsPath, body: PairingRequest(peer: peer).jsonBytes)
    }

    /// - Parameters:
    ///   - digits: others than those shown are a no.
    ///   - id: the pairing that was looked at.
    public func confirmPairing(with peer: String, digits: String, id: Int? = nil) async throws -> PairingShape {
        try await connection.call(
            .POST, "\(Self.pairingsPath)/\(PercentEncoding.encode(peer))/confirm",
            body: PairingConfirmation(digits: digits, id: id).jsonBytes)
    }

    public func rejectPairing(with peer: String) async throws -> PairingShape {
        try await connection.call(.POST, "\(Self.pairingsPath)/\(PercentEncoding.encode(peer))/reject")
    }

    private static let pairingsPath = "/v1/pairings"
}

/// Hexes.
extension HexlistClient {
    /// What `hexes` lists.
    public struct HexFilter: Sendable {
        /// `inbox`, `held` or `mine`.
        public var location: String
        public var unread: Bool
        /// A PEER.
        public var from: String?

        public init(location: String = "inbox", unread: Bool = false, from: String? = nil) {
            self.location = location
            self.unread = unread
            self.from = from
        }
    }

    /// Newest first.
    public func hexes(_ filter: HexFilter, limit: Int, after cursor: String? = nil) async throws -> Page<HexShape> {
        try await Self.collected { try await hexes(filter, limit: limit, after: cursor, $0) }
    }

    /// Calls `body` with each as it arrives.
    /// - Returns: where the list goes on; `nil` at its end. A page may have fewer than `limit`.
    public func hexes(
        _ filter: HexFilter, limit: Int, after cursor: String?, _ body: (HexShape) throws -> Void
    ) async throws -> String? {
        var query = URLQuery()
        query.add("location", filter.location)
        if filter.unread { query.add("unread", "true") }
        query.add("from", filter.from)
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.page("/v1/hexes", query: query, body)
    }

    /// With its links and unknown members.
    public func hex(_ id: Int64) async throws -> HexShape { try await connection.call(.GET, "/v1/hexes/\(id)") }

    /// - Returns: how many changed.
    public func setUnread(_ unread: Bool, _ selection: HexSelection) async throws -> ChangedShape {
        try await connection.call(
            .PATCH, "/v1/hexes", body: HexPatch(hexes: selection, unread: unread).jsonBytes, seconds: Self.changeSeconds)
    }

    /// Of named ones all or none.
    public func delete(_ selection: HexSelection) async throws -> ChangedShape {
        try await connection.call(.POST, "/v1/hexes/delete", body: selection.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Takes held ones into the inbox; of named ones all or none.
    public func accept(_ selection: HexSelection) async throws -> ChangedShape {
        try await connection.call(.POST, "/v1/hexes/accept", body: selection.jsonBytes, seconds: Self.changeSeconds)
    }

    /// A million hexes take a minute or two.
    private static let changeSeconds = 3_600.0
}

/// Sending.
extension HexlistClient {
    /// One hex to some peers.
    public struct Send: Sendable {
        public enum Content: Sendable {
            /// HexJM as JSON.
            case hex([UInt8])
            /// The local id of a stored one.
            case forward(Int64)
        }

        public var content: Content
        /// PEERs; empty with `toAll`.
        public var peers: [String]
        /// Every trusted peer.
        public var toAll: Bool
        public var wait: SendWait
        /// Seconds.
        public var timeout: Double
        public var key: String?
        public var force: Bool

        public init(
            content: Content, peers: [String], toAll: Bool = false, wait: SendWait = .stored, timeout: Double = 10,
            key: String? = nil, force: Bool = false
        ) {
            self.content = content
            self.peers = peers
            self.toAll = toAll
            self.wait = wait
            self.timeout = timeout
            self.key = key
            self.force = force
        }
    }

    /// One outcome a peer, in their order.
    public func send(_ send: Send) async throws -> [SendShape] {
        var query = URLQuery()
        for peer in send.peers { query.add("to", peer) }
        if send.toAll { query.add("toAll", "true") }
        query.add("wait", send.wait.rawValue)
        query.add("timeout", "\(send.timeout)")
        query.add("key", send.key)
        if send.force { query.add("force", "true") }
        var body: [UInt8]?
        switch send.content {
        case .hex(let json): body = json
        case .forward(let id): query.add("hex", String(id))
        }
        let page: Page<SendShape> = try await connection.call(
            .POST, "/v1/sends", query: query, body: body, seconds: send.timeout + APIConnection.replySeconds)
        return page.items
    }

    /// Oldest first.
    public func outbox(
        to peer: String? = nil, states: [OutboxState] = [], limit: Int, after cursor: String? = nil
    ) async throws -> Page<OutboxShape> {
        try await Self.collected { try await outbox(to: peer, states: states, limit: limit, after: cursor, $0) }
    }

    /// Calls `body` with each row as it arrives.
    /// - Returns: where the list goes on; `nil` at its end. A page may have fewer than `limit`.
    public func outbox(
        to peer: String?, states: [OutboxState], limit: Int, after cursor: String?, _ body: (OutboxShape) throws -> Void
    ) async throws -> String? {
        var query = URLQuery()
        query.add("to", peer)
        for state in states { query.add("state", state.rawValue) }
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.page("/v1/outbox", query: query, body)
    }

    public func outboxRow(_ id: Int64) async throws -> OutboxShape { try await connection.call(.GET, "/v1/outbox/\(id)") }

    public func retry(_ id: Int64) async throws -> OutboxShape { try await connection.call(.POST, "/v1/outbox/\(id)/retry") }

    public func cancel(_ id: Int64) async throws -> OutboxShape { try await connection.call(.POST, "/v1/outbox/\(id)/cancel") }

    /// Tries many rows again now.
    public func retry(_ rows: OutboxRows) async throws -> OutboxChange { try await change(rows, "/v1/outbox/retry") }

    public func cancel(_ rows: OutboxRows) async throws -> OutboxChange { try await change(rows, "/v1/outbox/cancel") }

    private func change(_ rows: OutboxRows, _ path: String) async throws -> OutboxChange {
        try await connection.call(.POST, path, body: rows.jsonBytes)
    }
}

/// Events.
extension HexlistClient {
    /// Where a list of events begins.
    public enum EventStart: Sendable {
        case oldest
        /// Behind this number.
        case after(Int64)
        /// With as many of the newest.
        case last(Int)

        fileprivate func query(_ types: [String]) -> URLQuery {
            var query = URLQuery()
            switch self {
            case .oldest: break
            case .after(let number): query.add("since", String(number))
            case .last(let count): query.add("last", String(count))
            }
            for type in types { query.add("type", type) }
            return query
        }
    }

    /// Calls `body` with each as it arrives.
    /// - Parameter types: only of these; empty for all.
    /// - Returns: what to go on after; `nil` at the end. A page may have fewer than `limit`.
    public func events(
        _ start: EventStart, types: [String] = [], limit: Int, _ body: (EventShape) throws -> Void
    ) async throws -> String? {
        var query = start.query(types)
        query.add("limit", String(limit))
        return try await connection.page("/v1/events", query: query, body)
    }

    /// Calls `body` with each event kept and each one to come, until it answers `false`.
    public func followEvents(
        _ start: EventStart = .oldest, types: [String] = [], _ body: (EventShape) async throws -> Bool
    ) async throws {
        try await connection.stream("/v1/events", query: start.query(types)) { message in
            try await body(APIConnection.decode(Array(message.data.utf8)))
        }
    }
}
