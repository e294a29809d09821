import HexlistModel

/// Links in one line of running text, as in `- Title: https://a.example/ (old)`: each address with `://`, and the text around it.
enum TextLinks {
    private typealias Text = ArraySlice<Unicode.Scalar>

    /// - Returns: a part for each address; empty if there is none. In a line that begins with an address, the text behind an address
    ///   describes it, otherwise the text before it and, of the last, also the text behind it. An address that stands twice in a row, as
    ///   the title of itself, is taken once.
    static func parts(_ line: String) -> [LinkLine.Part] {
        let text = Array(line.unicodeScalars)
        var found = addresses(text)
        guard let first = found.first else { return [] }
        let head = text[..<first.lowerBound]
        let isFirst = withoutMarkers(head).isEmpty
        for index in found.indices {
            // The first word of `URL description` is the address as it stands, but for a comma.
            found[index] = trimmed(found[index], text, isPlain: isFirst && found.count == 1)
        }
        let describedBehind = before(withoutMarkers(head)).isEmpty
        var parts: [LinkLine.Part] = []
        for (index, range) in found.enumerated() {
            let start = index == 0 ? 0 : found[index - 1].upperBound
            let isLast = index == found.count - 1
            let rest = behind(text[range.upperBound..<(isLast ? text.count : found[index + 1].lowerBound)], isLast: isLast)
            var words = [string(rest)]
            if !describedBehind {
                let lead = index == 0 ? withoutMarkers(head) : text[start..<range.lowerBound].drop { isClosing($0) || isSpace($0) }
                words = [string(before(lead))] + (isLast ? words : [])
            }
            let part = LinkLine.Part(url: string(text[range]), description: words.filter { !$0.isEmpty }.joined(separator: " "))
            let isSame = parts.last.map { $0.description.isEmpty && $0.url.utf8.elementsEqual(part.url.utf8) } ?? false
            if isSame { parts.removeLast() }
            parts.append(part)
        }
        return parts
    }

    /// A line without the marks of a list before its text.
    static func withoutMarkers(_ line: String) -> String { string(withoutMarkers(Array(line.unicodeScalars)[...])) }

    // MARK: Addresses

