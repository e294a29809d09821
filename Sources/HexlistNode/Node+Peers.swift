import HexlistDiscovery
public import HexlistModel
import HexlistStore
import HexlistWire

/// Peers as people name, trust and see them.
extension Node {
    /// Everything there is: verified, away, ghosts; within each by name.
    public func peers() async throws -> [PeerView] {
        await reloadKnown()
        return peerViews()
    }

    func peerViews() -> [PeerView] {
        var views: [PeerView] = []
        var listed: Set<PeerID> = []
        let times = times()
        for row in directory.listing() {
            if isPeer(row), let peer = row.peer { listed.insert(peer) }
            views.append(view(of: row, times))
        }
        for record in known.values where !listed.contains(record.peer) { views += viewAway(record).map { [$0] } ?? [] }
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
        guard let row = directory.row(of: peer, comparing: comparing), isPeer(row) else { return known[peer].flatMap(viewAway) }
        let view = view(of: row, times())
        return view.isPeer ? view : nil
    }

    /// Whether a row is of somebody who proved the UUID. A peer in conflict is a ghost, and still the peer that is known.
    private func isPeer(_ row: DirectoryRow) -> Bool { row.state != .ghost || row.reason == .conflict && row.peer != id }

    private func view(of row: DirectoryRow, _ times: WallTimes) -> PeerView {
        let peer = isPeer(row) ? row.peer : nil
        let proven = peer.flatMap { fingerprints[$0] }
        var record = peer.flatMap { known[$0] }
        // What is known of another key with the same UUID is not this one's.
        if let kept = record?.fingerprint, let proven, kept != proven { record = nil }
        return PeerView(row, record: record, fingerprint: proven, times: times)
    }

    /// Of a record that no row of the directory is about. Who never proved a key (a sender over plain TCP) can be neither trusted nor sent
    /// to.
    private func viewAway(_ record: PeerRecord) -> PeerView? {
        record.peer != id && record.fingerprint != nil ? PeerView(away: record) : nil
    }

    /// How a peer is told apart, by what is known of it now; `nil` for this machine itself.
    public func label(of peer: PeerID) -> PeerLabel? {
        guard peer != id else { return nil }
        var record = known[peer]
        // What is known of another key with the same UUID is not this one's.
        if let kept = record?.fingerprint, let proven = fingerprints[peer], kept != proven { record = nil }
        return PeerLabel(
            peer, name: directory.provenName(of: peer) ?? record?.name ?? "", alias: record?.alias, trust: record?.trust ?? .stranger)
    }

    public func labels(of peers: some Sequence<PeerID>) -> [PeerID: PeerLabel] {
        Set(peers).reduce(into: [:]) { $0[$1] = label(of: $1) }
    }

    /// A peer as a person named it (`PeerReference`).
    /// - Parameter counting: with counters as they are now, and not as they were last read.
    /// - Throws: `HexlistError` `notFound`, or `ambiguous` with the candidates in its message.
    public func resolve(_ text: String, counting: Bool = true) async throws -> PeerView {
        if counting { await reloadKnown() }
        return try resolve([text])[0]
    }

