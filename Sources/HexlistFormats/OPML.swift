import HexlistJSON
import HexlistModel

/// Reads and writes OPML 2.0. An outline with an address (`url`, or `htmlUrl` and `xmlUrl` of a feed) is a link; any other outline is a
/// hex.
public enum OPML {
    /// - Parameter name: the description of the hex for links outside outlines, if the file has no title.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reading = FileReading()
        var scanner = MarkupScanner(bytes)
        var lines = LineNumbers(bytes)
        var (title, text, isTitle): (String, [UInt8], Bool) = (name, [], false)
        /// For each open outline, the index of the hex to which its inner outlines belong; `nil` if there is none.
        var open: [Int?] = []
        var loose = UngroupedLinksHex()
        while let token = scanner.next() {
            switch token {
            case .text(let bytes): if isTitle, text.count < 4_096 { text += bytes }
            case .open(let tag) where tag.element == "title": isTitle = !tag.isClosed
            case .close("title"):
                isTitle = false
                let value = MarkupText.trimmed(MarkupText.decoded(text))
                if !value.isEmpty { title = value }
            case .open(let tag) where tag.element == "outline":
                let hex = open.last ?? nil
                if tag.hasOpenQuote {
                    reading.skip(.openQuote, tag["text"] ?? tag["title"] ?? "", line: lines.number(at: tag.start))
                    // After a missing quotation mark, it is unknown whether the tag has inner outlines. Most outlines have none, so it is
                    // treated as closed.
                } else if let (link, isOwn) = link(tag) {
                    let target = hex ?? loose.index(in: &reading.forest, description: title)
                    reading.add(link, to: target, isOwn: isOwn, line: lines.number(at: tag.start))
                    if !tag.isClosed { open.append(hex) }
                } else {
                    var made = HexTree.Hex(parent: hex, description: tag["text"] ?? tag["title"] ?? "")
                    HexlistAttribute.apply(tag[HexlistAttribute.attribute], to: &made)
                    if !tag.isClosed { open.append(reading.forest.hexes.count) }
                    reading.forest.hexes.append(made)
                }
            case .close("outline"): open.removeLast(min(1, open.count))
            case .open, .close: break
            }
        }
        return reading
    }

    private static func link(_ tag: MarkupScanner.Tag) -> (HexTree.Link, isOwn: Bool)? {
        guard let url = [tag["url"], tag["htmlurl"], tag["xmlurl"]].compactMap(\.self).first(where: { !$0.isEmpty }) else { return nil }
        var link = HexTree.Link(url: url, title: tag["text"] ?? tag["title"] ?? "")
        link.removeRepeatedTitle()
        if let feed = tag["xmlurl"], !feed.isEmpty, !feed.utf8.elementsEqual(url.utf8) { link.extra.append(.init("feed", feed)) }
        if let created = tag["created"], !created.isEmpty {
            link.extra.append(BookmarkDate.member(created, as: "addDate", otherwise: "created"))
        }
        if let note = tag["description"], !note.isEmpty { link.extra.append(.init("note", note)) }
        if let tags = tag["category"], !tags.isEmpty { link.extra.append(.init("tags", TagList.json(tags, separator: ","))) }
        let isOwn = HexlistAttribute.apply(tag[HexlistAttribute.attribute], to: &link)
        return (link, isOwn)
    }

    public static func write(_ forest: HexTree) -> [UInt8] {
        var lines = """
            <?xml version="1.0" encoding="UTF-8"?>
            <opml version="2.0">
              <head><title>Hexlist</title></head>
              <body>

            """
        let lists = forest.childLists()
        var stack = [lists[forest.hexes.count][...]]
        while let rest = stack.last {
            let indent = String(repeating: "  ", count: stack.count + 1)
            guard let index = rest.first else {
                stack.removeLast()
                if !stack.isEmpty { lines += "\(indent.dropLast(2))</outline>\n" }
                continue
            }
            stack[stack.count - 1] = rest.dropFirst()
            let hex = forest.hexes[index]
            lines += "\(indent)<outline text=\"\(MarkupText.escaped(hex.description))\"\(HexlistAttribute.text(of: hex, placed: []))>\n"
            for link in hex.links {
                let title = MarkupText.escaped(link.title.isEmpty ? link.url : link.title)
                lines += "\(indent)  <outline type=\"link\" text=\"\(title)\" url=\"\(MarkupText.escaped(link.url))\""
                lines += "\(HexlistAttribute.text(of: link, placed: [], hasURL: LinkAddress.fault(link.url) == nil))/>\n"
            }
            stack.append(lists[index][...])
        }
        return Array((lines + "  </body>\n</opml>\n").utf8)
    }
}
