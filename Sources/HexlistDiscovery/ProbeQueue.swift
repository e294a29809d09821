import DequeModule
import HexlistModel

/// The purpose of a probe.
enum ProbeTarget: Hashable, Sendable {
    /// All endpoints of a peer that has no session.
    case peer(PeerID)
    /// The endpoints that announce another start of a peer (or of the own identity) than the one with the session.
    case start(PeerID, BootNonce)
    /// The announced endpoints of a trusted peer whose session it dialled itself, to find out whether it can be dialled there.
    case reach(PeerID)
    /// A configured address at which no peer is known.
    case address(StaticAddress)
}

/// Decides which probe begins next, and when: at most `rate` a second on average; permits of quiet seconds are saved, up to `burst`, for
/// urgent probes.
///
/// No important class can be starved: trusted peers get every second turn; peers with a lost session, newcomers and the routine share the
/// other turns; retries take what is left.
struct ProbeQueue: Sendable {
    enum Urgency: Int, CaseIterable, Sendable {
        /// A trusted peer: its session was lost, or it came back or restarted.
        case trusted
        /// A verified peer whose session was lost, or whose first check failed.
        case lost
        /// Announced, but not known yet.
        case newcomer
        /// Verified peers in turn, peers of the store, configured addresses.
        case routine
        /// A target that did not answer.
        case retry

        /// Whether saved permits may be used.
        var hurries: Bool {
            switch self {
            case .trusted, .lost, .newcomer: true
            case .routine, .retry: false
            }
        }
    }

    private let rate: Double
    /// The permits available to every class: at most one second's worth, at least one.
    private var permits: Double
    private let permitsLimit: Double
    private var saved: Double
    private let savedLimit: Double
    private var refilledAt: ContinuousClock.Instant?

    private var lines: [Deque<ProbeTarget>] = Urgency.allCases.map { _ in [] }
    /// The line in which a target waits. Entries in other lines are skipped.
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

    /// Queues a target, or moves it to a more urgent line.
    mutating func enqueue(_ target: ProbeTarget, as urgency: Urgency) {
        if let present = standing[target], present.rawValue <= urgency.rawValue { return }
        standing[target] = urgency
        lines[urgency.rawValue].append(target)
        if lines[urgency.rawValue].count > 2 * standing.count + 256 { sweep(urgency) }
    }

    mutating func remove(_ target: ProbeTarget) { standing[target] = nil }

    /// Takes the target whose turn it is, with a permit for one probe; `nil` if none waits or none is permitted yet.
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

    /// Returns a permit that was not used.
    mutating func refund() { permits += 1 }

    /// The instant from which `next` may return a target; `nil` if none waits.
    func nextPermit(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard !standing.isEmpty else { return nil }
        let missing = max(0, 1 - permits)
        // A millisecond is added, so that rounding does not leave a fraction of a permit missing.
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
        lines[urgency.rawValue].removeAll { standing[$0] != urgency || !seen.insert($0).inserted }
    }
}
