import HexlistModel

/// The ID of one offer: 16 random bytes, which cannot be guessed. Authorization is checked nevertheless.
public struct OfferID: Hashable, Sendable, CustomStringConvertible {
    /// 16 bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: 16 bytes; `nil` for any other count.
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

    /// 32 digits in lower case, as in links and requests.
    public var description: String { String(decoding: Hexadecimal.encode(bytes).utf8.map(ASCII.lowercased), as: UTF8.self) }
}
