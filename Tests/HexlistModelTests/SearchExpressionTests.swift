import HexlistModel
import Testing

@Suite("Search expressions")
struct SearchExpressionTests {
    private static func words(_ text: String) -> SearchTerm { .words(text, isPrefix: false) }

    @Test(
        "words, phrases, prefixes and filters; everything else is words",
        arguments: [
            ("annual report", [words("annual"), words("report")]),
            ("\"annual report\" har*", [words("annual report"), .words("har", isPrefix: true)]),
            ("\"annual rep\"*", [.words("annual rep", isPrefix: true)]),
            ("\"open end", [words("open end")]),
            ("host:Example.ORG", [.host("example.org")]), ("host:b\u{fc}cher.example", [.host("xn--bcher-kva.example")]),
            ("HOST:example.org/path", [.host("example.org")]),
            ("color:teal colour:#008080 color:008080", [.color("#008080"), .color("#008080"), .color("#008080")]),
            ("service:\"Google Drive\"", [.service("Google Drive")]),
            ("tag:db TAG:\"to read\" from:ada", [.tag("db"), .tag("to read"), .from("ada")]),
            ("https://example.org", [words("https://example.org")]),
            (
                "NOT a (b) NEAR/3 col:x ^y {w} is:new --z - a-b",
                ["NOT", "a", "(b)", "NEAR/3", "col:x", "^y", "{w}", "is:new", "--z", "-", "a-b"].map(words)
            ),
            ("\u{3000}a\u{A0}b\tc", ["a", "b", "c"].map(words)),
            ("OR a OR", ["OR", "a", "OR"].map(words)), ("or \"OR\" ORa", ["or", "OR", "ORa"].map(words)),
        ] as [(String, [SearchTerm])])
    func parse(text: String, expected: [SearchTerm]) throws {
        #expect(try SearchExpression(parsing: text) == SearchExpression(expected.map { .init([$0]) }))
    }

    @Test("excluded terms, OR, and the read state")
    func clauses() throws {
        let (a, b, c) = (Self.words("a"), Self.words("b"), Self.words("c"))
        #expect(try SearchExpression(parsing: "a -b") == SearchExpression([.init([a]), .init([b], isExcluded: true)]))
        #expect(
            try SearchExpression(parsing: "-\"b c\" -tag:db")
                == SearchExpression([
                    .init([Self.words("b c")], isExcluded: true), .init([.tag("db")], isExcluded: true),
                ]))
        #expect(try SearchExpression(parsing: "a OR b OR tag:db c") == SearchExpression([.init([a, b, .tag("db")]), .init([c])]))
        #expect(try SearchExpression(parsing: "is:unread") == SearchExpression([], unread: true))
        #expect(try SearchExpression(parsing: "a -is:unread") == SearchExpression([.init([a])], unread: false))
        #expect(try SearchExpression(parsing: "IS:READ a") == SearchExpression([.init([a])], unread: false))
    }

    @Test(
        "an invalid search is refused with a valid one",
        arguments: [
            ("", "nothing to search"), ("   ", "nothing to search"), ("host:", "followed by nothing"), ("host:a b", nil),
            ("host:\"a b\"", "no host"), ("host:user@example.org", "no host"), ("color:tael", "Unknown colour"),
            ("tag:", "followed by nothing"), ("from: a", "followed by nothing"), ("-a OR b", "excluded word"), ("a OR -b", "excluded word"),
            ("a OR is:unread", "is:unread"), ("is:unread OR a", "is:unread"),
            (String(repeating: "a", count: 1_001), "longer than 1000"), (String(repeating: "a ", count: 40), "40 conditions"),
        ] as [(String, String?)])
    func refused(text: String, part: String?) throws {
        guard let part else { return _ = try SearchExpression(parsing: text) }
        let error = try #require(throws: HexlistError.self) { try SearchExpression(parsing: text) }
        #expect(error.code == .badRequest && error.message.contains(part), "\(error)")
    }
}
