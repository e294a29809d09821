import HexlistModel
import Testing

@testable import hexlist

/// The sender checks its input: text that is not a link or a colour is refused before it is sent.
@Suite("Links and colours on the command line")
struct SendInputTests {
    @Test(
        "links, bare hosts, and neither",
        arguments: [
            ("https://avahi.org", LinkForm.link), ("HTTP://a", .link), ("mailto:ada@example.org", .link), ("magnet:?xt=urn", .link),
            ("tel:123", .link), ("urn:isbn:0451450523", .link), ("x-y.z+1:a", .link), ("web.app:open", .link),
            ("avahi.org", .bareHost), ("avahi.org/download?x#y", .bareHost), ("localhost", .bareHost), ("localhost:8080/a", .bareHost),
            ("nas:5000", .bareHost), ("192.168.7.20:80", .bareHost), ("[fe80::1]:80", .bareHost), ("[fe80::1]", .bareHost),
            ("münchen.example", .bareHost),
            ("a", .other), ("page", .other), ("not", .other), ("https:", .other), ("-", .other), (":", .other), ("./talk.pdf", .other),
            ("C:\\talk.pdf", .other), ("a..b", .other), (".org", .other), ("1http:a", .other), ("é:x", .other),
        ])
    func form(text: String, expected: LinkForm) { #expect(LinkForm(text) == expected) }

    @Test("for a bare host https is suggested, and used with --guess")
    func bareHost() throws {
        let error = #expect(throws: HexlistError.self) { try LinkInput.read(["avahi.org Avahi"], .scheme) }
        #expect(error?.message == "`avahi.org` is not a link (no https://).")
        #expect(error?.hint?.contains("https://avahi.org") == true)
        let guessed = try LinkInput.read(["avahi.org Avahi", "https://a.example"], .guess)
        #expect(guessed.map(\.url) == ["https://avahi.org", "https://a.example"])
        #expect(guessed.first?.description == "Avahi")
        #expect(throws: HexlistError.self) { try LinkInput.read(["page"], .guess) }
    }

    @Test("a missing pair of quotes is shown where it belongs")
    func quotes() {
        let error = #expect(throws: HexlistError.self) { try LinkInput.read(["https://a.example", "page"], .scheme) }
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
        #expect(try LinkInput.read([argument], .scheme).map { "\($0.url)|\($0.description)" } == expected)
        #expect(try LinkInput.read([argument], .raw).count == 1)
    }

    @Test("an argument with a line that is not a link is refused") func badLine() {
        #expect(throws: HexlistError.self) { try LinkInput.read(["https://a.example\nnote"], .scheme) }
    }

    @Test("raw links are sent unchanged")
    func raw() throws { #expect(try LinkInput.read(["not a url", "x"], .raw).map(\.url) == ["not", "x"]) }

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
