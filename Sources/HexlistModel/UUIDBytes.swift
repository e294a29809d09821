/// The 16 bytes of a UUID, compared and hashed as bytes.
///
/// Foundation's `UUID(uuidString:)` takes a NUL and whatever stands behind it; this type takes exactly the 36 bytes of
/// RFC 9562's text form, digits in either case, and prints it in upper case.
public struct UUIDBytes: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The first and the last eight bytes, each read as a big-endian number.
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// - Parameter bytes: 16 bytes; `nil` for any other count.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            if index < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
        }
        self.init(high: high, low: low)
    }

    /// The text form `8-4-4-4-12`, 36 bytes, digits in either letter case; `nil` for anything else.
    public init?(text: UnsafeRawBufferPointer) {
        guard text.count == 36 else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        var digits = 0
        for index in 0..<36 {
            let byte = text[index]
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let digit = Hexadecimal.value(of: byte) else { return nil }
            if digits < 16 { words.0 = words.0 << 4 | UInt64(digit) } else { words.1 = words.1 << 4 | UInt64(digit) }
            digits += 1
        }
        self.init(high: words.0, low: words.1)
    }

    public init?(_ text: some StringProtocol) {
        let parsed = Array(text.utf8).withUnsafeBytes { UUIDBytes(text: $0) }
        guard let parsed else { return nil }
        self = parsed
    }

    public static let `nil` = UUIDBytes(high: 0, low: 0)
    public static let max = UUIDBytes(high: .max, low: .max)

    public var bytes: [UInt8] {
        (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64(56 - 8 * ($0 % 8))) }
    }

    public var description: String {
        var text = ""
        text.reserveCapacity(36)
        for (index, byte) in bytes.enumerated() {
            if index == 4 || index == 6 || index == 8 || index == 10 { text.append("-") }
            text.append(Hexadecimal.upper(byte))
        }
        return text
    }

    public static func < (left: UUIDBytes, right: UUIDBytes) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// The same bytes with the version and the RFC 9562 variant set.
    public func with(version: UInt8) -> UUIDBytes {
        UUIDBytes(
            high: high & ~0xF000 | UInt64(version & 0xF) << 12,
            low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }
}

/// Base 16, both ways, without Foundation.
public enum Hexadecimal {
    /// 0 … 15, or `nil` where the byte is no hexadecimal digit.
    @inlinable
    public static func value(of byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte &- 0x30
        case 0x41...0x46: byte &- 0x37
        case 0x61...0x66: byte &- 0x57
        default: nil
        }
    }

    static func upper(_ byte: UInt8) -> String {
        let digits: StaticString = "0123456789ABCDEF"
        return digits.withUTF8Buffer { String(decoding: [$0[Int(byte >> 4)], $0[Int(byte & 15)]], as: UTF8.self) }
    }

    /// Two upper-case digits a byte.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        bytes.reduce(into: "") { $0 += upper($1) }
    }

    /// `nil` unless every pair is two digits, in either letter case.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(of: digits[index]), let low = value(of: digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
