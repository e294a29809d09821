import HexlistJSON
import HexlistModel

/// Reads bookmark files of Firefox and Chromium in JSON. The browser is recognised by the member names.
enum BrowserJSON {
    /// - Parameter values: the JSON values of the file.
    /// - Returns: `nil` if the file is not from one of these browsers.
    static func bookmarks(_ values: [JSONValue], name: String, _ lines: inout LineNumbers) -> FileReading? {
        var reader = Reader(lines: lines)
        let names = values.first?.names ?? []
        if values.count == 1, isFirefox(names), let root = values.first {
            reader.addFirefox(root, inside: nil, name: name)
        } else if values.count == 1, isChromium(values[0]) {
            for root in values[0].member("roots")?.members ?? [] { reader.addChromium(root.value, root: root.name, inside: nil) }
        } else {
            return nil
        }
        lines = reader.lines
        return reader.reading
    }

    private static func isFirefox(_ names: [String]) -> Bool {
        names.contains("children") && (names.contains("guid") || names.contains("root") || names.contains("type"))
            && !names.contains("links") && !names.contains("url")
    }

    private static func isChromium(_ value: JSONValue) -> Bool {
        value.member("roots")?.names.contains { ["bookmark_bar", "other", "synced"].contains($0) } ?? false
    }

    private struct Reader {
        var reading = FileReading()
        var lines: LineNumbers
        private var loose = UngroupedLinksHex()

        init(lines: LineNumbers) { self.lines = lines }

        /// Adds a folder, bookmark or separator of a Firefox backup. The outermost folder is the file itself. Recursive; JSON is at most
        /// `JSONValue.maximumDepth` levels deep.
        mutating func addFirefox(_ value: JSONValue, inside parent: Int?, name: String) {
            let node = Node(value)
            let (type, code) = (node.text("type"), node["typeCode"]?.integer)
            if type == "text/x-moz-place-separator" || code == 3 { return }
            var extra: [HexTree.Member] = []
            for (member, kept) in [("dateAdded", "addDate"), ("lastModified", "lastModified")] {
                if let date = node[member].flatMap({ BookmarkDate.seconds($0.text) }) { extra.append(.init(kept, date)) }
            }
            if let tags = node.text("tags"), !tags.isEmpty { extra.append(.init("tags", TagList.json(tags, separator: ","))) }
            if let keyword = node.text("keyword"), !keyword.isEmpty { extra.append(.init("keyword", keyword)) }
            let notes = node["annos"]?.elements?.map { Node($0) }.filter { $0.text("name") == "bookmarkProperties/description" } ?? []
            if let note = notes.first?.text("value"), !note.isEmpty { extra.append(.init("note", note)) }
            if let children = node["children"]?.elements ?? (type == "text/x-moz-place-container" || code == 2 ? [] : nil) {
                var hex: Int?
                if parent != nil || node.text("root") != "placesRoot" && node.text("guid") != "root________" {
                    hex = reading.forest.hexes.count
                    if node.text("root") == "toolbarFolder" || node.text("guid") == "toolbar_____" {
                        extra.append(.init("toolbar", JSONValue(true)))
                    }
                    if node.text("root") == "unfiledBookmarksFolder" || node.text("guid") == "unfiled_____" {
                        extra.append(.init("unfiled", JSONValue(true)))
                    }
                    reading.forest.hexes.append(HexTree.Hex(parent: parent, description: node.text("title") ?? "", extra: extra))
                }
                for child in children { addFirefox(child, inside: hex, name: name) }
            } else {
                add(
                    node.text("uri") ?? "", node.text("title") ?? "", extra,
                    to: parent ?? loose.index(in: &reading.forest, description: name), value)
            }
        }

        /// Adds a folder or bookmark of Chromium. Recursive; JSON is at most `JSONValue.maximumDepth` levels deep.
        mutating func addChromium(_ value: JSONValue, root: String?, inside parent: Int?) {
            let node = Node(value)
            var extra: [HexTree.Member] = []
            for (member, kept) in [("date_added", "addDate"), ("date_modified", "lastModified")] {
                // Chromium writes 0 if there is no date.
                if let text = node.text(member), text != "0", let date = BookmarkDate.seconds(text) { extra.append(.init(kept, date)) }
            }
            if let children = node["children"]?.elements {
                if root != nil, children.isEmpty { return }
                let hex = reading.forest.hexes.count
                if root == "bookmark_bar" { extra.append(.init("toolbar", JSONValue(true))) }
                reading.forest.hexes.append(HexTree.Hex(parent: parent, description: node.text("name") ?? root ?? "", extra: extra))
                for child in children { addChromium(child, root: nil, inside: hex) }
            } else if let parent {
                add(node.text("url") ?? "", node.text("name") ?? "", extra, to: parent, value)
            }
        }

        private mutating func add(_ url: String, _ title: String, _ extra: [HexTree.Member], to hex: Int, _ value: JSONValue) {
            var link = HexTree.Link(url: url, title: title, extra: extra)
            link.removeRepeatedTitle()
            reading.add(link, to: hex, line: lines.number(at: value.bytes.startIndex))
        }
    }

    /// A JSON object whose members are parsed only once, for several look-ups.
    private struct Node {
        private let members: [JSONMember]

        init(_ value: JSONValue) { members = value.members ?? [] }

        subscript(_ name: String) -> JSONValue? { members.last { $0.nameBytes.elementsEqual(name.utf8) }?.value }

        func text(_ name: String) -> String? { self[name]?.string }
    }
}

extension JSONValue {
    /// The member names of an object; empty for any other value.
    fileprivate var names: [String] { members?.map(\.name) ?? [] }
}
