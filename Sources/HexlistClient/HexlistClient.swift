public import HexlistAPI
public import HexlistModel
public import NIOCore

/// A client of the local API. All calls throw only `HexlistError`.
public struct HexlistClient: Sendable {
    let connection: APIConnection

    /// Creates a client. It opens a connection for each call, and refuses sockets that belong to another user.
    /// - Parameters:
    ///   - startCommand: the command line that errors recommend for starting the daemon.
    ///   - absent: the error to throw if nothing listens on the socket; `nil` for an error that recommends `startCommand`.
    ///   - replySeconds: timeout in seconds of requests whose reply depends only on the daemon.
    public init(socketPath: String, startCommand: String = "hexlistd", absent: HexlistError? = nil, replySeconds: Double = 60) {
        let absent =
            absent
            ?? HexlistError(
                .daemonUnreachable, "hexlistd is not running (nothing listens on \(TerminalText.clean(socketPath))).",
                hint: "Start it with `\(startCommand)`.")
        connection = APIConnection(socketPath: socketPath, startCommand: startCommand, absent: absent, replySeconds: replySeconds)
    }

    public func status() async throws -> StatusJSON { try await connection.call(.GET, "/v1/status") }

    /// Returns the metrics of the daemon in the Prometheus text format.
    public func metrics() async throws -> [UInt8] { try await connection.bytes("/metrics", type: "text/plain") }

    /// Returns the configuration that the daemon uses.
    public func configuration() async throws -> ConfigurationJSON { try await connection.call(.GET, "/v1/config") }

    /// Returns this machine's card and certificate.
    public func ownKeys() async throws -> OwnPublicKeys { try await connection.call(.GET, "/v1/identity") }

    /// Replaces the identity of this machine by a new one. Returns once the daemon uses it.
    public func rotateIdentity() async throws -> StatusJSON { try await connection.call(.POST, "/v1/identity/rotate") }

    /// Confirms that this machine may keep its identity although its state folder came from another machine.
    public func keepIdentity() async throws -> StatusJSON { try await connection.call(.POST, "/v1/identity/keep") }

    /// Creates an address of the web page with a one-time secret. The address works once and expires after 30 seconds.
    public func openPage() async throws -> PageAddress { try await connection.call(.POST, "/v1/web") }

    /// Creates a draft on the web page with these files attached. The user chooses the recipients there.
    /// - Parameter paths: absolute paths.
    public func addDraft(_ paths: [String]) async throws -> Draft {
        try await connection.call(.POST, "/v1/drafts", body: DraftRequest(paths: paths).jsonBytes)
    }

    /// Runs the diagnostic checks of this machine and its network. Each check can take several seconds.
    /// - Parameter peer: a peer that is checked too; `nil` for none.
    public func doctor(peer: String?) async throws -> DoctorReport {
        var query = URLQuery()
        query.add("peer", peer)
        return try await connection.call(.POST, "/v1/doctor", query: query, seconds: 300)
    }
}

// Invitations.
extension HexlistClient {
    public func invite(_ request: InvitationRequest) async throws -> Invitation {
        try await connection.call(.POST, "/v1/invitations", body: request.jsonBytes)
    }

    /// Lists the active invitations, oldest first.
    public func invitations() async throws -> [Invitation] {
        try await connection.list("/v1/invitations")
    }

    /// Calls `body` with the invitation immediately and after each change, until it returns `false`.
    public func watchInvitation(_ id: Int, _ body: (Invitation) async throws -> Bool) async throws {
        try await connection.stream("/v1/invitations/\(id)", query: URLQuery()) { message in
            try await body(APIConnection.decode(Array(message.data.utf8)))
        }
    }

    /// Ends an invitation at once.
    public func endInvitation(_ id: Int) async throws -> Invitation { try await connection.call(.DELETE, "/v1/invitations/\(id)") }
}

// Drop tokens.
extension HexlistClient {
    /// Adds a drop token. Its address is only in this reply.
    public func addDrop(_ request: DropTokenRequest) async throws -> DropTokenView {
        try await connection.call(.POST, "/v1/drops", body: request.jsonBytes)
    }

    /// Lists the drop tokens, oldest first.
    public func drops() async throws -> [DropTokenView] {
        try await connection.list("/v1/drops")
    }

