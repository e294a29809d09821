/// Makes texts of peers safe for terminals and logs.
public enum TerminalText {
    /// One line of printable text: other characters become U+FFFD, tabs and line breaks become spaces.
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

    /// - Parameter columns: maximum number of characters; a longer text is truncated and ends in `…`.
    public static func clean(_ text: some StringProtocol, columns: Int) -> String {
        // Cuts the text before counting characters, which takes quadratic time for hostile text.
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
