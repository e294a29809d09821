public import HexlistAPI
import HexlistDelivery
import HexlistDiscovery
import HexlistEventLoop
public import HexlistModel
import HexlistSession
import HexlistStore
import HexlistWire

/// Peers as people name, trust and see them.
extension Node {
    /// Everything there is: verified, away, ghosts; within each by name.
    public func peers() async throws -> [PeerView] {
        await known.reload(self)
        return peerViews()
    }

    func peerViews() -> [PeerView] {
        var views: [PeerView] = []
        var listed: Set<PeerID> = []
        let times = times()
        for row in finder.directory.listing() {
            if isPeer(row), let peer = row.peer { listed.insert(peer) }
            views.append(view(of: row, times))
        }
        for record in known.all where !listed.contains(record.peer) { views += viewAway(record).map { [$0] } ?? [] }
        return views.sorted { left, right in
            if left.state != right.state { return left.state.rank < right.state.rank }
            // As bytes: `String`'s own comparison is quadratic on hostile text.
            let (one, other) = (left.shownName.utf8, right.shownName.utf8)
            if !one.elementsEqual(other) { return one.lexicographicallyPrecedes(other) }
            return (left.uuid?.description ?? "") < (right.uuid?.description ?? "")
        }
    }

    /// The view of one peer, as `peerViews` has it, without those of the others; `nil` for a ghost and for this machine itself.
    /// - Parameter comparing: its `why` says too whether it may be another one installed anew, which looks at the names of all.
    func view(of peer: PeerID, comparing: Bool = true) -> PeerView? {
        guard peer != id else { return nil }
        guard let row = finder.directory.row(of: peer, comparing: comparing), isPeer(row) else { return known[peer].flatMap(viewAway) }
        let view = view(of: row, times())
        return view.isPeer ? view : nil
    }

    /// Whether a row is of somebody who proved the UUID. A peer in conflict is a ghost, and still the peer that is known.
    private func isPeer(_ row: DirectoryRow) -> Bool { row.state != .ghost || row.reason == .conflict && row.peer != id }

    private func view(of row: DirectoryRow, _ times: MonotonicToWallClock) -> PeerView {
        let peer = isPeer(row) ? row.peer : nil
        return PeerView(
            row, record: peer.flatMap(known.record(of:)), fingerprint: peer.flatMap { known.keys[$0] }, times: times,
            at: clocks.milliseconds)
    }

    /// Returns the view of a record that no row of the directory is about; `nil` without a proven key: such a sender, over plain TCP, can
    /// be neither trusted nor sent to.
    private func viewAway(_ record: PeerRecord) -> PeerView? {
        record.peer != id && record.fingerprint != nil ? PeerView(away: record, at: clocks.milliseconds) : nil
    }

    /// Returns the label of a peer by what is known of it now; `nil` for this machine itself.
    public func label(of peer: PeerID) -> PeerDisplayName? {
        peer == id ? nil : known.label(of: peer, name: finder.directory.provenName(of: peer))
    }

    public func labels(of peers: some Sequence<PeerID>) -> [PeerID: PeerDisplayName] {
        Set(peers).reduce(into: [:]) { $0[$1] = label(of: $1) }
    }

    /// A peer as a person named it (`PeerReference`).
    /// - Parameter counting: with counters as they are now, and not as they were last read.
    /// - Throws: `HexlistError` `notFound`, or `ambiguous` with the candidates in its message.
    public func resolve(_ text: String, counting: Bool = true) async throws -> PeerView {
        if counting { await known.reload(self) }
        return try resolve([text])[0]
    }

    /// Peers as a person named them, by one look at all peers, or by none where they are named by whole UUIDs.
    /// - Parameter comparing: whether the views say that a peer may be another one installed anew, which takes a look at all names for each.
    /// - Throws: as `resolve` of one, for the first that cannot be found.
    public func resolve(_ texts: [String], comparing: Bool = true) throws -> [PeerView] {
        var all: [PeerView]?
        return try texts.map { text in
            if let peer = PeerID(text), let view = view(of: peer, comparing: comparing) { return view }
            let views = all ?? peerViews()
            all = views
            return try PeerReference(text).resolve(among: views)
        }
    }

    /// `.stranger` takes trust or a block back.
    /// - Parameter name: what the person read when saying yes, which makes the alias; `nil` for the latest name.
    public func setTrust(_ peer: PeerID, _ trust: Trust, name: String? = nil) async throws -> PeerView {
        try await setTrust(peer, trust, proven: nil, name: name)
    }

