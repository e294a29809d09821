/// Cleans untrusted text, such as names of peers, for terminals and logs.
public enum TerminalText {
    /// Returns the text as one printable line: tabs and line breaks become spaces, other characters that are not displayable become U+FFFD.
    public static func clean(_ text: some StringProtocol) -> String {
        var clean = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x09, 0x0A, 0x0D: clean.append(" ")
            default: clean.append(isShown(scalar) ? scalar : "\u{FFFD}")
            }
        }
        return String(clean)
    }

    /// - Parameter columns: maximum number of characters. A longer text is truncated and ends in `…`.
    public static func clean(_ text: some StringProtocol, columns: Int) -> String {
        // Limits the bytes first, because counting the characters of hostile text takes quadratic time.
        let bounded = clean(PeerName.cut(String(text), bytes: columns * 16))
        guard bounded.count > columns else { return bounded }
        return String(bounded.prefix(max(0, columns - 1))) + "…"
    }

    /// Whether a character can be displayed unchanged. False for control, escape and bidi characters, line and paragraph separators, and
    /// invisible characters, except joiners and variation selectors that scripts and emoji need.
    public static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x20...0x7E: return true
        case 0x200C, 0x200D, 0xFE00...0xFE0F, 0xE0100...0xE01EF: return true
        default: break
        }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: return false
        default: return !scalar.properties.isDefaultIgnorableCodePoint
        }
    }
}
