import DequeModule
import HeapModule
public import HexlistModel

/// The state machine of discovery: distinguishes peers from ghosts (Docs/Protocol.md, "Discovery"; Docs/Ghosts.md).
///
/// Performs no IO: the caller passes in events and the current time, carries out the outputs in order, and calls again at `nextDeadline`.
/// Announcements can only cause probes; only a session's Hello makes a peer verified. Memory and work are bounded for any network traffic:
/// at most `limits.records` announcements, about `limits.instances` peers besides those of the store, `limits.resolvers` open resolvers,
/// and on average `limits.probesPerSecond` probes per second.
///
/// Separate parts are `ProbeQueue`, `ResolverSlots`, `DialPolicy` and `IdentityConflict`.
public struct PeerDirectory: Sendable {
    typealias Instant = ContinuousClock.Instant

    let own: PeerID
    let boot: BootNonce
    let limits: DirectoryLimits

    var peers: [PeerID: DirectoryPeer] = [:]
    /// The peers that the store has data of, and the subset of them that is in `peers` (`known`). Known peers do not count towards
    /// `limits.instances`.
    private var remembered: Set<PeerID> = []
    private var known: Set<PeerID> = []
    var records: [Record: DirectoryRecord] = [:]
    /// Records in order of appearance. Entries that are not in `records` are stale.
    var arrivals: Deque<Record> = []
    /// The records that announce this node's UUID.
    var ownRecords: Set<Record> = []
    /// The conflict with other processes that proved this node's UUID; `nil` if there are none.
    var ownConflict: IdentityConflict?
    /// Number of record contents received so far; the next content gets the next number (`DirectoryRecord.number`).
    var contents: UInt64 = 0
    /// Boot nonces announced with this node's UUID that a probe did not confirm.
    var ownDisproved: Set<BootNonce> = []
    var addresses: [StaticAddress: DirectoryAddress] = [:]
    var policy = DialPolicy()
    var interfaces: [InterfaceAddress] = []
    /// Whether this node is hidden: it does not announce itself, and dials strangers only at configured addresses.
    var isHiding = false
    /// The first 8 digits of trusted UUIDs, which instance names contain, with the number of UUIDs for each. Used to guess which unresolved
    /// records belong to trusted peers, because their resolvers are opened first.
    var trustedHints: [String: Int] = [:]

    var schedules: [ProbeTarget: ProbeSchedule] = [:]
    var running: [ProbeID: RunningProbe] = [:]
    var lastProbe: UInt64 = 0
    var queue: ProbeQueue
    var resolverSlots: ResolverSlots
    /// Deadlines, including cancelled ones, which `isCurrent` detects and `compactTimers()` removes.
    var timers: Heap<Deadline> = []
    /// The state of the random generator that spreads probes.
    var random: UInt64

    /// The peers reported as `up`. `reportChanges` updates this set and the three following ones after each input, from the peers that the
    /// input changed (`touchedPeers`).
    var reportedUp: Set<PeerID> = []
    var listed: Set<PeerID> = []
    var unattended: Set<PeerID> = []
    /// Trusted peers that stopped answering.
    var missing: Set<PeerID> = []
    var nextMissingProbeAt: Instant?
    var reported: [InstanceKey: Set<GhostReason>] = [:]
    var touchedPeers: Set<PeerID> = []
    var touchedRecords: Set<Record> = []
    var outputs: [Output] = []
    /// The time of the latest input; never decreases.
    var now: Instant

    struct RunningProbe: Sendable {
        var target: ProbeTarget
        var endpoints: [Endpoint]
        var deadline: Instant
        /// The newest proved boot nonce of the target's peer when the probe began.
        var start: BootNonce?
    }

    /// - Parameters:
    ///   - own: this node's UUID, which is never listed.
    ///   - boot: the boot nonce of this process; also seeds the random generator.
    public init(own: PeerID, boot: BootNonce, limits: DirectoryLimits = .init(), now: ContinuousClock.Instant = .now) {
        self.own = own
        self.boot = boot
        self.limits = limits
        self.now = now
        queue = ProbeQueue(rate: limits.probesPerSecond, burst: limits.probeBurst)
        resolverSlots = ResolverSlots(limit: limits.resolvers)
        random = boot.value | 1
    }

