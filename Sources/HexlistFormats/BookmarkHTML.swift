import HexlistJSON
import HexlistModel

/// Reads and writes the bookmark file of browsers (`<!DOCTYPE NETSCAPE-Bookmark-file-1>`). A folder is a hex.
///
/// Dates, tags, keywords and notes become unknown members of the hex or link: `addDate` and `lastModified` (seconds since 1970), `tags` (an
/// array), `keyword` and `note`. `toolbar` and `unfiled` mark the folders that browsers use for the bookmarks toolbar and for unsorted
/// bookmarks. Icons are not imported.
public enum BookmarkHTML {
    private static let dates: [(attribute: StaticString, member: String)] = [("add_date", "addDate"), ("last_modified", "lastModified")]
    private static let marks: [(attribute: StaticString, member: String)] = [
        ("personal_toolbar_folder", "toolbar"), ("unfiled_bookmarks_folder", "unfiled"),
    ]

    // MARK: Reading

    /// - Parameter name: the description of the hex for links outside folders, if the file has no heading.
    public static func read(_ bytes: [UInt8], name: String) -> FileReading {
        var reader = Reader(bytes, name: name)
        var scanner = MarkupScanner(bytes)
        while let token = scanner.next() { reader.take(token) }
        reader.finish()
        return reader.reading
    }

    /// Builds folders from headings and lists. A folder is a heading or the text of a list item, followed by a list; or a heading, followed
    /// by links up to the next heading of the same level. A single `<h1>` names the hex for links outside folders; if there are several,
    /// each is a folder.
    private struct Reader {
        var reading = FileReading()
        private var name: String
        private let hasSections: Bool
        private var lines: LineNumbers
        /// The nesting at the current position: one scope for the file, then one for each list that is open, outermost first.
        private var scopes = [Scope(isDefinition: false, folder: nil)]
        private var loose = UngroupedLinksHex()
        /// The element whose text is being collected in `text`.
        private var reads = Reads.nothing
        private var text: [UInt8] = []
        /// The hex or link that a following note describes.
        private var last = Item.nothing

        private enum Reads { case nothing, heading, folder(MarkupScanner.Tag, Int), link(MarkupScanner.Tag), note(Int), item(Int) }
        private enum Item { case nothing, leftOut, hex(Int), link(Int, Int) }

        private struct Scope {
            /// Whether the list is a `<dl>`. Only `<dt>`, `<dd>` and `<dl>` tags begin or end its items.
            var isDefinition: Bool
            var folder: Int?
            /// The open folders of headings in this list, outermost first. At most twelve: one for each of `<h1>` to `<h6>` outside list
            /// items, and one for each of them inside the current list item.
            var sections: [(level: Int, hex: Int, isItem: Bool)] = []
            var hasItems = false
            var isInItem = false
        }

        init(_ bytes: [UInt8], name: String) {
            self.name = name
            lines = LineNumbers(bytes)
            hasSections = Reader.headings(bytes) > 1
        }

        /// Counts the `<h1>` headings of a file, up to two.
        private static func headings(_ bytes: [UInt8]) -> Int {
            var (count, at) = (0, 0)
            while count < 2, let start = bytes[at...].firstIndex(of: UInt8(ascii: "<")) {
                let tag = bytes[start...].prefix(4)
                if tag.map(ASCII.lowercased).starts(with: "<h1".utf8), tag.count == 4, !ASCII.isAlphanumeric(bytes[start + 3]) {
                    count += 1
                }
                at = start + 1
            }
            return count
        }

        private var scope: Scope {
            get { scopes[scopes.count - 1] }
            set { scopes[scopes.count - 1] = newValue }
        }

        private var folder: Int? { scope.sections.last?.hex ?? scope.folder }

