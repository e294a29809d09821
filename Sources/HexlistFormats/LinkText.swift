/// Finds links in text that people type or paste: absolute addresses, Markdown links and hosts that begin with `www.`. Separates them from
/// the surrounding text.
///
/// Mail addresses and other hosts without a scheme are not links. Every word of the text is kept in `links` or in `description`; only list
/// marks, brackets around an address, and punctuation before it are removed.
public struct LinkText: Sendable, Equatable {
    public struct Link: Sendable, Equatable {
        public var url: String
        public var title: String

        public init(url: String, title: String = "") { (self.url, self.title) = (url, title) }
    }

    /// The links in the order of the text. If an address is repeated as its own title, it is one link.
    public private(set) var links: [Link] = []
    /// The text without the links, with its line breaks.
    public private(set) var description = ""

    /// Decides for each line with links whether the words next to a link are its title: they are if the line begins with a link, if it is a
    /// list item, or if several lines have links. Otherwise the words belong to the description.
    public init(_ text: some StringProtocol) {
        let isPlain = !text.unicodeScalars.contains(where: TextLinks.isSpace)
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map { TextLine(String($0), isPlain: isPlain) }
        let describesLinks = lines.count(where: \.hasLinks) > 1
        var rest: [String] = []
        for line in lines {
            guard line.hasLinks else {
                rest.append(line.text)
                continue
            }
            if describesLinks || line.beginsWithLink || line.isListItem {
                let (found, note) = line.titledLinks()
                add(found)
                if !note.isEmpty { rest.append(note) }
            } else {
                add(line.links)
                rest.append(line.textWithoutLinks())
            }
        }
        description = Self.joined(rest)
    }

    private mutating func add(_ found: [Link]) {
        for link in found {
            if let last = links.last, last.url.utf8.elementsEqual(link.url.utf8), last.title.isEmpty { links.removeLast() }
            links.append(link)
        }
    }

    /// Joins lines. Reduces consecutive blank lines to one and removes them at both ends.
    private static func joined(_ lines: [String]) -> String {
        var kept: [String] = []
        for line in lines where !line.isEmpty || kept.last.map({ !$0.isEmpty }) ?? false { kept.append(line) }
        if kept.last?.isEmpty ?? false { kept.removeLast() }
        return kept.joined(separator: "\n")
    }
}

/// A line of text, divided into links and the text between them.
struct TextLine {
    private struct FoundLink {
        var link: LinkText.Link
        /// The part of the line that the link replaces, including brackets around the address, as offsets of Unicode scalars.
        var range: Range<Int>
    }

    private let scalars: [Unicode.Scalar]
    private var found: [FoundLink] = []
    /// The offset of the first scalar after the list marks.
    private let start: Int

    /// - Parameter isPlain: whether the text is a single word. If it is an address, punctuation at its end is part of it
    ///   (`TextLinks.addresses`).
    init(_ line: String, isPlain: Bool = false) {
        scalars = Array(line.unicodeScalars)
        start = TextLinks.withoutMarkers(scalars[...]).startIndex
        let isPlain = isPlain && Self.isAddress(scalars, from: start)
        var from = start
        let word = scalars[start...].prefix { !TextLinks.isSpace($0) }
        if LinkScheme.isOpaque(TextLinks.string(word)) {
            found.append(FoundLink(link: LinkText.Link(url: TextLinks.string(word)), range: word.indices))
            from = word.endIndex
        }
        // Markdown links have ascending offsets in UTF-8, which are converted to offsets in Unicode scalars in one pass.
        var position = (scalars: from, utf8: scalars[..<from].reduce(0) { $0 + UTF8.width($1) })
        func advance(to utf8: Int) -> Int {
            while position.utf8 < utf8 {
                position.utf8 += UTF8.width(scalars[position.scalars])
                position.scalars += 1
            }
            return position.scalars
        }
        for markdown in MarkdownLinks.titled(line) where markdown.range.lowerBound >= position.utf8 {
            let range = advance(to: markdown.range.lowerBound)..<advance(to: markdown.range.upperBound)
            addAddresses(from..<range.lowerBound, isPlain)
            let isImage = range.lowerBound > (found.last?.range.upperBound ?? from) && scalars[range.lowerBound - 1] == "!"
            found.append(
                FoundLink(
                    link: LinkText.Link(url: markdown.link.url, title: markdown.link.title),
                    range: (isImage ? range.lowerBound - 1 : range.lowerBound)..<range.upperBound))
            from = range.upperBound
        }
        addAddresses(from..<scalars.count, isPlain)
    }

