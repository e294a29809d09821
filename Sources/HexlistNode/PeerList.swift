import HexlistAPI
import HexlistDiscovery
import HexlistModel
import HexlistStore

/// The peers as lists show them: the rows of the directory joined with the records of the store. Made for one call, on the event loop.
struct PeerList {
    let own: PeerID
    let registry: PeerRegistry
    let finder: DiscoveryDriver
    let devices: Devices
    /// Converts instants of the directory, which are of the monotonic clock, to wall-clock times.
    let times: MonotonicToWallClock
    /// Milliseconds since 1970.
    let now: Int64
    let steady: ContinuousClock.Instant
    let routeConflicts: RouteConflicts

    /// All peers, sorted by state (verified, away, ghost), then by name.
    func views() -> [PeerView] {
        var views: [PeerView] = []
        var listed: Set<PeerID> = []
        for row in finder.directory.listing() {
            if isPeer(row), let peer = row.peer { listed.insert(peer) }
            views.append(view(of: row))
        }
        views += registry.all.filter { !listed.contains($0.peer) }.compactMap(awayView)
        views += deviceViews()
        return views.sorted { left, right in
            if left.state != right.state { return left.state.rank < right.state.rank }
            // Compared as bytes, because `String` comparison is quadratic on hostile text.
            let (one, other) = (left.shownName.utf8, right.shownName.utf8)
            if !one.elementsEqual(other) { return one.lexicographicallyPrecedes(other) }
            return (left.uuid?.description ?? "") < (right.uuid?.description ?? "")
        }
    }

    /// The view of one peer, as in `views`; `nil` for a ghost and for this machine.
    /// - Parameter comparing: whether `why` also says that the peer may be a reinstalled one, which compares the names of all peers.
    func view(of peer: PeerID, comparing: Bool = true) -> PeerView? {
        guard peer != own else { return nil }
        guard let row = finder.directory.row(of: peer, comparing: comparing), isPeer(row) else {
            return registry[peer].flatMap(awayView) ?? deviceView(of: peer)
        }
        let view = view(of: row)
        return view.isPeer ? view : nil
    }

    /// - Throws: `HexlistError` `notFound` if there is no such peer.
    func required(_ peer: PeerID, comparing: Bool = true) throws(HexlistError) -> PeerView {
        guard let view = view(of: peer, comparing: comparing) else {
            throw HexlistError(.notFound, "There is no peer \(peer).", hint: "All peers seen so far: `hexlist peers --all`.")
        }
        return view
    }

    /// Whether the UUID of a row is proven. A peer with an identity conflict is listed as a ghost, but its record still applies.
    private func isPeer(_ row: DirectoryRow) -> Bool { row.state != .ghost || row.reason == .conflict && row.peer != own }

    private func view(of row: DirectoryRow) -> PeerView {
        let peer = isPeer(row) ? row.peer : nil
        return withRouteConflict(
            PeerView(
                row, record: peer.flatMap(registry.record(of:)), fingerprint: peer.flatMap { registry.keys[$0] }, times: times, at: now))
    }

    /// Sets `why` of a peer whose identity two machines use on a route.
    private func withRouteConflict(_ view: PeerView) -> PeerView {
        guard view.state != .ghost, let route = view.uuid.flatMap({ routeConflicts.route(of: $0, now: now) }) else { return view }
        var view = view
        view.why =
            "Two machines post on the route \(route) with this identity. Nothing is posted to it until a day after the last such "
            + "letter. Run `hexlist id rotate` on one of the two."
        return view
    }

    /// The view of a record without a row in the directory; `nil` without a proven key, because a sender over plain TCP can be neither
    /// trusted nor sent to.
    private func awayView(_ record: PeerRecord) -> PeerView? {
        record.peer != own && record.fingerprint != nil ? withRouteConflict(PeerView(away: record, at: now)) : nil
    }

    /// The name of a peer in messages; `nil` for this machine.
    func label(of peer: PeerID) -> PeerDisplayName? {
        guard peer != own else { return nil }
        if registry[peer] == nil, let device = deviceView(of: peer) { return device.label }
        return registry.label(of: peer, name: finder.directory.provenName(of: peer))
    }

    /// The name of a peer as text, or the beginning of its UUID.
    func text(of peer: PeerID) -> String { label(of: peer)?.text() ?? peer.shortID }

    func labels(of peers: some Sequence<PeerID>) -> [PeerID: PeerDisplayName] {
        Set(peers).reduce(into: [:]) { $0[$1] = label(of: $1) }
    }

