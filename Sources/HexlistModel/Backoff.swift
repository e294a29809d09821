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

    /// - Parameter failures: in a row, from 1 up, however many; less counts as 1.
    public func pause(after failures: Int) -> Duration {
        var (pause, left) = (min(first, longest), failures)
        while left > 1, pause < longest {
            pause = min(longest, pause * 2)
            left -= 1
        }
        return pause
    }

    /// `pause(after:)` with full jitter, so that many who failed together do not come back together: a random time up to that pause, in whole
    /// milliseconds.
    /// - Parameter shortest: what a shorter time is raised to, also where it is longer than the pause.
    public func jitteredPause(after failures: Int, shortest: Duration, using random: inout some RandomNumberGenerator) -> Duration {
        let milliseconds = Int64(pause(after: failures) / .milliseconds(1))
        return max(shortest, .milliseconds(Int64.random(in: 0...milliseconds, using: &random)))
    }
}
