/// A hybrid logical clock. Its times are milliseconds since 1970, shifted left by 16 bits, plus a counter. A time is greater than every
/// time that was read or observed before, so a change made after seeing another change wins over it, even if the machine's clock is wrong.
public struct HybridClock: Sendable, Equatable {
    /// The greatest time that was read or observed; 0 for none. Stored with the rows.
    public private(set) var last: Int64

    /// The greatest time that is accepted from a peer, in the year 5314. The range above it suffices for all later times of this clock.
    public static let maximumTime: Int64 = 3 << 61 - 1

    public init(last: Int64 = 0) { self.last = last }

    /// Returns the next time.
    /// - Parameter now: milliseconds since 1970.
    public mutating func next(now: Int64) -> Int64 {
        last = max(Self.time(milliseconds: now), last + 1)
        return last
    }

    /// Advances the clock to a time of another replica.
    public mutating func observe(_ time: Int64) { last = max(last, min(time, Self.maximumTime)) }

    /// The first time of a millisecond, between 0 and `maximumTime`.
    public static func time(milliseconds: Int64) -> Int64 { min(max(milliseconds, 0), maximumTime >> 16) << 16 }

    /// The last time of a millisecond, between 0 and `maximumTime`.
    public static func latest(milliseconds: Int64) -> Int64 { time(milliseconds: milliseconds) | 0xFFFF }

    public static func milliseconds(of time: Int64) -> Int64 { time >> 16 }
    public static func counter(of time: Int64) -> Int64 { time & 0xFFFF }
}
