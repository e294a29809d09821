import HexlistModel

/// The state of one peer UUID. It has more than 15 properties: announcements, probes and sessions set them independently of each other.
struct DirectoryPeer: Sendable {
    enum Presence: Sendable, Equatable {
        /// Announced, but not proved by a Hello.
        case unproven
        /// Proved by a Hello, and has a session or answered the last probe.
        case verified
        /// Proved before, now or in an earlier run, but currently offline.
        case away(Absence)
    }

    /// The reason why a peer is away.
    enum Absence: Sendable, Equatable {
        case notSeenYet, saidShutdown, refused, noAnswer, blocked
        /// A stranger, while this machine is hidden.
        case hiding
        case failed(String)
    }

    /// The result of the last probe of an unproven peer, or of the first failed probe of a verified one.
    enum Failure: Sendable, Equatable {
        case refused, noAnswer
        case failed(String)

        var absence: Absence {
            switch self {
            case .refused: .refused
            case .noAnswer: .noAnswer
            case .failed(let text): .failed(text)
            }
        }
    }

    /// The last result of dialling one socket address of this peer.
    enum DialResult: Sendable, Equatable {
        case answered(BootNonce, at: ContinuousClock.Instant)
        /// It proved another identity.
        case impostor(PeerID)
        /// It is this machine.
        case own
        /// It did not answer a probe, possibly together with others.
        case silent(at: ContinuousClock.Instant)
    }

    let id: PeerID
    var presence = Presence.unproven
    /// The name of the last Hello, or of the store.
    var name: String?
    var version: String?
    var trust = Trust.stranger
    /// The start (boot nonce) that was proved last, and earlier ones.
    var boot: BootNonce?
    var formerBoots: [BootNonce] = []
    /// The number of open sessions of each start.
    var sessions: [BootNonce: Int] = [:]
    /// Whether a session ended with `shutdown` after the last session began.
    var saidShutdown = false
    /// The records that currently announce this UUID.
    var records: Set<Record> = []
    /// Whether the last announcement was withdrawn by the network, in contrast to a failure of avahi-daemon.
    var wasWithdrawn = false
    /// The `lastKnown` and `static` endpoints, best first.
    var saved: [Endpoint] = []
    /// The endpoint at which the newest session was dialled; for an inbound session its source, for display only. `nil` when that session
    /// has ended, even if an older one is open.
    var sessionEndpoint: Endpoint?
    /// Saved or dialled addresses whose announcement was withdrawn or replaced, until they are announced or answer again.
    var withdrawn: Set<Endpoint.SocketAddress> = []
    var dialResults: [Endpoint.SocketAddress: DialResult] = [:]
    /// Announced starts that were dialled but not proved.
    var disprovedBoots: [BootNonce] = []
    var failure: Failure?
    var lastSeen: ContinuousClock.Instant?
    /// The conflict while two machines prove this identity.
    var conflict: IdentityConflict?
    var forgetAt: ContinuousClock.Instant?
    /// Whether a pairing was requested by the peer or the user since this node started. The peer's request counts once its digits were
    /// shown.
    var isToBePaired = false

    init(id: PeerID) { self.id = id }

    var hasSession: Bool { !sessions.isEmpty }
    var isProven: Bool { presence != .unproven }
    var isAway: Bool {
        switch presence {
        case .unproven, .verified: false
        case .away: true
        }
    }
    /// Whether `hexlist peers` shows the peer without `--all`.
    var isListed: Bool { presence == .verified && conflict == nil }
    /// Whether only periodic probes check the peer: it is verified and has no session.
    var isUnattended: Bool { presence == .verified && sessions.isEmpty }
    /// Whether the peer is trusted, was seen before, and stopped answering.
    var isMissing: Bool { presence == .away(.noAnswer) && trust == .trusted && !hasSession && lastSeen != nil }
    var hasStaticEndpoint: Bool { saved.contains { $0.via == .static } }

    func isFormer(_ boot: BootNonce) -> Bool { formerBoots.contains(boot) || disprovedBoots.contains(boot) }