    /// Finds peers as a user names them (`PeerReference`). The list of all peers is made at most once, and not for whole UUIDs.
    /// - Parameter comparing: see `view(of:comparing:)`.
    /// - Throws: `HexlistError` `notFound` or `ambiguous` for the first peer that cannot be found.
    func resolve(_ texts: [String], comparing: Bool = true) throws(HexlistError) -> [PeerView] {
        var all: [PeerView]?
        var found: [PeerView] = []
        for text in texts {
            if let peer = PeerID(text), let view = view(of: peer, comparing: comparing) {
                found.append(view)
            } else {
                let views = all ?? views()
                all = views
                do throws(HexlistError) {
                    found.append(try PeerReference(text).resolve(among: views))
                } catch {
                    throw withoutKey(text, error)
                }
            }
        }
        return found
    }

    /// The contact information of a listed peer. Its name is the one of its last Hello; the listed name is used only if there was no Hello.
    func contact(_ peer: PeerID, _ view: PeerView) -> PeerContact {
        PeerContact(
            peer: peer, kind: view.knownKind, fingerprint: view.fingerprint, name: finder.directory.provenName(of: peer) ?? view.name,
            version: view.version,
            boot: view.boot, seenAt: view.lastSeen?.milliseconds ?? now)
    }

    /// The contact information of peers to send to.
    /// - Throws: `HexlistError` `badRequest` or `notFound` if hexes cannot be sent to one of the peers.
    func recipients(_ peers: [PeerID]) throws(HexlistError) -> [PeerContact] {
        guard !peers.isEmpty else { throw HexlistError(.badRequest, "No recipient.", hint: "Give one with --to.") }
        guard !peers.contains(own) else { throw HexlistError(.badRequest, "You cannot send to this machine itself.") }
        var contacts: [PeerContact] = []
        for peer in peers {
            let view = try required(peer, comparing: false)
            guard view.trust != .blocked else {
                throw HexlistError(
                    .badRequest, "\(view.label.text(.named)) is blocked here.", hint: "First run `hexlist peer unblock \(peer)`.")
            }
            guard view.knownKind == .hexlist || view.trust == .trusted else {
                throw HexlistError(
                    .badRequest, "\(view.label.text(.named)) is a device that you do not trust.",
                    hint: "To compare fingerprints and trust it: `hexlist peer trust \(peer.shortID)`.")
            }
            contacts.append(contact(peer, view))
        }
        return contacts
    }

    /// The members of a group, except this machine; or the peer with that alias if there is no such group.
    /// - Parameter marked: the name of the group with its `@`.
    /// - Throws: `HexlistError`: `notFound`; `ambiguous`; `badRequest` for a group that is empty or has a blocked member.
    func members(_ marked: String, of groups: [PeerGroup]) throws(HexlistError) -> [PeerID] {
        let name = GroupName.bare(marked)
        let aliasKey = NormalizedName(marked)
        let owner = (Array(registry.all) + registry.devices.values).first { record in
            record.alias.map { aliasKey?.isKey(of: $0) ?? false } ?? false
        }
        guard let group = groups.named(name) else {
            if let owner { return [owner.peer] }
            throw HexlistError.noGroup(name, among: groups.map(\.name))
        }
        let shown = GroupName.marked(group.name)
        if let owner {
            throw HexlistError(
                .ambiguous, "\(shown) is both a group and the alias of peer \(owner.peer).",
                hint: "Use the UUID of the peer, or rename it: `hexlist peer rename \(owner.peer.shortID) ALIAS`.")
        }
        let members = group.peers.filter { $0 != own }
        guard !members.isEmpty else {
            throw HexlistError(.badRequest, "\(shown) is empty.", hint: "To add peers: `hexlist group add`.")
        }
        if let blocked = members.first(where: { (registry[$0] ?? registry.devices[$0])?.trust == .blocked }) {
            throw HexlistError(
                .badRequest, "\(label(of: blocked)?.text(.named) ?? "\(blocked)"), of \(shown), is blocked here.",
                hint: "Remove it with `hexlist group remove`, or run `hexlist peer unblock \(blocked.shortID)`.")
        }
        return members
    }
}

extension PeerView.State {
    fileprivate var rank: Int {
        switch self {
        case .verified: 0
        case .away: 1
        case .ghost: 2
        }
    }
}

extension [PeerGroup] {
    /// The group with a name, given without `@`.
    func named(_ name: String) -> PeerGroup? {
        guard let key = NormalizedName(name) else { return nil }
        return first { key.isKey(of: $0.name) }
    }
}
