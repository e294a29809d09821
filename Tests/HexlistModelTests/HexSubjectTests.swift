import HexlistModel
import Testing

@Suite("The subject of a hex")
struct HexSubjectTests {
    private func hex(_ description: String, _ links: [(url: String, text: String)]) -> HexContent {
        var hex = HexContent()
        hex.hexDescription = hex.add(description)
        for link in links {
            hex.links.append(LinkContent(url: hex.add(link.url), linkDescription: hex.add(link.text), service: .empty))
        }
        return hex
    }

    @Test("its description, else the text of its first link, else host and path of that")
    func order() {
        #expect(HexSubject.of(hex("to read", [("https://a.example", "A")])) == "to read")
        #expect(HexSubject.of(hex(" \n\t", [("https://a.example", "A"), ("https://b.example", "B")])) == "A")
        #expect(HexSubject.of(hex("", [("https://a.example/b", "")])) == "a.example/b")
        #expect(HexSubject.of(hex("", [])).isEmpty)
    }

    @Test("a long text is cut between scalars", arguments: ["a", "é", "中", "👍"])
    func cut(letter: String) {
        let subject = HexSubject.of(hex("x" + String(repeating: letter, count: 1_000), []))
        #expect(subject.utf8.count <= HexSubject.bytes && subject.utf8.count > HexSubject.bytes - 4)
        #expect(!subject.contains("\u{FFFD}"))
    }

    @Test(
        "the description, else the first link's text, else its host and path, else the link itself",
        arguments: [
            ("About", "link", "https://a.example", "About"), ("", "link", "https://a.example", "link"),
            (" \n", "", "https://A.example:8080/x/Y?y#z", "a.example/x/Y"), ("", "", "https://a.example/?q=/x", "a.example"),
            ("", "", "HTTP://a.example?q", "a.example"), ("", "", "https://a.example/é", "a.example/é"),
            ("", "", "https://bücher.example", "xn--bcher-kva.example"),
            ("", "", "mailto:ada@example.org", "mailto:ada@example.org"),
            ("", "", "https://good.example@evil.example/", "https://good.example@evil.example/"),
            ("", "", "not a url", "not a url"), ("", "", "", ""),
        ])
    func subject(description: String, link: String, url: String, expected: String) {
        #expect(HexSubject.of(description: description, linkDescription: link, url: url) == expected)
    }

    @Test("the subject is bounded whatever a peer sends") func bound() {
        let long = String(repeating: "é", count: 10_000)
        for subject in [
            HexSubject.of(description: long, linkDescription: "", url: ""), HexSubject.of(description: "", linkDescription: "", url: long),
        ] {
            #expect((HexSubject.bytes - 1...HexSubject.bytes).contains(subject.utf8.count) && subject.hasSuffix("é…"))
        }
    }
}
