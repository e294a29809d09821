import HexlistModel

/// What the directory holds about one peer UUID, whoever claims it.
struct DirectoryPeer: Sendable {
    enum Presence: Sendable, Equatable {
        /// Announced, proved by nobody.
        case unproven
        /// A Hello proved it; it has a session, or was there when last asked.
        case verified
        /// Proved once, in this run or an earlier one.
        case away(Absence)
    }

    /// Why a peer is away.
    enum Absence: Sendable, Equatable {
        case notSeenYet, saidShutdown, refused, noAnswer, blocked
        /// A stranger, and this machine hides.
        case hiding
        case failed(String)
    }

    /// What the last probe of an unproven peer, or the first failed check of a verified one, came to.
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

    /// What is remembered of one place something was dialled at for this peer.
    enum Mark: Sendable, Equatable {
        case answered(BootNonce, at: ContinuousClock.Instant)
        /// It proved another identity.
        case impostor(PeerID)
        /// It is this very machine.
        case own
        /// A probe that asked it, among others perhaps, got no answer.
        case silent(at: ContinuousClock.Instant)
    }

    let id: PeerID
    var presence = Presence.unproven
    /// As Hello or the store gave it.
    var name: String?
    var version: String?
    var trust = Trust.stranger
    /// The start a Hello proved last, and those proved before it.
    var boot: BootNonce?
    var formerBoots: [BootNonce] = []
    /// Live sessions by the start they proved.
    var sessions: [BootNonce: Int] = [:]
    /// One of its sessions said `shutdown` since the last one began.
    var saidShutdown = false
    /// Announcements that claim this UUID now.
    var records: Set<Record> = []
    /// The last announcement was withdrawn by the network (not lost with the backend).
    var wasWithdrawn = false
    /// `lastKnown` and `static` endpoints, the best first.
    var saved: [Endpoint] = []
    /// Where the session that began last was dialled, or for one that came in its source, which is shown only; `nil` once that one has
    /// ended, though an older one may live.
    var sessionEndpoint: Endpoint?
    /// Places, saved or marked, whose announcement was withdrawn or replaced, until they are announced or answer again.
    var withdrawn: Set<Endpoint.Place> = []
    var marks: [Endpoint.Place: Mark] = [:]
    /// Starts that were dialled because they are announced, and did not prove themselves.
    var disprovedBoots: [BootNonce] = []
    var failure: Failure?
    var lastSeen: ContinuousClock.Instant?
    /// Two machines prove this identity.
    var conflict: IdentityConflict?
    var forgetAt: ContinuousClock.Instant?
    /// Whether this peer asked to be paired with since the start, and its digits were shown.
    var hasAskedToPair = false

    init(id: PeerID) { self.id = id }

    var hasSession: Bool { !sessions.isEmpty }
    var isProven: Bool { presence != .unproven }
    var isAway: Bool {
        switch presence {
        case .unproven, .verified: false
        case .away: true
        }
    }
    /// The row of `hexlist peers` without `--all`.
    var isListed: Bool { presence == .verified && conflict == nil }
    /// Nobody has to ask for it but the routine.
    var isUnattended: Bool { presence == .verified && sessions.isEmpty }
    /// Trusted, and silent since it was here last.
    var isMissing: Bool { presence == .away(.noAnswer) && trust == .trusted && !hasSession && lastSeen != nil }
    var hasStaticEndpoint: Bool { saved.contains { $0.via == .static } }

    func isFormer(_ boot: BootNonce) -> Bool { formerBoots.contains(boot) || disprovedBoots.contains(boot) }

    mutating func mark(_ place: Endpoint.Place, _ mark: Mark) {
        if marks[place] == nil, marks.count >= DirectoryLimits.marksPerPeer {
            // What answered is worth more than what did not; of the same kind the oldest goes.
            if let least = marks.min(by: { $0.value.worth < $1.value.worth }) { marks[least.key] = nil }
        }
        marks[place] = mark
        if case .answered = mark { withdrawn.remove(place) }
    }

    /// Places that did not answer, where they are not known to have answered before.
    mutating func silent(_ endpoints: [Endpoint], at instant: ContinuousClock.Instant) {
        for endpoint in endpoints {
            switch marks[endpoint.place] {
            case .silent?, nil: mark(endpoint.place, .silent(at: instant))
            case .answered?, .impostor?, .own?: break
            }
        }
    }

    /// An announcement of this place is gone, or names another place now.
    mutating func withdraw(_ place: Endpoint.Place) {
        guard marks[place] != nil || saved.contains(where: { $0.place == place }) else { return }
        withdrawn.insert(place)
        if withdrawn.count > DirectoryLimits.marksPerPeer { withdrawn.removeFirst() }
    }

    func answered(_ place: Endpoint.Place) -> ContinuousClock.Instant? {
        guard case .answered(_, let instant)? = marks[place] else { return nil }
        return instant
    }

    /// A proof from `boot`. The start before it becomes a former one.
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

    /// A start listens on one port: what an earlier one answered at on another is over.
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

    /// Remembers where a session was dialled, as the best of the saved endpoints.
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
    /// Orders what is forgotten first.
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
        /// No usable TXT, port or address. The text follows "its announcement is not usable: ".
        case invalid(String)
        case claim(Claim)
        /// Usable, but too many announcements claim its UUID: it says nothing.
        case surplus(Claim)
    }

    /// What a usable announcement says.
    struct Claim: Sendable, Equatable {
        var endpoint: Endpoint
        /// Why its endpoint is not dialled on its word alone.
        var refusal: DialPolicy.Refusal?
        var peer: PeerID
        var version: String?
        var boot: BootNonce?
    }

    var interfaceName: String?
    var content = Content.unresolved
    /// Its resolver found nothing when it last looked.
    var isLost = false
    /// Rises with every new content: the newest is the greatest.
    var number: UInt64 = 0

    var claim: Claim? {
        switch content {
        case .claim(let claim): claim
        case .unresolved, .unresolvable, .invalid, .surplus: nil
        }
    }

    var surplus: Claim? { if case .surplus(let claim) = content { claim } else { nil } }
}

/// When a target is probed.
struct ProbeSchedule: Sendable {
    /// Its timer; `nil` where none runs (then it stands in line, is being probed, or waits for something to happen).
    var nextAt: ContinuousClock.Instant?
    var urgency = ProbeQueue.Urgency.retry
    /// When it would have been asked, where it is asked out of its turn.
    var turnAt: ContinuousClock.Instant?
    /// When it was asked last.
    var askedAt: ContinuousClock.Instant?
    /// In a row.
    var failures = 0
    var running: ProbeID?
    /// Something new was announced while it ran: once more at once.
    var again = false
    /// Probes its announcements may still cause at once.
    var allowance = DirectoryTimes.announcedProbes
    var allowanceAt: ContinuousClock.Instant?

    /// For one more probe. Whoever announces without end makes it wait some minutes, and not for ever.
    mutating func spend() { allowance = max(allowance - 1, -DirectoryTimes.announcedProbes) }

    /// When the allowance lets the next probe begin.
    mutating func announcedInstant(now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        if let allowanceAt {
            let earned = (now - allowanceAt) / DirectoryTimes.announcedProbe
            allowance = min(DirectoryTimes.announcedProbes, allowance + earned)
        }
        allowanceAt = now
        return allowance >= 1 ? now : now + DirectoryTimes.announcedProbe * (1 - allowance)
    }
}
