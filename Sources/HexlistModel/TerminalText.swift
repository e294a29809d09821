/// Text of a peer on its way to a terminal or a log: shown, never obeyed.
public enum TerminalText {
    /// One line of printable text. Control, escape and bidi characters, line and paragraph separators, and invisible
    /// format characters (but the joiners scripts and emoji need) become U+FFFD; tabs and line ends become a space.
    public static func clean(_ text: some StringProtocol) -> String {
        var clean = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x09, 0x0A, 0x0D: clean.append(" ")
            case 0x200C, 0x200D: clean.append(scalar)  // ZWNJ and ZWJ: Persian, Indic scripts, emoji
            default: clean.append(isHostile(scalar) ? "\u{FFFD}" : scalar)
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

    private static func isHostile(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        default: false
        }
    }
}
