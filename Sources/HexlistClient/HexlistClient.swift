public import HexlistAPI
public import HexlistModel
public import NIOCore

/// A client of the local API. All calls throw only `HexlistError`.
public struct HexlistClient: Sendable {
    let connection: APIConnection

    /// Creates a client that connects for each call and refuses sockets of other users.
    /// - Parameters:
    ///   - startCommand: the command line that errors suggest to start the daemon.
    ///   - absent: the error if nothing listens on the socket; `nil` for one that suggests `startCommand`.
    ///   - replySeconds: seconds for replies that depend only on the daemon.
    public init(socketPath: String, startCommand: String = "hexlistd", absent: HexlistError? = nil, replySeconds: Double = 60) {
        let absent =
            absent
            ?? HexlistError(
                .daemonUnreachable, "hexlistd is not running (nothing listens on \(TerminalText.clean(socketPath))).",
                hint: "Start it with `\(startCommand)`.")
        connection = APIConnection(socketPath: socketPath, startCommand: startCommand, absent: absent, replySeconds: replySeconds)
    }

    public func status() async throws -> StatusJSON { try await connection.call(.GET, "/v1/status") }

    /// The metrics of the daemon in the Prometheus text format.
    public func metrics() async throws -> [UInt8] { try await connection.bytes("/metrics", type: "text/plain") }

    /// The configuration in force.
    public func configuration() async throws -> ConfigurationJSON { try await connection.call(.GET, "/v1/config") }

    /// Creates a new identity for this machine. Returns once the daemon uses it.
    public func rotateIdentity() async throws -> StatusJSON { try await connection.call(.POST, "/v1/identity/rotate") }

    /// Confirms that the identity moved to this machine together with its state folder.
    public func keepIdentity() async throws -> StatusJSON { try await connection.call(.POST, "/v1/identity/keep") }

    /// An address of the page, valid once and for 30 seconds.
    public func openPage() async throws -> PageInvitation { try await connection.call(.POST, "/v1/web") }

    /// Hands files to the page, which asks for their recipients.
    /// - Parameter paths: absolute.
    public func addDraft(_ paths: [String]) async throws -> Draft {
        try await connection.call(.POST, "/v1/drafts", body: DraftRequest(paths: paths).jsonBytes)
    }

    /// Checks this machine and its network; takes up to some seconds per step.
    /// - Parameter peer: a peer to check too.
    public func doctor(peer: String?) async throws -> DoctorReport {
        var query = URLQuery()
        query.add("peer", peer)
        return try await connection.call(.POST, "/v1/doctor", query: query, seconds: 300)
    }
}

// Backup.
extension HexlistClient {
    /// Calls `body` with the chunks of a backup, in order, and its total bytes. The backup is complete once this returns.
    public func backup(_ body: (ByteBuffer, _ total: Int64) throws -> Void) async throws {
        try await connection.download(.POST, "/v1/backup", type: LocalAPI.backupType, seconds: Self.changeSeconds, body)
    }
}

// Lists.
extension HexlistClient {
    /// Collects the items of a page.
    private static func collected<Item>(_ list: ((Item) throws -> Void) async throws -> String?) async throws -> Page<Item> {
        var items: [Item] = []
        let next = try await list { items.append($0) }
        return Page(items: items, next: next)
    }
}

// Peers.
extension HexlistClient {
    /// - Parameter all: whether to include offline peers and ghosts.
    public func peers(all: Bool) async throws -> [PeerView] {
        let page: Page<PeerView> = try await connection.call(.GET, "/v1/peers", query: Self.all(all))
        return page.items
    }

    /// Calls `body` with the list now and after each change, until it returns `false`.
    public func watchPeers(all: Bool, _ body: ([PeerView]) async throws -> Bool) async throws {
        try await connection.stream("/v1/peers", query: Self.all(all)) { message in
            let page: Page<PeerView> = try APIConnection.decode(Array(message.data.utf8))
            return try await body(page.items)
        }
    }

    public func peer(_ peer: String) async throws -> PeerView { try await connection.call(.GET, Self.path(peer)) }