    /// Removes a drop token. Hexes that were sent with it stay.
    /// - Parameter drop: its name, or its UUID.
    public func removeDrop(_ drop: String) async throws -> DropTokenView {
        try await connection.call(.DELETE, "/v1/drops/\(PercentEncoding.encode(drop))")
    }
}

// Feed addresses.
extension HexlistClient {
    /// Creates an address from which feed readers on this machine read links. The address is only in this reply.
    public func addFeed(_ request: FeedRequest) async throws -> FeedAddressJSON {
        try await connection.call(.POST, "/v1/feeds", body: request.jsonBytes)
    }

    public func feeds() async throws -> [FeedAddressJSON] {
        try await connection.list("/v1/feeds")
    }

    public func removeFeed(_ id: Int64) async throws -> ChangeCountJSON { try await connection.call(.DELETE, "/v1/feeds/\(id)") }
}

// Backup.
extension HexlistClient {
    /// Downloads a backup. Calls `body` with each chunk in order, and the total size in bytes. The backup is complete only if this returns
    /// without an error.
    public func backup(_ body: (ByteBuffer, _ total: Int64) throws -> Void) async throws {
        try await connection.download(.POST, "/v1/backup", type: LocalAPI.backupType, seconds: Self.changeSeconds, body)
    }
}

// Lists.
extension HexlistClient {
    /// Runs `list`, which requests one page, and collects the items it passes on.
    private static func collected<Item>(_ list: ((Item) throws -> Void) async throws -> String?) async throws -> Page<Item> {
        var items: [Item] = []
        let next = try await list { items.append($0) }
        return Page(items: items, next: next)
    }
}

// Peers.
extension HexlistClient {
    /// Lists peers.
    /// - Parameter all: whether to include offline peers and ghosts.
    public func peers(all: Bool) async throws -> [PeerView] {
        try await connection.list("/v1/peers", query: Self.all(all))
    }

    /// Calls `body` with the list of peers immediately and after each change, until it returns `false`.
    public func watchPeers(all: Bool, _ body: ([PeerView]) async throws -> Bool) async throws {
        try await connection.stream("/v1/peers", query: Self.all(all)) { message in
            let page: Page<PeerView> = try APIConnection.decode(Array(message.data.utf8))
            return try await body(page.items)
        }
    }

    public func peer(_ peer: String) async throws -> PeerView { try await connection.call(.GET, Self.path(peer)) }

    /// Trusts a peer.
    /// - Parameter fingerprint: the fingerprint that the user confirmed. If the peer has another fingerprint by now, the request fails.
    public func trust(_ peer: String, fingerprint: String?, name: String? = nil) async throws -> PeerView {
        try await connection.call(.POST, Self.path(peer) + "/trust", body: TrustRequest(fingerprint: fingerprint, name: name).jsonBytes)
    }

    public func untrust(_ peer: String) async throws -> PeerView { try await connection.call(.POST, Self.path(peer) + "/untrust") }

    public func block(_ peer: String) async throws -> PeerView { try await connection.call(.POST, Self.path(peer) + "/block") }

    public func unblock(_ peer: String) async throws -> PeerView { try await connection.call(.POST, Self.path(peer) + "/unblock") }

    public func forget(_ peer: String) async throws -> PeerView { try await connection.call(.POST, Self.path(peer) + "/forget") }

    /// Transfers the alias, settings, groups and waiting hexes of a peer to another one, and deletes the record of the old peer.
    public func takeOver(from old: String, by peer: String) async throws -> PeerView {
        try await connection.call(.POST, Self.path(peer) + "/takeover", body: TakeoverRequest(from: old).jsonBytes)
    }

    public func rename(_ peer: String, alias: String?) async throws -> PeerView {
        try await connection.call(.PATCH, Self.path(peer), body: PeerChange(alias: .set(alias)).jsonBytes)
    }

