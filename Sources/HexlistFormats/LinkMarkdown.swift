import HexlistModel

/// Markdown: a heading is a hex, a heading of a lower level a hex inside, and `- [title](<link>)` a link. Links of peers that could run code
/// are written as text, `- [title]\(\<link\>)`. Colours, dates and unknown members are not written.
///
/// Underlined headings and all links of a line are read too (`MarkdownLinks`). Text after the only link of an item is its note, or its title
/// if it has none.
public enum LinkMarkdown {
    /// Heading levels of Markdown; deeper hexes get headings of the last.
    private static let levels = 6

    /// - Parameter isMine: see `BookmarkHTML.write`.
    public static func write(_ forest: HexTree, isMine: Bool = false) -> [UInt8] {
        var lines = ""
        let lists = forest.childLists()
        let areOwn = forest.areOwn
        var stack = [lists[forest.hexes.count][...]]
        while let rest = stack.last {
            guard let index = rest.first else {
                stack.removeLast()
                continue
            }
            stack[stack.count - 1] = rest.dropFirst()
            let hex = forest.hexes[index]
            lines +=
                (lines.isEmpty ? "" : "\n") + String(repeating: "#", count: min(stack.count, levels)) + " \(escaped(hex.description))\n"
            if !hex.links.isEmpty { lines += "\n" }
            for link in hex.links {
                let isFollowed = isMine && areOwn[index] || link.isHarmless
                lines += "- [\(escaped(link.title.isEmpty ? link.url : link.title))]"
                lines += isFollowed ? "(<\(target(link.url))>)\n" : "\(textStart)\(escaped(link.url))\(textEnd)\n"
            }
            stack.append(lists[index][...])
        }
        return Array(lines.utf8)
    }

