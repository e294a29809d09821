/// Rules for names of peer groups. `@NAME` can be used instead of a peer.
public enum GroupName {
    /// Maximum bytes of a name, because people read and type it.
    public static let bytes = 64
    private static let mark = UInt8(ascii: "@")

    /// Whether a text names a group instead of a peer.
    public static func isMarked(_ text: String) -> Bool { text.utf8.first == mark }

    /// The name without a leading `@`.
    public static func bare(_ text: String) -> String { isMarked(text) ? String(decoding: text.utf8.dropFirst(), as: UTF8.self) : text }

    public static func marked(_ name: String) -> String { "@\(name)" }

    /// A sentence about why a name (without `@`) is invalid; `nil` if it is valid.
    public static func fault(_ name: String) -> String? {
        guard !name.isEmpty, name.utf8.count <= bytes, TerminalText.clean(name).utf8.elementsEqual(name.utf8), NameKey(name) != nil,
            !isMarked(name)
        else { return "The name of a group is 1 to \(bytes) bytes of printable text, without @ at its beginning." }
        return nil
    }
}
