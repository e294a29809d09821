import HexlistModel
import Testing

@Suite("What a list shows of a hex") struct HexSubjectShownTests {
    @Test(
        "its description, or the first link's, or the host of that, or the link as it is",
        arguments: [
            ("About", "link", "https://a.example", "About"), ("", "link", "https://a.example", "link"),
            (" \n", "", "https://A.example:8080/x?y", "a.example"), ("", "", "https://bücher.example", "xn--bcher-kva.example"),
            ("", "", "mailto:ada@example.org", "mailto:ada@example.org"),
            ("", "", "https://good.example@evil.example/", "https://good.example@evil.example/"),
            ("", "", "not a url", "not a url"), ("", "", "", ""),
        ])
    func subject(description: String, link: String, url: String, expected: String) {
        #expect(HexSubject.of(description: description, linkDescription: link, url: url) == expected)
    }

    @Test("it is bounded whatever a peer sends") func bound() {
        let long = String(repeating: "é", count: 10_000)
        for subject in [
            HexSubject.of(description: long, linkDescription: "", url: ""), HexSubject.of(description: "", linkDescription: "", url: long),
        ] {
            #expect(subject.utf8.count == HexSubject.bytes)
        }
    }
}
