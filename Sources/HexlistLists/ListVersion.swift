import HexlistModel

/// The version of a value: the time of its writer's hybrid clock, then the writer's replica number. The greater version wins.
public struct ListVersion: Hashable, Comparable, Sendable {
    /// A time of `HybridClock`, greater than 0.
    public let clock: Int64
    public let replica: ReplicaNumber

    public init(clock: Int64, replica: ReplicaNumber) {
        self.clock = clock
        self.replica = replica
    }

    public static func < (left: ListVersion, right: ListVersion) -> Bool {
        left.clock == right.clock ? left.replica < right.replica : left.clock < right.clock
    }
}

/// A random number of 64 bits that identifies one copy of a list in one store. A restored backup draws a new one.
public struct ReplicaNumber: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let value: UInt64

    public init(_ value: UInt64) { self.value = value }

    /// Parses exactly 16 hexadecimal digits.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count == 16, let bytes = Hexadecimal.decode(text) else { return nil }
        value = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// 16 hexadecimal digits in lower case.
    public var description: String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    public static func < (left: ReplicaNumber, right: ReplicaNumber) -> Bool { left.value < right.value }
}
