import HexlistJSON
import HexlistModel

/// JSON of other programs, known by the members it has.
enum ForeignJSON {
    /// - Parameter values: the values of a file.
    /// - Returns: `nil` for JSON that is not that of a program whose bookmarks are read.
    static func bookmarks(_ values: [JSONValue], name: String, _ lines: inout LineNumbers) -> FileReading? {
        var reader = Reader(lines: lines)
        let names = values.first?.names ?? []
        if values.count == 1, isFirefox(names), let root = values.first {
            reader.addFirefox(root, inside: nil, name: name)
        } else if values.count == 1, isChromium(values[0]) {
            for root in values[0].member("roots")?.members ?? [] { reader.addChromium(root.value, root: root.name, inside: nil) }
        } else if !elements(values).isEmpty, elements(values).allSatisfy({ isPinboard($0.names) }) {
            reader.reading.forest.hexes.append(HexTree.Hex(description: name))
            for element in elements(values) { reader.addPinboard(element) }
        } else {
            return nil
        }
        lines = reader.lines
        return reader.reading
    }

    /// The program that wrote a file; `nil` if it is not known.
    static func program(_ values: [JSONValue]) -> String? {
        guard let first = values.first else { return nil }
        if let found = programs.first(where: { $0.isWrapper && $0.matches(first.names) }) { return found.name }
        // Otherwise the entries of its lists show the program.
        var lists = [elements(values)] + (first.members ?? []).map { $0.value.elements ?? $0.value.members?.map(\.value) ?? [] }
        lists += (first.member("_embedded")?.members ?? []).map { $0.value.elements ?? [] }
        for list in lists {
            guard let names = list.first(where: { $0.members != nil })?.names else { continue }
            if let found = programs.first(where: { !$0.isWrapper && $0.matches(names) }) { return found.name }
        }
        return nil
    }

    /// The entries of a file: of its array, or the values that stand in it one after the other.
    private static func elements(_ values: [JSONValue]) -> [JSONValue] { values.count == 1 ? values[0].elements ?? values : values }

    private struct Program {
        var name: String
        /// Names of which an object has all.
        var members: [String]
        /// Whether the object is the file, and not an entry in it.
        var isWrapper = false

        func matches(_ names: [String]) -> Bool { members.allSatisfy(names.contains) }
    }

    /// The first that matches counts.
    private static let programs = [
        Program(name: "a session of Firefox", members: ["windows", "selectedWindow"], isWrapper: true),
        Program(name: "Session Buddy", members: ["sessions"], isWrapper: true),
        Program(name: "Session Buddy", members: ["collections", "format"], isWrapper: true),
        Program(name: "Linkwarden", members: ["collections"], isWrapper: true),
        Program(name: "Readability", members: ["bookmarks", "recommendations"], isWrapper: true),
        Program(name: "Pocket", members: ["list", "status"], isWrapper: true),
        Program(name: "wallabag", members: ["_embedded"], isWrapper: true),
        Program(name: "Readability", members: ["article__url"]),
        Program(name: "Readability", members: ["article__title"]),
        Program(name: "wallabag", members: ["is_archived", "url"]),
        Program(name: "Pocket", members: ["given_url"]),
        Program(name: "Pocket", members: ["resolved_url"]),
        Program(name: "Pocket", members: ["item_id", "url"]),
        Program(name: "Instapaper", members: ["bookmark_id"]),
        Program(name: "linkding", members: ["url", "tag_names"]),
        Program(name: "Raindrop", members: ["link", "excerpt"]),
        Program(name: "Raindrop", members: ["link", "collectionId"]),
        Program(name: "Raindrop", members: ["link", "created"]),
        Program(name: "Karakeep", members: ["content", "createdAt"]),
        Program(name: "Linkwarden", members: ["url", "collectionId"]),
        Program(name: "Linkwarden", members: ["name", "links"]),
        Program(name: "Shaarli", members: ["url", "shorturl"]),
        Program(name: "Delicious", members: ["href", "tag"]),
        Program(name: "Delicious", members: ["post"]),
        Program(name: "Pinboard or Delicious", members: ["href"]),
    ]

    private static func isFirefox(_ names: [String]) -> Bool {
        names.contains("children") && (names.contains("guid") || names.contains("root") || names.contains("type"))
            && !names.contains("links") && !names.contains("url")
    }

    private static func isChromium(_ value: JSONValue) -> Bool {
        value.member("roots")?.names.contains { ["bookmark_bar", "other", "synced"].contains($0) } ?? false
    }

    private static func isPinboard(_ names: [String]) -> Bool { names.contains("href") && names.contains("description") }

    private struct Reader {
        var reading = FileReading()
        var lines: LineNumbers
        private var loose: Int?

        init(lines: LineNumbers) { self.lines = lines }

        /// A folder, bookmark or separator of a Firefox backup. The outermost folder stands for the file. It calls itself once for each level,
        /// of which JSON has `JSONValue.maximumDepth`.
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
                add(node.text("uri") ?? "", node.text("title") ?? "", extra, to: parent ?? looseHex(name), value)
            }
        }

        /// A folder or bookmark of Chromium. It calls itself once for each level.
        mutating func addChromium(_ value: JSONValue, root: String?, inside parent: Int?) {
            let node = Node(value)
            var extra: [HexTree.Member] = []
            for (member, kept) in [("date_added", "addDate"), ("date_modified", "lastModified")] {
                // 0 stands for none.
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

        mutating func addPinboard(_ value: JSONValue) {
            let node = Node(value)
            var extra: [HexTree.Member] = []
            if let time = node.text("time") ?? node.text("dt"), !time.isEmpty {
                extra.append(BookmarkDate.member(time, as: "addDate", otherwise: "created"))
            }
            if let tags = node.text("tags") ?? node.text("tag"), !tags.isEmpty {
                extra.append(.init("tags", TagList.json(tags, separator: " ")))
            }
            if let note = node.text("extended"), !note.isEmpty { extra.append(.init("note", note)) }
            for mark in ["shared", "toread"] { if let text = node.text(mark) { extra.append(.init(mark, text)) } }
            add(node.text("href") ?? "", node.text("description") ?? "", extra, to: 0, value)
        }

        private mutating func add(_ url: String, _ title: String, _ extra: [HexTree.Member], to hex: Int, _ value: JSONValue) {
            let title = title.utf8.elementsEqual(url.utf8) ? "" : title
            let link = HexTree.Link(url: url, title: title, extra: extra)
            reading.add(link, to: hex, line: lines.number(at: value.bytes.startIndex))
        }

        private mutating func looseHex(_ name: String) -> Int {
            if let loose { return loose }
            loose = reading.forest.hexes.count
            reading.forest.hexes.append(HexTree.Hex(description: name))
            return reading.forest.hexes.count - 1
        }
    }

    /// The members of an object, read once.
    private struct Node {
        private let members: [JSONMember]

        init(_ value: JSONValue) { members = value.members ?? [] }

        subscript(_ name: String) -> JSONValue? { members.last { $0.nameBytes.elementsEqual(name.utf8) }?.value }

        func text(_ name: String) -> String? { self[name]?.string }
    }
}

extension JSONValue {
    /// The names of the members of an object; empty for any other value.
    fileprivate var names: [String] { members?.map(\.name) ?? [] }
}
