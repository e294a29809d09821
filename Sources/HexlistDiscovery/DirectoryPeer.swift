import HexlistModel

/// State of one peer UUID in the directory, shared by all keys that claim it. Announcements, probes and sessions each set properties of
/// their own, so any combination of values occurs.
struct DirectoryPeer: Sendable {
    enum Presence: Sendable, Equatable {
        /// Announced, but proved by no Hello.
        case unproven
        /// Proved by a Hello; has a session, or answered when last asked.
        case verified
        /// Proved once, in this run or an earlier one, but not here now.
        case away(Absence)
    }

    /// The reason why a peer is away.
    enum Absence: Sendable, Equatable {
        case notSeenYet, saidShutdown, refused, noAnswer, blocked
        /// A stranger while this machine hides.
        case hiding
        case failed(String)
    }

    /// The result of the last probe of an unproven peer, or of the first failed check of a verified one.
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

    /// The result of dialling one place for this peer.
    enum Mark: Sendable, Equatable {
        case answered(BootNonce, at: ContinuousClock.Instant)
        /// The place proved another identity.
        case impostor(PeerID)
        /// The place is this very machine.
        case own
        /// The place, perhaps among others, did not answer a probe.
        case silent(at: ContinuousClock.Instant)
    }

    let id: PeerID
    var presence = Presence.unproven
    /// The name from the last Hello, or from the store.
    var name: String?
    var version: String?
    var trust = Trust.stranger
    /// The start that a Hello proved last, and the starts proved before it.
    var boot: BootNonce?
    var formerBoots: [BootNonce] = []
    /// The number of live sessions of each start.
    var sessions: [BootNonce: Int] = [:]
    /// Whether one of its sessions said `shutdown` since the last session began.
    var saidShutdown = false
    /// The announcements that claim this UUID now.
    var records: Set<Record> = []
    /// Whether the network withdrew the last announcement (it was not lost with the backend).
    var wasWithdrawn = false
    /// The `lastKnown` and `static` endpoints, the best first.
    var saved: [Endpoint] = []
    /// The endpoint at which the newest session was dialled. For an inbound session, its source, which is shown only. `nil` once that
    /// session has ended, even if an older one lives.
    var sessionEndpoint: Endpoint?
    /// Places, saved or marked, whose announcement was withdrawn or replaced, until they are announced or answer again.
    var withdrawn: Set<Endpoint.Place> = []
    var marks: [Endpoint.Place: Mark] = [:]
    /// Announced starts that were dialled and did not prove themselves.
    var disprovedBoots: [BootNonce] = []
    var failure: Failure?
    var lastSeen: ContinuousClock.Instant?
    /// The state of a conflict while two machines prove this identity; else `nil`.
    var conflict: IdentityConflict?
    var forgetAt: ContinuousClock.Instant?
    /// Whether the peer, or the user, asked for a pairing since this node started. A peer's request counts once its digits were shown.
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
    /// Whether `hexlist peers` lists the peer without `--all`.
    var isListed: Bool { presence == .verified && conflict == nil }
    /// Whether only the routine asks for the peer: it is verified and has no session.
    var isUnattended: Bool { presence == .verified && sessions.isEmpty }
    /// Whether the peer is trusted, was here before, and has fallen silent.
    var isMissing: Bool { presence == .away(.noAnswer) && trust == .trusted && !hasSession && lastSeen != nil }
    var hasStaticEndpoint: Bool { saved.contains { $0.via == .static } }

    func isFormer(_ boot: BootNonce) -> Bool { formerBoots.contains(boot) || disprovedBoots.contains(boot) }

    mutating func mark(_ place: Endpoint.Place, _ mark: Mark) {
        if marks[place] == nil, marks.count >= DirectoryLimits.marksPerPeer {
            // An answer is worth more than a failure to answer; of equal worth, the oldest mark is removed.
            if let least = marks.min(by: { $0.value.worth < $1.value.worth }) { marks[least.key] = nil }
        }
        marks[place] = mark
        if case .answered = mark { withdrawn.remove(place) }
    }

    /// Marks places that did not answer as silent, unless they are known to have answered before.
    mutating func silent(_ endpoints: [Endpoint], at instant: ContinuousClock.Instant) {
        for endpoint in endpoints {
            switch marks[endpoint.place] {
            case .silent?, nil: mark(endpoint.place, .silent(at: instant))
            case .answered?, .impostor?, .own?: break
            }
        }
    }

    /// Notes that an announcement of this place is gone or names another place now.
    mutating func withdraw(_ place: Endpoint.Place) {
        guard marks[place] != nil || saved.contains(where: { $0.place == place }) else { return }
        withdrawn.insert(place)
        if withdrawn.count > DirectoryLimits.marksPerPeer { withdrawn.removeFirst() }
    }

