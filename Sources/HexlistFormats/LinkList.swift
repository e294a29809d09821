import HexlistModel

/// A list of links, one `URL description` a line (`LinkLine`); blank lines and those that begin with `#` are passed over.
///
/// OneTab writes `URL | title`, and a blank line between groups: in such a file each group is a hex.
public enum LinkList {
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reading = FileReading()
        let hasGroups = TextLines(bytes).contains { title(text($0.text)) != nil }
        var isNewGroup = true
        for line in TextLines(bytes) where line.text.first != UInt8(ascii: "#") {
            let text = text(line.text)
            let parts = LinkLine.parts(text)
            guard let first = parts.first else {
                isNewGroup = isNewGroup || hasGroups
                continue
            }
            guard LinkForm(first.url) == .link else {
                reading.skip(first.url.utf8.contains(UInt8(ascii: ":")) ? .noScheme : .noLink, text, line: line.number)
                continue
            }
            if isNewGroup {
                let number = reading.forest.hexes.count + 1
                reading.forest.hexes.append(HexForest.Hex(description: number == 1 ? name : "\(name) (\(number))"))
                isNewGroup = false
            }
            let hex = reading.forest.hexes.count - 1
            if let title = title(text) {
                reading.add(HexForest.Link(url: first.url, title: title), to: hex, line: line.number)
            } else {
                for part in parts { reading.add(HexForest.Link(url: part.url, title: part.description), to: hex, line: line.number) }
            }
        }
        return reading
    }

    /// The title of a line of OneTab: all behind ` | `; `nil` for another line.
    private static func title(_ line: String) -> String? {
        let parts = line.split(maxSplits: 2, whereSeparator: \.isWhitespace)
        guard parts.count > 1, parts[1] == "|" else { return nil }
        return parts.count > 2 ? String(parts[2]) : ""
    }

    private static func text(_ line: ArraySlice<UInt8>) -> String { String(decoding: line, as: UTF8.self) }
}