    /// - Parameter name: the description of the hex for links before any heading.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reader = Reader(name: name, references: references(bytes))
        for line in TextLines(bytes) { reader.take(line) }
        reader.addUnused()
        return reader.reading
    }

    /// Reference definitions `[label]: address "title"` by normalised label (`MarkdownLinks.label`). The first of a label counts.
    private static func references(_ bytes: [UInt8]) -> [[UInt8]: MarkdownLinks.Reference] {
        var references: [[UInt8]: MarkdownLinks.Reference] = [:]
        for line in TextLines(bytes) where line.text.first == UInt8(ascii: "[") {
            guard let reference = MarkdownLinks.reference(line.text, line: line.number), references[reference.label] == nil else {
                continue
            }
            references[reference.label] = reference
        }
        return references
    }

    private struct Reader {
        var reading = FileReading()
        private let name: String
        private let references: [[UInt8]: MarkdownLinks.Reference]
        /// The labels that links refer to.
        private var used: Set<[UInt8]> = []
        /// The hex of the latest heading of each level.
        private var open: [Int?] = []
        /// The previous line, if the next one may underline it as a heading.
        private var before: ArraySlice<UInt8>?
        /// The fence that opened a code block and closes it, at least three bytes.
        private var fence: ArraySlice<UInt8>?
        /// Whether the front matter between `---` and `---` at the start of the file is open.
        private var isMetadata = false

        init(name: String, references: [[UInt8]: MarkdownLinks.Reference]) { (self.name, self.references) = (name, references) }

        mutating func take(_ line: TextLines.Line) {
            let text = line.text
            let previous = before
            before = nil
            if line.number == 1, text.elementsEqual("---".utf8) {
                isMetadata = true
            } else if isMetadata, text.elementsEqual("---".utf8) {
                isMetadata = false
            } else if let fence, text.starts(with: fence) {
                self.fence = nil
            } else if fence == nil, let mark = LinkMarkdown.fence(text) {
                fence = mark
            } else if fence == nil, let level = LinkMarkdown.level(text) {
                heading(level, text.dropFirst(level), line.number)
            } else if let previous, fence == nil, !isMetadata, let level = underline(text) {
                heading(level, previous, line.number - 1)
            } else {
                links(line)
            }
        }

        /// The level of the heading that a line of `=`, or of at least three `-`, underlines; `nil` for another line.
        private func underline(_ text: ArraySlice<UInt8>) -> Int? {
            guard let first = text.first, text.allSatisfy({ $0 == first }) else { return nil }
            if first == UInt8(ascii: "=") { return 1 }
            return first == UInt8(ascii: "-") && text.count >= 3 ? 2 : nil
        }

        private mutating func heading(_ level: Int, _ text: ArraySlice<UInt8>, _ line: Int) {
            let parent = open.prefix(level - 1).last { $0 != nil } ?? nil
            open = open.prefix(level - 1) + Array(repeating: nil, count: max(0, level - 1 - open.count)) + [reading.forest.hexes.count]
            let found = MarkdownLinks.all(LinkMarkdown.withoutClosing(MarkupText.trimmed(text)), references)
            used.formUnion(found.labels)
            for image in found.images { reading.skip(.image, image, line: line) }
            let name = MarkupText.trimmed(LinkMarkdown.unescaped(found.plain))
            reading.forest.hexes.append(HexTree.Hex(parent: parent, description: name))
            for link in found.links { add(link, line) }
        }

        private mutating func links(_ line: TextLines.Line) {
            if let own = ownText(line.text) { return add(own, isOwn: true, line.number) }
            let (isItem, text) = MarkdownLinks.item(line.text)
            guard MarkdownLinks.reference(line.text, line: line.number) == nil else { return }
            var found = MarkdownLinks.all(text, references)
            used.formUnion(found.labels)
            for image in found.images { reading.skip(.image, image, line: line.number) }
            if found.links.isEmpty, !text.isEmpty, !isItem { before = text }
            // Text beside the only link of an item describes that link.
            if isItem, found.links.count == 1, !found.rest.isEmpty {
                let rest = LinkMarkdown.unescaped(found.rest)
                if found.links[0].title.isEmpty {
                    found.links[0].title = rest
                } else {
                    found.links[0].extra.append(HexTree.Member("note", rest))
                }
            }
            for link in found.links { add(link, line.number) }
        }

        /// A link that Hexlist wrote as text: `- [title]\(\<link\>)`.
        private func ownText(_ line: ArraySlice<UInt8>) -> HexTree.Link? {
            guard line.starts(with: "- [".utf8), let close = MarkdownLinks.closingBracket(of: line.startIndex + 2, in: line) else {
                return nil
            }
            let after = line[(close + 1)...]
            guard after.starts(with: textStart.utf8),
                after.dropFirst(textStart.utf8.count).suffix(textEnd.utf8.count).elementsEqual(textEnd.utf8)
            else { return nil }
            let text = after.dropFirst(textStart.utf8.count).dropLast(textEnd.utf8.count)
            let title = LinkMarkdown.unescaped(String(decoding: line[(line.startIndex + 3)..<close], as: UTF8.self))
            return MarkdownLinks.link(LinkMarkdown.unescaped(String(decoding: text, as: UTF8.self)), title)
        }

        private mutating func add(_ link: HexTree.Link, isOwn: Bool = false, _ line: Int) {
            if open.isEmpty {
                open = [reading.forest.hexes.count]
                reading.forest.hexes.append(HexTree.Hex(description: name))
            }
            reading.add(link, to: (open.last { $0 != nil } ?? nil) ?? 0, isOwn: isOwn, line: line)
        }

        /// Adds the reference definitions that no link refers to.
        mutating func addUnused() {
            for (label, reference) in references.sorted(by: { $0.value.line < $1.value.line }) where !used.contains(label) {
                add(MarkdownLinks.link(reference.url, reference.title), reference.line)
            }
        }
    }

    /// The fence of at least three marks that opens a code block; `nil` for another line.
    private static func fence(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let mark = line.first, mark == UInt8(ascii: "`") || mark == UInt8(ascii: "~") else { return nil }
        let marks = line.prefix { $0 == mark }
        return marks.count >= 3 && !line[marks.endIndex...].contains(mark) ? marks : nil
    }

    /// The text of a heading without a closing `#` sequence.
    private static func withoutClosing(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let end = text.lastIndex { $0 != UInt8(ascii: "#") }.map { $0 + 1 } ?? text.startIndex
        guard end < text.endIndex, end > text.startIndex, MarkupScanner.isSpace(text[end - 1]) else { return text }
        return MarkupText.trimmed(text[..<end])
    }

    /// The level of a heading by its number of `#`; `nil` for another line.
    private static func level(_ line: ArraySlice<UInt8>) -> Int? {
        let level = line.prefix { $0 == UInt8(ascii: "#") }.count
        return (1...levels).contains(level) && line.dropFirst(level).first.map(MarkupScanner.isSpace) ?? true ? level : nil
    }

    // Delimiters of a link that is written as text. Their escapes keep Markdown from making a link of it.
    private static let textStart = "\\(\\<"
    private static let textEnd = "\\>)"

    static let special = Array("\\`*_[]<>#&!|~$".utf8)

    private static func escaped(_ text: String) -> String {
        var escaped: [UInt8] = []
        for byte in MarkupText.trimmed(TerminalText.clean(text)).utf8 {
            if special.contains(byte) { escaped.append(UInt8(ascii: "\\")) }
            escaped.append(byte)
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    static func unescaped(_ text: String) -> String {
        var (plain, isQuoted): ([UInt8], Bool) = ([], false)
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\\"), !isQuoted {
                isQuoted = true
                continue
            }
            if isQuoted, !ASCII.isPunctuation(byte) { plain.append(UInt8(ascii: "\\")) }
            isQuoted = false
            plain.append(byte)
        }
        if isQuoted { plain.append(UInt8(ascii: "\\")) }
        return String(decoding: plain, as: UTF8.self)
    }

    /// An address for `<…>`, with `<`, `>` and `\` percent-encoded.
    private static func target(_ url: String) -> String {
        var target: [UInt8] = []
        for byte in TerminalText.clean(url).utf8 {
            switch byte {
            case UInt8(ascii: "<"): target += Array("%3C".utf8)
            case UInt8(ascii: ">"): target += Array("%3E".utf8)
            case UInt8(ascii: "\\"): target += Array("%5C".utf8)
            default: target.append(byte)
            }
        }
        return String(decoding: target, as: UTF8.self)
    }
}