    /// Peers as a person named them, by one look at all peers, or by none where they are named by whole UUIDs.
    /// - Throws: as `resolve` of one, for the first that cannot be found.
    public func resolve(_ texts: [String]) throws -> [PeerView] {
        var all: [PeerView]?
        return try texts.map { text in
            if let peer = PeerID(text), let view = view(of: peer) { return view }
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
        await reloadKnown()
        guard var before = view(of: peer) else { throw Node.unknown(peer) }
        if let proven { before.fingerprint = proven }
        if trust != .stranger, before.fingerprint == nil {
            throw HexlistError(
                .notFound, "\(before.label.text()) was never met, so there is no fingerprint to trust.",
                hint: "Wait until `hexlist peers` lists it.")
        }
        var sighting = self.sighting(peer, before)
        let at = Node.wallClock()
        if trust == .trusted { sighting.endpoints = answeredEndpoints(of: peer, at: at) }
        try await store.setTrust(trust, of: sighting, name: name, at: at)
        await reloadKnown()
        reserveAddresses()
        apply(.trustChanged(peer, trust))
        tellSessions(of: peer, trust)
        trustTold(of: peer, trust)
        if trust == .blocked { stopPairing(with: peer) }
        endUninvited()
        notifyWatchers()
        return view(of: peer) ?? before
    }

    /// What a change of trust is to the sessions of that key, said Hello or not: another Hello, or their end.
    func tellSessions(of peer: PeerID, _ trust: Trust) {
        for session in sessions.values where session.connection.peerFingerprint?.peerID == peer {
            switch trust {
            case .blocked: endBlocked(session)
            // It has the room and the rate of a trusted peer's.
            case .stranger where session.machine.isTrusted: session.act { $0.end(.idle, &$1) }
            case .stranger, .trusted: tellHello(session)
            }
        }
    }

    /// - Parameter alias: a name of one's own for the peer; `nil` takes it away.
    /// - Throws: `badRequest` for an alias another peer has, or one that cannot be (`PeerAlias.fault`).
    public func rename(_ peer: PeerID, alias: String?) async throws -> PeerView {
        await reloadKnown()
        guard let before = view(of: peer) else { throw Node.unknown(peer) }
        if let alias, let fault = PeerAlias.fault(alias, of: peer) {
            throw HexlistError(.badRequest, fault, hint: "Choose another one: `hexlist peer rename \(peer.shortID) ALIAS`.")
        }
        try await store.setAlias(alias, of: sighting(peer, before))
        await reloadKnown()
        notifyWatchers()
        return view(of: peer) ?? before
    }

    /// Drops what is kept of a peer but its hexes; one that is there is met again as a stranger.
    public func forget(_ peer: PeerID) async throws {
        await reloadKnown()
        guard view(of: peer) != nil else { throw Node.unknown(peer) }
        try await store.forgetPeer(peer)
        await reloadKnown()
        reserveAddresses()
        apply(.forget(peer))
        tellSessions(of: peer, .stranger)
        endUninvited()
        notifyWatchers()
    }

    /// With the name the peer said itself: what an announcement says of it is not kept.
    func sighting(_ peer: PeerID, _ view: PeerView) -> PeerSighting {
        PeerSighting(
            peer: peer, fingerprint: view.fingerprint, name: directory.provenName(of: peer) ?? view.name, version: view.version,
            boot: view.boot, seenAt: view.lastSeen ?? Node.wallClock())
    }

    static func unknown(_ peer: PeerID) -> HexlistError {
        HexlistError(.notFound, "There is no peer \(peer).", hint: "`hexlist peers --all` lists every peer that was seen.")
    }

    // MARK: What is known

    func reloadKnown() async {
        let changes = knownChanges
        do {
            setKnown(try await store.read { try $0.peers() })
            if knownChanges != changes { lookAtKnown() }
        } catch {
            logger.error("peers could not be read", metadata: ["error": "\(error)"])
        }
    }

    /// Without waiting, after a change on the hot path.
    func reloadKnownSoon() {
        knownChanges += 1
        lookAtKnown()
    }

    /// One look is under way at a time; what changes meanwhile is in the next.
    private func lookAtKnown() {
        guard !isLookingAtKnown else { return }
        isLookingAtKnown = true
        let changes = knownChanges
        store.submitRead({ try $0.peers() }) { [self] result in
            onLoop { node in
                node.isLookingAtKnown = false
                if case .success(let records) = result { node.setKnown(records) }
                if node.knownChanges != changes { node.lookAtKnown() }
            }
        }
    }

    func setKnown(_ records: [PeerRecord]) {
        known = Dictionary(records.map { ($0.peer, $0) }, uniquingKeysWith: { first, _ in first })
        apply(.remembered(Set(known.keys)))
    }

    /// A peer the store knows showed itself: its name, version and address are the newest.
    func remember(_ peer: PeerID, fingerprint: Fingerprint, hello: Hello, version: String, session: PeerSession) {
        guard let record = known[peer] else { return }
        guard record.fingerprint == nil || record.fingerprint == fingerprint else { return }
        let address = session.connection.remoteAddress
        if record.trust == .trusted, lastAddresses[peer] != address {
            lastAddresses[peer] = address
            reserveAddressesSoon()
        }
        let at = Node.wallClock()
        var endpoints: [PeerEndpoint] = []
        if let dialled = session.dialled?.endpoint {
            if let host = session.addressBehindName {
                endpoints.append(PeerEndpoint(Endpoint(host: host, port: dialled.port, interface: dialled.interface, via: .lastKnown), at))
            }
            endpoints.append(PeerEndpoint(dialled, at))  // so that the name is tried first
        }
        keep(
            PeerSighting(
                peer: peer, fingerprint: fingerprint, name: PeerName.cut(hello.name, bytes: NameKey.bytes),
                version: PeerName.cut(version, bytes: 64),
                boot: hello.boot, seenAt: at, endpoints: endpoints))
    }

    /// Records that a peer was seen until now, when a session with it ended; trusted peers alone, and none while this node stops.
    func rememberSeen(_ peer: PeerID) {
        guard !isStopping, let record = known[peer], record.trust == .trusted else { return }
        let name = PeerName.cut(directory.provenName(of: peer) ?? record.name, bytes: NameKey.bytes)
        keep(
            PeerSighting(
                peer: peer, fingerprint: record.fingerprint, name: name, version: record.version, boot: record.boot,
                seenAt: Node.wallClock()))
    }

    /// Where a trusted peer answered, for the next start.
    func rememberPlaces(of peer: PeerID) {
        guard let record = known[peer], record.trust == .trusted else { return }
        let at = Node.wallClock()
        let endpoints = answeredEndpoints(of: peer, at: at)
        guard !endpoints.isEmpty else { return }
        keep(
            PeerSighting(
                peer: peer, fingerprint: record.fingerprint, name: record.name, version: record.version, boot: record.boot, seenAt: at,
                endpoints: endpoints))
    }

    /// A later Hello told another name: that is its latest. One such write a second at most for each session, and none that no Hello caused:
    /// two sessions of one key may tell different names, and neither is to write its own over and over.
    func rememberName(_ session: PeerSession) {
        guard !isStopping, session.connection.isOpen, let fingerprint = session.connection.peerFingerprint, let peer = session.peer,
            let record = known[peer], record.fingerprint == fingerprint, let hello = session.machine.peerHello
        else { return }
        guard session.namePause == nil else { return session.namePause = .toldAgain }
        let name = PeerName.cut(hello.name, bytes: NameKey.bytes)
        guard !name.utf8.elementsEqual(record.name.utf8) else { return }
        session.namePause = .quiet
        keep(
            PeerSighting(
                peer: peer, fingerprint: fingerprint, name: name, version: record.version, boot: record.boot, seenAt: Node.wallClock())
        ) { $0.notifyWatchers() }
        eventLoop.scheduleTask(in: .seconds(1)) { [weak self, weak session] in
            self?.assumeIsolated { node in
                guard let session, session.namePause.take() == .toldAgain else { return }
                node.rememberName(session)
            }
        }
    }

    private func keep(_ sighting: PeerSighting, then: (@Sendable (isolated Node) -> Void)? = nil) {
        store.record(sighting) { [self] result in
            switch result {
            case .success(let record):
                onLoop { node in
                    node.known[sighting.peer] = record
                    node.knownChanges += 1
                    then?(node)
                }
            case .failure(let error):
                logger.error("peer could not be recorded", metadata: ["peer.id": "\(sighting.peer)", "error": "\(error)"])
            }
        }
    }

    private func answeredEndpoints(of peer: PeerID, at: Int64) -> [PeerEndpoint] {
        directory.answeredEndpoints(of: peer).map { PeerEndpoint($0, at) }
    }

    /// Once for all peers that come within a second.
    private func reserveAddressesSoon() {
        reserveTimer.set(.now + .seconds(1), self) { $0.reserveAddresses() }
    }

    /// Places kept for the last addresses of trusted peers, so that a flood of strangers does not shut them out.
    func reserveAddresses() {
        for link in links.values {
            if let session = link.sending { lastAddresses[link.peer] = session.connection.remoteAddress }
        }
        lastAddresses = lastAddresses.filter { known[$0.key]?.trust == .trusted }
        let addresses = known.values.filter { $0.trust == .trusted }.flatMap { $0.endpoints.map(\.host) }
        transport.setReservedAddresses(addresses + lastAddresses.values)
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
