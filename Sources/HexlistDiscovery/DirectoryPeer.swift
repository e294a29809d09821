import HexlistModel

/// The directory's state of one peer. Announcements, probes and sessions each update some of its properties.
struct DirectoryPeer: Sendable {
    enum Presence: Sendable, Equatable {
        /// The peer is announced, but was not proved by a Hello.
        case unproven
        /// The peer was proved by a Hello, and has a session or answered the last probe.
        case verified
        /// The peer was proved by a Hello at some time, possibly before this daemon started, but is offline now.
        case away(Absence)
    }

    /// The reason why a peer is away.
    enum Absence: Sendable, Equatable {
        case notSeenYet, saidShutdown, refused, noAnswer, blocked
        /// The peer is a stranger, which is not probed because this machine is hidden.
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
        /// Another identity was proved at this address.
        case impostor(PeerID)
        /// The address is one of this machine.
        case own
        /// The address did not answer a probe. The probe may have dialled other addresses too.
        case silent(at: ContinuousClock.Instant)
    }

    let id: PeerID
    var presence = Presence.unproven
    /// The name in the peer's last Hello, or the stored name if there was no Hello yet.
    var name: String?
    var version: String?
    var trust = Trust.stranger
    /// The boot nonce that was proved last, and earlier ones. A boot nonce is a random number that identifies one run of the peer's daemon.
    var boot: BootNonce?
    var formerBoots: [BootNonce] = []
    /// The number of open sessions for each boot nonce.
    var sessions: [BootNonce: Int] = [:]
    /// Whether a session ended with `Bye` `shutdown` and no session has begun since.
    var saidShutdown = false
    /// The records that currently announce this UUID.
    var records: Set<Record> = []
    /// Whether the last announcement was withdrawn by the network, and not removed because avahi-daemon failed.
    var wasWithdrawn = false
    /// The endpoints that were dialled successfully (`lastKnown`) or configured (`static`), best first; at most `endpointsPerProbe`.
    var saved: [Endpoint] = []
    /// The dialled endpoint of the newest session. For an inbound session, its source address, which is only displayed. `nil` after that
    /// session has ended, even if an older session is open.
    var sessionEndpoint: Endpoint?
    /// Saved or dialled addresses whose announcement was withdrawn or replaced. An address is removed from this set when it is announced or
    /// answers again.
    var withdrawn: Set<Endpoint.SocketAddress> = []
    var dialResults: [Endpoint.SocketAddress: DialResult] = [:]
    /// Announced boot nonces that a probe did not confirm.
    var disprovedBoots: [BootNonce] = []
    var failure: Failure?
    var lastSeen: ContinuousClock.Instant?
    /// The conflict while two machines prove this identity.
    var conflict: IdentityConflict?
    var forgetAt: ContinuousClock.Instant?
    /// Whether the user or the peer has requested a pairing since this node started. A request of the peer counts after its digits were
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
    /// Whether the peer is verified but has no session, so that only periodic probes notice when it goes offline.
    var isUnattended: Bool { presence == .verified && sessions.isEmpty }
    /// Whether the peer is trusted, was seen before, and stopped answering.
    var isMissing: Bool { presence == .away(.noAnswer) && trust == .trusted && !hasSession && lastSeen != nil }
    var hasStaticEndpoint: Bool { saved.contains { $0.via == .static } }

    func isFormer(_ boot: BootNonce) -> Bool { formerBoots.contains(boot) || disprovedBoots.contains(boot) }

    mutating func recordDial(_ socketAddress: Endpoint.SocketAddress, _ result: DialResult) {
        if dialResults[socketAddress] == nil, dialResults.count >= DirectoryLimits.dialResultsPerPeer {
            // Evicts the result with the smallest `evictionRank`: silent addresses first, then the oldest ones.
            if let least = dialResults.min(by: { $0.value.evictionRank < $1.value.evictionRank }) { dialResults[least.key] = nil }
        }
        dialResults[socketAddress] = result
        if case .answered = result { withdrawn.remove(socketAddress) }
    }

