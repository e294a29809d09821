/// Exponential back-off: the delay doubles with each consecutive failure, up to a maximum.
///
///     failures   1        2            3            …
///     delay      first    2 * first    4 * first    …    longest
public struct Backoff: Sendable {
    public let first: Duration
    public let longest: Duration

    /// - Parameters:
    ///   - first: the delay after the first failure, more than zero.
    ///   - longest: the maximum delay, at least `first`.
    public init(from first: Duration, to longest: Duration) {
        self.first = first
        self.longest = longest
    }

    /// Returns the delay after a number of consecutive failures.
    /// - Parameter failures: the number of failures. Values below 1 count as 1.
    public func pause(after failures: Int) -> Duration {
        var (pause, left) = (min(first, longest), failures)
        while left > 1, pause < longest {
            pause = min(longest, pause * 2)
            left -= 1
        }
        return pause
    }

    /// Returns a random delay between zero and `pause(after:)` ("full jitter"), in whole milliseconds. It is random so that nodes that
    /// failed at the same time do not retry at the same time.
    /// - Parameter shortest: minimum of the result, even if `pause(after:)` is shorter.
    public func jitteredPause(after failures: Int, shortest: Duration, using random: inout some RandomNumberGenerator) -> Duration {
        let milliseconds = Int64(pause(after: failures) / .milliseconds(1))
        return max(shortest, .milliseconds(Int64.random(in: 0...milliseconds, using: &random)))
    }
}
