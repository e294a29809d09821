/// What a hex is about, in the few words a list has room for.
public enum HexSubject {
    /// Of UTF-8, at most.
    public static let bytes = 120

    /// The description; where that shows nothing, the text of the first link; else the first link itself. Text of whoever made the hex: clean
    /// it where it is shown.
    public static func of(_ hex: HexContent) -> String {
        let link = hex.links.first
        for text in [hex.hexDescription, link?.linkDescription, link?.url] {
            let begun = text.map { hex.withBytes(of: $0) { begin(of: $0) } } ?? ""
            if begun.utf8.contains(where: { $0 > 0x20 }) { return begun }
        }
        return ""
    }

    /// The longest prefix of whole scalars that fits: a text may have 64 KiB, and nobody reads them here.
    private static func begin(of text: UnsafeRawBufferPointer) -> String {
        var end = min(text.count, bytes)
        while end > 0, end < text.count, text[end] & 0xC0 == 0x80 { end -= 1 }
        return String(decoding: text[..<end], as: UTF8.self)
    }
}