    /// - Parameter fingerprint: the fingerprint confirmed by the user. If the peer now has another one, the request fails.
    public func trust(_ peer: String, fingerprint: String?, name: String? = nil) async throws -> PeerView {
        try await connection.call(.POST, Self.path(peer) + "/trust", body: TrustRequest(fingerprint: fingerprint, name: name).jsonBytes)
    }

    public func untrust(_ peer: String) async throws -> PeerView { try await connection.call(.POST, Self.path(peer) + "/untrust") }

    public func block(_ peer: String) async throws -> PeerView { try await connection.call(.POST, Self.path(peer) + "/block") }

    public func unblock(_ peer: String) async throws -> PeerView { try await connection.call(.POST, Self.path(peer) + "/unblock") }

    public func forget(_ peer: String) async throws -> PeerView { try await connection.call(.POST, Self.path(peer) + "/forget") }

    public func rename(_ peer: String, alias: String?) async throws -> PeerView {
        try await connection.call(.PATCH, Self.path(peer), body: PeerChange(alias: .set(alias)).jsonBytes)
    }

    /// - Parameters:
    ///   - receive: the handling of its hexes; `nil` for no change.
    ///   - notify: whether to show desktop notifications; `nil` for no change.
    ///   - fetchLimit: maximum bytes of automatic downloads per hex and per day, 0 for none; `nil` for no change.
    public func setPeer(_ peer: String, receive: PeerReceive?, notify: Bool?, fetchLimit: Int64? = nil) async throws -> PeerView {
        let change = PeerChange(receive: receive, notify: notify, fetchLimit: fetchLimit)
        return try await connection.call(.PATCH, Self.path(peer), body: change.jsonBytes)
    }

    public func groups() async throws -> [GroupView] {
        let page: Page<GroupView> = try await connection.call(.GET, "/v1/groups")
        return page.items
    }

    /// - Parameter name: with or without `@`.
    public func addToGroup(_ name: String, _ peers: [String]) async throws -> GroupView {
        try await connection.call(.POST, Self.group(name) + "/add", body: GroupPeers(peers: peers).jsonBytes)
    }

    public func removeFromGroup(_ name: String, _ peers: [String]) async throws -> GroupView {
        try await connection.call(.POST, Self.group(name) + "/remove", body: GroupPeers(peers: peers).jsonBytes)
    }

    /// - Returns: the deleted group.
    public func deleteGroup(_ name: String) async throws -> GroupView { try await connection.call(.DELETE, Self.group(name)) }

    private static func group(_ name: String) throws -> String { "/v1/groups/\(try segment(name, "group"))" }

    /// A path component. An empty one would select another operation.
    static func segment(_ name: String, _ what: String) throws -> String {
        guard !name.isEmpty else { throw HexlistError(.badRequest, "The name of the \(what) is empty.") }
        return PercentEncoding.encode(name)
    }

    /// The peers that are trusted, blocked or have an alias, one `RosterPeer` per line.
    public func exportRoster() async throws -> [UInt8] { try await connection.bytes("/v1/roster", type: LocalAPI.bulkType) }

    /// - Parameter roster: the lines of `exportRoster`.
    public func importRoster(_ roster: [UInt8]) async throws -> RosterImport {
        try await connection.call(.POST, "/v1/roster", body: roster, type: LocalAPI.bulkType)
    }

    private static func path(_ peer: String) throws -> String { "/v1/peers/\(try segment(peer, "peer"))" }

    private static func all(_ all: Bool) -> URLQuery {
        var query = URLQuery()
        if all { query.add("all", "true") }
        return query
    }
}

// Pairing.
extension HexlistClient {
    public func pairings() async throws -> PairingOverview { try await connection.call(.GET, Self.pairingsPath) }

    /// Calls `body` with the pairings now and after each change, until it returns `false`.
    public func watchPairings(_ body: (PairingOverview) async throws -> Bool) async throws {
        try await connection.stream(Self.pairingsPath, query: URLQuery()) { message in
            try await body(APIConnection.decode(Array(message.data.utf8)))
        }
    }

    /// Accepts pairing requests for two minutes.
    public func openPairing() async throws -> PairingOverview {
        try await connection.call(.POST, Self.pairingsPath, body: PairingRequest().jsonBytes)
    }