        mutating func take(_ token: MarkupScanner.Token) {
            switch token {
            case .text(let bytes):
                if case .nothing = reads { return }
                // Bytes are added until the text exceeds the limit. `fitting` then reports it as too long.
                if text.count <= FileReading.textBytes { text += bytes }
            case .open(let tag): begin(tag)
            case .close(let name): end(name)
            }
        }

        private mutating func begin(_ tag: MarkupScanner.Tag) {
            if case .note = reads, isInNote(tag) {
                if tag.element == "a", let address = tag["href"], !address.isEmpty {
                    reading.skip(.inNote, address, line: lines.number(at: tag.start))
                }
                return divide(tag.element)
            }
            switch tag.element {
            case "h1" where !hasSections, "title":
                finish()
                reads = .heading
            case "h1", "h2", "h3", "h4", "h5", "h6":
                finish()
                let level = Int(tag.element.utf8.last.map { $0 & 0x0F } ?? 0)
                // An `<h1>` is never inside a list, so lists that are still open lack their end tags.
                if level == 1 { scopes.removeLast(scopes.count - 1) }
                reads = .folder(tag, level)
            case "a":
                finish()
                reads = .link(tag)
            case "dd":
                finish()
                if case .nothing = last { return }
                reads = .note(tag.start)
            case "dl", "ul", "ol":
                if case .item(let start) = reads { addFolder(ofItemAt: start) }
                finish()
                scopes.append(Scope(isDefinition: tag.element == "dl", folder: folder))
            case "dt", "li":
                finish()
                if scopes.count > 1 { scope.sections = [] } else { scope.sections.removeAll(where: \.isItem) }
                (scope.hasItems, scope.isInItem) = (true, true)
                last = .nothing
                reads = .item(tag.start)
            case "hr": finish()
            default: divide(tag.element)
            }
        }

        private mutating func end(_ name: String) {
            switch name {
            case "dl", "ul", "ol":
                if case .note = reads, !PeerTextComparison.areEqual(name, "dl"), scope.isDefinition { return divide(name) }
                finish()
                let isDefinition = scope.isDefinition
                if scopes.count > 1 { scopes.removeLast() }
                if let section = scope.sections.last, section.isItem || isDefinition { scope.sections.removeLast() }
            case "h1", "title", "h2", "h3", "h4", "h5", "h6", "a":
                if case .note = reads { return divide(name) }
                finish()
            case "dd": finish()
            case "dt", "li": scope.isInItem = false
            default: divide(name)
            }
        }

        /// Whether an element is part of the current note. A link with a date and a heading with attributes are not: browsers write
        /// bookmarks and folders in this form, so the note has ended.
        private func isInNote(_ tag: MarkupScanner.Tag) -> Bool {
            switch tag.element {
            case "dt", "dd", "dl": false
            case "li", "ul", "ol", "hr": scope.isDefinition
            case "a": scope.hasItems && tag["add_date"] == nil
            case "h1", "h2", "h3", "h4", "h5", "h6", "title": scope.hasItems && tag.attributes.isEmpty
            default: true
            }
        }

        /// Appends white space to the collected text for an element that separates words, such as `<br>`.
        private mutating func divide(_ element: String) {
            guard ["br", "p", "div", "li", "ul", "ol", "tr", "td", "h1", "h2", "h3", "h4", "h5", "h6"].contains(element) else { return }
            switch reads {
            case .nothing: break
            case .note: text.append(0x0A)
            case .heading, .folder, .link, .item: text.append(0x20)
            }
        }

        /// Processes the collected text at the end of its element.
        mutating func finish() {
            let value = MarkupText.trimmed(MarkupText.decoded(text))
            let ended = reads
            text = []
            reads = .nothing
            switch ended {
            case .nothing, .item: break
            case .heading:
                if !value.isEmpty { name = fitting(value, at: 0) }
            case .folder(let tag, let level):
                var hex = HexTree.Hex(description: fitting(value, at: tag.start), extra: BookmarkHTML.members(tag))
                HexlistAttribute.apply(tag[HexlistAttribute.attribute], to: &hex)
                add(hex, level: level, isItem: scope.isInItem)
            case .link(let tag): add(tag, value)
            case .note(let start): add(note: value, at: start)
            }
        }