    /// The ranges of addresses with `://`. Each ends at white space, or at the mark that closes one right before it.
    private static func addresses(_ text: [Unicode.Scalar]) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var (from, at) = (0, 0)
        while at + 2 < text.count {
            guard text[at] == ":", text[at + 1] == "/", text[at + 2] == "/" else {
                at += 1
                continue
            }
            var start = at
            while start > from, isScheme(text[start - 1]) { start -= 1 }
            while start < at, !isLetter(text[start]) { start += 1 }
            let body = at + 3
            if at - start > 1, body < text.count, !isSpace(text[body]) {
                at = end(text, start, body)
                if at > body { found.append(start..<at) }
            }
            at = max(at, body)
            from = at
        }
        return found
    }

    private static func end(_ text: [Unicode.Scalar], _ start: Int, _ body: Int) -> Int {
        let pair = start > 0 ? pairs.first { $0.open == text[start - 1] } : nil
        let (opener, closer) = (pair?.open, pair?.close)
        var (at, depth) = (body, 0)
        while at < text.count, !isSpace(text[at]) {
            // An apostrophe stands between letters.
            let isApostrophe = text[at] == "'" && at + 1 < text.count && isLetter(text[at + 1])
            if text[at] == closer, !isApostrophe {
                if depth == 0 { break }
                depth -= 1
            } else if text[at] == opener, !isApostrophe {
                depth += 1
            }
            at += 1
        }
        return at
    }

    /// An address without the punctuation and the closing marks at its end that are not part of it.
    private static func trimmed(_ range: Range<Int>, _ text: [Unicode.Scalar], isPlain: Bool) -> Range<Int> {
        var counts: [Unicode.Scalar: Int] = [:]
        for scalar in text[range] where isMark(scalar) { counts[scalar, default: 0] += 1 }
        var end = range.upperBound
        // One character at least is left behind `://`.
        let least = (text[range].firstIndex(of: ":") ?? range.lowerBound) + 4
        while end > least {
            let last = text[end - 1]
            let isPunctuation = isPlain ? last == "," || last == ";" : punctuation.contains(last)
            guard isPunctuation || isUnopened(last, counts, before: range.lowerBound, text) else { break }
            counts[last]? -= 1
            end -= 1
        }
        return range.lowerBound..<end
    }

    /// Whether a closing mark closes none of the address itself.
    private static func isUnopened(
        _ mark: Unicode.Scalar, _ counts: [Unicode.Scalar: Int], before start: Int, _ text: [Unicode.Scalar]
    ) -> Bool {
        if emphasis.contains(mark) { return start > 0 && text[start - 1] == mark }
        guard let pair = pairs.first(where: { $0.close == mark }) else { return false }
        let closed = counts[mark] ?? 0
        return pair.open == pair.close ? closed % 2 == 1 : closed > counts[pair.open] ?? 0
    }

    // MARK: Descriptions

    /// A text before an address, without the marks that lead to the address.
    private static func before(_ text: Text) -> Text {
        var text = text.drop(while: isSpace)
        while let last = text.last, isSpace(last) || isOpening(last) || leading.contains(last) { text.removeLast() }
        while let first = text.first, let pair = pairs.first(where: { $0.open == first }) {
            let close = text.dropFirst().firstIndex(of: pair.close)
            guard close == nil || close == text.endIndex - 1 else { break }
            text = close == nil ? text.dropFirst() : text.dropFirst().dropLast()
        }
        return text
    }

    /// A text behind an address, without the marks that close it, and those that lead to the next.
    private static func behind(_ text: Text, isLast: Bool) -> Text {
        var text = text.drop(while: isClosing).drop(while: isSpace)
        while let last = text.last, isSpace(last) || !isLast && isOpening(last) { text.removeLast() }
        return text
    }

    /// A text without the marks of a list before it: bullets, numbers, and boxes to be ticked, each with white space behind it.
    private static func withoutMarkers(_ text: Text) -> Text {
        var text = text.drop(while: isSpace)
        while let end = markerEnd(text), end == text.endIndex || isSpace(text[end]) { text = text[end...].drop(while: isSpace) }
        return text
    }

    private static func markerEnd(_ text: Text) -> Int? {
        guard let first = text.first else { return nil }
        if bullets.contains(first) { return text.startIndex + 1 }
        let digits = text.prefix(7).prefix { ("0"..."9").contains($0) }
        if !digits.isEmpty, digits.count < 7, digits.endIndex < text.endIndex {
            return text[digits.endIndex] == "." || text[digits.endIndex] == ")" ? digits.endIndex + 1 : nil
        }
        let box = Array(text.prefix(3))
        guard box.count == 3, box[0] == "[", box[2] == "]", box[1] == " " || box[1] == "x" || box[1] == "X" else { return nil }
        return text.startIndex + 3
    }

    // MARK: Characters

    private static let pairs: [(open: Unicode.Scalar, close: Unicode.Scalar)] = [
        ("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"), ("\"", "\""), ("'", "'"), ("`", "`"), ("“", "”"), ("„", "“"), ("‘", "’"),
        ("«", "»"),
        ("‹", "›"), ("「", "」"), ("『", "』"), ("（", "）"), ("【", "】"), ("《", "》"),
    ]
    private static let emphasis: [Unicode.Scalar] = ["*", "_", "~"]
    private static let punctuation: [Unicode.Scalar] = [".", ",", ";", ":", "!", "?", "…", "。", "、", "，", "．", "；", "：", "！", "？"]
    private static let bullets: [Unicode.Scalar] = ["-", "*", "+", "•", "‣", "◦", "▪", "·", "–", "—", ">", "→", "|"]
    /// Marks between a title and an address.
    private static let leading: [Unicode.Scalar] = [":", "：", "|", "-", "–", "—", "→", "=", ",", ";", ">"]

    private static func isOpening(_ scalar: Unicode.Scalar) -> Bool { emphasis.contains(scalar) || pairs.contains { $0.open == scalar } }

    private static func isClosing(_ scalar: Unicode.Scalar) -> Bool {
        emphasis.contains(scalar) || punctuation.contains(scalar) || pairs.contains { $0.close == scalar }
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool { pairs.contains { $0.open == scalar || $0.close == scalar } }
    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }
    private static func isLetter(_ scalar: Unicode.Scalar) -> Bool { ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) }

    private static func isScheme(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII && TextURL.isScheme(UInt8(truncatingIfNeeded: scalar.value))
    }

    private static func string(_ text: some Sequence<Unicode.Scalar>) -> String {
        var string = String.UnicodeScalarView()
        string.append(contentsOf: text)
        return String(string)
    }
}
