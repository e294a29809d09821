/// Distinguishes waking from sleep from other jumps of the wall clock, such as somebody setting it.
struct SleepWatch {
    /// The nanoseconds by which two clocks may differ because they are read one after another.
    private static let noise: Int64 = 500_000_000

    private var slept: Int64

    /// - Parameter slept: the nanoseconds that the machine has slept since it was started.
    init(slept: Int64) { self.slept = slept }

    /// - Returns: whether the machine has slept since the last call.
    mutating func hasWoken(slept now: Int64) -> Bool {
        guard now - slept > Self.noise else { return false }
        slept = now
        return true
    }
}