        /// Returns a text as the description of a hex. A text that is too long is cut and recorded as such.
        private mutating func fitting(_ value: String, at start: Int) -> String {
            guard value.utf8.count > FileReading.textBytes else { return value }
            reading.skip(.tooLong, value, line: lines.number(at: start))
            return PeerName.cut(value, bytes: 4_096)
        }

        private mutating func add(_ hex: HexTree.Hex, level: Int, isItem: Bool) {
            // A heading closes the open folders of the same and of lower levels. Inside a list item, it closes only folders of that item.
            while let inner = scope.sections.last, inner.level >= level, inner.isItem || !isItem { scope.sections.removeLast() }
            var hex = hex
            hex.parent = folder
            let index = reading.forest.hexes.count
            scope.sections.append((level, index, isItem))
            last = .hex(index)
            reading.forest.hexes.append(hex)
        }

        /// Adds the folder for a list item whose text is followed by a list.
        private mutating func addFolder(ofItemAt start: Int) {
            let value = MarkupText.trimmed(MarkupText.decoded(text))
            if !value.isEmpty { add(HexTree.Hex(description: fitting(value, at: start)), level: 6, isItem: true) }
        }

        private mutating func add(_ tag: MarkupScanner.Tag, _ title: String) {
            last = .leftOut
            guard !tag.hasOpenQuote else { return reading.skip(.openQuote, title, line: lines.number(at: tag.start)) }
            var link = HexTree.Link(url: MarkupText.trimmed(tag["href"] ?? ""), title: title, extra: BookmarkHTML.members(tag))
            link.removeRepeatedTitle()
            let isOwn = HexlistAttribute.apply(tag[HexlistAttribute.attribute], to: &link)
            let hex = folder ?? loose.index(in: &reading.forest, description: name)
            let isAdded = reading.add(link, to: hex, isOwn: isOwn, line: lines.number(at: tag.start))
            if isAdded { last = .link(hex, reading.forest.hexes[hex].links.count - 1) }
        }

        private mutating func add(note: String, at start: Int) {
            defer { last = .nothing }
            guard !note.isEmpty else { return }
            guard note.utf8.count <= FileReading.textBytes else { return reading.skip(.tooLong, note, line: lines.number(at: start)) }
            let member = HexTree.Member("note", note)
            switch last {
            case .nothing, .leftOut: break
            case .hex(let hex): reading.forest.hexes[hex].extra.append(member)
            case .link(let hex, let link): reading.forest.hexes[hex].links[link].extra.append(member)
            }
        }
    }

    private static func members(_ tag: MarkupScanner.Tag) -> [HexTree.Member] {
        var members: [HexTree.Member] = []
        // `time_added` is used by Pocket.
        for attribute in ["time_added", "add_date"] as [StaticString] {
            if let added = tag[attribute], !added.isEmpty {
                members.append(BookmarkDate.member(added, as: "addDate", otherwise: "created"))
            }
        }
        if let modified = tag["last_modified"], !modified.isEmpty {
            members.append(BookmarkDate.member(modified, as: "lastModified", otherwise: "modified"))
        }
        if let keyword = tag["shortcuturl"], !keyword.isEmpty { members.append(.init("keyword", keyword)) }
        if let tags = tag["tags"], !tags.isEmpty { members.append(.init("tags", TagList.json(tags, separator: ","))) }
        for (attribute, member) in marks where tag[attribute].map({ $0.utf8.elementsEqual("true".utf8) }) ?? false {
            members.append(.init(member, JSONValue(true)))
        }
        return members
    }

    // MARK: Writing

