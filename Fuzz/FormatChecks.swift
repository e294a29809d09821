// Invariants of imported files, however malformed: no trap, no invented URLs, and each entry is either imported or counted as omitted. The
// format targets call `check`.

enum FormatChecks {
    static func check(_ format: FileFormat, _ bytes: [UInt8]) {
        guard let text = try? DecodedText(bytes).bytes else { return }
        _ = FileFormat.of(text, name: "file")
        guard let reading = format.read(text, name: "name") else { return }
        check(reading)
        let places = readable(format, text)
        for url in places == nil ? [] : reading.forest.hexes.flatMap({ $0.links.map(\.url) }) {
            guard occurs(plain(format, url), in: places ?? []) else { fatalError("an address is not in the file: \(url)") }
        }
        let seen = entries(format, text)
        guard reading.forest.linkCount + skipped(reading) >= seen else {
            fatalError("\(seen) entries: \(reading.forest.linkCount) taken, \(skipped(reading)) left out")
        }
    }

    /// A folder comes after its parent, and each hex is one line of JSON.
    static func check(_ reading: FileReading) {
        for (index, hex) in reading.forest.hexes.enumerated() {
            guard hex.parent ?? -1 < index else { fatalError("a hex stands before the one it is in") }
        }
        for skip in reading.skipped {
            guard skip.items.count == min(skip.count, FileReading.Skip.shown), skip.items.allSatisfy({ $0.line > 0 }) else {
                fatalError("what was left out is not counted")
            }
        }
        var count = 0
        for line in reading.forest.divided() {
            guard !line.bytes.contains(0x0A) else { fatalError("a hex has several lines") }
            var tree = HexTree()
            tree.append(line)
            count += tree.linkCount
        }
        guard count == reading.forest.linkCount else { fatalError("\(count) links of \(reading.forest.linkCount) are sent") }
    }

    private static func skipped(_ reading: FileReading) -> Int { reading.skipped.reduce(0) { $0 + $1.count } }

    /// The text that contains each URL literally; `nil` if the format allows other spellings.
    private static func readable(_ format: FileFormat, _ text: [UInt8]) -> [UInt8]? {
        switch format {
        case .html, .opml, .xbel:
            // The attribute `data-hexlist` has URLs as JSON strings, which can have escapes.
            let mark = Array("data-hexlist".utf8)
            return occurs(mark, in: text.map(ASCII.lowercased)) ? nil : Array(MarkupText.decoded(text).utf8)
        case .csv, .markdown, .list, .json, .ndjson: return plain(format, text)
        }
    }

    private static func plain(_ format: FileFormat, _ url: String) -> [UInt8] {
        var bytes = Array(url.utf8)
        // The file does not contain the scheme of `<ada@example.org>`.
        if format == .markdown, url.hasPrefix("mailto:") { bytes.removeFirst(7) }
        return plain(format, bytes)
    }

    /// The text without the escape characters of the format.
    private static func plain(_ format: FileFormat, _ bytes: [UInt8]) -> [UInt8] {
        switch format {
        case .csv: bytes.filter { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "'") }
        case .markdown: bytes.filter { $0 != UInt8(ascii: "\\") }
        default: bytes
        }
    }

    static func occurs(_ part: [UInt8], in text: [UInt8]) -> Bool {
        guard let first = part.first else { return true }
        return text.indices.contains { text[$0] == first && text[$0...].starts(with: part) }
    }

    /// The imported and omitted entries of a file.
    private static func entries(_ format: FileFormat, _ text: [UInt8]) -> Int {
        var count = 0
        switch format {
        case .html, .opml, .xbel:
            var scanner = MarkupScanner(text)
            while let token = scanner.next() {
                guard case .open(let tag) = token, tag[HexlistAttribute.attribute] == nil else { continue }
                let names: [StaticString] = format == .opml ? ["url", "xmlurl", "htmlurl"] : ["href"]
                guard tag.element == (format == .html ? "a" : format == .xbel ? "bookmark" : "outline") else { continue }
                let addresses = names.map { tag[$0] }
                if addresses.contains(where: { !($0 ?? "").isEmpty }) { count += 1 }
            }
        case .list:
            for line in TextLines(text) where line.text.first != UInt8(ascii: "#") {
                if !LinkLine.parts(String(decoding: line.text, as: UTF8.self)).isEmpty { count += 1 }
            }
        case .csv, .markdown, .json, .ndjson: break
        }
        return count
    }
}