    public func closePairing() async throws -> PairingOverview { try await connection.call(.DELETE, Self.pairingsPath) }

    /// Asks a peer to pair, for two minutes.
    public func pair(with peer: String) async throws -> PairingView {
        try await connection.call(.POST, Self.pairingsPath, body: PairingRequest(peer: peer).jsonBytes)
    }

    /// - Parameters:
    ///   - digits: the digits on the other screen; wrong ones mean no.
    ///   - id: the pairing shown to the user.
    public func confirmPairing(with peer: String, digits: String, id: Int? = nil) async throws -> PairingView {
        try await connection.call(
            .POST, "\(Self.pairingsPath)/\(Self.segment(peer, "peer"))/confirm",
            body: PairingConfirmation(digits: digits, id: id).jsonBytes)
    }

    public func rejectPairing(with peer: String) async throws -> PairingView {
        try await connection.call(.POST, "\(Self.pairingsPath)/\(Self.segment(peer, "peer"))/reject")
    }

    private static let pairingsPath = "/v1/pairings"
}

// Hexes.
extension HexlistClient {
    /// Selects hexes for `hexes`.
    public struct HexFilter: Sendable {
        /// `inbox`, `held` or `mine`.
        public var location: String
        public var unread: Bool
        /// The sender, as a PEER argument; `nil` for all.
        public var from: String?

        public init(location: String = "inbox", unread: Bool = false, from: String? = nil) {
            self.location = location
            self.unread = unread
            self.from = from
        }
    }

    /// A page of hexes, newest first.
    public func hexes(_ filter: HexFilter, limit: Int, after cursor: String? = nil) async throws -> Page<HexJSON> {
        try await Self.collected { try await hexes(filter, limit: limit, after: cursor, $0) }
    }

    /// Calls `body` with each hex of a page as it arrives.
    /// - Returns: the cursor of the next page; `nil` at the end of the list. A page may have fewer than `limit`.
    public func hexes(
        _ filter: HexFilter, limit: Int, after cursor: String?, _ body: (HexJSON) throws -> Void
    ) async throws -> String? {
        var query = URLQuery()
        query.add("location", filter.location)
        if filter.unread { query.add("unread", "true") }
        query.add("from", filter.from)
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.page("/v1/hexes", query: query, body)
    }

    /// The conditions of a search.
    public struct SearchFilter: Sendable {
        public var text: String
        /// `inbox`, `held` or `mine`; `nil` for inbox and My Hexlist.
        public var location: String?
        public var unread: Bool
        /// The sender, as a PEER argument; `nil` for all.
        public var from: String?
        public var since: Timestamp?
        public var until: Timestamp?
        public var best: Bool

        public init(
            text: String, location: String? = nil, unread: Bool = false, from: String? = nil, since: Timestamp? = nil,
            until: Timestamp? = nil, best: Bool = false
        ) {
            self.text = text
            self.location = location
            self.unread = unread
            self.from = from
            self.since = since
            self.until = until
            self.best = best
        }
    }

    /// Calls `body` with each hex of a page of matches as it arrives.
    /// - Returns: the cursor of the next page, `nil` at the end; and the number of hexes not yet indexed. A page may have fewer than
    ///   `limit`.
    public func search(
        _ filter: SearchFilter, limit: Int, after cursor: String? = nil, _ body: (HexJSON) throws -> Void
    ) async throws -> (next: String?, behind: Int) {
        var query = URLQuery()
        query.add("text", filter.text)
        query.add("location", filter.location)
        if filter.unread { query.add("unread", "true") }
        query.add("from", filter.from)
        query.add("since", filter.since?.description)
        query.add("until", filter.until?.description)
        if filter.best { query.add("best", "true") }
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.searchedPage("/v1/search", query: query, body)
    }

    /// Calls `body` with each link of a page of links, newest hex first, as it arrives.
    /// - Parameter unique: whether each link is listed once.
    /// - Returns: the same as `search`.
    public func links(
        _ filter: HexFilter, unique: Bool, limit: Int, after cursor: String? = nil, _ body: (ListedLinkJSON) throws -> Void
    ) async throws -> (next: String?, behind: Int) {
        var query = URLQuery()
        query.add("location", filter.location)
        if filter.unread { query.add("unread", "true") }
        query.add("from", filter.from)
        if unique { query.add("unique", "true") }
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.searchedPage("/v1/links", query: query, body)
    }

