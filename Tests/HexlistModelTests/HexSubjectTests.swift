import HexlistModel
import Testing

@Suite("What a hex is about, in a few words")
struct HexSubjectTests {
    private func hex(_ description: String, _ links: [(url: String, text: String)]) -> HexContent {
        var hex = HexContent()
        hex.hexDescription = hex.add(description)
        for link in links {
            hex.links.append(LinkContent(url: hex.add(link.url), linkDescription: hex.add(link.text), service: .empty))
        }
        return hex
    }

    @Test("its description, else its first link's text, else its host")
    func order() {
        #expect(HexSubject.of(hex("to read", [("https://a.example", "A")])) == "to read")
        #expect(HexSubject.of(hex(" \n\t", [("https://a.example", "A"), ("https://b.example", "B")])) == "A")
        #expect(HexSubject.of(hex("", [("https://a.example/b", "")])) == "a.example")
        #expect(HexSubject.of(hex("", [])).isEmpty)
    }

    @Test("a long text is cut between scalars", arguments: ["a", "é", "中", "👍"])
    func cut(letter: String) {
        let subject = HexSubject.of(hex("x" + String(repeating: letter, count: 1_000), []))
        #expect(subject.utf8.count <= HexSubject.bytes && subject.utf8.count > HexSubject.bytes - 4)
        #expect(!subject.contains("\u{FFFD}"))
    }
}
