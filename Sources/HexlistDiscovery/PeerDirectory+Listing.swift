public import HexlistModel

// Read access for callers: the rows of a peer list, and the endpoints of a peer.
extension PeerDirectory {
    /// Whether a peer is currently listed as `verified`.
    public func isVerified(_ id: PeerID) -> Bool { peers[id]?.isListed ?? false }

    /// Whether the directory has an entry for a peer.
    public func contains(_ id: PeerID) -> Bool { peers[id] != nil }

    /// The endpoints at which a peer may be dialled, best first: endpoints that answered, saved ones, ones announced in a network of this
    /// machine, other announced ones. Endpoints that did not answer, are no longer announced, or proved another identity come last.
    public func endpoints(of id: PeerID) -> [Endpoint] {
        guard let peer = peers[id] else { return [] }
        var found: [Endpoint.SocketAddress: (endpoint: Endpoint, number: UInt64)] = [:]
        for record in peer.records {
            guard let present = records[record], let claim = present.claim, refusal(of: claim) == nil else { continue }
            let socketAddress = claim.endpoint.socketAddress
            if let other = found[socketAddress], other.number > present.number { continue }
            found[socketAddress] = (claim.endpoint, present.number)
        }
        for (index, endpoint) in peer.saved.enumerated() {
            // Saved endpoints keep their order and count as the newest ones.
            let number = UInt64.max - UInt64(index)
            let announced = found[endpoint.socketAddress]
            found[endpoint.socketAddress] = (endpoint.via == .static ? endpoint : announced?.endpoint ?? endpoint, number)
        }
        let ranked = found.values.map { (rank: rank($0.endpoint, $0.number, peer), endpoint: $0.endpoint) }
        return ranked.sorted { $0.rank < $1.rank }.map(\.endpoint)
    }

    private func rank(_ endpoint: Endpoint, _ number: UInt64, _ peer: DirectoryPeer) -> EndpointRank {
        let isPast = isPast(endpoint, of: peer)
        switch peer.dialResults[endpoint.socketAddress] {
        case .answered? where isPast: return EndpointRank(tier: 4, age: .zero, number: number)
        case .answered(_, let instant)?: return EndpointRank(tier: 0, age: now - instant, number: number)
        case .silent(let instant)?: return EndpointRank(tier: 4, age: .zero - (now - instant), number: number)
        case .impostor?, .own?: return EndpointRank(tier: 5, age: .zero, number: number)
        case nil: break
        }
        if isPast { return EndpointRank(tier: 4, age: .zero, number: number) }
        guard endpoint.via == .mdns || endpoint.via == .dns else { return EndpointRank(tier: 1, age: .zero, number: number) }
        let isNear = IPAddress(ofHost: endpoint.host).map(policy.isOnOwnNetwork) ?? false
        return EndpointRank(tier: isNear ? 2 : 3, age: .zero, number: number)
    }

    /// Whether an endpoint was probably used by an earlier process of the peer and is not valid any more. That is the case in two
    /// situations:
    ///
    /// - The endpoint was saved, and its announcement was withdrawn or replaced after the last answer.
    /// - The newest proved process has not answered at the endpoint, and it announces only other ports, or only earlier processes announce
    ///   the endpoint.
    ///
    /// Goodbye packets and announcements can be forged, so such endpoints are still dialled, but last. They are not listed beside current
    /// ones.
    func isPast(_ endpoint: Endpoint, of peer: DirectoryPeer) -> Bool {
        guard endpoint.via != .static else { return false }
        let socketAddress = endpoint.socketAddress
        if endpoint.via == .lastKnown, peer.withdrawn.contains(socketAddress) { return true }
        guard let boot = peer.boot, !peer.hasAnswered(socketAddress, boot) else { return false }
        let claims = peer.records.compactMap { records[$0]?.claim }
        let ports = claims.filter { $0.boot == boot }.map(\.endpoint.port)
        guard ports.isEmpty else { return !ports.contains(socketAddress.port) }
        let starts = claims.filter { $0.endpoint.socketAddress == socketAddress }.map(\.boot)
        return !starts.isEmpty && starts.allSatisfy { $0.map(peer.formerBoots.contains) ?? false }
    }

