#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The monotonic clock and the wall clock. They are passed to all code that needs the time, so that tests can control it.
public struct Clocks: Sendable {
    private let monotonic: @Sendable () -> ContinuousClock.Instant
    private let wall: @Sendable () -> Int64

    /// - Parameter wall: milliseconds since 1970.
    public init(monotonic: @escaping @Sendable () -> ContinuousClock.Instant, wall: @escaping @Sendable () -> Int64) {
        self.monotonic = monotonic
        self.wall = wall
    }

    public static let system = Clocks(monotonic: { ContinuousClock.now }) {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The instant by the monotonic clock, which is not affected by changes of the wall clock.
    public var now: ContinuousClock.Instant { monotonic() }

    /// Milliseconds since 1970 by the wall clock.
    public var milliseconds: Int64 { wall() }
}
