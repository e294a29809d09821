import HexlistModel
import Testing

@testable import hexlist

/// The sender checks its input: text that is not a link or a colour is refused before it is sent.
@Suite("Links and colours on the command line")
struct SendInputTests {
    @Test(
        "links, bare hosts, and neither",
        arguments: [
            ("https://avahi.org", LinkTextKind.link), ("HTTP://a", .link), ("mailto:ada@example.org", .link), ("magnet:?xt=urn", .link),
            ("tel:123", .link), ("urn:isbn:0451450523", .link), ("x-y.z+1:a", .link), ("web.app:open", .link),
            ("avahi.org", .bareHost), ("avahi.org/download?x#y", .bareHost), ("localhost", .bareHost), ("localhost:8080/a", .bareHost),
            ("nas:5000", .bareHost), ("192.168.7.20:80", .bareHost), ("[fe80::1]:80", .bareHost), ("[fe80::1]", .bareHost),
            ("münchen.example", .bareHost),
            ("a", .other), ("page", .other), ("not", .other), ("https:", .other), ("-", .other), (":", .other), ("./talk.pdf", .other),
            ("C:\\talk.pdf", .other), ("a..b", .other), (".org", .other), ("1http:a", .other), ("é:x", .other),
        ])
    func form(text: String, expected: LinkTextKind) { #expect(LinkTextKind(text) == expected) }

    @Test("for a bare host https is suggested, and used with --guess")
    func bareHost() throws {
        let error = #expect(throws: HexlistError.self) { try TypedText(["avahi.org Avahi"], .scheme) }
        #expect(error?.message == "`avahi.org` is not a link (no https://).")
        #expect(error?.hint?.contains("https://avahi.org") == true)
        let guessed = try TypedText(["avahi.org Avahi", "https://a.example"], .guess).links
        #expect(guessed.map(\.url) == ["https://avahi.org", "https://a.example"])
        #expect(guessed.first?.description == "Avahi")
        #expect(throws: HexlistError.self) { try LinkInput.read(["page"], .guess) }
        for host in ["avahi.org", "avahi.org Avahi", "nas:5000 NAS", "192.168.7.20 x", "[fe80::1] x", "localhost:8080"] {
            #expect(throws: HexlistError.self) { try TypedText([host], .scheme) }
        }
    }

    @Test("a missing pair of quotes is shown where it belongs")
    func quotes() {
        let error = #expect(throws: HexlistError.self) { try TypedText(["https://a.example", "page"], .scheme) }
        #expect(error?.hint?.contains("\"https://a.example page\"") == true)
    }

    @Test(
        "several URLs in one argument are several links, on one line or many",
        arguments: [
            ("https://a.example https://b.example", ["https://a.example|", "https://b.example|"]),
            ("https://a.example\nhttps://b.example two\r\n\n", ["https://a.example|", "https://b.example|two"]),
            (" https://a.example one\u{A0}https://b.example", ["https://a.example|one", "https://b.example|"]),
            ("https://a.example see mailto:ada@b.example", ["https://a.example|see mailto:ada@b.example"]),
        ])
    func several(argument: String, expected: [String]) throws {
        #expect(try TypedText([argument], .scheme).links.map { "\($0.url)|\($0.description)" } == expected)
        #expect(try TypedText([argument], .raw).links.count == 1)
    }

    @Test(
        "links are found in a text, and the rest is the description",
        arguments: [
            (["any text"], [], "any text"), (["hello"], [], "hello"), (["hello", "there"], [], "hello there"),
            (["Lunch? https://a.example/menu, at one"], ["https://a.example/menu|"], "Lunch?, at one"),
            (["https://a.example\nnote"], ["https://a.example|"], "note"), (["one\n\n\ntwo \n"], [], "one\n\ntwo"),
            (["3.5 percent"], [], "3.5 percent"), (["12:30 lunch"], [], "12:30 lunch"), (["[done] it"], [], "[done] it"),
            (["Re:hello there"], [], "Re:hello there"), (["zotero:x"], ["zotero:x|"], ""),
            (["ask ada@a.example"], [], "ask ada@a.example"), (["see www.a.example/b."], ["https://www.a.example/b|"], "see."),
            (["mailto:ada@a.example Ada"], ["mailto:ada@a.example|Ada"], ""),
            (["look at this", "https://a.example"], ["https://a.example|"], "look at this"),
            (["see <https://a.example|https://b.example>"], ["https://a.example|https://b.example"], "see"),
            (["[A (b)](https://a.example/x_(y)) "], ["https://a.example/x_(y)|A (b)"], ""),
        ])
    func text(arguments: [String], links: [String], text: String) throws {
        let typed = try TypedText(arguments, .scheme)
        #expect(typed.links.map { "\($0.url)|\($0.description)" } == links)
        #expect(typed.text == text)
    }

    @Test("a text that is too long for a description is refused")
    func longText() {
        let error = #expect(throws: HexlistError.self) { try TypedText([String(repeating: "ab ", count: 22_000)], .scheme) }
        #expect(error?.message == "The text is longer than 64 KiB.")
    }

    @Test("raw links are sent as given")
    func raw() throws { #expect(try TypedText(["not a url", "x"], .raw).links.map(\.url) == ["not", "x"]) }

    @Test(
        "colours",
        arguments: [
            ("", ""), ("#3366CC", "#3366CC"), ("#36c", "#3366cc"), ("blue", "#0000FF"), ("RebeccaPurple", "#663399"), ("teal", "#008080"),
        ])
    func color(text: String, expected: String) throws { #expect(try ColorInput.parse(text) == expected) }

    @Test(
        "an unknown colour is refused with the known ones",
        arguments: [("bleu", "blue"), ("3366CC", "'#3366CC'"), ("#33", "CSS"), ("#GGGGGG", "CSS"), ("зелёный", "CSS"), ("#３３６６ＣＣ", "CSS")])
    func noColor(text: String, hint: String) {
        let error = #expect(throws: HexlistError.self) { try ColorInput.parse(text) }
        #expect(error?.hint?.contains(hint) == true, "\(error?.hint ?? "")")
    }
}
