public import HexlistModel

/// A feed of links in the Atom format (RFC 4287).
public struct AtomFeed: Sendable {
    public struct Entry: Sendable {
        /// A URI that stays the same for the same link.
        public var id: String
        public var url: String
        /// The title. If it is empty, the URL is used as the title.
        public var title: String
        /// The time of the link, in RFC 3339.
        public var updated: String
        /// The name of the sender; empty if the feed's author added the link.
        public var author: String
        public var note: String
        public var categories: [String]

        public init(
            id: String, url: String, title: String, updated: String, author: String = "", note: String = "", categories: [String] = []
        ) {
            self.id = id
            self.url = url
            self.title = title
            self.updated = updated
            self.author = author
            self.note = note
            self.categories = categories
        }
    }

    /// The time of a feed without entries.
    private static let noTime = "1970-01-01T00:00:00Z"

    /// A URI that stays the same for the same feed.
    public var id: String
    public var title: String
    public var author: String
    public var entries: [Entry]

    public init(id: String, title: String, author: String, entries: [Entry]) {
        self.id = id
        self.title = title
        self.author = author
        self.entries = entries
    }

    /// The feed as XML. Entries with the id of an earlier one are left out, because an id may occur only once.
    public var xml: String {
        var lines = [
            #"<?xml version="1.0" encoding="UTF-8"?>"#, #"<feed xmlns="http://www.w3.org/2005/Atom">"#, Self.element("id", id),
            Self.element("title", title), Self.element("updated", entries.map(\.updated).max() ?? Self.noTime),
            "<author>\(Self.element("name", author))</author>", "<generator>Hexlist</generator>",
        ]
        var seen: Set<String> = []
        for entry in entries where seen.insert(entry.id).inserted {
            lines += [
                "<entry>", Self.element("id", entry.id), Self.element("title", entry.title.isEmpty ? entry.url : entry.title),
                Self.element("updated", entry.updated),
            ]
            if LinkAddress.isHarmless(entry.url) {
                let address = MarkupText.escaped(PercentEncoding.encodeUnprintable(entry.url, and: #""<>\^`{|}"#))
                lines.append(#"<link rel="alternate" href="\#(address)"/>"#)
            } else {
                // Written as text: a feed reader would make a link clickable, even if its scheme starts a program.
                lines.append(Self.element("content", entry.url))
            }
            if !entry.author.isEmpty { lines.append("<author>\(Self.element("name", entry.author))</author>") }
            lines += entry.categories.map { #"<category term="\#(MarkupText.escaped($0))"/>"# }
            if !entry.note.isEmpty { lines.append(Self.element("summary", entry.note)) }
            lines.append("</entry>")
        }
        return (lines + ["</feed>", ""]).joined(separator: "\n")
    }

    /// Returns the id of the entry of a link. Other spellings of its address, and other feeds of the machine, have the same id.
    public static func linkID(_ url: String, machine: PeerID) -> String {
        id("link", [String(decoding: NormalizedLinkAddress.of(Array(url.utf8)), as: UTF8.self)], machine)
    }

    /// Returns the id of a feed, which is different for each selection of links on a machine.
    public static func feedID(
        search: String = "", hex: Int64? = nil, sender: String = "", location: HexLocation? = nil, isUnread: Bool = false, machine: PeerID
    ) -> String {
        id("feed", [search, hex.map(String.init) ?? "", sender, location?.rawValue ?? "", isUnread ? "unread" : ""], machine)
    }

    /// Returns the title of a feed of a search or, without a search, of the newest links.
    public static func title(search: String, location: HexLocation?) -> String {
        guard search.isEmpty else { return "Hexlist: \(search)" }
        return location == nil || location == .mine ? "My Hexlist" : "Hexlist: \(location?.rawValue ?? "")"
    }

    /// Returns a tag URI (RFC 4151).
    private static func id(_ kind: String, _ parts: [String], _ machine: PeerID) -> String {
        let path = parts.map { PercentEncoding.encode($0) }.joined(separator: "/")
        return "tag:\(machine.description.lowercased()).hexlist.invalid,2026:\(kind)/\(path)"
    }

    private static func element(_ name: String, _ text: String) -> String { "<\(name)>\(MarkupText.escaped(text))</\(name)>" }
}
