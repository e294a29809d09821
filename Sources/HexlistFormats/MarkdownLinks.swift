import HexlistModel

/// Finds the links in a line of Markdown (CommonMark with GitHub's autolinks): `[title](address "text")`, `[title][label]`, `<address>` and
/// plain addresses. Runs in linear time.
enum MarkdownLinks {
    /// A reference definition: `[label]: address "title"`.
    struct Reference {
        var label: [UInt8]
        var url: String
        var title: String
        var line: Int
    }

    struct Found {
        var links: [HexTree.Link] = []
        /// Addresses of images, except images in the title of a link.
        var images: [String] = []
        /// The text outside links and images, without separators at its ends.
        var rest = ""
        /// The line as it is displayed: each link is replaced by its title.
        var plain = ""
        /// Labels of the reference definitions that are used in the line.
        var labels: Set<[UInt8]> = []
    }

    /// Maximum nesting of parentheses in an address (CommonMark requires at least 32), and maximum opening parentheses in a title in
    /// parentheses.
    private static let deepest = 32
    /// Maximum bytes of a label (CommonMark) and of a title. Longer ones are not parsed as part of a link.
    private static let longestLabel = 999
    private static let longestTitle = 4_096

    /// Removes the marks of quotations, list items and tasks from the beginning of a line. Returns whether the line is a list item, and the
    /// rest of the text.
    static func item(_ line: ArraySlice<UInt8>) -> (isItem: Bool, text: ArraySlice<UInt8>) {
        var text = line
        while text.first == UInt8(ascii: ">") { text = text.dropFirst().drop(while: MarkupScanner.isSpace) }
        var isItem = false
        while true {
            let digits = text.prefix(10).prefix(while: ASCII.isDigit)
            let marks = digits.isEmpty ? "-*+" : ".)"
            let rest = text.dropFirst(digits.count)
            guard let mark = rest.first, marks.utf8.contains(mark), rest.dropFirst().first.map(MarkupScanner.isSpace) ?? false else {
                break
            }
            text = rest.dropFirst().drop(while: MarkupScanner.isSpace)
            isItem = true
        }
        if isItem, ["[ ] ", "[x] ", "[X] "].contains(where: { text.starts(with: $0.utf8) }) {
            text = text.dropFirst(4).drop(while: MarkupScanner.isSpace)
        }
        return (isItem, text)
    }

