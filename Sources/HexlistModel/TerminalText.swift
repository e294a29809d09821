/// Text of a peer on its way to a terminal or a log: shown, never obeyed.
public enum TerminalText {
    /// One line of printable text: what is not to be shown becomes U+FFFD, tabs and line ends become a space.
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

    /// - Parameter columns: characters at most; a longer text ends in `…`.
    public static func clean(_ text: some StringProtocol, columns: Int) -> String {
        // Bounded before it is counted: counting characters of hostile text is quadratic.
        let bounded = clean(PeerName.cut(String(text), bytes: columns * 16))
        guard bounded.count > columns else { return bounded }
        return String(bounded.prefix(max(0, columns - 1))) + "…"
    }

    /// Whether a character may be shown as it is. Not: control, escape and bidi characters, line and paragraph separators,
    /// and what is invisible, but for the joiners and variation selectors that scripts and emoji need.
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
