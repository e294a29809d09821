/// Wishes that are not granted again for a while, because they failed repeatedly by their source's own fault.
public struct FailureBackoff<Key: Hashable & Sendable>: Sendable {
    public typealias Instant = ContinuousClock.Instant

    /// The end of each pause.
    private var ends: [Key: Instant] = [:]

    public init() {}

    /// The most keys that are remembered.
    public static var most: Int { 1_000 }
    public static var length: Duration { .seconds(180) }

    public var count: Int { ends.count }

    /// The end of a key's pause; `nil` if it has none.
    public func end(of key: Key, now: Instant) -> Instant? { ends[key].flatMap { $0 > now ? $0 : nil } }

    /// Begins a pause; of too many the one that ends first is forgotten.
    /// - Returns: its end.
    @discardableResult
    public mutating func begin(_ key: Key, now: Instant) -> Instant {
        ends = ends.filter { $0.value > now }
        if ends.count >= Self.most, let first = ends.min(by: { $0.value < $1.value }) { ends[first.key] = nil }
        let end = now + Self.length
        ends[key] = end
        return end
    }

    public mutating func lift(_ key: Key) { ends[key] = nil }
}
