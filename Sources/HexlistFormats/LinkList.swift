import HexlistModel

/// A list of links, one `URL description` a line (`LinkLine`), or text with addresses in it (`TextLinks`); blank lines and those that begin
/// with `#` are passed over.
///
/// OneTab writes `URL | title`, and a blank line between groups: in such a file each group is a hex.
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
                let isAddress = word.url.utf8.contains(UInt8(ascii: ":")) || LinkForm(word.url) == .bareHost
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

    /// Schemes without `://` of which a link is taken whole, though an address may be in it.
    private static let whole = ["mailto", "tel", "sms", "magnet", "javascript", "data", "feed", "view-source", "about", "place"]

    /// The links of a line; empty if there is none.
    /// - Parameter words: its parts by `LinkLine`.
    private static func links(_ line: String, _ words: [LinkLine.Part]) -> [LinkLine.Part] {
        let scheme = words[0].url.utf8.prefix { $0 != UInt8(ascii: ":") }.map(ASCII.lowercased)
        if LinkForm(words[0].url) == .link, whole.contains(where: { $0.utf8.elementsEqual(scheme) }) { return words }
        let found = TextLinks.parts(line)
        if !found.isEmpty { return found }
        let rest = LinkLine.parts(TextLinks.withoutMarkers(line))
        return rest.first.map { LinkForm($0.url) == .link } ?? false ? rest : []
    }

    /// The title of a line of OneTab: all behind ` | `; `nil` for another line.
    private static func title(_ line: String) -> String? {
        let parts = line.split(maxSplits: 2, whereSeparator: \.isWhitespace)
        guard parts.count > 1, parts[1] == "|", LinkForm(String(parts[0])) == .link else { return nil }
        return parts.count > 2 ? String(parts[2]) : ""
    }

    private static func text(_ line: ArraySlice<UInt8>) -> String { String(decoding: line, as: UTF8.self) }
}
