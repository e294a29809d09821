/// Percent-encoding (RFC 3986 section 2.1).
public enum PercentEncoding {
    /// Percent-encodes all bytes of a text's UTF-8 except the unreserved characters: ASCII letters, digits, `-`, `.`, `_` and `~`.
    public static func encode(_ text: some StringProtocol) -> String {
        encode(text) { ASCII.isAlphanumeric($0) || "-._~".utf8.contains($0) }
    }

    /// Percent-encodes all bytes of a text's UTF-8 that are not printable ASCII, and the characters in `others`. Existing escapes are not
    /// changed.
    /// - Parameter others: printable ASCII characters to encode as well.
    public static func encodeUnprintable(_ text: some StringProtocol, and others: StaticString = "") -> String {
        encode(text) { byte in
            (0x21...0x7E).contains(byte) && !UnsafeBufferPointer(start: others.utf8Start, count: others.utf8CodeUnitCount).contains(byte)
        }
    }

    private static func encode(_ text: some StringProtocol, keeping isKept: (UInt8) -> Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if isKept(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Decodes a percent-encoded text; `nil` if an escape is malformed or the result is not UTF-8.
    public static func decode(_ text: some StringProtocol) -> String? { decode(bytes: Array(text.utf8)[...]) }

    public static func decode(bytes encoded: ArraySlice<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var rest = encoded
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hexadecimal.value), let low = rest.popFirst().flatMap(Hexadecimal.value) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