    static func all(_ text: ArraySlice<UInt8>, _ references: [[UInt8]: Reference]) -> Found {
        var found = Found()
        var (rest, plain): ([UInt8], [UInt8]) = ([], [])
        func resolve(_ label: [UInt8]) -> String? {
            guard let reference = references[label] else { return nil }
            found.labels.insert(label)
            return reference.url
        }
        func add(_ link: HexTree.Link) {
            found.links.append(link)
            plain += (link.title.isEmpty ? link.url : link.title).utf8
        }
        let brackets = pairs(text)
        var at = text.startIndex
        while at < text.endIndex {
            let byte = text[at]
            switch byte {
            case UInt8(ascii: "\\") where at + 1 < text.endIndex:
                rest += text[at...(at + 1)]
                plain += text[at...(at + 1)]
                at += 2
                continue
            case UInt8(ascii: "["):
                let isImage = rest.last == UInt8(ascii: "!")
                guard let close = brackets[at], let (url, end) = target(text, behind: close, titled: at, references.isEmpty ? nil : resolve)
                else { break }
                let title = text[(at + 1)..<close]
                if isImage {
                    rest.removeLast()
                    plain.removeLast()
                    found.images.append(url)
                } else {
                    add(link(url, self.title(title)))
                }
                at = end
                continue
            case UInt8(ascii: "<"):
                // An autolink in angle brackets contains no white space.
                let body = text[(at + 1)...].prefix { $0 > 0x20 && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">") }
                guard body.endIndex < text.endIndex, text[body.endIndex] == UInt8(ascii: ">") else { break }
                let url = string(body)
                let isMail = LinkTextKind(url) != .link && url.utf8.contains(UInt8(ascii: "@"))
                guard LinkTextKind(url) == .link || isMail else { break }
                add(HexTree.Link(url: isMail ? "mailto:\(url)" : url))
                at = body.endIndex + 1
                continue
            case _ where TextURL.isScheme(byte):
                // Skips the whole word if no address begins here, so that each word is scanned only once.
                let word = text[at...].prefix(while: TextURL.isScheme)
                if let end = TextURL.end(text, from: at) {
                    add(HexTree.Link(url: string(text[at..<end])))
                    at = end
                } else {
                    rest += word
                    plain += word
                    at = word.endIndex
                }
                continue
            default: break
            }
            rest.append(byte)
            plain.append(byte)
            at += 1
        }
        found.plain = String(decoding: plain, as: UTF8.self)
        found.rest = withoutSeparators(String(decoding: rest, as: UTF8.self))
        return found
    }

    /// Returns the links of the form `[title](scheme://…)` in a line, with their ranges as UTF-8 offsets.
    static func titled(_ line: String) -> [(link: HexTree.Link, range: Range<Int>)] {
        let text = Array(line.utf8)[...]
        let mayHaveLinks = zip(text, text.dropFirst()).contains { $0 == UInt8(ascii: "]") && $1 == UInt8(ascii: "(") }
        guard mayHaveLinks else { return [] }
        let brackets = pairs(text)
        var links: [(link: HexTree.Link, range: Range<Int>)] = []
        var at = 0
        while at < text.endIndex {
            guard text[at] == UInt8(ascii: "["), let close = brackets[at], let (url, end) = target(text, behind: close, titled: at, nil),
                TextURL.end(Array(url.utf8)[...], from: 0) != nil
            else {
                at += 1
                continue
            }
            links.append((link(url, title(text[(at + 1)..<close])), at..<end))
            at = end
        }
        return links
    }

    /// Parses a reference definition, `[label]: address "title"`; `nil` if the line is not one.
    static func reference(_ line: ArraySlice<UInt8>, line number: Int) -> Reference? {
        guard line.first == UInt8(ascii: "["), let close = closingBracket(of: line.startIndex, in: line),
            close + 1 < line.endIndex, line[close + 1] == UInt8(ascii: ":"), close > line.startIndex + 1,
            line[line.startIndex + 1] != UInt8(ascii: "^")
        else { return nil }
        let name = line[(line.startIndex + 1)..<close]
        let rest = MarkupText.trimmed(line[(close + 2)...])
        let address = rest.prefix { !MarkupScanner.isSpace($0) }
        let isBracketed = address.count > 1 && address.first == UInt8(ascii: "<") && address.last == UInt8(ascii: ">")
        let url = string(isBracketed ? address.dropFirst().dropLast() : address)
        guard !url.isEmpty else { return nil }
        let title = MarkupText.trimmed(rest[address.endIndex...])
        // If other text follows the address, the line is an ordinary paragraph.
        guard title.isEmpty || title.count > 1 && "\"'(".utf8.contains(title[title.startIndex]) else { return nil }
        let text = title.isEmpty ? string(name) : string(title.dropFirst().dropLast())
        return Reference(label: label(name), url: url, title: LinkMarkdown.unescaped(text), line: number)
    }

    /// Normalizes a label for comparison: lower case, with single spaces.
    static func label(_ text: ArraySlice<UInt8>) -> [UInt8] {
        Array(string(text).lowercased().split(whereSeparator: \.isWhitespace).joined(separator: " ").utf8)
    }

    static func link(_ url: String, _ title: String) -> HexTree.Link {
        var link = HexTree.Link(url: url, title: title)
        link.removeRepeatedTitle()
        return link
    }

    /// Returns the position of the bracket that closes the one at `open`; `nil` if there is none.
    static func closingBracket(of open: Int, in text: ArraySlice<UInt8>) -> Int? { pairs(text[open...])[open] }

    /// Returns the position of the closing bracket for the position of each opening bracket.
    private static func pairs(_ text: ArraySlice<UInt8>) -> [Int: Int] {
        var pairs: [Int: Int] = [:]
        var open: [Int] = []
        var at = text.startIndex
        while at < text.endIndex {
            switch text[at] {
            case UInt8(ascii: "\\"): at += 1
            case UInt8(ascii: "["): open.append(at)
            case UInt8(ascii: "]"): if let start = open.popLast() { pairs[start] = at }
            default: break
            }
            at += 1
        }
        return pairs
    }

    /// Parses the part of a link after `[title]`: `(address "text")`, `[label]`, or nothing if the title itself is the label. Returns the
    /// address and the end of the link.
    private static func target(
        _ text: ArraySlice<UInt8>, behind close: Int, titled open: Int, _ resolve: (([UInt8]) -> String?)?
    ) -> (url: String, end: Int)? {
        let next = close + 1
        if next < text.endIndex, text[next] == UInt8(ascii: "(") {
            return destination(text, from: next + 1) ?? looseDestination(text, from: next + 1)
        }
        if next < text.endIndex, text[next] == UInt8(ascii: "["), let resolve,
            let end = text[next...].prefix(longestLabel).firstIndex(of: UInt8(ascii: "]"))
        {
            let named = text[(next + 1)..<end]
            let name = named.isEmpty ? text[(open + 1)..<close] : named
            return isLabel(name) ? resolve(label(name)).map { ($0, end + 1) } : nil
        }
        let name = text[(open + 1)..<close]
        guard let resolve, isLabel(name) else { return nil }
        return resolve(label(name)).map { ($0, next) }
    }

    /// Whether a text is a valid label (CommonMark): it is not too long and has no unescaped brackets. The scan stops at the first bracket,
    /// so that nested brackets take linear time.
    private static func isLabel(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.count < longestLabel else { return false }
        var at = text.startIndex
        while at < text.endIndex {
            switch text[at] {
            case UInt8(ascii: "\\"): at += 1
            case UInt8(ascii: "["), UInt8(ascii: "]"): return false
            default: break
            }
            at += 1
        }
        return true
    }

    /// Parses the parenthesized destination of a link: `<address>` or an address with balanced parentheses, then an optional title in
    /// quotation marks or parentheses, and `)`.
    private static func destination(_ text: ArraySlice<UInt8>, from start: Int) -> (url: String, end: Int)? {
        var at = text[start...].firstIndex { !MarkupScanner.isSpace($0) } ?? text.endIndex
        guard at < text.endIndex else { return nil }
        let address: ArraySlice<UInt8>
        if text[at] == UInt8(ascii: "<") {
            guard let end = text[(at + 1)...].firstIndex(where: { $0 == UInt8(ascii: ">") || $0 == UInt8(ascii: "<") }),
                text[end] == UInt8(ascii: ">")
            else { return nil }
            address = text[(at + 1)..<end]
            at = end + 1
        } else {
            let begin = at
            var depth = 0
            while at < text.endIndex, !MarkupScanner.isSpace(text[at]), !(text[at] == UInt8(ascii: ")") && depth == 0) {
                switch text[at] {
                case UInt8(ascii: "\\") where at + 1 < text.endIndex && ASCII.isPunctuation(text[at + 1]): at += 1
                case UInt8(ascii: "("): depth += 1
                case UInt8(ascii: ")"): depth -= 1
                default: break
                }
                guard depth <= deepest else { return nil }
                at += 1
            }
            guard depth == 0 else { return nil }
            address = text[begin..<min(at, text.endIndex)]
        }
        at = text[min(at, text.endIndex)...].firstIndex { !MarkupScanner.isSpace($0) } ?? text.endIndex
        guard at < text.endIndex else { return nil }
        if "\"'(".utf8.contains(text[at]) {
            let mark = text[at]
            let close = mark == UInt8(ascii: "(") ? UInt8(ascii: ")") : mark
            var depth = 0
            let ends = { (byte: UInt8) in
                if byte == mark { depth += 1 }
                return byte == close || depth > deepest
            }
            guard let end = text[(at + 1)...].prefix(longestTitle).firstIndex(where: ends), text[end] == close else { return nil }
            at = text[(end + 1)...].firstIndex { !MarkupScanner.isSpace($0) } ?? text.endIndex
        }
        guard at < text.endIndex, text[at] == UInt8(ascii: ")") else { return nil }
        return (LinkMarkdown.unescaped(string(MarkupText.trimmed(address))), at + 1)
    }

    /// Parses an address that contains spaces, up to the closing parenthesis. CommonMark does not allow it, but cutting the address at the
    /// space would break the link.
    private static func looseDestination(_ text: ArraySlice<UInt8>, from start: Int) -> (url: String, end: Int)? {
        var depth = 0
        for (at, byte) in zip(start..., text[start...].prefix(longestTitle)) {
            if byte == UInt8(ascii: "(") { depth += 1 }
            if byte == UInt8(ascii: ")") { depth -= 1 }
            guard depth <= deepest else { return nil }
            guard depth < 0 else { continue }
            let url = string(MarkupText.trimmed(text[start..<at]))
            return LinkTextKind(url) == .link ? (url, at + 1) : nil
        }
        return nil
    }

    /// Returns the title of a link. If the title is an image, returns its alternative text.
    private static func title(_ text: ArraySlice<UInt8>) -> String {
        if text.starts(with: "![".utf8), let close = closingBracket(of: text.startIndex + 1, in: text) {
            return LinkMarkdown.unescaped(string(text[(text.startIndex + 2)..<close]))
        }
        return LinkMarkdown.unescaped(string(text))
    }

    private static func withoutSeparators(_ text: String) -> String {
        let separators = Set(" \t-–—:|;,")
        var rest = text[...]
        while let first = rest.first, separators.contains(first) { rest.removeFirst() }
        while let last = rest.last, separators.contains(last) { rest.removeLast() }
        return String(rest)
    }

    private static func string(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
