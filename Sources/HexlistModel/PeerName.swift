/// Names of peers. They are for people, may change, and are neither unique nor trustworthy: no decision uses a name before its peer is
/// trusted (`PeerAlias`).
public enum PeerName {
    /// Maximum bytes of the display name in an instance name: 63 less ` [xxxxxxxx]`.
    public static let displayBytes = 52

    /// The DNS-SD instance name: `<display name> [<first 8 digits of the UUID>]`.
    public static func instance(displayName: String, peer: PeerID) -> String {
        "\(cut(displayName, bytes: displayBytes)) [\(peer.shortID)]"
    }

    /// The display name in the instance name of an announcement; the whole instance name if it has another form.
    public static func display(instance: String) -> String {
        let bytes = Array(instance.utf8)
        guard bytes.count >= 11, bytes.last == UInt8(ascii: "]"), bytes[bytes.count - 10] == UInt8(ascii: "["),
            bytes[bytes.count - 11] == UInt8(ascii: " "),
            bytes[(bytes.count - 9)..<(bytes.count - 1)].allSatisfy({ Hexadecimal.value(of: $0) != nil })
        else { return instance }
        return String(decoding: bytes.dropLast(11), as: UTF8.self)
    }

    /// The longest prefix of whole Unicode scalars that fits into `limit` bytes.
    public static func cut(_ text: String, bytes limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: limit)
        while UTF8.isContinuation(text.utf8[end]) { end = text.utf8.index(before: end) }
        return String(text.utf8[..<end]) ?? ""
    }
}
