public import HexlistModel

/// A rate limit for datagrams or requests, in total and for each source address, so that a flood costs little and one host cannot use up
/// the limit of the others. The counts restart each second.
public struct SourceRateLimit: Sendable {
    /// Maximum number per second: in total, and from one source.
    public let perSecond: Int
    public let perSource: Int

    private var second: ContinuousClock.Instant?
    private var total = 0
    private var counts: [IPAddress: Int] = [:]

    public init(perSecond: Int, perSource: Int) {
        self.perSecond = perSecond
        self.perSource = perSource
    }

    /// Counts a datagram or request.
    /// - Returns: whether it is within the limit.
    public mutating func take(from source: IPAddress, now: ContinuousClock.Instant) -> Bool {
        if second.map({ now - $0 >= .seconds(1) }) ?? true { (second, total, counts) = (now, 0, [:]) }
        guard total < perSecond, counts[source, default: 0] < perSource else { return false }
        total += 1
        counts[source, default: 0] += 1
        return true
    }
}

extension SourceRateLimit {
    /// The limit for datagrams that are decoded.
    public static let datagrams = SourceRateLimit(perSecond: 500, perSource: 50)
    /// The limit for requests of devices that are not trusted and have no session.
    public static let requestsOfStrangers = SourceRateLimit(perSecond: 200, perSource: 50)
}
