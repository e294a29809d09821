import HexlistModel

/// Finds addresses in a line of running text, such as `- Title: https://a.example/ (old)`.
enum TextLinks {
    typealias Text = ArraySlice<Unicode.Scalar>

    struct Address {
        var range: Range<Int>
        /// False for a host that begins with `www.`.
        var hasScheme: Bool
    }

    /// Divides a line into addresses with a scheme and their descriptions. If the line begins with an address, each description is the text
    /// after its address. Otherwise it is the text before it and, for the last address, also the text after it.
    /// - Returns: a part for each address. An address that is repeated as its own title is one part.
    static func parts(_ line: String) -> [LinkLine.Part] {
        let text = Array(line.unicodeScalars)
        var found = addresses(text, in: text.indices, isPlain: false).filter(\.hasScheme).map(\.range)
        guard let first = found.first else { return [] }
        let head = text[..<first.lowerBound]
        if found.count == 1, withoutMarkers(head).isEmpty {
            // In a line `URL description`, the address extends to the first white space, and only a final comma is removed.
            found = addresses(text, in: text.indices, isPlain: true).filter(\.hasScheme).map(\.range)
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

    /// Returns a line without leading list marks.
    static func withoutMarkers(_ line: String) -> String { string(withoutMarkers(Array(line.unicodeScalars)[...])) }

    // MARK: Addresses

    /// Returns the addresses with `://`, and the hosts that begin with `www.`, in a range of the text.
    /// - Parameter isPlain: whether the text is a single address with its description. Then the address extends to white space; otherwise
    ///   punctuation can also end it.
    static func addresses(_ text: [Unicode.Scalar], in range: Range<Int>, isPlain: Bool) -> [Address] {
        var found: [Address] = []
        var (from, at) = (range.lowerBound, range.lowerBound)
        while at < range.upperBound {
            var address: Address?
            if isSchemeEnd(text, at, range), let start = schemeStart(text, from: from, to: at) {
                address = Address(range: start..<at + 3, hasScheme: true)
            } else if isWWW(text, at, range), at == range.lowerBound || isBoundary(text[at - 1]) {
                address = Address(range: at..<at + 4, hasScheme: false)
            }
            guard var address, address.range.upperBound < range.upperBound, !isSpace(text[address.range.upperBound]) else {
                at += 1
                continue
            }
            let body = address.range.upperBound
            let end = end(text, address.range.lowerBound, body, limit: range.upperBound, isPlain: isPlain)
            address.range = trimmed(address.range.lowerBound..<end, body: body, text, isPlain: isPlain)
            at = max(body, end)
            from = at
            guard end > body, address.hasScheme || isHost(text[address.range]) else { continue }
            at = address.range.upperBound
            from = at
            found.append(address)
        }
        return found
    }

    private static func isSchemeEnd(_ text: [Unicode.Scalar], _ at: Int, _ range: Range<Int>) -> Bool {
        at + 2 < range.upperBound && text[at] == ":" && text[at + 1] == "/" && text[at + 2] == "/"
    }

    /// Returns the offset at which the scheme that ends before `at` begins; `nil` if there is none.
    private static func schemeStart(_ text: [Unicode.Scalar], from: Int, to at: Int) -> Int? {
        var start = at
        while start > from, isScheme(text[start - 1]) { start -= 1 }
        while start < at, !isLetter(text[start]) { start += 1 }
        guard at - start > 1 else { return nil }
        // Text may directly precede `https` or `http`, as in `Title-https://a.example`. With a plus sign it is part of the scheme, as in
        // `git+https`.
        for web in ["https", "http"] where at - start > web.utf8.count {
            let begin = at - web.utf8.count
            if text[begin - 1] != "+", string(text[begin..<at]).lowercased() == web { return begin }
        }
        return start
    }

    private static func isWWW(_ text: [Unicode.Scalar], _ at: Int, _ range: Range<Int>) -> Bool {
        at + 4 < range.upperBound && text[at + 3] == "." && text[at..<at + 3].allSatisfy { $0 == "w" || $0 == "W" }
    }

    /// Whether a host may begin directly after this scalar. After a letter, a digit, `@`, `/` or a similar character, the text is part of a
    /// mail address, a path or another host.
    private static func isBoundary(_ scalar: Unicode.Scalar) -> Bool {
        !isLetter(scalar) && !("0"..."9").contains(scalar) && !["@", "/", ".", "-", "_", "=", "%"].contains(scalar)
    }

    /// Whether a text begins with a host that has at least three labels, such as `www.example.org`.
    private static func isHost(_ text: Text) -> Bool {
        let host = text.prefix { !["/", "?", "#", ":"].contains($0) }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        return labels.count > 2
            && labels.allSatisfy { label in
                !label.isEmpty && label.allSatisfy { !$0.isASCII || isLetter($0) || ("0"..."9").contains($0) || $0 == "-" }
            }
    }

    /// Returns the end of an address: the next white space, or the closing mark if an opening mark such as `(` precedes the address. In
    /// running text, an address also ends at characters that are never part of one, at a closing bracket that was not opened in it, and at
    /// a separator before the next address.
    private static func end(_ text: [Unicode.Scalar], _ start: Int, _ body: Int, limit: Int, isPlain: Bool) -> Int {
        let pair = start > 0 ? pairs.first { $0.open == text[start - 1] } : nil
        let (opener, closer) = (pair?.open, pair?.close)
        var (at, depth) = (body, 0)
        var open = [0, 0, 0]
        while at < limit, !isSpace(text[at]) {
            if !isPlain {
                if ending.contains(text[at]) || isSeparator(text, at, limit) || opener == "<" && text[at] == "|" { break }
                if let kind = openingBrackets.firstIndex(of: text[at]) { open[kind] += 1 }
                if let kind = closingBrackets.firstIndex(of: text[at]) {
                    guard open[kind] > 0 else { break }
                    open[kind] -= 1
                }
            }
            // Between letters, `'` is an apostrophe and not a closing quotation mark.
            let isApostrophe = text[at] == "'" && at + 1 < limit && isLetter(text[at + 1])
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

    /// Whether a comma, semicolon, vertical bar or closing bracket is directly followed by `http://` or `https://`.
    private static func isSeparator(_ text: [Unicode.Scalar], _ at: Int, _ limit: Int) -> Bool {
        guard [",", ";", "|", ")", "]"].contains(text[at]) else { return false }
        return ["http://", "https://"].contains { scheme in
            let end = at + 1 + scheme.unicodeScalars.count
            return end < limit && string(text[(at + 1)..<end]).lowercased() == scheme
        }
    }

    /// Removes trailing punctuation and unopened closing marks from an address.
    /// - Parameter body: the offset after `://`. At least one scalar after it is kept.
    private static func trimmed(_ range: Range<Int>, body: Int, _ text: [Unicode.Scalar], isPlain: Bool) -> Range<Int> {
        var counts: [Unicode.Scalar: Int] = [:]
        for scalar in text[range] where isMark(scalar) { counts[scalar, default: 0] += 1 }
        var end = range.upperBound
        while end > body + 1 {
            let last = text[end - 1]
            let isExtra = isPlain ? last == "," || last == ";" : isPunctuation(last)
            guard isExtra || isUnopened(last, counts, before: range.lowerBound, text) else { break }
            counts[last]? -= 1
            end -= 1
        }
        return range.lowerBound..<end
    }

    /// Whether a closing mark at the end of an address has no matching opening mark in the address.
    private static func isUnopened(
        _ mark: Unicode.Scalar, _ counts: [Unicode.Scalar: Int], before start: Int, _ text: [Unicode.Scalar]
    ) -> Bool {
        if emphasis.contains(mark) { return start > 0 && text[start - 1] == mark }
        guard let pair = pairs.first(where: { $0.close == mark }) else { return false }
        let closed = counts[mark] ?? 0
        return pair.open == pair.close ? closed % 2 == 1 : closed > counts[pair.open] ?? 0
    }

    // MARK: Descriptions

    /// Returns a text without white space at both ends.
    static func trimmed(_ text: Text) -> Text {
        var text = text.drop(while: isSpace)
        while let last = text.last, isSpace(last) { text.removeLast() }
        return text
    }

    /// Returns a text without separators at its end.
    static func withoutLead(_ text: Text) -> Text {
        var text = text
        while let last = text.last, isSpace(last) || leading.contains(last) { text.removeLast() }
        return text
    }

    /// Returns the text before an address without separators and opening marks at its end.
    static func before(_ text: Text) -> Text {
        var text = text.drop(while: isSpace)
        while let last = text.last, isSpace(last) || isOpening(last) || leading.contains(last) { text.removeLast() }
        // Marks that the text does not contain are not searched for again, so that many opening marks take linear time.
        var missing: Set<Unicode.Scalar> = []
        while let first = text.first, let pair = pairs.first(where: { $0.open == first }) {
            let close = missing.contains(pair.close) ? nil : text.dropFirst().firstIndex(of: pair.close)
            if close == nil { missing.insert(pair.close) }
            guard close == nil || close == text.endIndex - 1 else { break }
            text = close == nil ? text.dropFirst() : text.dropFirst().dropLast()
        }
        return text
    }

    /// Returns the text after an address without closing marks at its start and, unless it is the last text of the line, without opening
    /// marks at its end.
    static func behind(_ text: Text, isLast: Bool) -> Text {
        var text = text.drop(while: isClosing).drop(while: isSpace)
        while let last = text.last, isSpace(last) || !isLast && isOpening(last) { text.removeLast() }
        return text
    }

    /// Returns a text without leading list marks: bullets, numbers and check boxes, each followed by white space.
    static func withoutMarkers(_ text: Text) -> Text {
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
    private static let openingBrackets: [Unicode.Scalar] = ["(", "[", "{"]
    private static let closingBrackets: [Unicode.Scalar] = [")", "]", "}"]
    private static let emphasis: [Unicode.Scalar] = ["*", "_", "~"]
    private static let punctuation: [Unicode.Scalar] = [
        ".", ",", ";", ":", "!", "?", "…", "。", "、", "，", "．", "；", "：", "！", "？", "،", "؛", "؟", "।",
    ]
    /// Characters that end an address in running text, because they are never part of one.
    private static let ending = Set("<>\"`“”„«»。、，；：！？（）「」『』【】《》،؛؟।…".unicodeScalars)
    private static let bullets: [Unicode.Scalar] = ["-", "*", "+", "•", "‣", "◦", "▪", "·", "–", "—", ">", "→", "|"]
    /// Separators between a title and an address.
    private static let leading: [Unicode.Scalar] = [":", "：", "|", "-", "–", "—", "→", "=", ",", ";", ">"]

    private static func isOpening(_ scalar: Unicode.Scalar) -> Bool { emphasis.contains(scalar) || pairs.contains { $0.open == scalar } }

    private static func isClosing(_ scalar: Unicode.Scalar) -> Bool {
        emphasis.contains(scalar) || isPunctuation(scalar) || pairs.contains { $0.close == scalar }
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool { pairs.contains { $0.open == scalar || $0.close == scalar } }
    /// Whether a scalar is white space or invisible, such as the direction marks that messengers insert.
    static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || invisible.contains { $0.contains(scalar) }
    }

    private static let invisible: [ClosedRange<Unicode.Scalar>] = [
        "\u{200B}"..."\u{200B}", "\u{200E}"..."\u{200F}", "\u{202A}"..."\u{202E}", "\u{2060}"..."\u{2060}", "\u{2066}"..."\u{2069}",
        "\u{FEFF}"..."\u{FEFF}",
    ]

    static func isPunctuation(_ scalar: Unicode.Scalar) -> Bool { punctuation.contains(scalar) }

    /// Whether a mark closes a pair and does not also open one, as `"` does.
    static func onlyCloses(_ mark: Unicode.Scalar) -> Bool {
        pairs.contains { $0.close == mark } && !pairs.contains { $0.open == mark }
    }

    /// Whether two marks enclose a text: brackets, quotation marks, or Markdown's emphasis.
    static func isPair(_ open: Unicode.Scalar, _ close: Unicode.Scalar) -> Bool {
        pairs.contains { $0.open == open && $0.close == close } || open == close && emphasis.contains(open)
    }

    private static func isLetter(_ scalar: Unicode.Scalar) -> Bool { ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) }

    private static func isScheme(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII && TextURL.isScheme(UInt8(truncatingIfNeeded: scalar.value))
    }

    static func string(_ text: some Sequence<Unicode.Scalar>) -> String {
        var string = String.UnicodeScalarView()
        string.append(contentsOf: text)
        return String(string)
    }
}
