import HexlistModel
import Testing

@Suite("Requests for links") struct WebTargetTests {
    @Test(
        "server and resource of a link",
        arguments: [
            ("https://Example.org", "https example.org 443 /"), ("http://example.org/a b", nil),
            ("http://example.org:8080?q=1#top", "http example.org 8080 /?q=1"),
            ("https://example.org/a/../b/./c", "https example.org 443 /b/c"), ("https://example.org/../..", "https example.org 443 /"),
            ("https://example.org/a/..", "https example.org 443 /"), ("https://example.org//a//b/", "https example.org 443 //a//b/"),
            ("https://\u{fc}ber.example/\u{fc}?\u{fc}", "https xn--ber-goa.example 443 /%C3%BC?%C3%BC"),
            ("http://[::1]:81/x", "http ::1 81 /x"), ("http://127.0.0.1/", "http 127.0.0.1 80 /"), ("http://0x7f.1/", nil),
            ("http://2130706433/", nil), ("http://user@example.org/", nil), ("ftp://example.org/", nil), ("http://example.org:0/", nil),
            ("http://example.org:99999/", nil), ("mailto:a@example.org", nil), ("", nil),
        ] as [(String, String?)])
    func parsed(url: String, expected: String?) { #expect(HTTPLinkTarget(url).map(text) == expected) }

    @Test(
        "redirects",
        arguments: [
            ("https://b.example/x", "https b.example 443 /x"), ("//b.example:444/x", "https b.example 444 /x"),
            ("/x?y", "https a.example 8443 /x?y"),
            ("x", "https a.example 8443 /dir/x"), ("../x", "https a.example 8443 /x"), ("?z", "https a.example 8443 /dir/page?z"),
            ("#top", "https a.example 8443 /dir/page?q=/1"), ("", "https a.example 8443 /dir/page?q=/1"),
            ("HTTP://B.example", "http b.example 80 /"),
            ("x?u=http://c.example", "https a.example 8443 /dir/x?u=http://c.example"), ("javascript:alert(1)", nil),
            ("file:///etc/passwd", nil),
            ("http:/b.example", nil), ("https://b.example\\@c.example/", nil), ("/\r\nX: y", nil),
        ] as [(String, String?)])
    func redirected(location: String, expected: String?) throws {
        let base = try #require(HTTPLinkTarget("https://a.example:8443/dir/page?q=/1"))
        #expect(base.redirected(to: location).map(text) == expected)
    }

    @Test("the host as in a URL")
    func authority() {
        #expect(
            HTTPLinkTarget("https://a.example:443/")?.authority == "a.example"
                && HTTPLinkTarget("http://[::1]:81/")?.authority == "[::1]:81")
    }

    private func text(_ target: HTTPLinkTarget) -> String {
        "\(target.isTLS ? "https" : "http") \(target.host) \(target.port) \(target.resource)"
    }

    @Test(
        "addresses of the Internet",
        arguments: [
            ("1.1.1.1", true), ("2606:4700::1111", true), ("::ffff:1.1.1.1", true), ("64:ff9b::101:101", true), ("192.0.1.1", true),
            ("127.0.0.1", false), ("127.8.8.8", false), ("10.1.2.3", false), ("172.16.0.1", false), ("172.31.255.255", false),
            ("172.32.0.1", true), ("192.168.1.1", false), ("169.254.169.254", false), ("100.64.0.1", false), ("100.127.255.255", false),
            ("100.128.0.1", true), ("0.0.0.0", false), ("0.1.2.3", false), ("224.0.0.1", false), ("239.255.255.255", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false), ("192.0.0.8", false), ("192.0.2.1", false), ("198.18.0.1", false), ("198.19.255.255", false),
            ("198.51.100.7", false), ("203.0.113.9", false), ("::", false), ("::1", false), ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false), ("::ffff:169.254.169.254", false), ("64:ff9b::7f00:1", false), ("64:ff9b::a9fe:a9fe", false),
            ("::127.0.0.1", false), ("fe80::1", false), ("fc00::1", false), ("fd12:3456::1", false), ("fec0::1", false), ("ff02::1", false),
            ("2001:db8::1", false), ("2002:7f00:1::", false), ("2001::1", false), ("3fff::1", false), ("4000::1", false),
        ] as [(String, Bool)])
    func isPublic(text: String, expected: Bool) throws { #expect(try #require(IPAddress(text)).isPublic == expected) }
}
