/// Tells waking from sleep from other jumps of the wall clock, such as somebody setting it.
struct SleepWatch {
    /// Reading two clocks one after the other makes them differ a little each time.
    private static let noise: Int64 = 500_000_000

    private var slept: Int64

    /// - Parameter slept: nanoseconds the machine has slept since it was started.
    init(slept: Int64) { self.slept = slept }

    /// - Returns: whether it slept since this was last asked.
    mutating func hasWoken(slept now: Int64) -> Bool {
        guard now - slept > Self.noise else { return false }
        slept = now
        return true
    }
}