    /// One hex with its links and unknown members.
    public func hex(_ id: Int64) async throws -> HexJSON { try await connection.call(.GET, "/v1/hexes/\(id)") }

    /// - Returns: the number of hexes that changed.
    public func setUnread(_ unread: Bool, _ selection: HexSelection) async throws -> ChangedJSON {
        try await connection.call(
            .PATCH, "/v1/hexes", body: HexPatch(hexes: selection, unread: unread).jsonBytes, seconds: Self.changeSeconds)
    }

    /// Deletes hexes. If one of the given hexes is missing, none is deleted.
    public func delete(_ selection: HexSelection) async throws -> ChangedJSON {
        try await connection.call(.POST, "/v1/hexes/delete", body: selection.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Moves held hexes to the inbox. If one of the given hexes is missing, none is moved.
    public func accept(_ selection: HexSelection) async throws -> ChangedJSON {
        try await connection.call(.POST, "/v1/hexes/accept", body: selection.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Creates a hex in My Hexlist.
    /// - Parameters:
    ///   - hex: a HexJM in JSON.
    ///   - parent: the enclosing hex of My Hexlist; `nil` for the top level.
    public func addMine(_ hex: [UInt8], into parent: Int64?) async throws -> HexJSON {
        var query = URLQuery()
        query.add("in", parent.map(String.init))
        return try await connection.call(.POST, "/v1/mine", query: query, body: hex)
    }

    /// Copies hexes with their content to My Hexlist.
    public func saveMine(_ ids: [Int64], into parent: Int64?) async throws -> SavedJSON {
        try await connection.call(.POST, "/v1/mine/save", body: MineSave(ids, into: parent).jsonBytes, seconds: Self.changeSeconds)
    }

    public func editMine(_ id: Int64, _ edit: MineEditRequest) async throws -> HexJSON {
        try await connection.call(.PATCH, "/v1/mine/\(id)", body: edit.jsonBytes)
    }

    public func moveMine(_ id: Int64, _ move: MineMove) async throws -> HexJSON {
        try await connection.call(.POST, "/v1/mine/\(id)/move", body: move.jsonBytes)
    }

    /// Counts the hexes and links that a deletion would remove, without deleting.
    public func deletion(_ selection: HexSelection) async throws -> ChangedJSON {
        var query = URLQuery()
        query.add("dryRun", "true")
        return try await connection.call(
            .POST, "/v1/hexes/delete", query: query, body: selection.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Calls `body` with the HexJM of each hex, in the order of its list.
    public func export(_ selection: HexSelection, _ body: ([UInt8]) throws -> Void) async throws {
        try await export(.hexes(selection), body)
    }

    /// Calls `body` with the HexJM of each hex, in the order of its list; matches of a search newest first.
    public func export(_ selection: ExportSelection, _ body: ([UInt8]) throws -> Void) async throws {
        try await connection.lines("/v1/export", body: selection.jsonBytes, seconds: Self.changeSeconds, body)
    }

    /// Imports hexes into My Hexlist in one transaction. Existing hexes are not added again.
    /// - Parameters:
    ///   - lines: one HexJM per line.
    ///   - parent: the enclosing hex of My Hexlist; `nil` for the top level.
    ///   - merging: whether hexes are folders: an existing folder of the same description gets the new entries.
    public func importHexes(_ lines: [UInt8], into parent: Int64? = nil, merging: Bool = false) async throws -> ImportResult {
        try await connection.call(
            .POST, "/v1/import", query: Self.importQuery(parent, merging), body: lines, type: LocalAPI.bulkType,
            seconds: Self.changeSeconds)
    }

    /// Imports hexes and calls `progress` meanwhile.
    public func importHexes(
        _ lines: [UInt8], into parent: Int64? = nil, merging: Bool = false, progress: (ImportProgress) -> Void
    ) async throws -> ImportResult {
        var query = Self.importQuery(parent, merging)
        query.add("progress", "true")
        return try await connection.progress(
            "/v1/import", query: query, body: lines, type: LocalAPI.bulkType, seconds: Self.changeSeconds, progress)
    }

    private static func importQuery(_ parent: Int64?, _ merging: Bool) -> URLQuery {
        var query = URLQuery()
        query.add("in", parent.map(String.init))
        if merging { query.add("merge", "true") }
        return query
    }

    /// Seconds for a change: a million hexes take a minute or two.
    private static let changeSeconds = 3_600.0
}

// Sending.
extension HexlistClient {
    /// The parameters of a send of one hex.
    public struct Send: Sendable {
        public enum Content: Sendable {
            /// A HexJM in JSON.
            case hex([UInt8])
            /// A stored hex, by its local id.
            case forward(Int64)
        }

        public var content: Content
        /// The peers; empty with `toAll`.
        public var peers: [String]
        /// Whether all trusted peers are meant.
        public var toAll: Bool
        public var wait: SendWait
        /// Seconds to wait.
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

    /// Sends a hex. Returns one outcome per peer, in the same order.
    public func send(_ send: Send) async throws -> [SendOutcome] {
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
        let page: Page<SendOutcome> = try await connection.call(
            .POST, "/v1/sends", query: query, body: body, seconds: send.timeout + connection.replySeconds)
        return page.items
    }

    /// A page of the outbox, in the order of delivery or newest first.
    public func outbox(
        to peer: String? = nil, states: [OutboxState] = [], newestFirst: Bool = false, limit: Int, after cursor: String? = nil
    ) async throws -> Page<OutboxView> {
        try await Self.collected {
            try await outbox(to: peer, states: states, newestFirst: newestFirst, limit: limit, after: cursor, $0)
        }
    }

    /// Calls `body` with each row of a page as it arrives.
    /// - Returns: the cursor of the next page; `nil` at the end of the list. A page may have fewer than `limit`.
    public func outbox(
        to peer: String?, states: [OutboxState], newestFirst: Bool = false, limit: Int, after cursor: String?,
        _ body: (OutboxView) throws -> Void
    ) async throws -> String? {
        var query = URLQuery()
        query.add("to", peer)
        for state in states { query.add("state", state.rawValue) }
        if newestFirst { query.add("order", "newest") }
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.page("/v1/outbox", query: query, body)
    }

    public func outboxRow(_ id: Int64) async throws -> OutboxView { try await connection.call(.GET, "/v1/outbox/\(id)") }

    public func retry(_ id: Int64) async throws -> OutboxView { try await connection.call(.POST, "/v1/outbox/\(id)/retry") }

    public func cancel(_ id: Int64) async throws -> OutboxView { try await connection.call(.POST, "/v1/outbox/\(id)/cancel") }

    /// Retries many rows now.
    public func retry(_ rows: OutboxRows) async throws -> OutboxChange { try await change(rows, "/v1/outbox/retry") }

    public func cancel(_ rows: OutboxRows) async throws -> OutboxChange { try await change(rows, "/v1/outbox/cancel") }

    private func change(_ rows: OutboxRows, _ path: String) async throws -> OutboxChange {
        try await connection.call(.POST, path, body: rows.jsonBytes)
    }
}

// Events.
extension HexlistClient {
    /// The start of a list of events.
    public enum EventStart: Sendable {
        case oldest
        /// After the event with this number.
        case after(Int64)
        /// This many of the newest events.
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

    /// Calls `body` with each event of a page as it arrives.
    /// - Parameter types: the types to list; empty for all.
    /// - Returns: the number to continue after; `nil` at the end. A page may have fewer than `limit`.
    public func events(
        _ start: EventStart, types: [String] = [], limit: Int, _ body: (EventJSON) throws -> Void
    ) async throws -> String? {
        var query = start.query(types)
        query.add("limit", String(limit))
        return try await connection.page("/v1/events", query: query, body)
    }

    /// Calls `body` with each event kept and each later one, until it returns `false`.
    public func followEvents(
        _ start: EventStart = .oldest, types: [String] = [], _ body: (EventJSON) async throws -> Bool
    ) async throws {
        try await connection.stream("/v1/events", query: start.query(types)) { message in
            try await body(APIConnection.decode(Array(message.data.utf8)))
        }
    }
}
