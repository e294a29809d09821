import HexlistModel

/// Reads and writes Markdown. A heading is a hex, a heading below it is a hex inside that hex, and `- [title](<link>)` is a link. Links of
/// peers whose scheme can run code are written as text, `- [title]\(\<link\>)`. Colours, dates and unknown members are not written.
///
/// The reader also accepts underlined headings and any links in a line (`MarkdownLinks`). If a list item has one link, the text after it
/// becomes the link's note, or its title if it has none.
public enum LinkMarkdown {
    /// Number of heading levels in Markdown. Hexes nested deeper get headings of the lowest level.
    private static let levels = 6

    /// - Parameter isMine: whether a hex without a sender is the user's own. Links in such hexes stay links, even if their scheme can run
    ///   code.
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

    /// - Parameter name: the description of the hex for links before the first heading.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reader = Reader(name: name, references: references(bytes))
        for line in TextLines(bytes) { reader.take(line) }
        reader.addUnused()
        return reader.reading
    }

    /// Collects the reference definitions, `[label]: address "title"`, by normalized label (`MarkdownLinks.label`). The first definition of
    /// a label is used.
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
        /// Labels of the reference definitions that a link has used.
        private var used: Set<[UInt8]> = []
        /// The index of the open hex at each heading level; `nil` for a skipped level.
        private var open: [Int?] = []
        /// The previous line, if the next line could be its underline and thus make it a heading.
        private var before: ArraySlice<UInt8>?
        /// The three or more backticks or tildes that opened the current code block and also close it; `nil` outside code blocks.
        private var fence: ArraySlice<UInt8>?
        /// Whether the current line is in the front matter, which is enclosed in `---` at the start of the file.
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

        /// Returns the heading level that an underline gives to the line above: 1 for `=`, 2 for three or more `-`; `nil` if the line is
        /// not an underline.
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
            // In a list item with one link, the other text belongs to the link.
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

        /// Parses a link that Hexlist wrote as text, `- [title]\(\<link\>)`; `nil` for any other line.
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

        /// Adds the reference definitions that no link uses as links of their own.
        mutating func addUnused() {
            for (label, reference) in references.sorted(by: { $0.value.line < $1.value.line }) where !used.contains(label) {
                add(MarkdownLinks.link(reference.url, reference.title), reference.line)
            }
        }
    }

    /// Returns the three or more backticks or tildes that open a code block; `nil` if the line does not open one.
    private static func fence(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let mark = line.first, mark == UInt8(ascii: "`") || mark == UInt8(ascii: "~") else { return nil }
        let marks = line.prefix { $0 == mark }
        return marks.count >= 3 && !line[marks.endIndex...].contains(mark) ? marks : nil
    }

    /// Returns the text of a heading without a closing sequence of `#`.
    private static func withoutClosing(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let end = text.lastIndex { $0 != UInt8(ascii: "#") }.map { $0 + 1 } ?? text.startIndex
        guard end < text.endIndex, end > text.startIndex, MarkupScanner.isSpace(text[end - 1]) else { return text }
        return MarkupText.trimmed(text[..<end])
    }

    /// Returns the heading level of a line, which is its number of leading `#`; `nil` if it is not a heading.
    private static func level(_ line: ArraySlice<UInt8>) -> Int? {
        let level = line.prefix { $0 == UInt8(ascii: "#") }.count
        return (1...levels).contains(level) && line.dropFirst(level).first.map(MarkupScanner.isSpace) ?? true ? level : nil
    }

    // Delimiters around a link that is written as text. Because they are escaped, Markdown does not render the text as a link.
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

    /// Formats an address for use between `<` and `>`: percent-encodes `<`, `>` and `\`.
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
