/// Rules for the names of peer groups. Users can write `@NAME` instead of a peer to select all peers of a group.
public enum GroupName {
    /// Maximum bytes of a name. Names are short, because people read and type them.
    public static let bytes = 64
    private static let mark = UInt8(ascii: "@")

    /// Whether a text begins with `@`, and therefore names a group and not a peer.
    public static func isMarked(_ text: String) -> Bool { text.utf8.first == mark }

    /// Returns the name without a leading `@`.
    public static func bare(_ text: String) -> String { isMarked(text) ? String(decoding: text.utf8.dropFirst(), as: UTF8.self) : text }

    public static func marked(_ name: String) -> String { "@\(name)" }

    /// Returns a sentence that explains why a name (without `@`) is not valid; `nil` if it is valid.
    public static func fault(_ name: String) -> String? {
        guard !name.isEmpty, name.utf8.count <= bytes, TerminalText.clean(name).utf8.elementsEqual(name.utf8), NormalizedName(name) != nil,
            !isMarked(name)
        else { return "The name of a group is 1 to \(bytes) bytes of printable text, without @ at its beginning." }
        return nil
    }
}
