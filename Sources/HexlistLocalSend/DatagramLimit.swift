public import HexlistModel

/// A rate limit of datagrams, in total and for each source, so that a flood costs little and one host does not hide the others.
public struct DatagramLimit: Sendable {
    static let perSecond = 500
    static let perSource = 50

    private var second: ContinuousClock.Instant?
    private var total = 0
    private var counts: [IPAddress: Int] = [:]

    public init() {}

    /// Whether a datagram may be decoded.
    public mutating func take(from source: IPAddress, now: ContinuousClock.Instant) -> Bool {
        if second.map({ now - $0 >= .seconds(1) }) ?? true { (second, total, counts) = (now, 0, [:]) }
        guard total < Self.perSecond, counts[source, default: 0] < Self.perSource else { return false }
        total += 1
        counts[source, default: 0] += 1
        return true
    }
}