    /// Changes the settings of a peer.
    /// - Parameters:
    ///   - receive: where hexes from this peer go; `nil` for no change.
    ///   - notify: whether hexes from this peer cause desktop notifications; `nil` for no change.
    ///   - fetchLimit: maximum bytes of automatic downloads per hex and per day, 0 for none; `nil` for no change.
    ///   - fetchTo: the destination of automatic downloads; `nil` for no change.
    ///   - openLinks: maximum number of links of a hex that are opened in the browser, 0 for none; `nil` for no change.
    ///   - pin: the PIN that a device requires, empty for none; `nil` for no change.
    ///   - routes: the routes that may be used for the peer; `nil` for no change.
    public func setPeer(
        _ peer: String, receive: PeerReceiveSetting? = nil, notify: Bool? = nil, fetchLimit: Int64? = nil,
        fetchTo: AutomaticFetchDestination? = nil,
        openLinks: Int? = nil, pin: String? = nil, routes: RouteSelection? = nil
    ) async throws -> PeerView {
        let change = PeerChange(
            receive: receive, notify: notify, fetchLimit: fetchLimit, fetchTo: fetchTo, openLinks: openLinks, pin: pin, routes: routes)
        return try await connection.call(.PATCH, Self.path(peer), body: change.jsonBytes)
    }

    /// Returns the routes in the order in which they are used.
    public func routes() async throws -> [RouteView] {
        try await connection.list("/v1/routes")
    }

    /// Posts a letter to this machine itself on a route, and waits up to 30 s until it comes back.
    public func testRoute(_ name: String) async throws -> RouteTestResult {
        try await connection.call(.POST, "/v1/routes/\(PercentEncoding.encode(name))/test")
    }

    public func groups() async throws -> [GroupView] {
        try await connection.list("/v1/groups")
    }

    /// Adds peers to a group, and creates the group if it does not exist.
    /// - Parameter name: the name of the group, with or without `@`.
    public func addToGroup(_ name: String, _ peers: [String]) async throws -> GroupView {
        try await connection.call(.POST, Self.group(name) + "/add", body: GroupPeersRequest(peers: peers).jsonBytes)
    }

    public func removeFromGroup(_ name: String, _ peers: [String]) async throws -> GroupView {
        try await connection.call(.POST, Self.group(name) + "/remove", body: GroupPeersRequest(peers: peers).jsonBytes)
    }

    /// Deletes a group.
    /// - Returns: the deleted group.
    public func deleteGroup(_ name: String) async throws -> GroupView { try await connection.call(.DELETE, Self.group(name)) }

    private static func group(_ name: String) throws -> String { "/v1/groups/\(try segment(name, "group"))" }

    /// Encodes a name as a path component. Throws if it is empty, because the shorter path would select another operation.
    static func segment(_ name: String, _ what: String) throws -> String {
        guard !name.isEmpty else { throw HexlistError(.badRequest, "The name of the \(what) is empty.") }
        return PercentEncoding.encode(name)
    }

    /// Exports the peers that are trusted, blocked or have an alias: NDJSON with one `RosterPeer` per line.
    public func exportRoster() async throws -> [UInt8] { try await connection.bytes("/v1/roster", type: LocalAPI.bulkType) }