    func answered(_ place: Endpoint.Place) -> ContinuousClock.Instant? {
        guard case .answered(_, let instant)? = marks[place] else { return nil }
        return instant
    }

    /// Whether this very start answered at a place, so that the place is known to be right while the start lives.
    func hasAnswered(_ place: Endpoint.Place, _ start: BootNonce) -> Bool {
        guard case .answered(start, _)? = marks[place] else { return false }
        return true
    }

    /// Records a proof by `boot`; the start before it becomes a former one.
    /// - Returns: whether a former start proved itself again, which only a second live machine can do.
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

    /// Drops places where an earlier start answered on another port: a start listens on one port only.
    mutating func leaveFormerPorts(_ endpoint: Endpoint, _ boot: BootNonce) {
        func isOver(_ place: Endpoint.Place) -> Bool {
            guard place.port != endpoint.port else { return false }
            switch marks[place] {
            case .answered(let former, _)?: return former != boot
            case .silent?, nil: return place.host == endpoint.host
            case .impostor?, .own?: return false
            }
        }
        saved.removeAll { $0.via != .static && isOver($0.place) }
        for place in Array(marks.keys) where isOver(place) && !saved.contains(where: { $0.place == place }) { marks[place] = nil }
    }

    /// Saves the endpoint of a dialled session as the best one.
    mutating func save(_ endpoint: Endpoint) {
        let isStatic = saved.contains { $0.place == endpoint.place && $0.via == .static }
        saved.removeAll { $0.place == endpoint.place }
        var endpoint = endpoint
        endpoint.via = isStatic || endpoint.via == .static ? .static : .lastKnown
        saved.insert(endpoint, at: 0)
        while saved.count > DirectoryLimits.endpointsPerProbe {
            guard let last = saved.lastIndex(where: { $0.via != .static }) ?? saved.indices.last else { return }
            saved.remove(at: last)
        }
    }
}

extension DirectoryPeer.Mark {
    /// The order in which marks are forgotten, the least first.
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
        case claim(Claim)
        /// Usable, but beyond the number of announcements that may claim its UUID; ignored.
        case surplus(Claim)
    }

    /// The content of a usable announcement.
    struct Claim: Sendable, Equatable {
        var endpoint: Endpoint
        /// The reason why the endpoint is not dialled because of the announcement alone; `nil` if it is.
        var refusal: DialPolicy.Refusal?
        var peer: PeerID
        var version: String?
        var boot: BootNonce?

        static func == (left: Claim, right: Claim) -> Bool {
            left.endpoint == right.endpoint && left.refusal == right.refusal && left.peer == right.peer && left.boot == right.boot
                && PeerText.areEqual(left.version, right.version)
        }
    }

    var interfaceName: String?
    var content = Content.unresolved
    /// Whether the resolver found nothing when it last looked.
    var isLost = false
    /// The instant of the latest change of the content.
    var changedAt: ContinuousClock.Instant?
    /// A number that rises with every new content: the newest has the greatest.
    var number: UInt64 = 0

    var claim: Claim? {
        switch content {
        case .claim(let claim): claim
        case .unresolved, .unresolvable, .invalid, .surplus: nil
        }
    }

    var surplus: Claim? { if case .surplus(let claim) = content { claim } else { nil } }
}

/// The probing schedule of one target.
struct ProbeSchedule: Sendable {
    /// The instant of the next probe; `nil` while the target waits in the queue, is being probed, or waits for an event.
    var nextAt: ContinuousClock.Instant?
    var urgency = ProbeQueue.Urgency.retry
    /// The instant of the target's regular turn while it is asked out of turn.
    var turnAt: ContinuousClock.Instant?
    /// The instant at which the target was asked last.
    var askedAt: ContinuousClock.Instant?
    /// The number of failures in a row.
    var failures = 0
    var running: ProbeID?
    /// Whether something new was announced during the running probe, so that another one follows at once.
    var again = false
    /// The number of probes that announcements of the peer may still cause at once.
    var allowance = DirectoryTimes.announcedProbes
    var allowanceAt: ContinuousClock.Instant?

    /// Takes one probe from the allowance. Endless announcements delay the next probe by minutes at most, not for ever.
    mutating func spend() { allowance = max(allowance - 1, -DirectoryTimes.announcedProbes) }

    /// The instant at which the allowance permits the next probe.
    mutating func announcedInstant(now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        if let allowanceAt {
            let earned = (now - allowanceAt) / DirectoryTimes.announcedProbe
            allowance = min(DirectoryTimes.announcedProbes, allowance + earned)
        }
        allowanceAt = now
        return allowance >= 1 ? now : now + DirectoryTimes.announcedProbe * (1 - allowance)
    }
}
