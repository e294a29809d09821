/// A UUID as 16 bytes.
///
/// Foundation's `UUID(uuidString:)` also accepts a NUL with any text after it. This type accepts only the 36 characters of RFC 9562, in
/// upper or lower case, and formats them in upper case.
public struct UUIDBytes: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The first eight bytes (`high`) and the last eight bytes (`low`) as big-endian numbers.
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// - Parameter bytes: exactly 16 bytes. For any other count the result is `nil`.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            if index < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
        }
        self.init(high: high, low: low)
    }

    /// Parses the 36 bytes of the form `8-4-4-4-12`, in upper or lower case; `nil` for anything else.
    public init?(text: UnsafeRawBufferPointer) {
        guard text.count == 36, let start = text.baseAddress else { return nil }
        let hyphen = UInt8(ascii: "-")
        guard text[8] == hyphen, text[13] == hyphen, text[18] == hyphen, text[23] == hyphen else { return nil }
        func word(_ first: Int, _ second: Int) -> UInt64 {
            let low = UInt32(littleEndian: start.loadUnaligned(fromByteOffset: first, as: UInt32.self))
            let high = UInt32(littleEndian: start.loadUnaligned(fromByteOffset: second, as: UInt32.self))
            return UInt64(high) << 32 | UInt64(low)
        }
        guard let first = Hexadecimal.eight(word(0, 4)), let second = Hexadecimal.eight(word(9, 14)),
            let third = Hexadecimal.eight(word(19, 24)), let fourth = Hexadecimal.eight(word(28, 32))
        else { return nil }
        self.init(high: UInt64(first) << 32 | UInt64(second), low: UInt64(third) << 32 | UInt64(fourth))
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

    /// Returns a copy with this version and with the variant of RFC 9562.
    public func with(version: UInt8) -> UUIDBytes {
        UUIDBytes(
            high: high & ~0xF000 | UInt64(version & 0xF) << 12,
            low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }
}

/// Hexadecimal encoding and decoding without Foundation.
public enum Hexadecimal {
    /// Returns the value of a hexadecimal digit, 0 to 15; `nil` for any other byte.
    @inlinable
    public static func value(of byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte &- 0x30
        case 0x41...0x46: byte &- 0x37
        case 0x61...0x66: byte &- 0x57
        default: nil
        }
    }

    /// Parses eight hexadecimal digits at once; `nil` if any byte is not one.
    /// - Parameter digits: the characters, with the first one in the lowest byte.
    @inline(__always)
    static func eight(_ digits: UInt64) -> UInt32? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let letters = digits >> 6 & ones
        let values = (digits & 0x0F0F_0F0F_0F0F_0F0F) &+ letters &* 9
        // Detects bytes that are not digits: converts the values back to upper-case digits and compares them with the input, ignoring case.
        let tens = (values &+ 0x7676_7676_7676_7676) >> 7 & ones
        let expected = values &+ 0x3030_3030_3030_3030 &+ tens &* 7
        guard values & 0xF0F0_F0F0_F0F0_F0F0 == 0, expected == digits & ~(letters << 5) else { return nil }
        let bytes = (values << 4 | values >> 8) & 0x00FF_00FF_00FF_00FF
        let pairs = (bytes | bytes >> 8) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: pairs | pairs >> 16).byteSwapped
    }

    static func upper(_ byte: UInt8) -> String {
        let digits: StaticString = "0123456789ABCDEF"
        return digits.withUTF8Buffer { String(decoding: [$0[Int(byte >> 4)], $0[Int(byte & 15)]], as: UTF8.self) }
    }

    /// Returns two upper-case digits for each byte.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        bytes.reduce(into: "") { $0 += upper($1) }
    }

    /// Parses pairs of digits in upper or lower case; `nil` for anything else.
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
