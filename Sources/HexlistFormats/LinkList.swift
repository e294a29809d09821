import HexlistModel

/// Reads a list with one link per line, as `URL description` (`LinkLine`) or as text that contains addresses (`TextLinks`). Blank lines and
/// lines that begin with `#` are ignored.
///
/// Files exported by the browser extension OneTab have lines `URL | title` with blank lines between groups. Each group becomes a hex.
public enum LinkList {
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reading = FileReading()
        let hasGroups = TextLines(bytes).contains { title(text($0.text)) != nil }
        var isNewGroup = true
        for line in TextLines(bytes) where line.text.first != UInt8(ascii: "#") {
            let text = text(line.text)
            let words = LinkLine.parts(text)
            guard let word = words.first else {
                isNewGroup = isNewGroup || hasGroups
                continue
            }
            let parts = links(text, words)
            guard !parts.isEmpty else {
                let isAddress = word.url.utf8.contains(UInt8(ascii: ":")) || LinkTextKind(word.url) == .bareHost
                reading.skip(isAddress ? .noScheme : .noLink, text, line: line.number)
                continue
            }
            if isNewGroup {
                let number = reading.forest.hexes.count + 1
                reading.forest.hexes.append(HexTree.Hex(description: number == 1 ? name : "\(name) (\(number))"))
                isNewGroup = false
            }
            let hex = reading.forest.hexes.count - 1
            if let title = title(text) {
                reading.add(HexTree.Link(url: word.url, title: title), to: hex, line: line.number)
            } else {
                for part in parts { reading.add(HexTree.Link(url: part.url, title: part.description), to: hex, line: line.number) }
            }
        }
        return reading
    }

    /// Returns the links of a line; empty if there is none.
    /// - Parameter words: the line as divided by `LinkLine`.
    private static func links(_ line: String, _ words: [LinkLine.Part]) -> [LinkLine.Part] {
        if LinkScheme.isOpaque(words[0].url) { return words }
        let found = TextLinks.parts(line)
        if !found.isEmpty { return found }
        let rest = LinkLine.parts(TextLinks.withoutMarkers(line))
        return rest.first.map { LinkTextKind($0.url) == .link } ?? false ? rest : []
    }

    /// Returns the title in a line of OneTab, which is the text after ` | `; `nil` for any other line.
    private static func title(_ line: String) -> String? {
        let parts = line.split(maxSplits: 2, whereSeparator: \.isWhitespace)
        guard parts.count > 1, parts[1] == "|", LinkTextKind(String(parts[0])) == .link else { return nil }
        return parts.count > 2 ? String(parts[2]) : ""
    }

    private static func text(_ line: ArraySlice<UInt8>) -> String { String(decoding: line, as: UTF8.self) }
}