    /// - Parameter proven: the key that is meant, where the caller has it from a session.
    /// - Throws: `badRequest` where the peer is known by another key.
    func setTrust(_ peer: PeerID, _ trust: Trust, proven: Fingerprint?, name: String?) async throws -> PeerView {
        await known.reload(self)
        guard var before = view(of: peer) else { throw Node.unknown(peer) }
        if let proven { before.fingerprint = proven }
        if trust != .stranger, before.fingerprint == nil {
            throw HexlistError(
                .notFound, "\(before.label.text()) was never met, so there is no fingerprint to trust.",
                hint: "Wait until `hexlist peers` lists it.")
        }
        var sighting = self.sighting(peer, before)
        let at = clocks.milliseconds
        if trust == .trusted { sighting.endpoints = finder.directory.answeredEndpoints(of: peer).map { PeerEndpoint($0, at) } }
        try await store.setTrust(trust, of: sighting, name: name, at: at)
        await known.reload(self)
        known.reserveAddresses(self)
        finder.apply(.trustChanged(peer, trust), self)
        tellSessions(of: peer, trust)
        trustTold(of: peer, trust)
        if trust == .blocked, let actions = pairing.desk.reject(peer, now: clocks.now) { pairing.carry(actions, self) }
        endUninvited()
        notifyWatchers()
        return view(of: peer) ?? before
    }

    /// Acts on a change of trust. A peer that is trusted now may send what was refused before, and is likely to trust this node too; and
    /// whatever becomes of its held hexes may make room for those of others.
    func trustTold(of peer: PeerID, _ trust: Trust) {
        invitations.forget(peer)
        if trust == .trusted {
            invitations.invite(peer, self)
            deliver { $0.trustBegan(peer, $1) }
        }
        invitations.mayTakeMore(self)
    }

    /// Tells the sessions of that key of a change of trust, said Hello or not: by another Hello, or by ending them.
    func tellSessions(of peer: PeerID, _ trust: Trust) {
        if trust != .trusted { transfers.trustEnded(peer) }
        for session in sessions.values where session.connection.peerFingerprint?.peerID == peer {
            switch trust {
            case .blocked: endBlocked(session)
            // The session has the room and the rate of a trusted peer's, so it ends.
            case .stranger where session.machine.isTrusted: session.act { $0.end(.idle, &$1) }
            case .stranger, .trusted: tellHello(session)
            }
        }
    }

    /// Changes the alias, a name of one's own for the peer, and what is done with its hexes.
    /// - Throws: `badRequest` for an alias another peer has, or one that cannot be (`PeerAlias.fault`).
    public func change(_ peer: PeerID, _ change: PeerChange) async throws -> PeerView {
        await known.reload(self)
        guard let before = view(of: peer) else { throw Node.unknown(peer) }
        if case .set(let alias?) = change.alias, let fault = PeerAlias.fault(alias, of: peer) {
            throw HexlistError(.badRequest, fault, hint: "Choose another one: `hexlist peer rename \(peer.shortID) ALIAS`.")
        }
        try await store.change(change, of: sighting(peer, before), at: clocks.milliseconds)
        await known.reload(self)
        if change.receive != nil { invitations.mayTakeMore(self) }
        notifyWatchers()
        return view(of: peer) ?? before
    }

    /// Drops what is kept of a peer but its hexes; one that is there is met again as a stranger.
    public func forget(_ peer: PeerID) async throws {
        await known.reload(self)
        guard view(of: peer) != nil else { throw Node.unknown(peer) }
        try await store.forgetPeer(peer)
        await known.reload(self)
        known.reserveAddresses(self)
        finder.apply(.forget(peer), self)
        tellSessions(of: peer, .stranger)
        endUninvited()
        notifyWatchers()
    }

    /// Returns the sighting with the name the peer said itself, if it did: what an announcement says of it is not kept.
    func sighting(_ peer: PeerID, _ view: PeerView) -> ContactInfo {
        ContactInfo(
            peer: peer, fingerprint: view.fingerprint, name: finder.directory.provenName(of: peer) ?? view.name, version: view.version,
            boot: view.boot, seenAt: view.lastSeen?.milliseconds ?? clocks.milliseconds)
    }

    static func unknown(_ peer: PeerID) -> HexlistError {
        HexlistError(.notFound, "There is no peer \(peer).", hint: "`hexlist peers --all` lists every peer that was seen.")
    }

}

extension PeerView.State {
    var rank: Int {
        switch self {
        case .verified: 0
        case .away: 1
        case .ghost: 2
        }
    }
}
