internal import Crypto
public import HexlistModel

extension ListNode {
    /// The identifier of a node: a UUID of version 8 (RFC 9562) with 48 bits of Unix time in milliseconds, the version, 4 bits of kind, and
    /// 70 random bits. The kind is part of the identifier, so no peer can send one identifier with two kinds.
    ///
    /// The identifier of a list is the identifier of its root, which is a hex.
    public struct ID: Hashable, Comparable, Sendable, CustomStringConvertible {
        public let uuid: UUIDBytes

        /// Returns `nil` unless the UUID has version 8 and the variant of RFC 9562.
        public init?(_ uuid: UUIDBytes) {
            guard uuid.high >> 12 & 0xF == 8, uuid.low >> 62 == 0b10 else { return nil }
            self.uuid = uuid
        }

        /// Creates an identifier.
        /// - Parameter time: Unix time in milliseconds. Bits above the lowest 48 are ignored.
        public init(kind: Kind, time: Int64, using generator: inout some RandomNumberGenerator) {
            let (first, second): (UInt64, UInt64) = (generator.next(), generator.next())
            uuid = UUIDBytes(
                high: UInt64(bitPattern: time) << 16 | UInt64(kind.rawValue) << 8 | first & 0xFF, low: second
            ).with(version: 8)
        }

        /// Creates an identifier with the kind and time of another one, whose other bits are those of a SHA-256 hash.
        /// - Parameter salt: hashed together with the other identifier, so that different salts have different results.
        public init(derivedFrom id: ID, with salt: [UInt8]) {
            let hash = Array(SHA256.hash(data: id.uuid.bytes + salt))
            let low = hash[1...8].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            uuid = UUIDBytes(high: id.uuid.high & ~0xFF | UInt64(hash[0]), low: low).with(version: 8)
        }

        /// Parses an identifier as `description` formats it; `nil` for any other text.
        public init?(base64url text: some Sequence<UInt8>) {
            guard let bytes = Base64URL.decode(text), let uuid = UUIDBytes(bytes: bytes) else { return nil }
            self.init(uuid)
        }

        public var kind: Kind { Kind(rawValue: UInt8(truncatingIfNeeded: uuid.high >> 8) & 0xF) }
        /// The time at which the node was created, by the clock of its creator: Unix time in milliseconds.
        public var time: Int64 { Int64(uuid.high >> 16) }
        /// Base64url without padding, 22 characters, as on the wire.
        public var description: String { Base64URL.encode(uuid.bytes) }

        public static func < (left: ID, right: ID) -> Bool { left.uuid < right.uuid }
    }

    /// Returns new identifiers in ascending order if the time does not change, so that an index of them grows at its end. The random bits of
    /// an identifier are those of the one before plus a random number (RFC 9562, section 6.2, method 2).
    public struct IDSequence: Sendable {
        /// The last identifier of each kind.
        private var last: [Kind: ID] = [:]

        public init() {}

        /// - Parameter time: Unix time in milliseconds.
        public mutating func next(_ kind: Kind, time: Int64, using generator: inout some RandomNumberGenerator) -> ID {
            var id = ID(kind: kind, time: time, using: &generator)
            if let last = last[kind], last.time == time {
                let (low, overflows) = last.uuid.low.addingReportingOverflow(UInt64.random(in: 1...1 << 40, using: &generator))
                // After an overflow the random identifier is used, which may be less than the last one.
                if !overflows, let next = ID(UUIDBytes(high: last.uuid.high, low: low)) { id = next }
            }
            last[kind] = id
            return id
        }
    }

    /// The kind of a node. Nodes of an unknown kind are kept, merged and passed on, but never shown.
    public struct Kind: Hashable, Sendable {
        /// 0 to 15.
        public let rawValue: UInt8

        init(rawValue: UInt8) { self.rawValue = rawValue & 0xF }

        public static let hex = Kind(rawValue: 1)
        public static let link = Kind(rawValue: 2)
        /// The entry for a shared list in My Hexlist. Only machines of the same user exchange it.
        public static let sharedList = Kind(rawValue: 3)

        /// Whether nodes of this kind are shown inside hexes and contain no nodes.
        var isLeaf: Bool { self == .link || self == .sharedList }

        /// Maximum registers of a node of this kind besides place, title and private registers.
        var maximumRegisters: Int { self == .sharedList ? ListLimits.sharedListRegisters : ListLimits.registers }
    }
}
