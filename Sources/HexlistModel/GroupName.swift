/// The rules for names of groups of peers. A group is written `@NAME` where a peer may stand as well.
public enum GroupName {
    /// The most bytes of a name: groups are read in lists and typed by people.
    public static let bytes = 64
    private static let mark = UInt8(ascii: "@")

    /// Whether a text names a group and not a peer.
    public static func isMarked(_ text: String) -> Bool { text.utf8.first == mark }

    /// The name without the `@` that may stand before it.
    public static func bare(_ text: String) -> String { isMarked(text) ? String(decoding: text.utf8.dropFirst(), as: UTF8.self) : text }

    public static func marked(_ name: String) -> String { "@\(name)" }

    /// A sentence that says why a text without `@` before it cannot be the name of a group; `nil` if it can.
    public static func fault(_ name: String) -> String? {
        guard !name.isEmpty, name.utf8.count <= bytes, TerminalText.clean(name).utf8.elementsEqual(name.utf8), NameKey(name) != nil,
            !isMarked(name)
        else { return "The name of a group is 1 to \(bytes) bytes of printable text, without @ at its beginning." }
        return nil
    }
}