    /// The endpoints at which the newest process of a peer answered when this node dialled it.
    public func answeredEndpoints(of id: PeerID) -> [Endpoint] {
        guard let peer = peers[id], let boot = peer.boot else { return [] }
        return endpoints(of: id).filter { peer.hasAnswered($0.socketAddress, boot) }
    }

    /// All peers and ghosts: verified ones by name, then offline ones, then ghosts.
    public func listing() -> [DirectoryRow] {
        var rows: [DirectoryRow] = []
        for peer in peers.values { rows += self.rows(of: peer) }
        rows += ownRows()
        rows += addressRows()
        let nameless = records.filter { $0.value.claim == nil }
        for (key, group) in Dictionary(grouping: nameless.keys, by: \.key) {
            // Prefers the reason `invalid`, which is the most informative one.
            let statuses = group.compactMap { status($0) }
            guard let best = statuses.first(where: { $0.reason == .invalid }) ?? statuses.first, let reason = best.reason else { continue }
            let why = best.text(heard: interfaceList(group))
            rows.append(ghostRow(nil, name: PeerName.display(instance: key.name), reason, why, []))
        }
        hintInstalledAnew(&rows)
        rows.sort(by: DirectoryRow.inOrder)
        return rows
    }

    /// The row of one peer in `listing`; `nil` if it has none. The cost does not depend on the number of other peers, unless `comparing`.
    /// - Parameter comparing: whether to add the hint that the machine may have been reinstalled, which requires a comparison with all
    ///   peers.
    public func row(of id: PeerID, comparing: Bool) -> DirectoryRow? {
        guard let peer = peers[id], let row = firstRow(of: peer) else { return nil }
        guard comparing, row.state != .ghost else { return row }
        var rows = [row]
        for other in peers.values where other.id != id && name(of: other).utf8.elementsEqual(row.name.utf8) {
            rows += firstRow(of: other).map { [$0] } ?? []
        }
        hintInstalledAnew(&rows)
        return rows[0]
    }

    // MARK: - Rows

    private func rows(of peer: DirectoryPeer) -> [DirectoryRow] {
        guard let row = firstRow(of: peer) else { return [] }
        return [row] + (row.state == .ghost ? [] : foldedRows(of: peer))
    }

    private func firstRow(of peer: DirectoryPeer) -> DirectoryRow? {
        var row = DirectoryRow(
            peer: peer.id, name: name(of: peer), state: .ghost, reason: nil, why: "", endpoints: listedEndpoints(of: peer),
            lastSeen: peer.lastSeen, boot: peer.boot, version: peer.version, hasSession: peer.hasSession)
        guard peer.conflict == nil else {
            row.reason = .conflict
            row.why = AnnouncementStatus.conflict.text(heard: "")
            return row
        }
        switch peer.presence {
        case .verified:
            row.state = .verified
            row.why = peer.hasSession ? "has a session with this machine" : "answered the last check"
        case .away(let absence):
            row.state = .away
            row.why = absence.text
        case .unproven: return unprovenRow(peer, row)
        }
        return row
    }

    /// The single row for all announcements of an unproven UUID. If they are ghosts for different reasons, the row has the reason with the
    /// greatest `weight`.
    private func unprovenRow(_ peer: DirectoryPeer, _ row: DirectoryRow) -> DirectoryRow? {
        let announcing = peer.records.sorted(by: Record.inOrder)
        let statuses = announcing.compactMap { status($0) }
        guard let best = statuses.max(by: { ($0.reason?.weight ?? 0) < ($1.reason?.weight ?? 0) }) else { return nil }
        let claims = announcing.compactMap { records[$0]?.claim }
        var row = row
        row.reason = best.reason
        row.why = best.text(heard: interfaceList(announcing.filter { status($0)?.reason == best.reason }))
        row.boot = claims.lazy.compactMap(\.boot).first
        row.version = claims.lazy.compactMap(\.version).first
        return row
    }

