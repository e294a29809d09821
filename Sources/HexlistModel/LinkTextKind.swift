/// Classifies a text as a link, a host without a scheme, or other text.
public enum LinkTextKind: Sendable {
    /// A scheme (RFC 3986) and a colon, followed by at least one character.
    case link
    /// A host name or address, possibly with port and path, such as `avahi.org/download` or `localhost:8080`.
    case bareHost
    case other

    /// Schemes whose address may consist of digits only. After any other name, a colon and digits are a port, as in `host:8080`.
    private static let numberSchemes = ["tel", "sms", "fax"]

    public init(_ text: String) {
        let bytes = Array(text.utf8)
        let authority = bytes.prefix { !"/?#".utf8.contains($0) }
        // An IPv6 address in brackets contains colons.
        let bracket = bytes.first == UInt8(ascii: "[") ? authority.firstIndex(of: UInt8(ascii: "]")) : nil
        let name = bracket.map { bytes[...$0] } ?? bytes.prefix { $0 != UInt8(ascii: ":") }
        let rest = bytes.dropFirst(name.count + 1)
        let hasPort = authority.count > name.count && Self.isPort(authority.dropFirst(name.count + 1))
        let isNumber = Self.numberSchemes.contains(String(decoding: name, as: UTF8.self).lowercased())
        if Self.isScheme(name), name.count < bytes.count, !rest.isEmpty, !hasPort || isNumber {
            self = .link
        } else {
            self = Self.isHost(hasPort ? name : authority, hasPort: hasPort) ? .bareHost : .other
        }
    }

    /// Whether the bytes are a valid scheme. A single letter is not accepted, because it may be a Windows drive.
    private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.count > 1, let first = bytes.first, isLetter(first) else { return false }
        return bytes.allSatisfy { isLetter($0) || ASCII.isDigit($0) || "+-.".utf8.contains($0) }
    }

    private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool { (1...5).contains(bytes.count) && bytes.allSatisfy(ASCII.isDigit) }

    private static func isHost(_ bytes: ArraySlice<UInt8>, hasPort: Bool) -> Bool {
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") { return bytes.count > 3 }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isNamed = labels.count > 1 || hasPort || String(decoding: bytes, as: UTF8.self).lowercased() == "localhost"
        return isNamed
            && labels.allSatisfy { label in
                !label.isEmpty && label.allSatisfy { isLetter($0) || ASCII.isDigit($0) || $0 >= 0x80 || $0 == UInt8(ascii: "-") }
            }
    }

    public static func isLetter(_ byte: UInt8) -> Bool { ASCII.isLowercase(ASCII.lowercased(byte)) }
}
