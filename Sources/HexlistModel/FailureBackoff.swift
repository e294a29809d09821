/// Suspends all requests with the same key for a fixed time, after the source of the requested data failed repeatedly.
public struct FailureBackoff<Key: Hashable & Sendable>: Sendable {
    public typealias Instant = ContinuousClock.Instant

    /// The time at which the suspension of each key ends.
    private var ends: [Key: Instant] = [:]

    public init() {}

    /// Maximum number of suspended keys.
    public static var maximumKeys: Int { 1_000 }
    public static var duration: Duration { .seconds(180) }

    public var count: Int { ends.count }

    /// Returns the time at which a key's suspension ends; `nil` if the key is not suspended.
    public func end(of key: Key, now: Instant) -> Instant? { ends[key].flatMap { $0 > now ? $0 : nil } }

    /// Suspends a key. If the maximum number of keys is reached, the suspension that would end first is dropped.
    /// - Returns: the time at which the suspension ends.
    @discardableResult
    public mutating func begin(_ key: Key, now: Instant) -> Instant {
        ends = ends.filter { $0.value > now }
        if ends.count >= Self.maximumKeys, let first = ends.min(by: { $0.value < $1.value }) { ends[first.key] = nil }
        let end = now + Self.duration
        ends[key] = end
        return end
    }

    public mutating func lift(_ key: Key) { ends[key] = nil }
}
