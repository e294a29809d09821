import HexlistModel
import Testing

@Suite("Search terms")
struct SearchTermTests {
    @Test(
        "words, phrases, prefixes, and three known names; everything else is words",
        arguments: [
            ("annual report", [.words("annual", isPrefix: false), .words("report", isPrefix: false)]),
            ("\"annual report\" har*", [.words("annual report", isPrefix: false), .words("har", isPrefix: true)]),
            ("\"annual rep\"*", [.words("annual rep", isPrefix: true)]),
            ("\"open end", [.words("open end", isPrefix: false)]),
            ("host:Example.ORG", [.host("example.org")]), ("host:bücher.example", [.host("xn--bcher-kva.example")]),
            ("HOST:example.org/path", [.host("example.org")]),
            ("color:teal colour:#008080 color:008080", [.color("#008080"), .color("#008080"), .color("#008080")]),
            ("service:\"Google Drive\"", [.service("Google Drive")]),
            ("https://example.org", [.words("https://example.org", isPrefix: false)]),
            (
                "NOT a OR (b) NEAR/3 col:x ^y -z {w}",
                [
                    .words("NOT", isPrefix: false), .words("a", isPrefix: false), .words("OR", isPrefix: false),
                    .words("(b)", isPrefix: false),
                    .words("NEAR/3", isPrefix: false), .words("col:x", isPrefix: false), .words("^y", isPrefix: false),
                    .words("-z", isPrefix: false), .words("{w}", isPrefix: false),
                ]
            ),
            ("\u{3000}a\u{A0}b\tc", ["a", "b", "c"].map { .words($0, isPrefix: false) }),
        ] as [(String, [SearchTerm])])
    func parse(text: String, expected: [SearchTerm]) throws { #expect(try SearchTerm.parse(text) == expected) }

    @Test(
        "an invalid search is refused with a valid one",
        arguments: [
            ("", "nothing to search"), ("   ", "nothing to search"), ("host:", "followed by nothing"), ("host:a b", nil),
            ("host:\"a b\"", "no host"), ("host:user@example.org", "no host"), ("color:tael", "Unknown colour"),
            (String(repeating: "a", count: 1_001), "longer than 1000"), (String(repeating: "a ", count: 40), "40 conditions"),
        ] as [(String, String?)])
    func refused(text: String, part: String?) throws {
        guard let part else { return _ = try SearchTerm.parse(text) }
        let error = try #require(throws: HexlistError.self) { try SearchTerm.parse(text) }
        #expect(error.code == .badRequest && error.message.contains(part), "\(error)")
    }
}
