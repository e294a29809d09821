import HexlistModel

/// Reads XBEL, the bookmark format of Konqueror, Falkon, qutebrowser, Floccus and feed readers: `<folder>` is a hex, `<bookmark href="…">`
/// a link. Export is not supported.
public enum XBEL {
    /// - Parameter name: the description of the hex for links outside folders, if the file has no title.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reader = Reader(name: name, lines: LineNumbers(bytes))
        var scanner = MarkupScanner(bytes)
        while let token = scanner.next() { reader.take(token) }
        reader.endBookmark()
        return reader.reading
    }

    private struct Reader {
        var reading = FileReading()
        var lines: LineNumbers
        private var name: String
        /// The index of the hex of each open folder, outermost first.
        private var open: [Int] = []
        private var loose = UngroupedLinksHex()
        private var bookmark: (link: HexTree.Link, line: Int)?
        /// The text of the open `<title>` or `<desc>`; `nil` outside these elements.
        private var text: [UInt8]?

        init(name: String, lines: LineNumbers) { (self.name, self.lines) = (name, lines) }

        mutating func take(_ token: MarkupScanner.Token) {
            switch token {
            case .text(let bytes):
                if let count = text?.count, count <= FileReading.textBytes { text? += bytes }
            case .open(let tag):
                switch tag.element {
                case "folder":
                    endBookmark()
                    guard !tag.isClosed else { return }
                    open.append(reading.forest.hexes.count)
                    reading.forest.hexes.append(HexTree.Hex(parent: open.dropLast().last, extra: dates(tag)))
                case "bookmark":
                    endBookmark()
                    let line = lines.number(at: tag.start)
                    guard !tag.hasOpenQuote else { return reading.skip(.openQuote, tag["href"] ?? "", line: line) }
                    bookmark = (HexTree.Link(url: tag["href"] ?? "", extra: dates(tag)), line)
                    if tag.isClosed { endBookmark() }
                case "title", "desc": text = tag.isClosed ? nil : []
                default: break
                }
            case .close("title"): takeText { $0.takeTitle($1) }
            case .close("desc"): takeText { $0.takeNote($1) }
            case .close("bookmark"): endBookmark()
            case .close("folder"):
                endBookmark()
                open.removeLast(min(1, open.count))
            case .close: break
            }
        }

        private func dates(_ tag: MarkupScanner.Tag) -> [HexTree.Member] {
            guard let added = tag["added"], !added.isEmpty else { return [] }
            return [BookmarkDate.member(added, as: "addDate", otherwise: "created")]
        }

        private mutating func takeText(_ take: (inout Self, String) -> Void) {
            guard let bytes = text else { return }
            text = nil
            let value = MarkupText.trimmed(MarkupText.decoded(bytes))
            if !value.isEmpty { take(&self, value) }
        }

        private mutating func takeTitle(_ title: String) {
            if let bookmark {
                // Only the first title is used. A later one belongs to the bookmark's metadata.
                if bookmark.link.title.isEmpty { self.bookmark?.link.title = title }
            } else if let hex = open.last {
                if reading.forest.hexes[hex].description.isEmpty { reading.forest.hexes[hex].description = title }
            } else if loose.index == nil {
                name = title
            }
        }

        private mutating func takeNote(_ note: String) {
            if bookmark != nil {
                bookmark?.link.extra.append(HexTree.Member("note", note))
            } else if let hex = open.last {
                reading.forest.hexes[hex].extra.append(HexTree.Member("note", note))
            }
        }

        /// Adds the open bookmark; does nothing if none is open.
        mutating func endBookmark() {
            text = nil
            guard var (link, line) = bookmark else { return }
            bookmark = nil
            link.removeRepeatedTitle()
            reading.add(link, to: open.last ?? loose.index(in: &reading.forest, description: name), line: line)
        }
    }
}
