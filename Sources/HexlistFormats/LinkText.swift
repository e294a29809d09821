import HexlistModel

/// A list of links, one `URL description` a line; blank lines and those that begin with `#` are passed over.
public enum LinkList {
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reading = FileReading()
        reading.forest.hexes.append(HexForest.Hex(description: name))
        for line in TextLines.of(bytes) where line.first != UInt8(ascii: "#") && !line.isEmpty {
            let address = line.prefix { !MarkupScanner.isSpace($0) }
            let title = MarkupText.trimmed(String(decoding: line[address.endIndex...], as: UTF8.self))
            guard address.contains(UInt8(ascii: ":")) else {
                reading.skip(.noLink, String(decoding: line, as: UTF8.self))
                continue
            }
            reading.add(HexForest.Link(url: String(decoding: address, as: UTF8.self), title: title), to: 0)
        }
        if reading.forest.hexes[0].links.isEmpty { reading.forest.hexes = [] }
        return reading
    }
}

/// Markdown: a heading is a hex, one of a lower level a hex inside, and each `- [title](<link>)` a link. A link that is not to be clicked is
/// text, `- [title]\(\<link\>)`. For people to read: colours, dates and unknown members are not in it.
public enum LinkMarkdown {
    /// Markdown's own; hexes further inside have headings of the last.
    private static let levels = 6

    /// - Parameter isMine: as of `BookmarkHTML.write`.
    public static func write(_ forest: HexForest, isMine: Bool = false) -> [UInt8] {
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

    /// - Parameter name: what a hex of links before the first heading is called.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reading = FileReading()
        /// The hex of the last heading of each level.
        var open: [Int?] = []
        for line in TextLines.of(bytes) {
            let level = line.prefix { $0 == UInt8(ascii: "#") }.count
            if (1...levels).contains(level), line.dropFirst(level).first.map(MarkupScanner.isSpace) ?? true {
                let parent = open.prefix(level - 1).last { $0 != nil } ?? nil
                open = open.prefix(level - 1) + Array(repeating: nil, count: max(0, level - 1 - open.count)) + [reading.forest.hexes.count]
                let text = MarkupText.trimmed(String(decoding: line.dropFirst(level), as: UTF8.self))
                reading.forest.hexes.append(HexForest.Hex(parent: parent, description: unescaped(text)))
            } else if let link = link(line) {
                if open.isEmpty {
                    open = [reading.forest.hexes.count]
                    reading.forest.hexes.append(HexForest.Hex(description: name))
                }
                reading.add(link, to: (open.last { $0 != nil } ?? nil) ?? 0)
            }
        }
        return reading
    }

    /// `- [title](<url>)`, `* [title](url)`, `<url>`
    private static func link(_ line: ArraySlice<UInt8>) -> HexForest.Link? {
        guard let bullet = line.first, [UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "+")].contains(bullet) else { return nil }
        let rest = line.dropFirst().drop(while: MarkupScanner.isSpace)
        guard rest.first == UInt8(ascii: "[") else {
            guard rest.first == UInt8(ascii: "<"), let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return nil }
            return HexForest.Link(url: String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self))
        }
        var at = rest.startIndex + 1
        while at < rest.endIndex, rest[at] != UInt8(ascii: "]") { at += rest[at] == UInt8(ascii: "\\") ? 2 : 1 }
        guard at + 1 < rest.endIndex else { return nil }
        let title = unescaped(String(decoding: rest[(rest.startIndex + 1)..<at], as: UTF8.self))
        let after = rest[(at + 1)...]
        if after.starts(with: textStart.utf8), after.dropFirst(textStart.utf8.count).suffix(textEnd.utf8.count).elementsEqual(textEnd.utf8)
        {
            let text = after.dropFirst(textStart.utf8.count).dropLast(textEnd.utf8.count)
            return link(unescaped(String(decoding: text, as: UTF8.self)), title)
        }
        guard rest[at + 1] == UInt8(ascii: "(") else { return nil }
        let isQuoted = at + 2 < rest.endIndex && rest[at + 2] == UInt8(ascii: "<")
        let start = at + (isQuoted ? 3 : 2)
        guard let end = rest[start...].firstIndex(of: UInt8(ascii: isQuoted ? ">" : ")")) else { return nil }
        return link(String(decoding: rest[start..<end], as: UTF8.self), title)
    }

    private static func link(_ url: String, _ title: String) -> HexForest.Link {
        HexForest.Link(url: url, title: title.utf8.elementsEqual(url.utf8) ? "" : title)
    }

    // Around a link that is text. The escapes keep Markdown from making a link of it.
    private static let textStart = "\\(\\<"
    private static let textEnd = "\\>)"

    private static let special = Array("\\`*_[]<>#&!|~$".utf8)

    private static func escaped(_ text: String) -> String {
        var escaped: [UInt8] = []
        for byte in MarkupText.trimmed(TerminalText.clean(text)).utf8 {
            if special.contains(byte) { escaped.append(UInt8(ascii: "\\")) }
            escaped.append(byte)
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    private static func unescaped(_ text: String) -> String {
        var (plain, isQuoted): ([UInt8], Bool) = ([], false)
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\\"), !isQuoted {
                isQuoted = true
                continue
            }
            if isQuoted, !special.contains(byte) { plain.append(UInt8(ascii: "\\")) }
            isQuoted = false
            plain.append(byte)
        }
        return String(decoding: plain, as: UTF8.self)
    }

    /// A link in `<` and `>`: what would end it is percent-encoded.
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

enum TextLines {
    /// The lines without white space at either end.
    static func of(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        return bytes[start...].split(omittingEmptySubsequences: true) { $0 == 0x0A || $0 == 0x0D }.map { line in
            let begun = line.drop(while: MarkupScanner.isSpace)
            let end = begun.lastIndex { !MarkupScanner.isSpace($0) } ?? begun.startIndex - 1
            return begun[begun.startIndex...max(begun.startIndex - 1, end)]
        }
    }
}
