/// Detects that the machine was suspended, by the growth of the total time of suspension. The wall clock is not used, because it also jumps
/// when the user sets it.
struct SuspensionDetector {
    /// Maximum difference in nanoseconds that reading two clocks one after the other can cause. A shorter suspension is ignored.
    private static let noise: Int64 = 500_000_000

    private var slept: Int64

    /// - Parameter slept: nanoseconds for which the machine was suspended since boot.
    init(slept: Int64) { self.slept = slept }

    /// - Parameter now: nanoseconds for which the machine was suspended since boot.
    /// - Returns: whether the machine was suspended since this method last returned true.
    mutating func hasWoken(slept now: Int64) -> Bool {
        guard now - slept > Self.noise else { return false }
        slept = now
        return true
    }
}
