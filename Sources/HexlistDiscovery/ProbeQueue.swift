import HexlistModel

/// Whom a probe is for.
enum ProbeTarget: Hashable, Sendable {
    /// All endpoints of a peer that has no session.
    case peer(PeerID)
    /// The endpoints that announce another start of a peer than the one that has a session; of the own identity too.
    case start(PeerID, BootNonce)
    /// The endpoints a trusted peer announces that has a session it dialled itself: whether it can be dialled there.
    case reach(PeerID)
    /// A configured address nobody is known at.
    case address(StaticAddress)
}

/// Decides which probe begins next, and when. At most `rate` a second lastingly; quiet seconds are saved up to `burst` for what
/// should not wait.
///
/// No class can starve another that matters: trusted peers get every second turn, those whose session was lost, newcomers and the
/// routine share the others, and what never proved anything takes what is left.
struct ProbeQueue: Sendable {
    enum Urgency: Int, CaseIterable, Sendable {
        /// A trusted peer: lost, back, restarted.
        case trusted
        /// A verified peer whose session was lost, or whose first check failed.
        case lost
        /// Announced, and not known yet.
        case newcomer
        /// Verified peers in turn, peers of the store, configured addresses.
        case routine
        /// What did not answer.
        case retry

        /// May use what was saved up.
        var hurries: Bool {
            switch self {
            case .trusted, .lost, .newcomer: true
            case .routine, .retry: false
            }
        }
    }

    private let rate: Double
    /// Permits at hand for anything: at most a second's worth, at least one.
    private var permits: Double
    private let permitsLimit: Double
    private var saved: Double
    private let savedLimit: Double
    private var refilledAt: ContinuousClock.Instant?

    private var lines: [Fifo<ProbeTarget>] = Urgency.allCases.map { _ in Fifo() }
    /// The line a target stands in. A place in a line this does not confirm is skipped.
    private var standing: [ProbeTarget: Urgency] = [:]
    private var turn = 0

    init(rate: Double, burst: Int) {
        self.rate = max(rate, 0.01)
        permitsLimit = min(max(1, rate), max(1, Double(burst)))
        savedLimit = max(0, Double(burst) - permitsLimit)
        permits = permitsLimit
        saved = savedLimit
    }

    var isEmpty: Bool { standing.isEmpty }
    func holds(_ target: ProbeTarget) -> Bool { standing[target] != nil }

    /// Puts a target in line, or moves it to a better one.
    mutating func enqueue(_ target: ProbeTarget, as urgency: Urgency) {
        if let present = standing[target], present.rawValue <= urgency.rawValue { return }
        standing[target] = urgency
        lines[urgency.rawValue].append(target)
        if lines[urgency.rawValue].count > 2 * standing.count + 256 { sweep(urgency) }
    }

    mutating func remove(_ target: ProbeTarget) { standing[target] = nil }

    /// The next target whose turn it is, with a permit for one probe; `nil` when none waits or none is permitted yet.
    mutating func next(now: ContinuousClock.Instant) -> ProbeTarget? {
        refill(now: now)
        for urgency in order() where canBegin(urgency) {
            while let target = lines[urgency.rawValue].popFirst() {
                guard standing[target] == urgency else { continue }
                standing[target] = nil
                if permits >= 1 { permits -= 1 } else { saved -= 1 }
                turn += 1
                return target
            }
        }
        return nil
    }

    /// Gives a permit back that was not used.
    mutating func refund() { permits += 1 }

    /// When `next` may give something, if something waits.
    func nextPermit(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard !standing.isEmpty else { return nil }
        let missing = max(0, 1 - permits)
        // A millisecond more, so that rounding leaves no sliver of a permit missing.
        return (refilledAt ?? now) + .seconds(missing / rate) + .milliseconds(1)
    }

    private func canBegin(_ urgency: Urgency) -> Bool { permits >= 1 || (urgency.hurries && saved >= 1) }

    private func order() -> [Urgency] {
        let shared: [Urgency] = [.lost, .newcomer, .routine]
        let first = turn / 2 % shared.count
        let rotated = shared[first...] + shared[..<first]
        return turn % 2 == 0 ? [.trusted] + rotated + [.retry] : rotated + [.trusted, .retry]
    }

    private mutating func refill(now: ContinuousClock.Instant) {
        defer { refilledAt = now }
        guard let refilledAt, now > refilledAt else { return }
        permits += (now - refilledAt) / .seconds(1) * rate
        if permits > permitsLimit {
            saved = min(savedLimit, saved + permits - permitsLimit)
            permits = permitsLimit
        }
    }

    private mutating func sweep(_ urgency: Urgency) {
        var seen: Set<ProbeTarget> = []
        lines[urgency.rawValue].keep { standing[$0] == urgency && seen.insert($0).inserted }
    }
}
