/// A token bucket that holds one second's tokens, for the frames of a stranger and for handshakes. Time is passed in.
public struct TokenBucket: Sendable {
    private var perSecond: Double
    private var tokens: Double
    private var filledAt: ContinuousClock.Instant

    /// - Parameters:
    ///   - perSecond: the rate; less than 0.1 counts as 0.1, so that nobody waits for ever.
    ///   - first: the tokens at the beginning; at most a second's, or 1.
    public init(perSecond: Double, first: Double = .infinity, now: ContinuousClock.Instant) {
        self.perSecond = max(0.1, perSecond)
        tokens = min(first, max(1, self.perSecond))
        filledAt = now
    }

    /// Changes the rate from now on. Present tokens stay, up to a second's.
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

    /// Takes a token. The bucket may be overdrawn; the debt is paid by waiting.
    public mutating func take(now: ContinuousClock.Instant) {
        fill(now)
        tokens -= 1
    }

    public func hasToken(now: ContinuousClock.Instant) -> Bool { level(at: now) >= 1 }

    /// The instant at which there is one token again.
    public var nextToken: ContinuousClock.Instant {
        filledAt + .milliseconds(Int64((max(0, 1 - tokens) * 1_000 / perSecond).rounded(.up)))
    }
}
