import Foundation
import TestSupport
import Testing

@testable import HexlistFormats

@Suite("Links in text") struct LinkTextTests {
    /// A record of `Fixtures/messages.txt`: the text in one line, `=> URL | title` for each link, and `== description`.
    private struct Message {
        var text: String
        var links: [String] = []
        var description = ""
    }

    private static func messages() throws -> [Message] {
        let file = try #require(Bundle.module.resourceURL).appending(path: "Fixtures/messages.txt")
        return try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n\n").filter { !$0.isEmpty }.map { record in
            let lines = record.split(separator: "\n", omittingEmptySubsequences: true).map(String.init)
            var message = Message(text: unescaped(lines[0]))
            for line in lines.dropFirst() {
                if line.hasPrefix("=> ") { message.links.append(String(line.dropFirst(3))) }
                if line.hasPrefix("== ") { message.description = unescaped(String(line.dropFirst(3))) }
            }
            return message
        }
    }

    /// Decodes a line of the corpus: `\\n` is a line break, and `\\u{200B}` a character by its number.
    private static func unescaped(_ line: String) -> String {
        line.replacingOccurrences(of: "\\n", with: "\n").replacing(#/\\u\{([0-9A-F]+)\}/#) { match in
            UInt32(match.1, radix: 16).flatMap(Unicode.Scalar.init).map(String.init) ?? ""
        }
    }

    @Test("the messages of the corpus have the links and the description that people expect")
    func corpus() throws {
        let messages = try Self.messages()
        #expect(messages.count > 600)
        for message in messages {
            let found = LinkText(message.text)
            let links = found.links.map { $0.title.isEmpty ? $0.url : "\($0.url) | \($0.title)" }
            #expect(links == message.links, "\(message.text)")
            #expect(found.description == message.description, "\(message.text)")
        }
    }

    @Test(
        "texts without an address, and marks that look like one",
        arguments: [
            "", " ", "\n\n", "://", "https://", "x:// y", "http:// a", "www.", "www.a", "www..a.b", "a@www.b.example", "[a](b)", "C://x",
            "Re:hello there", "://a.example", "1https", "3:30",
        ])
    func noLink(text: String) {
        let found = LinkText(text)
        #expect(found.links.isEmpty)
        #expect(found.description == text.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    @Test(
        "an address alone keeps its last character",
        arguments: ["https://a.example/Inc.", "https://a.example/Yahoo!", "https://a.example/x_(y)"])
    func alone(url: String) { #expect(LinkText(url).links == [LinkText.Link(url: url)]) }

    @Test(
        "the parts of two links never overlap, also if a bracket, an exclamation mark or a title reaches into the next link",
        arguments: [
            ("a <https://a.example/b|x [t](https://c.example/d>) y", ["https://a.example/b", "https://c.example/d>"]),
            ("a <https://a.example|[t](https://c.example)> y", ["https://a.example", "https://c.example"]),
            ("https://a.example/![x](https://b.example)", ["https://a.example/!", "https://b.example"]),
            ("a \"[t](https://b.example)\"https://c.example\"", ["https://b.example", "https://c.example"]),
            ("(https://a.example[t](https://b.example))", ["https://a.example", "https://b.example"]),
            ("<https://a.example|<https://b.example|b>>", ["https://a.example", "https://b.example"]),
        ])
    func overlaps(text: String, urls: [String]) { #expect(LinkText(text).links.map(\.url) == urls) }

    @Test("long texts take time in proportion to their length", .offPool, .timeLimit(.minutes(20)))
    func long() {
        let pieces = [
            "https://a.example/ ", "[a](https://b.example) ", "(((((", "[[[[[", "](", "www.", "a://b", "\n- ", "https://a,", "“”",
            "<https://a.example|",
        ]
        for piece in pieces {
            let text = String(repeating: piece, count: 50_000 / piece.utf8.count)
            #expect(LinkText(text).links.count <= text.utf8.count)
        }
        for marks in ["(", "[", "(["] {
            let text = "- " + String(repeating: marks, count: 50_000 / marks.utf8.count) + "x https://a.example/"
            #expect(LinkText(text).links.map(\.url) == ["https://a.example/"])
        }
    }
}