    /// Imports peers.
    /// - Parameter roster: the output of `exportRoster`.
    public func importRoster(_ roster: [UInt8]) async throws -> RosterImportResult {
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

    /// Calls `body` with the list of pairings immediately and after each change, until it returns `false`.
    public func watchPairings(_ body: (PairingOverview) async throws -> Bool) async throws {
        try await connection.stream(Self.pairingsPath, query: URLQuery()) { message in
            try await body(APIConnection.decode(Array(message.data.utf8)))
        }
    }

    /// Makes the daemon accept pairing requests for two minutes.
    public func openPairing() async throws -> PairingOverview {
        try await connection.call(.POST, Self.pairingsPath, body: PairingRequest().jsonBytes)
    }

    public func closePairing() async throws -> PairingOverview { try await connection.call(.DELETE, Self.pairingsPath) }

    /// Sends a pairing request to a peer. The request is repeated for two minutes.
    public func pair(with peer: String) async throws -> PairingView {
        try await connection.call(.POST, Self.pairingsPath, body: PairingRequest(peer: peer).jsonBytes)
    }

    /// Confirms that both screens show the same digits.
    /// - Parameters:
    ///   - digits: the digits on the other screen. Digits that differ from those of the pairing reject it.
    ///   - id: the pairing that the user saw; `nil` for the current one.
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

// Own machines.
extension HexlistClient {
    /// Lists the user's other machines, with which My Hexlist is exchanged, in the order in which they were added.
    public func ownMachines() async throws -> [OwnMachineView] { try await connection.list(Self.ownPath) }

    /// Lists the user's other machines; none if the daemon is of an earlier version, which has no own machines.
    public func ownMachinesIfAny() async throws -> [OwnMachineView] {
        do {
            return try await ownMachines()
        } catch let error as HexlistError where error.code == .notFound {
            return []
        }
    }

    /// Calls `body` with the list of own machines immediately and after each change, until it returns `false`.
    public func watchOwnMachines(_ body: ([OwnMachineView]) async throws -> Bool) async throws {
        try await connection.stream(Self.ownPath, query: URLQuery()) { message in
            let page: Page<OwnMachineView> = try APIConnection.decode(Array(message.data.utf8))
            return try await body(page.items)
        }
    }

    /// Returns what is known before a trusted peer becomes an own machine. Changes nothing.
    public func previewOwnMachine(_ peer: String) async throws -> OwnMachinePreview {
        try await connection.call(.GET, Self.own(peer))
    }

    /// Makes a trusted peer an own machine. The collections are merged as soon as this machine is an own machine there, too.
    public func addOwnMachine(_ peer: String) async throws -> OwnMachineView {
        try await connection.call(.POST, Self.own(peer), seconds: Self.changeSeconds)
    }

    /// Ends the exchange with an own machine. Both keep their copies.
    public func removeOwnMachine(_ peer: String) async throws -> OwnMachineView { try await connection.call(.DELETE, Self.own(peer)) }

    private static let ownPath = "/v1/own"

    private static func own(_ peer: String) throws -> String { "\(ownPath)/\(try segment(peer, "peer"))" }
}

// Shared hexes.
extension HexlistClient {
    /// Lists the shared hexes of My Hexlist, and the hexes that others offer to share.
    public func sharedHexes() async throws -> SharedHexes { try await connection.call(.GET, Self.listsPath) }

    /// Lists the shared hexes and the offers; none if the daemon is of an earlier version, which has no shared hexes.
    public func sharedHexesIfAny() async throws -> SharedHexes {
        do {
            return try await sharedHexes()
        } catch let error as HexlistError where error.code == .notFound {
            return SharedHexes(shared: [], offers: [])
        }
    }

    /// Calls `body` with the shared hexes and the offers immediately and after each change, until it returns `false`.
    public func watchSharedHexes(_ body: (SharedHexes) async throws -> Bool) async throws {
        try await connection.stream(Self.listsPath, query: URLQuery()) { message in
            try await body(try APIConnection.decode(Array(message.data.utf8)))
        }
    }

    /// Adds an offered hex to My Hexlist. Its contents arrive as soon as the peer is online.
    /// - Parameter offer: `SharedHexOffer.number`.
    public func joinSharedHex(_ offer: Int64) async throws -> SharedHexView {
        try await connection.call(.POST, "\(Self.listsPath)/\(offer)/join", seconds: Self.changeSeconds)
    }

    /// Declines an offer. It stays among the offers as `declined`, is not reported again, and can still be joined.
    public func declineSharedHex(_ offer: Int64) async throws -> SharedHexOffer {
        try await connection.call(.POST, "\(Self.listsPath)/\(offer)/decline")
    }

    /// Returns the shared hex that is, or contains, a hex.
    public func sharedHex(_ hex: Int64) async throws -> SharedHexView { try await connection.call(.GET, Self.share(hex)) }

    /// Shares a hex with trusted peers, or changes their access.
    public func shareMine(_ hex: Int64, _ members: ShareHexRequest) async throws -> SharedHexView {
        try await connection.call(.PUT, Self.share(hex), body: members.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Replaces the list of a shared hex by a copy without its deleted hexes and links. The members have to join it again.
    public func renewShared(_ hex: Int64) async throws -> SharedHexRenewal {
        try await connection.call(.POST, "/v1/mine/\(hex)/renew", seconds: Self.changeSeconds)
    }

    /// Marks the links of a shared hex as seen.
    /// - Parameter sequence: `HexSharingJSON.sequence` when the hex was shown; `nil` for all links.
    /// - Returns: the number of links that were new.
    @discardableResult
    public func markSeen(_ hex: Int64, through sequence: Int64? = nil) async throws -> ChangeCountJSON {
        try await connection.call(.POST, "/v1/mine/\(hex)/seen", body: SeenRequest(sequence: sequence).jsonBytes)
    }

    private static let listsPath = "/v1/lists"

    private static func share(_ hex: Int64) -> String { "/v1/mine/\(hex)/share" }
}

// Hexes.
extension HexlistClient {
    /// The conditions that select hexes in `hexes`.
    public struct HexFilter: Sendable {
        /// The location of the hexes: `inbox`, `held` or `mine`.
        public var location: String
        public var unread: Bool
        /// The sender, as a PEER argument; `nil` for hexes from anybody.
        public var from: String?
        /// Whether the linked files are counted.
        public var countsFiles: Bool

        public init(location: String = "inbox", unread: Bool = false, from: String? = nil, countsFiles: Bool = false) {
            self.location = location
            self.unread = unread
            self.from = from
            self.countsFiles = countsFiles
        }
    }

    /// Requests a page of hexes, newest first.
    public func hexes(_ filter: HexFilter, limit: Int, after cursor: String? = nil) async throws -> Page<HexJSON> {
        try await Self.collected { try await hexes(filter, limit: limit, after: cursor, $0) }
    }

    /// Requests a page of hexes, newest first, and calls `body` with each as it arrives.
    /// - Returns: the cursor of the next page; `nil` at the end of the list. A page may have fewer items than `limit`.
    public func hexes(
        _ filter: HexFilter, limit: Int, after cursor: String?, _ body: (HexJSON) throws -> Void
    ) async throws -> String? {
        var query = URLQuery()
        query.add("location", filter.location)
        if filter.unread { query.add("unread", "true") }
        query.add("from", filter.from)
        if filter.countsFiles { query.add("files", "true") }
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.page("/v1/hexes", query: query, body)
    }

    /// The conditions of a search.
    public struct SearchFilter: Sendable {
        public var text: String
        /// The location of the hexes: `inbox`, `held` or `mine`; `nil` for the inbox and My Hexlist.
        public var location: String?
        public var unread: Bool
        /// The sender, as a PEER argument; `nil` for hexes from anybody.
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

    /// Requests a page of search results and calls `body` with each hex as it arrives.
    /// - Returns: the cursor of the next page, `nil` at the end of the list; and `behind`, the number of hexes that are not in the search
    ///   index yet. A page may have fewer items than `limit`.
    public func search(
        _ filter: SearchFilter, limit: Int, after cursor: String? = nil, _ body: (HexJSON) throws -> Void
    ) async throws -> (next: String?, behind: Int) {
        try await connection.searchedPage("/v1/search", query: Self.query(filter, limit: limit, after: cursor), body)
    }

    private static func query(_ filter: SearchFilter, limit: Int, after cursor: String?) -> URLQuery {
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
        return query
    }

    /// Requests a page of the links that match a search, and calls `body` with each as it arrives.
    /// - Returns: the same values as `search`.
    public func searchLinks(
        _ filter: SearchFilter, limit: Int, after cursor: String? = nil, _ body: (ListedLinkJSON) throws -> Void
    ) async throws -> (next: String?, behind: Int) {
        try await connection.searchedPage("/v1/links", query: Self.query(filter, limit: limit, after: cursor), body)
    }

    /// Requests a page of links, those of the newest hex first, and calls `body` with each as it arrives.
    /// - Parameter unique: whether to list a link only once if several hexes contain it.
    /// - Returns: the same values as `search`.
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

    /// Returns one hex with its links, and with the members that this version does not know.
    public func hex(_ id: Int64) async throws -> HexJSON { try await connection.call(.GET, "/v1/hexes/\(id)") }

    /// Marks hexes as unread or read.
    /// - Returns: the number of hexes that changed.
    public func setUnread(_ unread: Bool, _ selection: HexSelection) async throws -> ChangeCountJSON {
        try await connection.call(
            .PATCH, "/v1/hexes", body: UnreadPatch(hexes: selection, unread: unread).jsonBytes, seconds: Self.changeSeconds)
    }

    /// Marks single links as unread or read. A hex whose links are all read becomes read.
    /// - Returns: the number of links that changed.
    public func setUnread(_ unread: Bool, links: [UnreadPatch.Link]) async throws -> ChangeCountJSON {
        try await connection.call(
            .PATCH, "/v1/hexes", body: UnreadPatch(links: links, unread: unread).jsonBytes, seconds: Self.changeSeconds)
    }

    /// Deletes hexes. Deletes nothing if one of the given ids does not exist.
    public func delete(_ selection: HexSelection) async throws -> ChangeCountJSON {
        try await connection.call(.POST, "/v1/hexes/delete", body: selection.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Moves held hexes to the inbox. Moves nothing if one of the given ids does not exist.
    public func accept(_ selection: HexSelection) async throws -> ChangeCountJSON {
        try await connection.call(.POST, "/v1/hexes/accept", body: selection.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Creates a hex in My Hexlist.
    /// - Parameters:
    ///   - hex: a HexJM as JSON.
    ///   - parent: the hex of My Hexlist that will contain the new one; `nil` for the top level.
    public func addMine(_ hex: [UInt8], into parent: Int64?) async throws -> HexJSON {
        var query = URLQuery()
        query.add("in", parent.map(String.init))
        return try await connection.call(.POST, "/v1/mine", query: query, body: hex)
    }

    /// Copies hexes with their links and the hexes inside them to My Hexlist.
    /// - Parameter parent: the hex of My Hexlist that will contain the copies; `nil` for the top level.
    public func saveMine(_ ids: [Int64], into parent: Int64?) async throws -> MineSaveResult {
        try await connection.call(.POST, "/v1/mine/save", body: MineCopyRequest(ids, into: parent).jsonBytes, seconds: Self.changeSeconds)
    }

    public func editMine(_ id: Int64, _ edit: MineEditRequest) async throws -> HexJSON {
        try await connection.call(.PATCH, "/v1/mine/\(id)", body: edit.jsonBytes)
    }

    public func moveMine(_ id: Int64, _ move: MineMoveRequest) async throws -> HexJSON {
        try await connection.call(.POST, "/v1/mine/\(id)/move", body: move.jsonBytes)
    }

    /// Checks whether the pages of links exist, and marks those that are dead. Calls `progress` about once a second. The check ends when
    /// the task is cancelled; links that were checked keep their marks.
    public func checkMine(
        _ request: MineCheckRequest, progress: (MineCheckProgress) throws -> Void
    ) async throws -> MineCheckResult {
        try await connection.progress("/v1/mine/check", body: request.jsonBytes, seconds: 366 * 86_400, progress)
    }

    /// Requests a page of the hexes that were deleted from My Hexlist and can be restored, newest first.
    public func binnedHexes(limit: Int, after cursor: String? = nil) async throws -> Page<BinnedHexJSON> {
        try await Self.collected { body in
            var query = URLQuery()
            query.add("limit", String(limit))
            query.add("after", cursor)
            return try await connection.page("/v1/mine/bin", query: query, body)
        }
    }

    /// Restores a deleted hex of My Hexlist.
    /// - Parameter id: the id of the hex before it was deleted.
    /// - Returns: the hex, with the id that it had.
    public func restoreMine(_ id: Int64) async throws -> HexJSON { try await connection.call(.POST, "/v1/mine/bin/\(id)/restore") }

    /// Requests a page of the change log of My Hexlist, newest first.
    /// - Parameters:
    ///   - hex: the hex whose changes are wanted; `nil` for all.
    ///   - since: the time of the oldest change; `nil` for all.
    public func mineLog(
        hex: Int64? = nil, since: Timestamp? = nil, from peer: String? = nil, limit: Int, after cursor: String? = nil
    ) async throws -> Page<MineChangeJSON> {
        try await Self.collected { body in
            var query = URLQuery()
            query.add("hex", hex.map(String.init))
            query.add("since", since?.description)
            query.add("from", peer)
            query.add("limit", String(limit))
            query.add("after", cursor)
            return try await connection.page("/v1/mine/log", query: query, body)
        }
    }

    /// Reverts changes of the change log. Values that were changed again later stay.
    public func undoMine(_ changes: [Int64]) async throws -> MineUndoResult {
        try await connection.call(
            .POST, "/v1/mine/undo", body: MineUndoRequest(changes: changes).jsonBytes, seconds: Self.changeSeconds)
    }

    /// Returns the duplicates that `mergeMineDuplicates` would merge.
    public func mineDuplicates(_ request: MineTidyRequest) async throws -> MineTidyResult {
        var query = URLQuery()
        query.add("dryRun", "true")
        return try await connection.call(.POST, "/v1/mine/tidy", query: query, body: request.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Merges duplicates of My Hexlist.
    public func mergeMineDuplicates(_ request: MineTidyRequest) async throws -> MineTidyResult {
        try await connection.call(.POST, "/v1/mine/tidy", body: request.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Requests a page of the trash of My Hexlist, newest first.
    public func mineTrash(limit: Int, after cursor: String? = nil) async throws -> Page<TrashedItemJSON> {
        try await Self.collected { body in
            var query = URLQuery()
            query.add("limit", String(limit))
            query.add("after", cursor)
            return try await connection.page("/v1/mine/trash", query: query, body)
        }
    }

    /// Restores items of the trash.
    public func restoreMine(numbers: [Int64]) async throws -> MineRestoreResult {
        try await connection.call(
            .POST, "/v1/mine/restore", body: MineRestoreRequest(numbers: numbers).jsonBytes, seconds: Self.changeSeconds)
    }

    /// Restores deleted hexes by the ids that they had.
    public func restoreMine(hexes: [Int64]) async throws -> MineRestoreResult {
        try await connection.call(
            .POST, "/v1/mine/restore", body: MineRestoreRequest(hexes: hexes).jsonBytes, seconds: Self.changeSeconds)
    }

    /// Returns the number of items in the trash (`changed`), and of the links among them, without removing anything.
    public func trashCount() async throws -> ChangeCountJSON {
        var query = URLQuery()
        query.add("dryRun", "true")
        return try await connection.call(.DELETE, "/v1/mine/trash", query: query, seconds: Self.changeSeconds)
    }

    /// Removes everything from the trash for good, and clears the change log.
    public func emptyTrash() async throws -> ChangeCountJSON {
        try await connection.call(.DELETE, "/v1/mine/trash", seconds: Self.changeSeconds)
    }

    /// Returns the number of hexes and links that deleting the selection would remove, without deleting anything.
    public func deletion(_ selection: HexSelection) async throws -> ChangeCountJSON {
        var query = URLQuery()
        query.add("dryRun", "true")
        return try await connection.call(
            .POST, "/v1/hexes/delete", query: query, body: selection.jsonBytes, seconds: Self.changeSeconds)
    }

    /// Exports hexes. Calls `body` with the HexJM of each, in the order of the list that contains it.
    public func export(_ selection: HexSelection, _ body: ([UInt8]) throws -> Void) async throws {
        try await export(.hexes(selection), body)
    }

    /// Exports hexes. Calls `body` with the HexJM of each: search results newest first, others in the order of the list that contains them.
    public func export(_ selection: ExportSelection, _ body: ([UInt8]) throws -> Void) async throws {
        try await connection.lines("/v1/export", body: selection.jsonBytes, seconds: Self.changeSeconds, body)
    }

    /// Imports hexes into My Hexlist in one transaction. Skips hexes that already exist.
    /// - Parameters:
    ///   - lines: one HexJM per line.
    ///   - parent: the hex of My Hexlist that will contain the imported ones; `nil` for the top level.
    ///   - merging: whether the hexes are bookmark folders. If a folder with the same description exists, its new entries are added to it.
    public func importHexes(_ lines: [UInt8], into parent: Int64? = nil, merging: Bool = false) async throws -> ImportResult {
        try await connection.call(
            .POST, "/v1/import", query: Self.importQuery(parent, merging), body: lines, type: LocalAPI.bulkType,
            seconds: Self.changeSeconds)
    }

    /// Imports hexes, and calls `progress` with each progress report.
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

    /// Timeout in seconds of requests that may change many hexes. A million hexes take a minute or two.
    private static let changeSeconds = 3_600.0
}

// Sending.
extension HexlistClient {
    /// The parameters for sending one hex.
    public struct Send: Sendable {
        public enum Content: Sendable {
            /// A HexJM as JSON.
            case hex([UInt8])
            /// A stored hex to forward, by its local id.
            case forward(Int64)
        }

        public var content: Content
        /// PEER arguments that name the recipients; empty if `toAll` is set.
        public var peers: [String]
        /// Whether to send to all trusted peers.
        public var toAll: Bool
        public var wait: SendWaitGoal
        /// Maximum time in seconds to wait for the state of delivery that `wait` names.
        public var timeout: Double
        public var key: String?
        public var force: Bool

        public init(
            content: Content, peers: [String], toAll: Bool = false, wait: SendWaitGoal = .stored, timeout: Double = 10,
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

    /// Sends a hex.
    /// - Returns: one outcome per recipient, in the order of `peers`.
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

    /// Requests a page of the outbox, in the order of delivery or newest first.
    public func outbox(
        to peer: String? = nil, states: [OutboxState] = [], newestFirst: Bool = false, limit: Int, after cursor: String? = nil
    ) async throws -> Page<OutboxView> {
        try await Self.collected {
            try await outbox(to: peer, states: states, newestFirst: newestFirst, limit: limit, after: cursor, $0)
        }
    }

    /// Requests a page of the outbox and calls `body` with each row as it arrives.
    /// - Parameter offered: whether delivered rows whose files can still be fetched are included, even if `states` excludes them.
    /// - Returns: the cursor of the next page; `nil` at the end of the list. A page may have fewer items than `limit`.
    public func outbox(
        to peer: String?, states: [OutboxState], offered: Bool = false, newestFirst: Bool = false, limit: Int, after cursor: String?,
        _ body: (OutboxView) throws -> Void
    ) async throws -> String? {
        var query = URLQuery()
        query.add("to", peer)
        for state in states { query.add("state", state.rawValue) }
        if offered { query.add("files", "offered") }
        if newestFirst { query.add("order", "newest") }
        query.add("limit", String(limit))
        query.add("after", cursor)
        return try await connection.page("/v1/outbox", query: query, body)
    }

    public func outboxRow(_ id: Int64) async throws -> OutboxView { try await connection.call(.GET, "/v1/outbox/\(id)") }

    public func retry(_ id: Int64) async throws -> OutboxView { try await connection.call(.POST, "/v1/outbox/\(id)/retry") }

    public func cancel(_ id: Int64) async throws -> OutboxView { try await connection.call(.POST, "/v1/outbox/\(id)/cancel") }

    /// Retries the selected outbox rows immediately.
    public func retry(_ rows: OutboxRowsRequest) async throws -> OutboxChange { try await change(rows, "/v1/outbox/retry") }

    public func cancel(_ rows: OutboxRowsRequest) async throws -> OutboxChange { try await change(rows, "/v1/outbox/cancel") }

    private func change(_ rows: OutboxRowsRequest, _ path: String) async throws -> OutboxChange {
        try await connection.call(.POST, path, body: rows.jsonBytes)
    }
}

// Events.
extension HexlistClient {
    /// The position at which a list of events begins.
    public enum EventStart: Sendable {
        case oldest
        /// Begin after the event with this number.
        case after(Int64)
        /// Begin with the newest stored events; the value is their number.
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

    /// Requests a page of events and calls `body` with each as it arrives.
    /// - Parameter types: the event types to list; empty for all.
    /// - Returns: the number after which the next page begins; `nil` at the end of the list. A page may have fewer items than `limit`.
    public func events(
        _ start: EventStart, types: [String] = [], limit: Int, _ body: (EventJSON) throws -> Void
    ) async throws -> String? {
        var query = start.query(types)
        query.add("limit", String(limit))
        return try await connection.page("/v1/events", query: query, body)
    }

    /// Calls `body` with each stored event from `start` on and with each new event, until it returns `false`.
    public func followEvents(
        _ start: EventStart = .oldest, types: [String] = [], _ body: (EventJSON) async throws -> Bool
    ) async throws {
        try await connection.stream("/v1/events", query: start.query(types)) { message in
            try await body(APIConnection.decode(Array(message.data.utf8)))
        }
    }
}
