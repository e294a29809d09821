import DequeModule
import HexlistModel

enum ProbeTarget: Hashable, Sendable {
    /// All endpoints of a peer without a session.
    case peer(PeerID)
    /// The endpoints announced with this UUID and boot nonce. The nonce differs from that of the peer's session or, for this node's UUID,
    /// of this process; the probe finds out whether the other process is running.
    case start(PeerID, BootNonce)
    /// The announced endpoints of a trusted peer that dialled its session, to check whether it can be dialled.
    case reach(PeerID)
    /// A configured address without a known peer.
    case address(StaticAddress)
}

/// The priority queue and rate limiter of probes: on average at most `rate` per second. Unused tokens are saved, up to `burst`, for urgent
/// probes.
///
/// No urgency except `retry` is starved: every second slot is for `trusted`; `lost`, `newcomer` and `routine` share the others by round
/// robin; `retry` uses the slots that are left.
struct ProbeQueue: Sendable {
    enum Urgency: Int, CaseIterable, Sendable {
        /// A trusted peer that lost its session, came back, or restarted.
        case trusted
        /// A verified peer that lost its session, or whose first check failed.
        case lost
        /// A peer that was announced but is not proved yet.
        case newcomer
        /// Periodic probes: verified peers, peers of the store, configured addresses.
        case routine
        /// A target that did not answer.
        case retry

        /// Whether saved tokens may be used.
        var mayUseBurst: Bool {
            switch self {
            case .trusted, .lost, .newcomer: true
            case .routine, .retry: false
            }
        }
    }

    private let rate: Double
    /// Tokens available for every urgency. The balance is limited to the tokens of one second, but not to less than one token.
    private var tokens: Double
    private let tokensLimit: Double
    /// Unused tokens that only urgent probes may use (`Urgency.mayUseBurst`).
    private var savedTokens: Double
    private let savedTokensLimit: Double
    private var refilledAt: ContinuousClock.Instant?

    private var queues: [Deque<ProbeTarget>] = Urgency.allCases.map { _ in [] }
    /// The urgency of each waiting target, and thus its queue. An entry of another queue is stale.
    private var queuedUrgency: [ProbeTarget: Urgency] = [:]
    private var slot = 0

    init(rate: Double, burst: Int) {
        self.rate = max(rate, 0.01)
        tokensLimit = min(max(1, rate), max(1, Double(burst)))
        savedTokensLimit = max(0, Double(burst) - tokensLimit)
        tokens = tokensLimit
        savedTokens = savedTokensLimit
    }

    var isEmpty: Bool { queuedUrgency.isEmpty }
    func contains(_ target: ProbeTarget) -> Bool { queuedUrgency[target] != nil }

    /// Queues a target, or moves it to a more urgent queue.
    mutating func enqueue(_ target: ProbeTarget, as urgency: Urgency) {
        if let present = queuedUrgency[target], present.rawValue <= urgency.rawValue { return }
        queuedUrgency[target] = urgency
        queues[urgency.rawValue].append(target)
        if queues[urgency.rawValue].count > 2 * queuedUrgency.count + 256 { compact(urgency) }
    }

    mutating func remove(_ target: ProbeTarget) { queuedUrgency[target] = nil }

    /// Removes and returns the next target, and consumes a token; `nil` if none waits or no token is available.
    mutating func next(now: ContinuousClock.Instant) -> ProbeTarget? {
        refill(now: now)
        for urgency in order() where hasToken(urgency) {
            while let target = queues[urgency.rawValue].popFirst() {
                guard queuedUrgency[target] == urgency else { continue }
                queuedUrgency[target] = nil
                if tokens >= 1 { tokens -= 1 } else { savedTokens -= 1 }
                slot += 1
                return target
            }
        }
        return nil
    }

    /// Returns an unused token.
    mutating func refund() { tokens += 1 }

    /// The earliest time at which `next` may return a target; `nil` if none waits.
    func nextTokenTime(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard !queuedUrgency.isEmpty else { return nil }
        let missing = max(0, 1 - tokens)
        // Adds a millisecond so that rounding does not leave a fraction of a token missing.
        return (refilledAt ?? now) + .seconds(missing / rate) + .milliseconds(1)
    }

    private func hasToken(_ urgency: Urgency) -> Bool { tokens >= 1 || (urgency.mayUseBurst && savedTokens >= 1) }

    private func order() -> [Urgency] {
        let shared: [Urgency] = [.lost, .newcomer, .routine]
        let first = slot / 2 % shared.count
        let rotated = shared[first...] + shared[..<first]
        return slot % 2 == 0 ? [.trusted] + rotated + [.retry] : rotated + [.trusted, .retry]
    }

    private mutating func refill(now: ContinuousClock.Instant) {
        defer { refilledAt = now }
        guard let refilledAt, now > refilledAt else { return }
        tokens += (now - refilledAt) / .seconds(1) * rate
        if tokens > tokensLimit {
            savedTokens = min(savedTokensLimit, savedTokens + tokens - tokensLimit)
            tokens = tokensLimit
        }
    }

    private mutating func compact(_ urgency: Urgency) {
        var seen: Set<ProbeTarget> = []
        queues[urgency.rawValue].removeAll { queuedUrgency[$0] != urgency || !seen.insert($0).inserted }
    }
}