    /// Returns the range of the title in `<address|title>`, the form in which Slack copies links; `nil` if there is no title within `part`.
    /// A title has no `<`.
    private func slackTitle(behind address: Range<Int>, within part: Range<Int>) -> Range<Int>? {
        guard address.lowerBound > part.lowerBound, scalars[address.lowerBound - 1] == "<", address.upperBound < part.upperBound,
            scalars[address.upperBound] == "|",
            let end = scalars[address.upperBound..<part.upperBound].firstIndex(where: { $0 == ">" || $0 == "<" }), scalars[end] == ">"
        else { return nil }
        return address.upperBound + 1..<end
    }

    /// Whether the whole word is a single address, so that punctuation at its end is part of it. False if a non-ASCII character follows the
    /// address, because other scripts do not always put white space after it.
    private static func isAddress(_ word: [Unicode.Scalar], from start: Int) -> Bool {
        let found = TextLinks.addresses(word, in: word.indices, isPlain: false)
        guard found.count == 1, found[0].range.lowerBound == start else { return false }
        return word[found[0].range.upperBound...].first?.isASCII ?? true
    }

    var hasLinks: Bool { !found.isEmpty }
    var links: [LinkText.Link] { found.map(\.link) }
    var beginsWithLink: Bool { found.first?.range.lowerBound == start }
    var isListItem: Bool { scalars[..<start].contains { !TextLinks.isSpace($0) } }
    /// The line without white space at both ends.
    var text: String { TextLinks.string(TextLinks.trimmed(scalars[...])) }

    /// Adds the addresses in a part of the line that has no Markdown link. The range of each lies within the part, so that ranges never
    /// overlap.
    private mutating func addAddresses(_ part: Range<Int>, _ isPlain: Bool) {
        // The end of the last link with its marks. An address inside it, such as one in a title, is not a link of its own.
        var end = part.lowerBound
        for address in TextLinks.addresses(scalars, in: part, isPlain: isPlain) where address.range.lowerBound >= end {
            let text = TextLinks.string(scalars[address.range])
            var range = address.range
            while range.lowerBound > end, range.upperBound < part.upperBound,
                TextLinks.isPair(scalars[range.lowerBound - 1], scalars[range.upperBound])
            {
                range = (range.lowerBound - 1)..<(range.upperBound + 1)
            }
            var link = LinkText.Link(url: address.hasScheme ? text : "https://\(text)")
            if let title = slackTitle(behind: address.range, within: part) {
                link.title = TextLinks.string(TextLinks.trimmed(scalars[title]))
                range = (address.range.lowerBound - 1)..<(title.upperBound + 1)
            }
            found.append(FoundLink(link: link, range: range))
            end = range.upperBound
        }
    }

    /// Returns the links with the words next to them as titles. The words next to links that already have a title are returned as `rest`.
    func titledLinks() -> (links: [LinkText.Link], rest: String) {
        var links = links
        let behind = beginsWithLink
        var rest: [String] = []
        for (index, each) in found.enumerated() {
            let before = TextLinks.before(scalars[(index == 0 ? start : found[index - 1].range.upperBound)..<each.range.lowerBound])
            let next = index + 1 < found.count ? found[index + 1].range.lowerBound : scalars.count
            let after = TextLinks.behind(scalars[each.range.upperBound..<next], isLast: index + 1 == found.count)
            var words: [String] = []
            if !behind { words.append(TextLinks.string(index == 0 ? before : TextLinks.behind(before, isLast: true))) }
            if behind || index + 1 == found.count { words.append(TextLinks.string(after)) }
            let title = words.filter { !$0.isEmpty }.joined(separator: " ")
            if links[index].title.isEmpty { links[index].title = title } else if !title.isEmpty { rest.append(title) }
        }
        return (links, rest.joined(separator: " "))
    }

    /// Returns the line's text without its links.
    func textWithoutLinks() -> String {
        var text = ""
        var from = start
        for range in found.map(\.range) + [scalars.count..<scalars.count] {
            var part = TextLinks.trimmed(scalars[from..<range.lowerBound])
            // Punctuation that introduces a link is removed together with the link.
            if !range.isEmpty { part = TextLinks.withoutLead(part) }
            let isAttached = part.first.map { TextLinks.isPunctuation($0) || TextLinks.onlyCloses($0) } ?? true
            if !isAttached, !text.isEmpty { text += " " }
            text += TextLinks.string(part)
            from = range.upperBound
        }
        return text
    }
}