    mutating func recordDial(_ socketAddress: Endpoint.SocketAddress, _ result: DialResult) {
        if dialResults[socketAddress] == nil, dialResults.count >= DirectoryLimits.dialResultsPerPeer {
            // Evicts the least valuable result, the oldest of equal ones. Answers are worth more than failures.
            if let least = dialResults.min(by: { $0.value.worth < $1.value.worth }) { dialResults[least.key] = nil }
        }
        dialResults[socketAddress] = result
        if case .answered = result { withdrawn.remove(socketAddress) }
    }

    /// Records that addresses did not answer, except those with a better known result.
    mutating func silent(_ endpoints: [Endpoint], at instant: ContinuousClock.Instant) {
        for endpoint in endpoints {
            switch dialResults[endpoint.socketAddress] {
            case .silent?, nil: recordDial(endpoint.socketAddress, .silent(at: instant))
            case .answered?, .impostor?, .own?: break
            }
        }
    }

    /// Records that the announcement of this address was withdrawn or replaced.
    mutating func withdraw(_ socketAddress: Endpoint.SocketAddress) {
        guard dialResults[socketAddress] != nil || saved.contains(where: { $0.socketAddress == socketAddress }) else { return }
        withdrawn.insert(socketAddress)
        if withdrawn.count > DirectoryLimits.dialResultsPerPeer { withdrawn.removeFirst() }
    }

    func answered(_ socketAddress: Endpoint.SocketAddress) -> ContinuousClock.Instant? {
        guard case .answered(_, let instant)? = dialResults[socketAddress] else { return nil }
        return instant
    }

    /// Whether this start has answered at the address, which is then valid for the life of the start.
    func hasAnswered(_ socketAddress: Endpoint.SocketAddress, _ start: BootNonce) -> Bool {
        guard case .answered(start, _)? = dialResults[socketAddress] else { return false }
        return true
    }

    /// Records that `boot` was proved. The previous start becomes an earlier one.
    /// - Returns: whether an earlier start proved itself again, so that two machines must have this identity.
    mutating func proved(_ boot: BootNonce) -> Bool {
        guard boot != self.boot else { return false }
        let isSecondMachine = formerBoots.contains(boot)
        formerBoots.removeAll { $0 == boot }
        disprovedBoots.removeAll { $0 == boot }
        if let before = self.boot { formerBoots.append(before) }
        if formerBoots.count > DirectoryLimits.formerBoots { formerBoots.removeFirst() }
        self.boot = boot
        return isSecondMachine
    }

    mutating func disproved(_ boot: BootNonce) {
        guard !isFormer(boot) else { return }
        disprovedBoots.append(boot)
        if disprovedBoots.count > DirectoryLimits.formerBoots { disprovedBoots.removeFirst() }
    }

    /// Drops addresses of an earlier start that answered on another port: a start listens on one port only.
    mutating func leaveFormerPorts(_ endpoint: Endpoint, _ boot: BootNonce) {
        func isOver(_ socketAddress: Endpoint.SocketAddress) -> Bool {
            guard socketAddress.port != endpoint.port else { return false }
            switch dialResults[socketAddress] {
            case .answered(let former, _)?: return former != boot
            case .silent?, nil: return socketAddress.host == endpoint.host
            case .impostor?, .own?: return false
            }
        }
        saved.removeAll { $0.via != .static && isOver($0.socketAddress) }
        for socketAddress in Array(dialResults.keys)
        where isOver(socketAddress) && !saved.contains(where: { $0.socketAddress == socketAddress }) { dialResults[socketAddress] = nil }
    }

    /// Saves the endpoint of a dialled session as the best one.
    mutating func save(_ endpoint: Endpoint) {
        let isStatic = saved.contains { $0.socketAddress == endpoint.socketAddress && $0.via == .static }
        saved.removeAll { $0.socketAddress == endpoint.socketAddress }
        var endpoint = endpoint
        endpoint.via = isStatic || endpoint.via == .static ? .static : .lastKnown
        saved.insert(endpoint, at: 0)
        while saved.count > DirectoryLimits.endpointsPerProbe {
            guard let last = saved.lastIndex(where: { $0.via != .static }) ?? saved.indices.last else { return }
            saved.remove(at: last)
        }
    }
}