    /// - Parameter now: the current time. If it is earlier than that of the previous input, the latter is used.
    /// - Returns: the outputs, in order.
    public mutating func handle(_ input: Input, now: ContinuousClock.Instant) -> [Output] {
        self.now = max(now, self.now)
        apply(input)
        fireTimers()
        updateResolvers()
        beginProbes()
        reportChanges()
        compactTimers()
        defer { outputs = [] }
        return outputs
    }

    /// The time to call `handle(.tick, now:)`; `nil` if nothing is scheduled.
    public var nextDeadline: ContinuousClock.Instant? {
        let token = running.count < limits.concurrentProbes ? queue.nextTokenTime(now: now) : nil
        return [timers.min?.at, resolverSlots.nextTimeSliceEnd, token].compactMap { $0 }.min()
    }

    private mutating func apply(_ input: Input) {
        switch input {
        case .discovery(.appeared(let record, let interfaceName)): appeared(canonical(record), interfaceName: interfaceName)
        case .discovery(.withdrawn(let record)): remove(record, isWithdrawn: true)
        case .discovery(.resolved(let record, let resolution)): resolved(canonical(record), resolution)
        case .discovery(.resolveFailed(let record, let text)): resolveFailed(record, text)
        case .discovery(.backend(.running)), .discovery(.backend(.degraded)), .discovery(.backend(.off)), .discovery(.domain): break
        case .discovery(.backend(.unavailable)):
            for record in Array(records.keys) where record.unicast == nil { remove(record, isWithdrawn: false) }
        case .discovery(.interfaces(let interfaces)): interfacesChanged(interfaces)
        case .discovery(.woke): probeEverybody()
        case .sessionUp(let session): sessionUp(session)
        case .sessionDown(let session, let end): sessionDown(session, end)
        case .renamed(let peer, let name): peers[peer]?.name = PeerName.cut(name, bytes: DirectoryLimits.nameBytes)
        case .probeEnded(let probe, let result): probeEnded(probe, result)
        case .identityConflict(let peer, let one, let other): conflictDetected(peer, by: [one, other])
        case .ownIdentityElsewhere(let boot): ownConflictDetected(by: boot)
        case .knownPeer(let known): knownPeer(known)
        case .staticPeers(let addresses): staticPeers(addresses)
        case .trustChanged(let peer, let trust): trustChanged(peer, trust)
        case .remembered(let peers): remember(peers)
        case .pairingAsked(let peer):
            peers[peer]?.isToBePaired = true
            touchedPeers.insert(peer)
        case .hiding(let isHiding): setHiding(isHiding)
        case .forget(let peer): forget(peer)
        case .tick: break
        }
    }

    /// Returns the stored record that is equal to `record`, or `record` itself if there is none, so that all tables share one object.
    private func canonical(_ record: Record) -> Record { records.index(forKey: record).map { records[$0].key } ?? record }

    // MARK: - Peers

    /// Creates an entry for a peer if there is none.
    /// - Returns: false only if the directory is full and the peer is unproven.
    mutating func enter(_ id: PeerID, isProven: Bool) -> Bool {
        guard peers[id] == nil else { return true }
        if isFull { makeRoom() }
        guard !isFull || isProven else { return false }
        peers[id] = DirectoryPeer(id: id)
        if remembered.contains(id) { known.insert(id) }
        return true
    }

    private var isFull: Bool { peers.count - known.count >= limits.instances }

    /// Evicts a sixteenth of the peers: first unproven ones, then strangers that are offline or in conflict, then other strangers (anyone
    /// can create any number of keys, and copies of them). Peers of the store and peers with a session are kept.
    private mutating func makeRoom() {
        let candidates = peers.values.filter { !$0.hasSession && !known.contains($0.id) && $0.trust == .stranger }
        let worst = candidates.sorted { left, right in
            guard left.isProven == right.isProven else { return right.isProven }
            guard left.isListed == right.isListed else { return right.isListed }
            switch (left.lastSeen, right.lastSeen) {
            case (let left?, let right?): return left < right
            case (nil, _?): return true
            case (_, nil): return false
            }
        }
        for peer in worst.prefix(max(1, limits.instances / 16)) {
            for record in peer.records { remove(record, isWithdrawn: false) }
            drop(peer.id)
        }
    }