    /// - Parameter isMine: whether a hex without a sender is the user's own. Only the user's own bookmarklets (`javascript:` links) stay
    ///   clickable; those of other hexes are written to the attribute `data-hexlist`.
    public static func write(_ forest: HexTree, isMine: Bool = false) -> [UInt8] {
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
            lines +=
                "\(indent)<DT><H3\(attributes)\(HexlistAttribute.text(of: hex, placed: placed))>\(MarkupText.escaped(hex.description))</H3>\n"
            lines += note.map { "\(indent)<DD>\($0)\n" } ?? ""
            lines += "\(indent)<DL><p>\n"
            for link in hex.links {
                let (attributes, note, placed) = Self.attributes(link.extra)
                let title = MarkupText.escaped(link.title.isEmpty ? link.url : link.title)
                let isFollowed = (isMine && areOwn[index] || link.isHarmless) && LinkAddress.fault(MarkupText.trimmed(link.url)) == nil
                let address = isFollowed ? " HREF=\"\(MarkupText.escaped(link.url))\"" : ""
                let attached = HexlistAttribute.text(of: link, placed: placed, hasURL: isFollowed)
                lines += "\(indent)    <DT><A\(address)\(attributes)\(attached)>\(title)</A>\n"
                lines += note.map { "\(indent)    <DD>\($0)\n" } ?? ""
            }
            stack.append(lists[index][...])
        }
        return Array(lines.utf8)
    }

    /// Formats unknown members for export.
    /// - Returns: `attributes` has the members that HTML bookmarks express as attributes, each with a leading space; `note` is the escaped
    ///   text of the note, if there is one; `placed` lists the members that these two express completely, so that `data-hexlist` can omit
    ///   them.
    private static func attributes(_ extra: [HexTree.Member]) -> (attributes: String, note: String?, placed: [String]) {
        var (attributes, placed): (String, [String]) = ("", [])
        func put(_ member: String, _ attribute: StaticString, _ value: String) {
            attributes += " \(attribute.description.uppercased())=\"\(MarkupText.escaped(value))\""
            placed.append(member)
        }
        for (attribute, member) in dates {
            guard let value = only(extra, member)?.string, let seconds = BookmarkDate.seconds(value) else { continue }
            put(member, attribute, seconds)
            // A date in another format is also written to `data-hexlist`, so that a re-import gives the original text.
            if !seconds.utf8.elementsEqual(value.utf8) { placed.removeLast() }
        }
        if let keyword = only(extra, "keyword")?.string, !keyword.isEmpty, MarkupText.survives(keyword) {
            put("keyword", "shortcuturl", keyword)
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

    /// Returns the value of a member; `nil` if the member is missing or occurs more than once.
    private static func only(_ extra: [HexTree.Member], _ name: String) -> JSONValue? {
        let found = extra.filter { $0.name.utf8.elementsEqual(name.utf8) }
        return found.count == 1 ? found[0].value : nil
    }
}

/// Converts tags. Hexlist keeps them as a JSON array of strings; files have a single text with separators.
enum TagList {
    static func json(_ text: String, separator: Character) -> JSONValue {
        let tags = text.split(separator: separator).map { MarkupText.trimmed(String($0)) }.filter { !$0.isEmpty }
        return JSONValue { json in json.array(tags) { $0.string($1) } }
    }

    /// Parses the tags of a CSV cell: a JSON array of strings, or a text with tags separated by `|` (Pocket), commas or spaces.
    static func json(ofCell text: String, splitsAtSpaces: Bool) -> JSONValue {
        if text.hasPrefix("["), let list = try? JSONValue(parsing: text), list.elements?.allSatisfy({ $0.string != nil }) ?? false {
            return list.inOneLine
        }
        return json(text, separator: text.utf8.contains(UInt8(ascii: "|")) ? "|" : splitsAtSpaces ? " " : ",")
    }

    /// Returns the tags separated by commas; `nil` if parsing that text would give other tags.
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
