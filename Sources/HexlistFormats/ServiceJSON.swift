import HexlistJSON
import HexlistModel

/// Reads JSON exports of bookmark services and other programs. The program is recognised by the member names of the entries.
enum ServiceJSON {
    /// The member names that one program uses in its entries. In a name with a dot, `a.b`, `b` is a member of the object `a`.
    struct Entry {
        var program: String
        /// Members that every entry has. They identify the program.
        var members: [String]
        /// Names of the members with the URL, in order of preference: the first one with a value is used. The same applies to the following
        /// properties.
        var url: [String]
        var title: [String]
        var note: [String] = []
        var tags: [String] = ["tags"]
        var added: [String] = []
        /// Members whose value is true if the entry is archived.
        var archived: [String] = []
        /// Members that are kept as unknown members under the same name.
        var kept: [String] = []
    }

    /// The known entry formats. The first one whose `members` all occur is used.
    static let entries = [
        Entry(
            program: "Readability", members: ["article__url"], url: ["article__url"], title: ["article__title"], note: ["article__excerpt"],
            added: ["date_added"], archived: ["archive"]),
        Entry(
            program: "wallabag", members: ["is_archived", "url"], url: ["url"], title: ["title"], added: ["created_at"],
            archived: ["is_archived"]),
        Entry(
            program: "Pocket", members: ["item_id"], url: ["given_url", "resolved_url", "url"],
            title: ["given_title", "resolved_title", "title"], added: ["time_added"], archived: ["status"], kept: ["excerpt"]),
        Entry(
            program: "Instapaper", members: ["bookmark_id", "url"], url: ["url"], title: ["title"], note: ["description"], added: ["time"]),
        Entry(
            program: "linkding", members: ["url", "tag_names"], url: ["url"], title: ["title", "website_title"],
            note: ["notes", "description"], tags: ["tag_names"], added: ["date_added"], archived: ["is_archived"]),
        Entry(
            program: "Raindrop", members: ["link"], url: ["link"], title: ["title"], note: ["note"], added: ["created"], kept: ["excerpt"]),
        Entry(
            program: "Karakeep", members: ["content", "createdAt"], url: ["content.url"], title: ["title"], note: ["note"],
            added: ["createdAt"], archived: ["archived"]),
        Entry(
            program: "Linkwarden", members: ["url", "collectionId"], url: ["url"], title: ["name"], note: ["description"],
            added: ["createdAt"]),
        Entry(
            program: "Shaarli", members: ["url", "shorturl"], url: ["url"], title: ["title"], note: ["description"], added: ["created"]),
        Entry(
            program: "Pinboard or Delicious", members: ["href"], url: ["href"], title: ["description", "title"], note: ["extended"],
            tags: ["tags", "tag"], added: ["time", "dt"], kept: ["shared", "toread"]),
        Entry(
            program: "Delicious", members: ["post"], url: ["post.href"], title: ["post.description"], note: ["post.extended"],
            tags: ["post.tag"], added: ["post.time"]),
    ]

    /// A file format that arranges links in named groups, such as collections, sessions or windows.
    struct Groups {
        var program: String
        /// Members that identify the format. Either the file's object or each element of its array has them.
        var members: [String]
    }

    static let groups = [
        Groups(program: "a session of Firefox", members: ["windows", "selectedWindow"]),
        Groups(program: "Session Buddy", members: ["sessions"]),
        Groups(program: "Session Buddy", members: ["collections", "format"]),
        Groups(program: "Linkwarden", members: ["collections"]),
        Groups(program: "Linkwarden", members: ["name", "links"]),
    ]

    /// - Parameter values: the JSON values of the file.
    /// - Returns: `nil` if the file is not from one of the known programs.
    static func read(_ values: [JSONValue], name: String, _ lines: inout LineNumbers) -> FileReading? {
        var reader = Reader(name: name, lines: lines)
        defer { lines = reader.lines }
        let elements = values.count == 1 ? values[0].elements ?? values : values
        if let first = elements.first, groups.contains(where: { has(first, $0.members) }) {
            for element in elements { reader.addGroup(element, inside: nil, isFile: values.count == 1 && values[0].elements == nil) }
            return reader.reading
        }
        // The list of entries is the file itself, a member of its object, or a member of `_embedded`.
        var lists = [elements] + (values[0].members ?? []).map { list($0.value) }
        lists += (values[0].member("_embedded")?.members ?? []).map { list($0.value) }
        var isFound = false
        for list in lists {
            guard let entry = entry(of: list) else { continue }
            isFound = true
            for value in list { reader.add(value, as: entry) }
        }
        return isFound ? reader.reading : nil
    }

    /// Returns the entry format of a list by its first three values, because Instapaper puts the user before the entries.
    private static func entry(of list: [JSONValue]) -> Entry? {
        for value in list.prefix(3) {
            if let entry = entries.first(where: { has(value, $0.members) }) { return entry }
        }
        return nil
    }

    /// Returns the elements of an array, or the values of an object, because Pocket writes its list as an object with numbers as names.
    private static func list(_ value: JSONValue) -> [JSONValue] { value.elements ?? value.members?.map(\.value) ?? [] }

    private static func has(_ value: JSONValue, _ names: [String]) -> Bool {
        guard let members = value.members else { return false }
        return names.allSatisfy { name in members.contains { $0.nameBytes.elementsEqual(name.utf8) } }
    }

