/// Base64url without padding (RFC 4648, section 5).
public enum Base64URL {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values: [UInt8?] = (0...255 as ClosedRange<UInt8>).map { byte in
        digits.firstIndex(of: byte).map { UInt8($0) }
    }

    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var number: UInt32 = 0
        var bits: UInt32 = 0
        for byte in bytes {
            number = number << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(digits[Int(number >> bits & 63)])
            }
        }
        if bits > 0 { text.append(digits[Int(number << (6 - bits) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes a text that `encode` returned. Returns `nil` for other characters, padding, an impossible length, or unused bits that are
    /// not zero.
    public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var number: UInt32 = 0
        var bits: UInt32 = 0
        for digit in text {
            guard let value = values[Int(digit)] else { return nil }
            number = number << 6 | UInt32(value)
            bits += 6
            guard bits >= 8 else { continue }
            bits -= 8
            bytes.append(UInt8(truncatingIfNeeded: number >> bits))
        }
        guard bits < 6, number & (1 << bits - 1) == 0 else { return nil }
        return bytes
    }
}
