import Foundation
import HexlistFormats
import Testing

#if canImport(FoundationXML)
    import FoundationXML
#endif

@Suite("Atom feeds") struct AtomFeedTests {
    /// The elements and attributes of a document, as paths with their text.
    private final class Outline: NSObject, XMLParserDelegate {
        var lines: [String] = []
        private var path: [String] = []
        private var text = ""

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?, attributes: [String: String]
        ) {
            path.append(name)
            text = ""
            for (key, value) in attributes.sorted(by: { $0.key < $1.key }) {
                lines.append("\(path.joined(separator: "/"))@\(key)=\(value)")
            }
        }

        func parser(_ parser: XMLParser, foundCharacters text: String) { self.text += text }

        func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
            if !text.allSatisfy(\.isWhitespace) { lines.append("\(path.joined(separator: "/"))=\(text)") }
            text = ""
            path.removeLast()
        }
    }

    private func outline(_ feed: AtomFeed) throws -> [String] {
        let (parser, outline) = (XMLParser(data: Data(feed.xml.utf8)), Outline())
        parser.delegate = outline
        #expect(parser.parse(), "\(String(describing: parser.parserError))")
        return outline.lines
    }

    @Test("a feed has the required elements, with escaped texts and without repeats")
    func feed() throws {
        let feed = AtomFeed(
            id: "tag:a,2026:feed", title: "A & <b> \u{1B}[31m\u{FFFF}", author: "ada \"x\"",
            entries: [
                .init(
                    id: "tag:a,2026:1", url: "https://a.example/?a=1&b=<\u{fc}> %20\"'", title: "]]> \u{4eac} &amp;",
                    updated: "2026-01-02T03:04:05.006Z",
                    author: "Bob", note: "a\nb", categories: ["to read", "a&b"]),
                .init(id: "tag:a,2026:2", url: "mailto:x@a.example", title: "", updated: "2026-02-02T03:04:05.006Z"),
                .init(id: "tag:a,2026:3", url: "javascript:x", title: "run", updated: "2026-01-01T03:04:05.006Z"),
                .init(id: "tag:a,2026:1", url: "https://a.example/again", title: "again", updated: "2026-01-01T03:04:05.006Z"),
            ])
        #expect(
            try outline(feed) == [
                "feed@xmlns=http://www.w3.org/2005/Atom", "feed/id=tag:a,2026:feed", "feed/title=A & <b> \u{FFFD}[31m\u{FFFD}",
                "feed/updated=2026-02-02T03:04:05.006Z", "feed/author/name=ada \"x\"", "feed/generator=Hexlist",
                "feed/entry/id=tag:a,2026:1", "feed/entry/title=]]> \u{4eac} &amp;",
                "feed/entry/updated=2026-01-02T03:04:05.006Z",
                "feed/entry/link@href=https://a.example/?a=1&b=%3C%C3%BC%3E%20%20%22'", "feed/entry/link@rel=alternate",
                "feed/entry/author/name=Bob", "feed/entry/category@term=to read",
                "feed/entry/category@term=a&b", "feed/entry/summary=a b", "feed/entry/id=tag:a,2026:2",
                "feed/entry/title=mailto:x@a.example", "feed/entry/updated=2026-02-02T03:04:05.006Z",
                "feed/entry/link@href=mailto:x@a.example", "feed/entry/link@rel=alternate", "feed/entry/id=tag:a,2026:3",
                "feed/entry/title=run", "feed/entry/updated=2026-01-01T03:04:05.006Z", "feed/entry/content=javascript:x",
            ])
        #expect(
            try outline(AtomFeed(id: "tag:a,2026:feed", title: "t", author: "a", entries: [])).contains("feed/updated=1970-01-01T00:00:00Z")
        )
    }
}
