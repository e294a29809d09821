import HexlistJSON
import HexlistModel

/// The bookmark file that browsers write and read (`<!DOCTYPE NETSCAPE-Bookmark-file-1>`): a folder is a hex, a folder in it a hex inside.
///
/// Dates, tags, keywords and notes are members of a hex or link that Hexlist itself does not know: `addDate`, `lastModified` (as in the file),
/// `tags` (a list), `keyword`, `note`, and `toolbar` and `unfiled` of the folders with that meaning. Icons are left out.
public enum BookmarkHTML {
    private static let texts: [(attribute: StaticString, member: String)] = [
        ("add_date", "addDate"), ("last_modified", "lastModified"), ("shortcuturl", "keyword"),
    ]
    private static let marks: [(attribute: StaticString, member: String)] = [
        ("personal_toolbar_folder", "toolbar"), ("unfiled_bookmarks_folder", "unfiled"),
    ]

    // MARK: Reading

    /// - Parameter name: what a hex of links that are in no folder is called where the file has no heading.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reader = Reader(name: name)
        var scanner = MarkupScanner(bytes)
        while let token = scanner.next() { reader.take(token) }
        reader.finish()
        return reader.reading
    }

    private struct Reader {
        var reading = FileReading()
        private var name: String
        /// The folder of each open list; `nil` for those that are in no folder.
        private var open: [Int?] = []
        /// A folder whose list has not begun.
        private var pending: Int?
        /// The hex of links that are in no folder.
        private var loose: Int?
        /// What text is being read for.
        private var reads = Reads.nothing
        private var text: [UInt8] = []
        /// What a note is about.
        private var last = Item.nothing

        private enum Reads { case nothing, heading, folder(MarkupScanner.Tag), link(MarkupScanner.Tag), note }
        private enum Item { case nothing, hex(Int), link(Int, Int) }

        init(name: String) { self.name = name }

        private var folder: Int? { open.last ?? nil }

        mutating func take(_ token: MarkupScanner.Token) {
            switch token {
            case .text(let bytes):
                // One link's title, with what a file without an end would add to it.
                if case .nothing = reads { return }
                if text.count <= FileReading.textBytes { text += bytes }
            case .open(let tag): begin(tag)
            case .close(let name): end(name)
            }
        }

        private mutating func begin(_ tag: MarkupScanner.Tag) {
            switch tag.element {
            case "h1", "title":
                finish()
                reads = .heading
            case "h2", "h3", "h4", "h5", "h6":
                finish()
                reads = .folder(tag)
            case "a":
                finish()
                reads = .link(tag)
            case "dd":
                finish()
                reads = .note
            case "dl", "ul", "ol":
                finish()
                open.append(pending ?? folder)
                pending = nil
            case "dt", "hr", "li": finish()
            default: break
            }
        }

        private mutating func end(_ name: String) {
            switch name {
            case "dl", "ul", "ol":
                finish()
                pending = nil
                open.removeLast(min(1, open.count))
            case "h1", "title", "h2", "h3", "h4", "h5", "h6", "a", "dd": finish()
            default: break
            }
        }

        /// Ends what text was read for.
        mutating func finish() {
            let value = MarkupText.trimmed(MarkupText.decoded(text))
            let ended = reads
            text = []
            reads = .nothing
            switch ended {
            case .nothing: break
            case .heading: if !value.isEmpty { name = value }
            case .folder(let tag):
                var hex = HexForest.Hex(parent: folder, description: value, extra: BookmarkHTML.members(tag))
                Attached.apply(tag[Attached.attribute], to: &hex)
                pending = reading.forest.hexes.count
                last = .hex(reading.forest.hexes.count)
                reading.forest.hexes.append(hex)
            case .link(let tag): add(tag, value)
            case .note: add(note: value)
            }
        }

        private mutating func add(_ tag: MarkupScanner.Tag, _ title: String) {
            var link = HexForest.Link(url: MarkupText.trimmed(tag["href"] ?? ""), title: title, extra: BookmarkHTML.members(tag))
            if link.title.utf8.elementsEqual(link.url.utf8) { link.title = "" }
            Attached.apply(tag[Attached.attribute], to: &link)
            let hex = folder ?? looseHex()
            let count = reading.forest.hexes[hex].links.count
            reading.add(link, to: hex)
            last = reading.forest.hexes[hex].links.count > count ? .link(hex, count) : .nothing
        }

        private mutating func add(note: String) {
            guard !note.isEmpty else { return }
            let member = HexForest.Member("note", note)
            switch last {
            case .nothing: break
            case .hex(let hex): reading.forest.hexes[hex].extra.append(member)
            case .link(let hex, let link): reading.forest.hexes[hex].links[link].extra.append(member)
            }
            last = .nothing
        }

        private mutating func looseHex() -> Int {
            if let loose { return loose }
            loose = reading.forest.hexes.count
            reading.forest.hexes.append(HexForest.Hex(description: name))
            return reading.forest.hexes.count - 1
        }
    }

    private static func members(_ tag: MarkupScanner.Tag) -> [HexForest.Member] {
        var members: [HexForest.Member] = []
        for (attribute, member) in texts { if let value = tag[attribute], !value.isEmpty { members.append(.init(member, value)) } }
        // As Pocket's export has it.
        if let added = tag["time_added"], !added.isEmpty { members.append(.init("addDate", added)) }
        if let tags = tag["tags"], !tags.isEmpty { members.append(.init("tags", TagList.json(tags, separator: ","))) }
        for (attribute, member) in marks where tag[attribute].map({ $0.utf8.elementsEqual("true".utf8) }) ?? false {
            members.append(.init(member, JSONValue(true)))
        }
        return members
    }

    // MARK: Writing

    /// - Parameter isMine: whether hexes without a sender are the user's own. What runs in the browser (`javascript:`) can be clicked in those
    ///   alone; in others the link stands in `data-hexlist`.
    public static func write(_ forest: HexForest, isMine: Bool = false) -> [UInt8] {
        var lines = """
            <!DOCTYPE NETSCAPE-Bookmark-file-1>
            <!-- This is an automatically generated file.
                 It will be read and overwritten.
                 DO NOT EDIT! -->
            <META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
            <TITLE>Bookmarks</TITLE>
            <H1>Bookmarks</H1>
            <DL><p>

            """
        let lists = forest.childLists()
        let areOwn = forest.areOwn
        var stack = [lists[forest.hexes.count][...]]
        while let rest = stack.last {
            let indent = String(repeating: "    ", count: stack.count)
            guard let index = rest.first else {
                stack.removeLast()
                lines += "\(indent.dropLast(4))</DL><p>\n"
                continue
            }
            stack[stack.count - 1] = rest.dropFirst()
            let hex = forest.hexes[index]
            let (attributes, note, placed) = attributes(hex.extra)
            lines += "\(indent)<DT><H3\(attributes)\(Attached.text(of: hex, placed: placed))>\(MarkupText.escaped(hex.description))</H3>\n"
            lines += note.map { "\(indent)<DD>\($0)\n" } ?? ""
            lines += "\(indent)<DL><p>\n"
            for link in hex.links {
                let (attributes, note, placed) = Self.attributes(link.extra)
                let title = MarkupText.escaped(link.title.isEmpty ? link.url : link.title)
                let isFollowed = isMine && areOwn[index] || link.isHarmless
                let address = isFollowed ? " HREF=\"\(MarkupText.escaped(link.url))\"" : ""
                let attached = Attached.text(of: link, placed: placed, hasURL: isFollowed)
                lines += "\(indent)    <DT><A\(address)\(attributes)\(attached)>\(title)</A>\n"
                lines += note.map { "\(indent)    <DD>\($0)\n" } ?? ""
            }
            stack.append(lists[index][...])
        }
        return Array(lines.utf8)
    }

    /// The attributes and the note that unknown members have a place in, and the names of those.
    private static func attributes(_ extra: [HexForest.Member]) -> (attributes: String, note: String?, placed: [String]) {
        var (attributes, placed): (String, [String]) = ("", [])
        func put(_ member: String, _ attribute: StaticString, _ value: String) {
            attributes += " \(attribute.description.uppercased())=\"\(MarkupText.escaped(value))\""
            placed.append(member)
        }
        for (attribute, member) in texts {
            if let value = only(extra, member)?.string, !value.isEmpty, MarkupText.survives(value) { put(member, attribute, value) }
        }
        if let tags = only(extra, "tags").flatMap({ TagList.text($0) }) { put("tags", "tags", tags) }
        for (attribute, member) in marks where only(extra, member)?.bool == true { put(member, attribute, "true") }
        var note: String?
        if let text = only(extra, "note")?.string, !text.isEmpty, MarkupText.survives(text) {
            note = MarkupText.escaped(text)
            placed.append("note")
        }
        return (attributes, note, placed)
    }

    /// The value of a member that is there once.
    private static func only(_ extra: [HexForest.Member], _ name: String) -> JSONValue? {
        let found = extra.filter { $0.name.utf8.elementsEqual(name.utf8) }
        return found.count == 1 ? found[0].value : nil
    }
}

/// Tags: a list of texts in JSON, one text with separators in files.
enum TagList {
    static func json(_ text: String, separator: Character) -> JSONValue {
        let tags = text.split(separator: separator).map { MarkupText.trimmed(String($0)) }.filter { !$0.isEmpty }
        return JSONValue { json in json.array(tags) { $0.string($1) } }
    }

    /// The tags with a comma between them; `nil` for what is no list of texts that comes back from that.
    static func text(_ json: JSONValue) -> String? {
        guard let elements = json.elements, !elements.isEmpty else { return nil }
        let tags = elements.compactMap(\.string)
        guard tags.count == elements.count,
            tags.allSatisfy({ !$0.isEmpty && !$0.utf8.contains(UInt8(ascii: ",")) && MarkupText.survives($0) })
        else { return nil }
        let text = tags.joined(separator: ",")
        return Self.json(text, separator: ",") == json ? text : nil
    }
}
