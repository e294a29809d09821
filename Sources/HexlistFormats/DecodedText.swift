import HexlistModel

enum ByteOrderMark {
    static let utf8: [UInt8] = [0xEF, 0xBB, 0xBF]
}

/// The text of a file, converted to UTF-8. Supported are UTF-8, UTF-16, and Windows-1252 (Latin-1) if the file declares it.
public struct DecodedText: Sendable, Equatable {
    /// Valid UTF-8 without a byte order mark.
    public var bytes: [UInt8]
    /// The encoding of the file; `nil` for UTF-8.
    public var encoding: String?

    public enum Fault: Error, Equatable {
        /// The file contains NUL bytes, so it is not text.
        case binary
        /// The file uses or declares this encoding, which is either not supported or contradicts its bytes.
        case encoding(String)
        /// Some lines are not valid UTF-8.
        /// - `hasUTF8`: whether other lines contain non-ASCII characters in valid UTF-8. Then the file is damaged UTF-8 rather than in
        ///   another encoding.
        case lines(FileReading.Skip, hasUTF8: Bool)
    }

    /// - Throws: `Fault`.
    public init(_ file: [UInt8]) throws(Fault) {
        if file.starts(with: [0xFF, 0xFE, 0, 0]) || file.starts(with: [0, 0, 0xFE, 0xFF]) { throw .encoding("UTF-32") }
        if file.starts(with: [0xFF, 0xFE]) {
            (bytes, encoding) = (try Self.utf8(utf16: file.dropFirst(2), isBigEndian: false), "UTF-16")
        } else if file.starts(with: [0xFE, 0xFF]) {
            (bytes, encoding) = (try Self.utf8(utf16: file.dropFirst(2), isBigEndian: true), "UTF-16")
        } else if let isBigEndian = Self.isBigEndianUTF16(file) {
            (bytes, encoding) = (try Self.utf8(utf16: file[...], isBigEndian: isBigEndian), "UTF-16")
        } else if file.contains(0) {
            throw .binary
        } else if Self.isUTF8(file[...]) {
            (bytes, encoding) = (file.starts(with: ByteOrderMark.utf8) ? Array(file.dropFirst(3)) : file, nil)
        } else if let declared = Self.declared(file) {
            guard Self.latin.contains(declared) else { throw .encoding(declared) }
            (bytes, encoding) = (Array(String(String.UnicodeScalarView(file.map(Windows1252.scalar))).utf8), "windows-1252")
        } else {
            throw Self.brokenLines(file)
        }
    }

    private static func utf8(utf16 bytes: ArraySlice<UInt8>, isBigEndian: Bool) throws(Fault) -> [UInt8] {
        let units = units(of: bytes, isBigEndian: isBigEndian)
        guard bytes.count.isMultiple(of: 2), let text = String(validating: units, as: UTF16.self) else { throw .encoding("UTF-16") }
        return Array(text.utf8)
    }

    /// Returns the UTF-16 code units of bytes. A single byte at the end is left out.
    static func units(of bytes: ArraySlice<UInt8>, isBigEndian: Bool) -> [UInt16] {
        stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map { index in
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            return isBigEndian ? first << 8 | second : second << 8 | first
        }
    }

    /// Detects UTF-16 without a byte order mark, in which every second byte of an ASCII character is zero: more than a quarter of the first
    /// 4 KiB must be zero bytes, all at even or all at odd offsets. Returns `nil` if the file is not UTF-16.
    private static func isBigEndianUTF16(_ file: [UInt8]) -> Bool? {
        let head = file.prefix(4_096)
        guard head.count >= 4, file.count % 2 == 0 else { return nil }
        var zeros = (even: 0, odd: 0)
        for (index, byte) in head.enumerated() where byte == 0 { if index % 2 == 0 { zeros.even += 1 } else { zeros.odd += 1 } }
        let many = head.count / 4
        if zeros.odd > many, zeros.even == 0 { return false }
        return zeros.even > many && zeros.odd == 0 ? true : nil
    }

    private static func isUTF8(_ bytes: ArraySlice<UInt8>) -> Bool { String(validating: bytes, as: UTF8.self) != nil }

    /// Encoding labels for which browsers use Windows-1252.
    private static let latin = ["windows-1252", "iso-8859-1", "latin1", "latin-1", "cp1252", "us-ascii", "ascii"]

    /// Returns the encoding that HTML or XML declares, in lower case; `nil` if it declares none, or UTF-8.
    private static func declared(_ file: [UInt8]) -> String? {
        let head = file.prefix(1_024).map(ASCII.lowercased)
        for name in ["charset=", "encoding="] {
            let mark = Array(name.utf8)
            guard let start = head.indices.first(where: { head[$0...].starts(with: mark) }) else { continue }
            let value = head[(start + mark.count)...].drop { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }
                .prefix { ASCII.isAlphanumeric($0) || "-_.:".utf8.contains($0) }
            let encoding = String(decoding: value, as: UTF8.self)
            return encoding.isEmpty || encoding == "utf-8" || encoding == "utf8" ? nil : encoding
        }
        return nil
    }

    private static func brokenLines(_ file: [UInt8]) -> Fault {
        var broken = FileReading()
        var hasUTF8 = false
        for line in TextLines(file) {
            if isUTF8(line.text) {
                hasUTF8 = hasUTF8 || line.text.contains { $0 >= 0x80 }
            } else {
                broken.skip(.noHex, String(decoding: line.text, as: UTF8.self), line: line.number)
            }
        }
        return broken.skipped.first.map { .lines($0, hasUTF8: hasUTF8) } ?? .binary
    }
}

/// The encoding Windows-1252. Files labelled as Latin-1 are decoded with it too, as in browsers (WHATWG Encoding).
enum Windows1252 {
    static func scalar(_ byte: UInt8) -> Unicode.Scalar {
        (0x80...0x9F).contains(byte) ? special[Int(byte) - 0x80] : Unicode.Scalar(byte)
    }

    /// The characters of the bytes 0x80 to 0x9F. Five bytes are unassigned and become control characters.
    private static let special = Array(
        "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars)
}