    /// Records that addresses did not answer. A result that shows which machine has the address is not overwritten.
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

    /// Whether the process with this boot nonce has answered at the address. A process does not change its port, so the address stays valid
    /// while the process runs.
    func hasAnswered(_ socketAddress: Endpoint.SocketAddress, _ start: BootNonce) -> Bool {
        guard case .answered(start, _)? = dialResults[socketAddress] else { return false }
        return true
    }

    /// Records that a Hello proved this boot nonce. The previous one is kept among the earlier ones.
    /// - Returns: whether `boot` is an earlier boot nonce. Then two machines have this identity, because a restarted daemon has a new
    ///   nonce.
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

    /// Drops outdated addresses after the process with this boot nonce answered at `endpoint`. A process listens on one port only, so
    /// addresses of an earlier process on another port are no longer valid.
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

    /// Saves an endpoint as the best one.
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
    /// Sort key for eviction: the kind of result, then its time. The smallest is evicted first, so answers are kept longest.
    fileprivate var evictionRank: (Int, ContinuousClock.Instant?) {
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

/// The state of one announced record.
struct DirectoryRecord: Sendable {
    enum Content: Sendable, Equatable {
        case unresolved
        case unresolvable(String)
        /// The announcement has no usable TXT, port or address. The text ends a sentence that begins "its announcement is not usable: ".
        case invalid(String)
        case claim(AnnouncedPeer)
        /// A usable announcement that is ignored, because too many announcements claim its UUID.
        case surplus(AnnouncedPeer)
    }

    /// The content of a usable announcement: the UUID that it claims, and the endpoint.
    struct AnnouncedPeer: Sendable, Equatable {
        var endpoint: Endpoint
        /// The reason why this announcement must not cause a dial of the endpoint; `nil` if it may.
        var refusal: DialPolicy.Refusal?
        var peer: PeerID
        var version: String?
        var boot: BootNonce?

        static func == (left: AnnouncedPeer, right: AnnouncedPeer) -> Bool {
            left.endpoint == right.endpoint && left.refusal == right.refusal && left.peer == right.peer && left.boot == right.boot
                && PeerTextComparison.areEqual(left.version, right.version)
        }
    }

    var interfaceName: String?
    var content = Content.unresolved
    /// Whether the last attempt to resolve the record failed.
    var isLost = false
    /// The time of the last change of the content.
    var changedAt: ContinuousClock.Instant?
    /// The position of this content among all contents that the directory has received. A newer content has a greater number.
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
    /// The planned time of the regular probe, kept while an extra probe is queued or in flight.
    var regularAt: ContinuousClock.Instant?
    /// The time of the last probe.
    var askedAt: ContinuousClock.Instant?
    /// Number of consecutive failed probes.
    var failures = 0
    var running: ProbeID?
    /// Whether to repeat the running probe immediately if it fails, for example because a new announcement arrived meanwhile.
    var again = false
    /// Token balance of the probes that announcements of the peer may cause.
    var allowance = DirectoryIntervals.announcedProbes
    var allowanceAt: ContinuousClock.Instant?

    /// Consumes a token. The balance may become negative, but has a lower bound, so that endless announcements delay the next probe by 20 s
    /// at most.
    mutating func spend() { allowance = max(allowance - 1, -DirectoryIntervals.announcedProbes) }

    /// Adds the tokens earned since the last call, and returns the time when a token is available.
    mutating func announcedInstant(now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        if let allowanceAt {
            let earned = (now - allowanceAt) / DirectoryIntervals.announcedProbe
            allowance = min(DirectoryIntervals.announcedProbes, allowance + earned)
        }
        allowanceAt = now
        return allowance >= 1 ? now : now + DirectoryIntervals.announcedProbe * (1 - allowance)
    }
}