    /// Removes a peer and everything scheduled for it.
    mutating func drop(_ id: PeerID) {
        guard let peer = peers.removeValue(forKey: id) else { return }
        known.remove(id)
        touchedPeers.insert(id)
        cancel(.peer(id))
        schedules[.peer(id)] = nil
        cancel(.reach(id))
        schedules[.reach(id)] = nil
        for boot in peer.records.compactMap({ records[$0]?.claim?.boot }) {
            cancel(.start(id, boot))
            schedules[.start(id, boot)] = nil
        }
        hintTrust(id, from: peer.trust, to: .stranger)
        // Probes the configured addresses of the peer again.
        for (address, state) in addresses where state.peer == id {
            addresses[address] = DirectoryAddress()
            request(.address(address), at: now, as: .routine)
        }
    }

    private mutating func remember(_ ids: Set<PeerID>) {
        guard ids != remembered else { return }
        touchedPeers.formUnion(ids.symmetricDifference(remembered).intersection(peers.keys))
        remembered = ids
        known = ids.intersection(peers.keys)
    }

    /// Whether changes of the peer's state are reported as events. False for a stranger without stored data, pairing request or configured
    /// address.
    private func isReportable(_ peer: DirectoryPeer) -> Bool {
        peer.trust != .stranger || known.contains(peer.id) || peer.isToBePaired || peer.hasStaticEndpoint
    }

    /// Whether a peer can be dropped: a proved stranger without stored data that is not announced and does not answer.
    private func isDroppable(_ peer: DirectoryPeer) -> Bool {
        guard peer.isProven, !peer.hasSession, peer.records.isEmpty, peer.conflict == nil, !isReportable(peer) else { return false }
        return peer.isAway || peer.saved.isEmpty
    }

    private mutating func knownPeer(_ known: KnownPeer) {
        guard known.id != own else { return }
        if peers[known.id] == nil { peers[known.id] = DirectoryPeer(id: known.id) }
        self.known.insert(known.id)
        trustChanged(known.id, known.trust)
        peers[known.id]?.forgetAt = nil
        touchedPeers.insert(known.id)
        for endpoint in known.endpoints.prefix(DirectoryLimits.endpointsPerProbe).reversed() where endpoint.via != .inbound {
            peers[known.id]?.save(endpoint)
        }
        guard let peer = peers[known.id] else { return }
        if peer.name == nil { peers[known.id]?.name = PeerName.cut(known.name, bytes: DirectoryLimits.nameBytes) }
        if peer.version == nil { peers[known.id]?.version = known.version }
        if !peer.isProven { peers[known.id]?.presence = .away(peer.trust == .blocked ? .blocked : .notSeenYet) }
        guard mayProbe(peer), !endpoints(of: known.id).isEmpty else { return }
        // Trusted peers are probed immediately, without waiting for mDNS.
        request(.peer(known.id), at: now, as: peer.trust == .trusted ? .trusted : .routine)
    }

    private mutating func trustChanged(_ id: PeerID, _ trust: Trust) {
        guard let peer = peers[id], peer.trust != trust else { return }
        peers[id]?.trust = trust
        touchedPeers.insert(id)
        hintTrust(id, from: peer.trust, to: trust)
        for record in peer.records { requestResolver(record) }
        checkReach(of: id)
        if trust == .blocked {
            // Blocked peers are not probed. Sessions that they open are still tracked.
            cancel(.peer(id))
            if peer.isUnattended || peer.isAway { peers[id]?.presence = .away(.blocked) }
        } else if isHiding, trust == .stranger {
            stopProbing(id)
        } else if peer.trust == .blocked || trust == .trusted, !peer.hasSession {
            switch peer.presence {
            case .away(.blocked), .away(.hiding): peers[id]?.presence = .away(.notSeenYet)
            case .verified where peer.trust != .blocked: return  // its periodic probe follows
            case .unproven, .verified, .away: break
            }
            // A newly trusted peer is dialled at all announced endpoints immediately.
            guard peer.trust == .blocked || !endpoints(of: id).isEmpty else { return }
            request(.peer(id), at: now, as: trust == .trusted ? .trusted : .routine)
        }
    }