extension DirectoryPeer.DialResult {
    /// Sort key for eviction, smallest first.
    fileprivate var worth: (Int, ContinuousClock.Instant?) {
        switch self {
        case .silent(let instant): (0, instant)
        case .impostor, .own: (1, nil)
        case .answered(_, let instant): (2, instant)
        }
    }
}

private func < (left: (Int, ContinuousClock.Instant?), right: (Int, ContinuousClock.Instant?)) -> Bool {
    guard left.0 == right.0 else { return left.0 < right.0 }
    guard let leftInstant = left.1, let rightInstant = right.1 else { return false }
    return leftInstant < rightInstant
}

/// One announced record.
struct DirectoryRecord: Sendable {
    enum Content: Sendable, Equatable {
        case unresolved
        case unresolvable(String)
        /// No usable TXT, port or address. The text ends a sentence that begins "its announcement is not usable: ".
        case invalid(String)
        case claim(AnnouncedPeer)
        /// Usable, but ignored because too many announcements claim its UUID.
        case surplus(AnnouncedPeer)
    }

    /// A usable announcement: the UUID it claims, and where.
    struct AnnouncedPeer: Sendable, Equatable {
        var endpoint: Endpoint
        /// The reason why the endpoint must not be dialled because of the announcement; `nil` if it may.
        var refusal: DialPolicy.Refusal?
        var peer: PeerID
        var version: String?
        var boot: BootNonce?

        static func == (left: AnnouncedPeer, right: AnnouncedPeer) -> Bool {
            left.endpoint == right.endpoint && left.refusal == right.refusal && left.peer == right.peer && left.boot == right.boot
                && PeerText.areEqual(left.version, right.version)
        }
    }

    var interfaceName: String?
    var content = Content.unresolved
    /// Whether the last attempt to resolve it failed.
    var isLost = false
    /// The time of the last change of the content.
    var changedAt: ContinuousClock.Instant?
    /// Increases with every new content, so the newest has the greatest number.
    var number: UInt64 = 0

    var claim: AnnouncedPeer? {
        switch content {
        case .claim(let claim): claim
        case .unresolved, .unresolvable, .invalid, .surplus: nil
        }
    }

    var surplus: AnnouncedPeer? { if case .surplus(let claim) = content { claim } else { nil } }
}

/// The probing schedule of a target.
struct ProbeSchedule: Sendable {
    /// The time of the next probe; `nil` while the target is queued, in flight, or waits for an event.
    var nextAt: ContinuousClock.Instant?
    var urgency = ProbeQueue.Urgency.retry
    /// The time of the regular probe, while an extra probe is queued or in flight.
    var regularAt: ContinuousClock.Instant?
    /// The time of the last probe.
    var askedAt: ContinuousClock.Instant?
    /// Consecutive failures.
    var failures = 0
    var running: ProbeID?
    /// Whether to probe again right after the running probe, because of a new announcement.
    var again = false
    /// Token bucket of extra probes caused by the peer's announcements.
    var allowance = DirectoryTimes.announcedProbes
    var allowanceAt: ContinuousClock.Instant?

    /// Takes a token. The balance has a lower bound, so that endless announcements delay the next probe by minutes at most.
    mutating func spend() { allowance = max(allowance - 1, -DirectoryTimes.announcedProbes) }

    /// The time when a token is available.
    mutating func announcedInstant(now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        if let allowanceAt {
            let earned = (now - allowanceAt) / DirectoryTimes.announcedProbe
            allowance = min(DirectoryTimes.announcedProbes, allowance + earned)
        }
        allowanceAt = now
        return allowance >= 1 ? now : now + DirectoryTimes.announcedProbe * (1 - allowance)
    }
}