    /// The ghost rows for the additional announcements of a listed peer: one for each instance and reason.
    private func foldedRows(of peer: DirectoryPeer) -> [DirectoryRow] {
        let announcing = peer.records.sorted(by: Record.inOrder)
        let fitting = announcing.filter { status($0) == .fits }
        // Selects the announcement that the peer's own row represents: one with the peer's current name, at the address that answered last,
        // or the first one if none answered. The others are duplicates.
        let instance = peer.name.map { PeerName.instance(displayName: $0, peer: peer.id) }
        let named = fitting.filter { PeerTextComparison.areEqual($0.key.name, instance) }
        let main = (named.isEmpty ? fitting : named).reduce(named.first ?? fitting.first) { best, record in
            guard let answer = answered(peer, record) else { return best }
            guard let before = best.flatMap({ answered(peer, $0) }) else { return record }
            return answer > before ? record : best
        }
        var rows: [DirectoryRow] = []
        let duplicates = fitting.filter { $0 != main }
        for (key, group) in Dictionary(grouping: duplicates, by: \.key) {
            guard let main else { continue }
            let through = main.key == key ? "listed through \(interfaceList([main]))" : "listed as \(main.key.name)"
            let why = "announced on \(interfaceList(group)) too, already \(through)"
            rows.append(ghostRow(peer.id, name: PeerName.display(instance: key.name), .duplicate, why, listedEndpoints(group)))
        }
        return rows + ghostRows(announcing.filter { status($0) != .fits }, of: peer.id)
    }

    /// The ghost rows for announcements: one for each instance and reason.
    private func ghostRows(_ announcing: [Record], of peer: PeerID) -> [DirectoryRow] {
        var rows: [DirectoryRow] = []
        for (key, group) in Dictionary(grouping: announcing, by: \.key) {
            for (reason, group) in Dictionary(grouping: group, by: { status($0)?.reason }) {
                guard let reason, let best = group.first.flatMap({ status($0) }) else { continue }
                let why = best.text(heard: interfaceList(group))
                rows.append(ghostRow(peer, name: PeerName.display(instance: key.name), reason, why, listedEndpoints(group)))
            }
        }
        return rows
    }

    private func ownRows() -> [DirectoryRow] {
        var rows = ghostRows(ownRecords.sorted(by: Record.inOrder), of: own)
        if ownConflict != nil, !rows.contains(where: { $0.reason == .conflict }) {
            rows.append(ghostRow(own, name: own.shortID, .conflict, AnnouncementStatus.ownClone.text(heard: ""), []))
        }
        return rows
    }

    /// Adds a hint to two rows if an offline trusted peer and a stranger have the same name and address: both may be the same machine,
    /// which was reinstalled and has a new identity. The text is only a hint, because names and addresses prove nothing.
    private func hintInstalledAnew(_ rows: inout [DirectoryRow]) {
        func trust(_ row: DirectoryRow) -> Trust { row.peer.flatMap { peers[$0]?.trust } ?? .stranger }
        let absent = rows.indices.filter { rows[$0].state == .away && trust(rows[$0]) == .trusted }
        guard !absent.isEmpty else { return }
        let newcomers = Dictionary(grouping: rows.indices.filter { rows[$0].state == .verified && trust(rows[$0]) == .stranger }) {
            Array(rows[$0].name.utf8)
        }
        for old in absent {
            let hosts = Set(rows[old].endpoints.map(\.endpoint.host))
            let fitting = newcomers[Array(rows[old].name.utf8)]?.filter { rows[$0].endpoints.contains { hosts.contains($0.endpoint.host) } }
            guard let new = fitting?.first, fitting?.count == 1, let oldID = rows[old].peer, let newID = rows[new].peer else { continue }
            rows[old].why += "; \(newID.shortID), with the same name and address, may be the same machine, reinstalled"
            rows[new].why += "; with the same name and address as \(oldID.shortID), which is trusted and away: perhaps reinstalled"
        }
    }

    private func addressRows() -> [DirectoryRow] {
        addresses.compactMap { address, state in
            guard state.peer == nil else { return nil }
            let endpoints = [DirectoryRow.ListedEndpoint(endpoint: address.endpoint, lastOK: nil)]
            if state.isOwn {
                return ghostRow(own, name: address.description, .self, "this configured address is this machine", endpoints)
            }
            guard let failure = state.failure else {
                return ghostRow(nil, name: address.description, .unverified, "configured; its identity is being checked", endpoints)
            }
            return ghostRow(nil, name: address.description, .stale, "configured, but \(failure.text)", endpoints)
        }
    }

