/// Exponential backoff: the pause after the n-th failure in a row, twice the one before it, up to a longest one.
///
///     failures   1        2            3            …
///     pause      first    2 * first    4 * first    …    longest
public struct Backoff: Sendable {
    public let first: Duration
    public let longest: Duration

    /// - Parameters:
    ///   - first: more than zero.
    ///   - longest: `first` or more.
    public init(from first: Duration, to longest: Duration) {
        self.first = first
        self.longest = longest
    }

    /// The pause after a number of failures.
    /// - Parameter failures: in a row, 1 or more, without an upper bound; less counts as 1.
    public func pause(after failures: Int) -> Duration {
        var (pause, left) = (min(first, longest), failures)
        while left > 1, pause < longest {
            pause = min(longest, pause * 2)
            left -= 1
        }
        return pause
    }

    /// A random time between zero and `pause(after:)`, in whole milliseconds ("full jitter"): nodes that failed together do not all retry
    /// at once.
    /// - Parameter shortest: the least that is returned, even where the pause itself is shorter.
    public func jitteredPause(after failures: Int, shortest: Duration, using random: inout some RandomNumberGenerator) -> Duration {
        let milliseconds = Int64(pause(after: failures) / .milliseconds(1))
        return max(shortest, .milliseconds(Int64.random(in: 0...milliseconds, using: &random)))
    }
}
