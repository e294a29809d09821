/// Limits the rate of dials that a peer requests in order to fetch files.
struct DialRequestLimit {
    /// Maximum number of dials within `window`.
    static let maximumDials = 16
    static let window = Duration.seconds(10)

    private(set) var inProgress = 0
    private var count = 0
    private var windowEnds: ContinuousClock.Instant?
    /// The end of the pause after a failed dial. No dial is started before it.
    private var pauseEnds: ContinuousClock.Instant?

    /// Requests the start of a dial.
    /// - Returns: whether the dial may be started. If so, the caller calls `ended` after it.
    mutating func begin(now: ContinuousClock.Instant) -> Bool {
        if let pauseEnds, now < pauseEnds { return false }
        if windowEnds.map({ now >= $0 }) ?? true { (count, windowEnds) = (0, now + Self.window) }
        guard count < Self.maximumDials else { return false }
        count += 1
        inProgress += 1
        return true
    }

    mutating func ended(_ reached: Bool, now: ContinuousClock.Instant) {
        inProgress -= 1
        pauseEnds = reached ? nil : now + Self.window
    }

    /// Whether no dial is in progress and no limit applies, so that the object can be removed.
    func isOver(now: ContinuousClock.Instant) -> Bool {
        inProgress == 0 && (windowEnds ?? now) <= now && (pauseEnds ?? now) <= now
    }
}
