import HexlistModel

/// Exponential backoff with full jitter: after the n-th failure in a row a random time up to 2^n s, from 1 s to 5 min.
///
///     failures   1    2    3    4     …   9 and more
///     at most    2 s  4 s  8 s  16 s  …   300 s
struct Backoff: Sendable {
    static let shortest = Duration.seconds(1)
    static let longest = Duration.seconds(300)

    private(set) var failures = 0

    mutating func succeeded() { failures = 0 }

    mutating func failed(using random: inout some RandomNumberGenerator) -> Duration {
        failures = min(failures + 1, 32)
        let ceiling = min(Self.longest, .seconds(Int64(1) << Int64(min(failures, 9))))
        let seconds = ceiling.components.seconds
        return max(Self.shortest, .milliseconds(Int64.random(in: 0...(seconds * 1_000), using: &random)))
    }
}
