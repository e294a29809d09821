/// The position of a node among the contents of its hex: bytes, compared byte by byte. A key consists of a number of 48 bits, a fraction,
/// and 2 random bytes, so that two replicas do not choose the same key.
///
/// The number of a node that is added at an end is the time in milliseconds, so that nodes added by several replicas are in the order of
/// their times. In a list with the newest node first, it is the complement of the time (`newestFirst`).
public struct OrderKey: Hashable, Comparable, Sendable {
    /// 1 to `maximumBytes` bytes. A key that a faulty replica chose may have any values.
    public let bytes: [UInt8]

    public static let maximumBytes = 128
    private static let numberBytes = 6
    private static let greatestNumber: Int64 = 1 << 48 - 1

    public init(bytes: [UInt8]) { self.bytes = bytes }

    public static func < (left: OrderKey, right: OrderKey) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }

    /// The number for a time in a list with the newest node first.
    public static func newestFirst(time: Int64) -> Int64 { greatestNumber - min(max(time, 0), greatestNumber) }

    /// Returns the key of a node in an empty hex.
    public static func first(number: Int64, using generator: inout some RandomNumberGenerator) -> OrderKey {
        let number = min(max(number, 0), greatestNumber)
        let bytes = (1...numberBytes).map { UInt8(truncatingIfNeeded: number >> Int64(8 * (numberBytes - $0))) }
        return OrderKey(bytes: bytes + randomBytes(using: &generator))
    }

    /// Returns a key after the last one of a hex: at the number, or directly after the last key if that is greater.
    public static func after(_ last: OrderKey, number: Int64, using generator: inout some RandomNumberGenerator) -> OrderKey? {
        guard last.number < greatestNumber else { return between(last, nil, isNearHigh: false, using: &generator) }
        return first(number: max(last.number + 1, number), using: &generator)
    }

    /// Returns a key before the first one of a hex: at the number, or directly before the first key if that is smaller.
    public static func before(_ first: OrderKey, number: Int64, using generator: inout some RandomNumberGenerator) -> OrderKey? {
        guard first.number > 0 else { return between(nil, first, isNearHigh: true, using: &generator) }
        return self.first(number: min(first.number - 1, number), using: &generator)
    }

    /// Returns a key between two others. It is adjacent to one of them: if nodes are inserted one after the other into one gap, each next
    /// to the one before, a key grows by a byte per 250 nodes.
    /// - Parameters:
    ///   - low: the key before; `nil` for none.
    ///   - high: the key after; `nil` for none.
    ///   - isNearHigh: whether the key is adjacent to `high`, instead of `low`. Pass true if the node with the key `high` was placed later
    ///     than the node with the key `low`.
    /// - Returns: `nil` if there is no key of at most `maximumBytes` bytes, for example because both keys are equal.
    public static func between(
        _ low: OrderKey?, _ high: OrderKey?, isNearHigh: Bool, using generator: inout some RandomNumberGenerator
    ) -> OrderKey? {
        let low = low?.bytes ?? []
        var bytes: [UInt8] = []
        var isBelowHigh = high == nil
        while bytes.count < maximumBytes {
            let index = bytes.count
            let first = index < low.count ? Int(low[index]) : 0
            let end = isBelowHigh ? 256 : high.flatMap { index < $0.bytes.count ? Int($0.bytes[index]) : nil } ?? first
            if end - first > 1 {
                bytes.append(UInt8(isNearHigh ? end - 1 : first + 1))
                break
            }
            bytes.append(UInt8(first))
            if end - first == 1 { isBelowHigh = true }
        }
        let key = OrderKey(bytes: bytes + randomBytes(using: &generator))
        guard key.bytes.count <= maximumBytes, low.lexicographicallyPrecedes(key.bytes), high.map({ key < $0 }) ?? true else { return nil }
        return key
    }

    /// Returns the keys of nodes that are pasted together: one key and a counter, so that two pasted runs do not interleave.
    /// - Parameter count: at most 65 536.
    /// - Returns: `nil` if the keys would be longer than `maximumBytes`.
    public func run(count: Int) -> [OrderKey]? {
        guard count > 1 else { return [self] }
        guard bytes.count + 3 <= Self.maximumBytes, count <= 1 << 16 else { return nil }
        return (0..<count).map { OrderKey(bytes: bytes + [UInt8($0 >> 8), UInt8($0 & 0xFF), 1]) }
    }

    /// The first 6 bytes as a number.
    private var number: Int64 {
        (0..<Self.numberBytes).reduce(0) { $0 << 8 | ($1 < bytes.count ? Int64(bytes[$1]) : 0) }
    }

    /// The last byte is not 0, so that there is room between a key and its extensions.
    private static func randomBytes(using generator: inout some RandomNumberGenerator) -> [UInt8] {
        [UInt8.random(in: 0...255, using: &generator), UInt8.random(in: 1...255, using: &generator)]
    }
}
