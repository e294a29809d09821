/// Suspends requests with a key for a fixed time after repeated failures of their source.
public struct FailureBackoff<Key: Hashable & Sendable>: Sendable {
    public typealias Instant = ContinuousClock.Instant

    /// The end of each suspension.
    private var ends: [Key: Instant] = [:]

    public init() {}

    /// Maximum number of keys.
    public static var most: Int { 1_000 }
    public static var length: Duration { .seconds(180) }

    public var count: Int { ends.count }

    /// The end of a key's suspension; `nil` if it is not suspended.
    public func end(of key: Key, now: Instant) -> Instant? { ends[key].flatMap { $0 > now ? $0 : nil } }

    /// Suspends a key. If there are too many keys, the one that ends first is dropped.
    /// - Returns: the end of the suspension.
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
