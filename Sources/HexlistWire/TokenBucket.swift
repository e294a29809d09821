/// A token bucket that holds the tokens of one second. Limits the rate of strangers' frames and of TLS handshakes. Callers pass in the
/// time.
public struct TokenBucket: Sendable {
    private var perSecond: Double
    private var tokens: Double
    private var filledAt: ContinuousClock.Instant

    /// - Parameters:
    ///   - perSecond: the rate. Rates below 0.1 are raised to 0.1, so that a token always becomes available.
    ///   - first: the number of tokens at the beginning, at most those of one second, or 1 if that is more.
    public init(perSecond: Double, first: Double = .infinity, now: ContinuousClock.Instant) {
        self.perSecond = max(0.1, perSecond)
        tokens = min(first, max(1, self.perSecond))
        filledAt = now
    }

    /// Changes the rate. Tokens that were available stay available, up to those of one second.
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

    /// Consumes a token. The number of tokens may become negative.
    public mutating func take(now: ContinuousClock.Instant) {
        fill(now)
        tokens -= 1
    }

    public func hasToken(now: ContinuousClock.Instant) -> Bool { level(at: now) >= 1 }

    /// The time at which a token is available.
    public var nextToken: ContinuousClock.Instant {
        filledAt + .milliseconds(Int64((max(0, 1 - tokens) * 1_000 / perSecond).rounded(.up)))
    }
}
