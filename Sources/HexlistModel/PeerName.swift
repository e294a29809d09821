/// Formats names of peers. Names are only for people to read: they may change, are not unique and cannot be trusted. No decision depends on
/// a name until its peer is trusted (`PeerAlias`).
public enum PeerName {
    /// Maximum bytes of the display name in an instance name. An instance name has at most 63 bytes, of which ` [xxxxxxxx]` takes 11.
    public static let displayBytes = 52

    /// Returns the DNS-SD instance name: `<display name> [<first 8 digits of the UUID>]`.
    public static func instance(displayName: String, peer: PeerID) -> String {
        "\(cut(displayName, bytes: displayBytes)) [\(peer.shortID)]"
    }

    /// Returns the display name that an instance name contains. If the instance name has another form, returns all of it.
    public static func display(instance: String) -> String {
        let bytes = Array(instance.utf8)
        guard bytes.count >= 11, bytes.last == UInt8(ascii: "]"), bytes[bytes.count - 10] == UInt8(ascii: "["),
            bytes[bytes.count - 11] == UInt8(ascii: " "),
            bytes[(bytes.count - 9)..<(bytes.count - 1)].allSatisfy({ Hexadecimal.value(of: $0) != nil })
        else { return instance }
        return String(decoding: bytes.dropLast(11), as: UTF8.self)
    }

    /// Returns a text that is cut to at most `limit` bytes; a text that is cut ends in `…`.
    public static func shortened(_ text: String, bytes limit: Int) -> String {
        text.utf8.count > limit ? cut(text, bytes: max(0, limit - "…".utf8.count)) + "…" : text
    }

    /// Returns the longest prefix of the text that has only whole Unicode scalars and at most `limit` bytes.
    public static func cut(_ text: String, bytes limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: limit)
        while UTF8.isContinuation(text.utf8[end]) { end = text.utf8.index(before: end) }
        return String(text.utf8[..<end]) ?? ""
    }
}