    private mutating func hintTrust(_ id: PeerID, from before: Trust, to after: Trust) {
        guard (before == .trusted) != (after == .trusted) else { return }
        let count = (trustedHints[id.shortID] ?? 0) + (after == .trusted ? 1 : -1)
        trustedHints[id.shortID] = count > 0 ? count : nil
    }

    private mutating func forget(_ id: PeerID) {
        guard let peer = peers[id] else { return }
        trustChanged(id, .stranger)
        touchedPeers.insert(id)
        known.remove(id)
        peers[id]?.saved.removeAll { $0.via == .lastKnown }
        guard !peer.hasSession else { return }
        guard !peer.records.isEmpty else { return drop(id) }
        // A deleted peer that is still announced is treated like a peer that was announced for the first time.
        var fresh = DirectoryPeer(id: id)
        fresh.records = peer.records
        fresh.saved = peer.saved.filter { $0.via == .static }
        peers[id] = fresh
        reschedule(.peer(id), at: now, as: .newcomer)
    }

    // MARK: - Outputs

    private mutating func reportChanges() {
        var isAnyMissing = false
        for id in touchedPeers.sorted() {
            if let peer = peers[id], isDroppable(peer) { drop(id) }
            let present = peers[id].flatMap { $0.isListed ? $0 : nil }
            let isNews = present == nil ? listed.remove(id) != nil : listed.insert(id).inserted
            if let present, isReportable(present), reportedUp.insert(id).inserted {
                outputs.append(.changed(.up(id)))
            } else if present == nil, reportedUp.remove(id) != nil {
                outputs.append(.changed(.down(id)))
            } else if isNews {
                outputs.append(.listingChanged)
            }
            if peers[id]?.isUnattended ?? false { unattended.insert(id) } else { unattended.remove(id) }
            if peers[id]?.isMissing ?? false {
                missing.insert(id)
                isAnyMissing = true
            } else {
                missing.remove(id)
            }
            if let peer = peers[id] { touchedRecords.formUnion(peer.records) }
        }
        touchedPeers.removeAll(keepingCapacity: touchedPeers.count < 64)
        if isAnyMissing { scheduleMissingProbe() }
        guard !touchedRecords.isEmpty else { return }
        for record in touchedRecords { reportGhost(record) }
        touchedRecords.removeAll(keepingCapacity: touchedRecords.count < 64)
    }

    private mutating func reportGhost(_ record: Record) {
        // After each restart of a peer, announcements of its earlier process remain until they are withdrawn or expire. They are not
        // reported.
        guard let status = status(record), let reason = status.reason, status != .formerStart else { return }
        switch reason {
        case .self, .duplicate, .unverified: return  // normal
        case .stale, .conflict, .impostor, .invalid: break
        }
        guard reported[record.key]?.contains(reason) != true else { return }
        reported[record.key, default: []].insert(reason)
        let event = GhostEvent(
            peer: records[record]?.claim?.peer, name: PeerName.display(instance: record.key.name), reason: reason,
            why: status.text(heard: interfaceList([record])))
        outputs.append(.changed(.ghost(event)))
    }
}

/// A timer of the heap. A cancelled timer stays in the heap, and `isCurrent` detects it by comparing its time with the state of its target.
struct Deadline: Comparable, Sendable {
    enum Timer: Hashable, Sendable {
        case probe(ProbeTarget)
        case probeTimeout(ProbeID)
        case forget(PeerID)
        case conflict(PeerID)
        case ownConflict
        case missing
    }

    var at: ContinuousClock.Instant
    var timer: Timer

    static func < (one: Deadline, other: Deadline) -> Bool { one.at < other.at }
}

/// The state of a configured address.
struct DirectoryAddress: Sendable {
    /// The peer that last answered at this address. The address is then one of that peer's endpoints.
    var peer: PeerID?
    var isOwn = false
    var failure: DirectoryPeer.Failure?
}
