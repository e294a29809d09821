/// Measures texts in terminal columns. All functions take linear time, even for malicious text.
enum TextWidth {
    /// Returns the width of a text in columns.
    /// - Parameter text: a cleaned text, without control characters.
    static func of(_ text: String) -> Int {
        var counter = Counter()
        return text.unicodeScalars.reduce(0) { $0 + counter.added(by: $1) }
    }

    /// Returns the longest prefix that fits, followed by `…` if the text was cut. Combining marks stay with their letter.
    static func cut(_ text: String, columns: Int) -> String {
        let scalars = text.unicodeScalars
        var counter = Counter()
        var (width, end) = (0, scalars.startIndex)
        for index in scalars.indices {
            let added = counter.added(by: scalars[index])
            if added > 0, width < columns { end = index }
            width += added
            if width > columns { return String(scalars[..<end]) + "…" }
        }
        return text
    }

    /// Splits a text at spaces, except at those in a command in backquotes that fits into a line.
    private static func words(_ text: String, columns: Int) -> [String] {
        var words: [String] = []
        var command: [String] = []  // the words since a backquote
        for word in text.split(separator: " ", omittingEmptySubsequences: false).map(String.init) {
            let isMarked = word.utf8.count { $0 == UInt8(ascii: "`") } % 2 == 1
            guard isMarked || !command.isEmpty else {
                words.append(word)
                continue
            }
            let isEnd = isMarked && !command.isEmpty
            command.append(word)
            guard isEnd else { continue }
            let joined = command.joined(separator: " ")
            words += of(joined) <= columns ? [joined] : command
            command = []
        }
        return words + command
    }

    /// Wraps a text at spaces, if possible not inside a command in backquotes. Breaks words that are longer than a line.
    /// - Parameters:
    ///   - columns: maximum columns of a line, 2 or more.
    ///   - first: maximum columns of the first line; `nil` for the same as `columns`.
    static func lines(_ text: String, columns: Int, first: Int? = nil) -> [String] {
        var lines: [String] = []
        var (line, used) = ("", 0)
        func room() -> Int { lines.isEmpty ? first ?? columns : columns }
        func end() {
            lines.append(line)
            (line, used) = ("", 0)
        }
        var gap = 0
        for (number, word) in words(text, columns: columns).enumerated() {
            if number > 0 { gap += 1 }
            guard !word.isEmpty else { continue }
            let width = of(word)
            if used > 0, used + gap + width > room() { end() }
            // Spaces are kept as indentation and between words, except at the beginning of a continuation line.
            if used > 0 || lines.isEmpty {
                gap = used > 0 ? gap : min(gap, room() / 2)
                line += String(repeating: " ", count: gap)
                used += gap
            }
            gap = 0
            guard used + width > room() else {
                line += word
                used += width
                continue
            }
            var counter = Counter()
            for scalar in word.unicodeScalars {
                let added = counter.added(by: scalar)
                if used > 0, used + added > room() { end() }
                line.unicodeScalars.append(scalar)
                used += added
            }
        }
        if used > 0 || lines.isEmpty { end() }
        return lines
    }

    /// Counts the columns that each next scalar adds: two for a wide scalar, none for a combining mark, and two in total for a sequence of
    /// emoji that is shown as one.
    private struct Counter {
        /// The width of the last scalar that was not a combining mark.
        private var base = 0
        private var (isEmoji, isJoined) = (false, false)

        mutating func added(by scalar: Unicode.Scalar) -> Int {
            guard !scalar.isASCII else {
                (base, isEmoji, isJoined) = (1, false, false)
                return 1
            }
            let properties = scalar.properties
            switch scalar.value {
            case 0x200D:
                isJoined = isEmoji
                return 0
            case 0xFE0F where base == 1 && isEmoji:  // the variation selector that requests the emoji form
                base = 2
                return 1
            case 0x1F3FB...0x1F3FF where isEmoji: return 0  // a skin tone modifies the emoji before it
            case 0x1160...0x11FF, 0xD7B0...0xD7FF: return 0  // a vowel or final consonant that joins the Hangul syllable before it
            default: break
            }
            switch properties.generalCategory {
            case .nonspacingMark, .enclosingMark, .format: return 0
            default: break
            }
            if isJoined, properties.isEmoji {
                isJoined = false
                return 0
            }
            (isEmoji, isJoined) = (properties.isEmoji, false)
            base = isWide(scalar) ? 2 : 1
            return base
        }

        /// Whether a scalar takes two columns: East Asian Wide or Fullwidth (UAX #11), approximated by blocks, or shown as an emoji. Each
        /// of the two letters of a flag takes one column.
        private func isWide(_ scalar: Unicode.Scalar) -> Bool {
            switch scalar.value {
            case 0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
                0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18CFF, 0x1AFF0...0x1B2FF,
                0x1F200...0x1F265, 0x20000...0x3FFFD:
                true
            case 0x1F1E6...0x1F1FF: false
            default: scalar.properties.isEmojiPresentation
            }
        }
    }
}
