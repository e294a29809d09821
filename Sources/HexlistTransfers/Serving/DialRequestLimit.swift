/// A rate limit on the dials that a peer requests to fetch files, so that it causes no more dials than it would make itself.
struct DialRequestLimit {
    /// Dials in one `window`.
    static let most = 16
    static let window = Duration.seconds(10)

    private(set) var underWay = 0
    private var count = 0
    private var windowEnds: ContinuousClock.Instant?
    /// The end of the rest after a dial that led nowhere.
    private var restEnds: ContinuousClock.Instant?

    /// - Returns: whether one more may begin; each that does has to be `ended`.
    mutating func begin(now: ContinuousClock.Instant) -> Bool {
        if let restEnds, now < restEnds { return false }
        if windowEnds.map({ now >= $0 }) ?? true { (count, windowEnds) = (0, now + Self.window) }
        guard count < Self.most else { return false }
        count += 1
        underWay += 1
        return true
    }

    mutating func ended(_ reached: Bool, now: ContinuousClock.Instant) {
        underWay -= 1
        restEnds = reached ? nil : now + Self.window
    }

    /// Whether the state can be dropped.
    func isOver(now: ContinuousClock.Instant) -> Bool {
        underWay == 0 && (windowEnds ?? now) <= now && (restEnds ?? now) <= now
    }
}
