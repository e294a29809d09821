/// So much a second, and a second's worth at once: the frames of a stranger, the handshakes of all of them. Time is passed in.
public struct TokenBucket: Sendable {
    private var perSecond: Double
    private var tokens: Double
    private var filledAt: ContinuousClock.Instant

    /// - Parameters:
    ///   - perSecond: under 0.1 counts as 0.1, so that nobody waits for ever.
    ///   - first: what there is at the beginning; no more than a second's worth, or 1.
    public init(perSecond: Double, first: Double = .infinity, now: ContinuousClock.Instant) {
        self.perSecond = max(0.1, perSecond)
        tokens = min(first, max(1, self.perSecond))
        filledAt = now
    }

    /// From now on; what there is stays, up to a second's worth.
    public mutating func setRate(_ perSecond: Double, now: ContinuousClock.Instant) {
        fill(now)
        self.perSecond = max(0.1, perSecond)
        tokens = min(tokens, max(1, self.perSecond))
    }

    private func level(at now: ContinuousClock.Instant) -> Double {
        let elapsed = max(.zero, now - filledAt)
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        return min(max(1, perSecond), tokens + seconds * perSecond)
    }

    private mutating func fill(_ now: ContinuousClock.Instant) {
        tokens = level(at: now)
        filledAt = max(filledAt, now)
    }

    /// It may be overdrawn; the debt is paid by waiting.
    public mutating func take(now: ContinuousClock.Instant) {
        fill(now)
        tokens -= 1
    }

    public func hasToken(now: ContinuousClock.Instant) -> Bool { level(at: now) >= 1 }

    /// When there is one token again.
    public var nextToken: ContinuousClock.Instant {
        filledAt + .milliseconds(Int64((max(0, 1 - tokens) * 1_000 / perSecond).rounded(.up)))
    }
}
