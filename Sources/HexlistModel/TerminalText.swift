/// Makes text of a peer safe for a terminal or a log.
public enum TerminalText {
    /// One line of printable text: characters that are not shown become U+FFFD, tabs and line ends become a space.
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

    /// - Parameter columns: the most characters; a longer text is cut and ends in `…`.
    public static func clean(_ text: some StringProtocol, columns: Int) -> String {
        // The text is cut before its characters are counted: counting characters of hostile text is quadratic.
        let bounded = clean(PeerName.cut(String(text), bytes: columns * 16))
        guard bounded.count > columns else { return bounded }
        return String(bounded.prefix(max(0, columns - 1))) + "…"
    }

    /// Whether a character may be shown unchanged. False for control, escape and bidi characters, line and paragraph separators, and
    /// invisible characters except the joiners and variation selectors that scripts and emoji need.
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
