/// Links in text that people write or paste: absolute addresses, Markdown links and hosts that begin with `www.`, and the text around them.
///
/// Mail addresses and other bare hosts stay text. Nothing is lost: each word of the text is in `links` or in `description`, except marks
/// of lists, brackets around an address and the punctuation that leads to it.
public struct LinkText: Sendable, Equatable {
    public struct Link: Sendable, Equatable {
        public var url: String
        public var title: String

        public init(url: String, title: String = "") { (self.url, self.title) = (url, title) }
    }

    /// The links in their order. One that repeats the link before it, as the title of itself, is taken once.
    public private(set) var links: [Link] = []
    /// The text without links, with its line breaks.
    public private(set) var description = ""

    /// Words beside an address are its title in a line that begins with the address or with the mark of a list, and in a text of several
    /// such lines; otherwise they belong to the description.
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

    /// Lines with at most one blank line between two, and none at the ends.
    private static func joined(_ lines: [String]) -> String {
        var kept: [String] = []
        for line in lines where !line.isEmpty || kept.last.map({ !$0.isEmpty }) ?? false { kept.append(line) }
        if kept.last?.isEmpty ?? false { kept.removeLast() }
        return kept.joined(separator: "\n")
    }
}

/// One line of a text, as its links and the texts between them.
struct TextLine {
    private struct Found {
        var link: LinkText.Link
        /// The scalars of the line that the link takes, with brackets around an address.
        var range: Range<Int>
    }

    private let scalars: [Unicode.Scalar]
    private var found: [Found] = []
    /// The offset behind the marks of a list.
    private let start: Int

    /// - Parameter isPlain: as of `TextLinks.addresses`.
    init(_ line: String, isPlain: Bool = false) {
        scalars = Array(line.unicodeScalars)
        start = TextLinks.withoutMarkers(scalars[...]).startIndex
        let isPlain = isPlain && Self.isAddress(scalars, from: start)
        var from = start
        let word = scalars[start...].prefix { !TextLinks.isSpace($0) }
        if LinkScheme.isOpaque(TextLinks.string(word)) {
            found.append(Found(link: LinkText.Link(url: TextLinks.string(word)), range: word.indices))
            from = word.endIndex
        }
        for markdown in MarkdownLinks.titled(line) {
            // Offsets of UTF-8 as offsets of scalars.
            guard let range = Self.scalarRange(markdown.range, in: line), range.lowerBound >= from else { continue }
            addAddresses(from..<range.lowerBound, isPlain)
            let isImage = range.lowerBound > from && scalars[range.lowerBound - 1] == "!"
            found.append(
                Found(
                    link: LinkText.Link(url: markdown.link.url, title: markdown.link.title),
                    range: (isImage ? range.lowerBound - 1 : range.lowerBound)..<range.upperBound))
            from = range.upperBound
        }
        addAddresses(from..<scalars.count, isPlain)
    }

    /// The range of the title in `<address|title>`, as Slack copies links.
    private func slackTitle(behind address: Range<Int>) -> Range<Int>? {
        guard address.lowerBound > start, scalars[address.lowerBound - 1] == "<", address.upperBound < scalars.count,
            scalars[address.upperBound] == "|", let end = scalars[address.upperBound...].firstIndex(of: ">")
        else { return nil }
        return address.upperBound + 1..<end
    }

    /// Whether a word is one address, of which each character counts, also punctuation at its end. Text in other scripts may follow an address
    /// without white space, after a mark of its own.
    private static func isAddress(_ word: [Unicode.Scalar], from start: Int) -> Bool {
        let found = TextLinks.addresses(word, in: word.indices, isPlain: false)
        guard found.count == 1, found[0].range.lowerBound == start else { return false }
        return word[found[0].range.upperBound...].first?.isASCII ?? true
    }

    var hasLinks: Bool { !found.isEmpty }
    var links: [LinkText.Link] { found.map(\.link) }
    var beginsWithLink: Bool { found.first?.range.lowerBound == start }
    var isListItem: Bool { scalars[..<start].contains { !TextLinks.isSpace($0) } }
    /// The line without white space at its ends.
    var text: String { TextLinks.string(TextLinks.trimmed(scalars[...])) }

    private mutating func addAddresses(_ range: Range<Int>, _ isPlain: Bool) {
        for address in TextLinks.addresses(scalars, in: range, isPlain: isPlain) {
            let text = TextLinks.string(scalars[address.range])
            var range = address.range
            while range.lowerBound > start, range.upperBound < scalars.count,
                TextLinks.isPair(scalars[range.lowerBound - 1], scalars[range.upperBound])
            {
                range = (range.lowerBound - 1)..<(range.upperBound + 1)
            }
            var link = LinkText.Link(url: address.hasScheme ? text : "https://\(text)")
            if let title = slackTitle(behind: address.range) {
                link.title = TextLinks.string(TextLinks.trimmed(scalars[title]))
                range = (address.range.lowerBound - 1)..<(title.upperBound + 1)
            }
            found.append(Found(link: link, range: range))
        }
    }

    private static func scalarRange(_ range: Range<Int>, in line: String) -> Range<Int>? {
        let utf8 = line.utf8
        guard let lower = utf8.index(utf8.startIndex, offsetBy: range.lowerBound, limitedBy: utf8.endIndex),
            let upper = utf8.index(utf8.startIndex, offsetBy: range.upperBound, limitedBy: utf8.endIndex)
        else { return nil }
        let scalars = line.unicodeScalars
        let start = scalars.distance(from: scalars.startIndex, to: lower)
        return start..<start + scalars.distance(from: lower, to: upper)
    }

    /// The links with the words beside them as titles, and the words beside links that have a title of their own.
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

    /// The words of the line without its links.
    func textWithoutLinks() -> String {
        var text = ""
        var from = start
        for range in found.map(\.range) + [scalars.count..<scalars.count] {
            var part = TextLinks.trimmed(scalars[from..<range.lowerBound])
            // The marks that lead to a link go with it.
            if !range.isEmpty { part = TextLinks.withoutLead(part) }
            let isAttached = part.first.map { TextLinks.isPunctuation($0) || TextLinks.onlyCloses($0) } ?? true
            if !isAttached, !text.isEmpty { text += " " }
            text += TextLinks.string(part)
            from = range.upperBound
        }
        return text
    }
}
