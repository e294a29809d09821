/// Distinguishes waking from sleep from other jumps of the wall clock, such as a manual change.
struct SleepWatch {
    /// Maximum difference in nanoseconds between two clocks that are read one after the other.
    private static let noise: Int64 = 500_000_000

    private var slept: Int64

    /// - Parameter slept: nanoseconds the machine has been suspended since boot.
    init(slept: Int64) { self.slept = slept }

    /// - Returns: whether the machine was suspended since the last call.
    mutating func hasWoken(slept now: Int64) -> Bool {
        guard now - slept > Self.noise else { return false }
        slept = now
        return true
    }
}