    private struct Reader {
        var reading = FileReading()
        var lines: LineNumbers
        private let name: String
        /// The hex for entries that are in no group, and the hex for archived entries. Each is added with its first entry.
        private var loose = UngroupedLinksHex()
        private var archive = UngroupedLinksHex()

        init(name: String, lines: LineNumbers) { (self.name, self.lines) = (name, lines) }

        mutating func add(_ value: JSONValue, as entry: Entry) {
            let isArchived = text(value, entry.archived).map { $0 == "true" || $0 == "1" } ?? false
            let hex =
                isArchived
                ? archive.index(in: &reading.forest, description: "Archive") : loose.index(in: &reading.forest, description: name)
            add(value, as: entry, to: hex)
        }

        private mutating func add(_ value: JSONValue, as entry: Entry, to hex: Int) {
            var extra: [HexTree.Member] = []
            if let date = text(value, entry.added), date != "0" {
                extra.append(BookmarkDate.member(date, as: "addDate", otherwise: "created"))
            }
            let tags = entry.tags.lazy.compactMap { value.member(path: $0) }.map(Self.tags).first { !$0.isEmpty } ?? []
            if !tags.isEmpty { extra.append(.init("tags", JSONValue { json in json.array(tags) { $0.string($1) } })) }
            if let note = text(value, entry.note) { extra.append(.init("note", note)) }
            for name in entry.kept { if let kept = text(value, [name]) { extra.append(.init(name, kept)) } }
            add(text(value, entry.url) ?? "", text(value, entry.title) ?? "", extra, to: hex, value)
        }

        /// Names of the members that contain groups, and of those that contain links.
        private static let groupNames = ["collections", "sessions", "windows", "folders"]
        private static let linkNames = ["links", "tabs"]

        /// Adds a collection, session or window with its links and inner groups. Recursive; JSON is at most `JSONValue.maximumDepth` levels
        /// deep.
        /// - Parameter isFile: whether the object is the file itself. Then it does not become a hex, and its groups are outermost hexes.
        mutating func addGroup(_ group: JSONValue, inside parent: Int?, isFile: Bool = false) {
            var hex = parent
            if !isFile {
                hex = reading.forest.hexes.count
                let description = text(group, ["name", "title"]) ?? (parent == nil ? name : "")
                reading.forest.hexes.append(HexTree.Hex(parent: parent, description: description))
            }
            for name in Self.groupNames { for inside in group.member(name)?.elements ?? [] { addGroup(inside, inside: hex) } }
            for name in Self.linkNames {
                for link in group.member(name)?.elements ?? [] {
                    addLink(link, to: hex ?? loose.index(in: &reading.forest, description: self.name))
                }
            }
        }

        /// Adds a link of a collection, or the current page of a browser tab. For a tab, Firefox writes a list of all visited pages.
        private mutating func addLink(_ value: JSONValue, to hex: Int) {
            if let pages = value.member("entries")?.elements {
                let index = value.member("index")?.integer.map { Int(clamping: $0) - 1 } ?? pages.count - 1
                guard let page = pages.indices.contains(index) ? pages[index] : pages.last else { return }
                return add(text(page, ["url"]) ?? "", text(page, ["title"]) ?? "", [], to: hex, page)
            }
            let entry = Entry(
                program: "", members: [], url: ["url"], title: ["name", "title"], note: ["description"], added: ["createdAt", "created"])
            add(value, as: entry, to: hex)
        }

        private mutating func add(_ url: String, _ title: String, _ extra: [HexTree.Member], to hex: Int, _ value: JSONValue) {
            var link = HexTree.Link(url: url, title: title, extra: extra)
            link.removeRepeatedTitle()
            reading.add(link, to: hex, line: lines.number(at: value.bytes.startIndex))
        }

        /// Returns the first of these members that is a non-empty string, a number or a Boolean, as text; `nil` if there is none.
        private func text(_ value: JSONValue, _ names: [String]) -> String? {
            for name in names {
                guard let found = value.member(path: name), found.elements == nil, found.members == nil else { continue }
                let text = found.string ?? found.text
                if !text.isEmpty, text != "null" { return text }
            }
            return nil
        }

        /// Reads tags from any of these forms: an array of strings or of objects with a name, an object whose member names are the tags, or
        /// a string with tags separated by commas or spaces.
        private static func tags(_ value: JSONValue) -> [String] {
            if let text = value.string {
                return text.split { text.utf8.contains(UInt8(ascii: ",")) ? $0 == "," : $0.isWhitespace }
                    .map { MarkupText.trimmed(String($0)) }.filter { !$0.isEmpty }
            }
            if let members = value.members { return members.map(\.name) }
            return (value.elements ?? []).compactMap { element in
                element.string ?? ["name", "label", "tag", "slug"].lazy.compactMap { element.member($0)?.string }.first
            }
        }
    }
}

extension JSONValue {
    /// Returns the value of a member. For a path `a.b`, returns the member `b` of the object `a`.
    fileprivate func member(path: String) -> JSONValue? {
        let names = path.split(separator: ".", maxSplits: 1).map(String.init)
        let first = member(names[0])
        return names.count == 1 ? first : first?.member(names[1])
    }
}
