/// Base64 with padding (RFC 4648, section 4). The decoder is given the number of bytes, and accepts exactly one text for any bytes.
public enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(textBytes(of: bytes.count))
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0 as UInt32) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for position in 0...group.count { text.append(digits[Int(bits >> UInt32(18 - 6 * position) & 63)]) }
            text += repeatElement(padding, count: 3 - group.count)
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes the text of a known number of bytes.
    /// - Returns: exactly `count` bytes; `nil` for other lengths or alphabets, wrong padding, or unused bits that are not zero.
    public static func decode(_ text: some StringProtocol, count: Int) -> [UInt8]? {
        guard text.utf8.count == textBytes(of: count) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        var bits: UInt32 = 0
        var bitCount = 0
        // Only the digits, without the padding. Their number follows from `count`.
        for character in text.utf8.prefix((4 * count + 2) / 3) {
            guard let value = value(of: character) else { return nil }
            bits = bits << 6 | UInt32(value)
            bitCount += 6
            guard bitCount >= 8 else { continue }
            bitCount -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            bits &= 1 << UInt32(bitCount) - 1
        }
        guard bits == 0, text.utf8.dropFirst((4 * count + 2) / 3).allSatisfy({ $0 == padding }) else { return nil }
        return bytes
    }

    /// Returns the length in bytes of the Base64 text for `count` bytes, including the padding.
    public static func textBytes(of count: Int) -> Int { (count + 2) / 3 * 4 }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
