import HexlistModel

/// The ID of an offer: 16 random bytes. It cannot be guessed, but the permission of each request is checked nevertheless.
public struct OfferID: Hashable, Sendable, CustomStringConvertible {
    /// The 16 bytes of the ID.
    public let bytes: [UInt8]

    /// Creates an ID from its bytes; `nil` if their number is not 16.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        self.bytes = Array(bytes)
    }

    /// Parses 32 hexadecimal digits in either letter case; `nil` for anything else.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count == 32, let bytes = Hexadecimal.decode(text) else { return nil }
        self.init(bytes: bytes)
    }

    private init(words: [UInt64]) {
        bytes = words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) } }
    }

    public static var random: OfferID {
        var system = SystemRandomNumberGenerator()
        return random(using: &system)
    }

    public static func random(using random: inout some RandomNumberGenerator) -> OfferID {
        OfferID(words: [random.next(), random.next()])
    }

    /// The ID as 32 lower-case hexadecimal digits, as it stands in links and requests.
    public var description: String { String(decoding: Hexadecimal.encode(bytes).utf8.map(ASCII.lowercased), as: UTF8.self) }
}