    private func ghostRow(
        _ peer: PeerID?, name: String, _ reason: GhostReason, _ why: String, _ endpoints: [DirectoryRow.ListedEndpoint]
    ) -> DirectoryRow {
        DirectoryRow(
            peer: peer, name: name, state: .ghost, reason: reason, why: why, endpoints: endpoints, lastSeen: nil, boot: nil,
            version: nil, hasSession: false)
    }

    /// The name from a peer's session or from the store, never from an announcement.
    public func provenName(of peer: PeerID) -> String? { peers[peer]?.name }

    private func name(of peer: DirectoryPeer) -> String {
        if let name = peer.name, !name.isEmpty { return name }
        let newest = peer.records.max { (records[$0]?.number ?? 0) < (records[$1]?.number ?? 0) }
        return newest.map { PeerName.display(instance: $0.key.name) } ?? peer.id.shortID
    }

    private func listedEndpoints(of peer: DirectoryPeer) -> [DirectoryRow.ListedEndpoint] {
        let all = endpoints(of: peer.id)
        let present = all.filter { !isPast($0, of: peer) }
        var endpoints = (present.isEmpty && !peer.hasSession ? all : present).map {
            DirectoryRow.ListedEndpoint(endpoint: $0, lastOK: peer.answered($0.socketAddress))
        }
        guard let session = peer.sessionEndpoint else { return endpoints }
        // Puts the endpoint of the session first. For an inbound session, uses the known listening endpoint of the same host, if there is
        // one.
        let isInbound = session.via == .inbound
        let index = endpoints.firstIndex {
            isInbound ? $0.endpoint.host == session.host : $0.endpoint.socketAddress == session.socketAddress
        }
        endpoints.insert(index.map { endpoints.remove(at: $0) } ?? DirectoryRow.ListedEndpoint(endpoint: session, lastOK: nil), at: 0)
        return endpoints
    }

    private func listedEndpoints(_ group: [Record]) -> [DirectoryRow.ListedEndpoint] {
        var seen: Set<Endpoint.SocketAddress> = []
        return group.sorted(by: Record.inOrder).compactMap { record in
            guard let endpoint = records[record]?.claim?.endpoint, seen.insert(endpoint.socketAddress).inserted else { return nil }
            return DirectoryRow.ListedEndpoint(endpoint: endpoint, lastOK: nil)
        }
    }

    private func answered(_ peer: DirectoryPeer, _ record: Record) -> Instant? {
        records[record]?.claim.flatMap { peer.answered($0.endpoint.socketAddress) }
    }
}

/// The sort key of endpoints: the smallest is dialled first.
private struct EndpointRank: Comparable {
    /// The kind of endpoint: 0 answered, 1 configured or saved, 2 announced in a local network, 3 announced elsewhere, 4 silent or no
    /// longer announced, 5 proved another identity.
    var tier: Int
    var age: Duration
    /// `DirectoryRecord.number` of the announcement: newer announcements have greater numbers, and the newest one is dialled first.
    var number: UInt64

    static func < (left: EndpointRank, right: EndpointRank) -> Bool {
        (left.tier, left.age, right.number) < (right.tier, right.age, left.number)
    }
}

extension DirectoryRow {
    /// The order of rows: state, name, UUID, reason, text. Texts are compared as bytes.
    fileprivate static func inOrder(_ left: DirectoryRow, _ right: DirectoryRow) -> Bool {
        if left.state != right.state { return left.state.sortOrder < right.state.sortOrder }
        if let isBefore = isBefore(left.name, right.name) { return isBefore }
        if left.peer != right.peer { return right.peer.map { other in left.peer.map { $0 < other } ?? true } ?? false }
        return isBefore(left.reason?.rawValue ?? "", right.reason?.rawValue ?? "") ?? isBefore(left.why, right.why) ?? false
    }

    /// Whether `left` precedes `right` in byte order; `nil` if equal. Comparing strings would take quadratic time for hostile text.
    private static func isBefore(_ left: String, _ right: String) -> Bool? {
        guard !left.utf8.elementsEqual(right.utf8) else { return nil }
        return left.utf8.lexicographicallyPrecedes(right.utf8)
    }
}

extension DirectoryRow.State {
    fileprivate var sortOrder: Int {
        switch self {
        case .verified: 0
        case .away: 1
        case .ghost: 2
        }
    }
}
