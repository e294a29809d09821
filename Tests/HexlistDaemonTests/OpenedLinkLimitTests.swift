import Testing

@testable import HexlistDaemon

@Suite("Links that are opened when they arrive") struct LinkAllowanceTests {
    private let start = ContinuousClock.now

    private func hosts(_ allowance: inout OpenedLinkLimit, _ urls: [String], _ limit: Int, after seconds: Int = 0) -> [String] {
        allowance.take(urls, limit: limit, now: start + .seconds(seconds)).map(\.host)
    }

    @Test(
        "only http and https links whose host is certain",
        arguments: [
            ("https://a.example/x?y#z", "a.example"), ("http://A.example:8080/", "a.example"), ("ftp://a.example/", nil),
            ("javascript:alert(1)", nil), ("file:///etc/passwd", nil), ("mailto:a@b.example", nil), ("https://me@a.example/", nil),
            ("https://a.example\\@evil.example/", nil), ("hexlist://x/y", nil), ("", nil), ("a.example", nil),
        ])
    func links(url: String, host: String?) {
        var allowance = OpenedLinkLimit()
        #expect(hosts(&allowance, [url], 6) == (host.map { [$0] } ?? []))
    }

    @Test("at most the limit of the peer for each hex, and six in a minute") func limits() {
        var allowance = OpenedLinkLimit()
        let many = (1...9).map { "https://h\($0).example/" }
        #expect(hosts(&allowance, many, 0).isEmpty)
        // A link that is not opened does not count.
        #expect(hosts(&allowance, ["mailto:a@b.example"] + many, 2) == ["h1.example", "h2.example"])
        #expect(hosts(&allowance, many, 3, after: 20).count == 3)
        #expect(hosts(&allowance, many, 3, after: 59).count == 1 && hosts(&allowance, many, 3, after: 59).isEmpty)
        #expect(hosts(&allowance, many, 6, after: 60).count == 2 && hosts(&allowance, many, 6, after: 79).isEmpty)
        #expect(hosts(&allowance, many, 6, after: 80).count == 3)
        #expect(hosts(&allowance, many, 6, after: 500).count == 6)
    }

    @Test("the notification names the hosts") func text() {
        func text(_ hosts: String...) -> String { LinkOpener.text(hosts.map { OpenedLinkLimit.Link(url: "https://\($0)/", host: $0) }) }
        #expect(text("a.example") == "Opened a.example" && text("a", "b", "c") == "Opened a, b and c")
    }
}
