import Testing

@testable import HexlistModel

/// Links as peers may write them. Hosts follow the WHATWG URL Standard; surprising forms are refused.
@Suite("Links that may be opened")
struct LinkTargetTests {
    private static let schemes = ["http", "https"]

    /// A link and the host that a browser connects to.
    static let opened: [(url: String, host: String)] = [
        ("https://example.org", "example.org"),
        ("https://example.org/", "example.org"),
        ("HTTPS://EXAMPLE.ORG/A", "example.org"),
        ("hTTp://Example.Org:8080/a?b=c#d", "example.org"),
        ("http://example.org?q", "example.org"),
        ("http://example.org#f", "example.org"),
        ("http://example.org:80", "example.org"),
        ("http://example.org:00080/", "example.org"),
        ("http://example.org:65535/", "example.org"),
        ("http://example.org./", "example.org."),
        ("http://localhost:3000/x", "localhost"),
        ("http://a_b.example.org/", "a_b.example.org"),
        ("http://-a.example.org/", "-a.example.org"),
        ("http://a--b.example.org/", "a--b.example.org"),
        ("http://192.168.7.20/", "192.168.7.20"),
        ("http://0.0.0.0/", "0.0.0.0"),
        ("http://255.255.255.255/", "255.255.255.255"),
        ("http://1.2.3.4.example.org/", "1.2.3.4.example.org"),
        ("http://1password.example/", "1password.example"),
        ("http://[::1]/", "[::1]"),
        ("http://[::]/", "[::]"),
        ("http://[2001:DB8:0:0:1:0:0:1]:80/", "[2001:db8::1:0:0:1]"),
        ("http://[2001:db8:0:1:1:1:1:1]/", "[2001:db8:0:1:1:1:1:1]"),
        ("http://[::ffff:192.0.2.1]/", "[::ffff:c000:201]"),
        ("http://[1:2:3:4:5:6:7:8]/", "[1:2:3:4:5:6:7:8]"),
        ("http://[1::8]/", "[1::8]"),
        ("http://[0:0:1::]/", "[0:0:1::]"),
        ("https://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example"),
        ("https://münchen.example/", "xn--mnchen-3ya.example"),
        ("https://bücher.example/ä?ö#ü", "xn--bcher-kva.example"),
        ("https://пример.рф/", "xn--e1afmkfd.xn--p1ai"),
        ("https://例え.jp/", "xn--r8jz45g.jp"),
        ("https://中文.example/", "xn--fiq228c.example"),
        ("https://аpple.com/", "xn--pple-43d.com"),
        ("https://apple.com.evil.example/", "apple.com.evil.example"),
        ("https://example.org/@good.com", "example.org"),
        ("https://example.org/?u=http://user@evil.com/", "example.org"),
        ("https://example.org/#@evil.com", "example.org"),
        ("https://example.org//evil.com/", "example.org"),
        ("https://example.org/a%00b", "example.org"),
        ("https://example.org/%2e%2e/%0d%0a", "example.org"),
        ("https://example.org/;rm -rf".replacingSpaces, "example.org"),
        ("https://example.org/$(id)`id`'\"&|<>", "example.org"),
        ("https://example.org/-rf", "example.org"),
        ("https://example.org/\u{E9}\u{4E2D}", "example.org"),
    ]

    /// A link and the reason why it is not opened.
    static let refused: [(url: String, fault: LinkFault)] = [
        ("", .empty),
        ("x", .noScheme),
        ("example.org", .noScheme),
        ("//example.org/", .noScheme),
        ("/etc/passwd", .noScheme),
        ("-rf", .noScheme),
        ("--help:x", .noScheme),
        ("-http://example.org/", .noScheme),
        ("1http://example.org/", .noScheme),
        ("ht%74p://example.org/", .noScheme),
        ("http&#58;//example.org/", .noScheme),
        ("htt\u{440}://example.org/", .noScheme),
        (":https://example.org", .noScheme),
        ("javascript:alert(1)", .scheme("javascript")),
        ("JavaScript:alert(1)", .scheme("javascript")),
        ("javascript://example.org/%0aalert(1)", .scheme("javascript")),
        ("data:text/html,<script>1</script>", .scheme("data")),
        ("vbscript:x", .scheme("vbscript")),
        ("file:///etc/passwd", .scheme("file")),
        ("FILE:///etc/passwd", .scheme("file")),
        ("file://host/share", .scheme("file")),
        ("ftp://example.org/", .scheme("ftp")),
        ("ssh://-oProxyCommand=id/", .scheme("ssh")),
        ("mailto:a@example.org?attach=/etc/passwd", .scheme("mailto")),
        ("magnet:?xt=x", .scheme("magnet")),
        ("smb://example.org/x", .scheme("smb")),
        ("steam://run/1", .scheme("steam")),
        ("ms-msdt:/id", .scheme("ms-msdt")),
        ("view-source:http://example.org/", .scheme("view-source")),
        ("httpx://example.org/", .scheme("httpx")),
        ("blob:https://example.org/1", .scheme("blob")),
        (" https://example.org", .whiteSpace),
        ("https://example.org ", .whiteSpace),
        ("https://example.org/a b", .whiteSpace),
        ("https://exam ple.org/", .whiteSpace),
        ("https://example.org/\ta", .whiteSpace),
        ("https://example.org/\n--help", .whiteSpace),
        ("https://example.org/\r", .whiteSpace),
        ("java\nscript:alert(1)", .whiteSpace),
        ("ht\ttp://example.org/", .whiteSpace),
        ("https://example.org/\u{A0}", .whiteSpace),
        ("https://example.org/\u{3000}", .whiteSpace),
        ("https://example.org/\u{2028}", .whiteSpace),
        ("https://example.org/\u{85}", .whiteSpace),
        ("https://example.org/\0", .invisible),
        ("\u{1}javascript:alert(1)", .invisible),
        ("https://example.org/\u{1B}]8;;x", .invisible),
        ("https://example.org/\u{7F}", .invisible),
        ("https://example.org/\u{9B}31m", .invisible),
        ("https://example.org/\u{202E}gro.live", .invisible),
        ("https://good.com\u{200B}.evil.com/", .invisible),
        ("https://good\u{AD}.com/", .invisible),
        ("https://example.org/\u{FEFF}", .invisible),
        ("https://example.org/\u{FFFD}", .invisible),
        ("https://example.org/\u{E0041}", .invisible),
        ("http://good.com\\@evil.com/", .backslash),
        ("http:\\\\good.com/", .backslash),
        ("http://good.com\\.evil.com/", .backslash),
        ("https://example.org/a\\b", .backslash),
        ("http:example.org", .noHost),
        ("http:/example.org", .noHost),
        ("http://", .noHost),
        ("http:///example.org", .noHost),
        ("http:////example.org", .noHost),
        ("http://?x", .noHost),
        ("http://#x", .noHost),
        ("http://:80/", .noHost),
        ("http://good.com@evil.com/", .user),
        ("http://good.com:pass@evil.com/", .user),
        ("http://@evil.com/", .user),
        ("http://good.com%40evil.com@evil.com/", .user),
        ("http://a@b@c/", .user),
        ("http://example.org:/", .port),
        ("http://example.org:65536/", .port),
        ("http://example.org:99999/", .port),
        ("http://example.org:000080/", .port),
        ("http://example.org:8x/", .port),
        ("http://example.org:-1/", .port),
        ("http://example.org:80:80/", .port),
        ("http://[::1]:x/", .port),
        ("http://good.com%00.evil.com/", .host),
        ("http://good.com%2eevil.com/", .host),
        ("http://%65xample.org/", .host),
        ("http://2130706433/", .host),
        ("http://0x7f000001/", .host),
        ("http://0x7f.1/", .host),
        ("http://0x/", .host),
        ("http://127.1/", .host),
        ("http://017700000001/", .host),
        ("http://0177.0.0.1/", .host),
        ("http://127.0.0.01/", .host),
        ("http://127.0.0.1./", .host),
        ("http://1.2.3.256/", .host),
        ("http://1.2.3.4.5/", .host),
        ("http://example.123/", .host),
        ("http://example.0x1f/", .host),
        ("http://./", .host),
        ("http://../", .host),
        ("http://a..b/", .host),
        ("http://.example.org/", .host),
        ("http://[::1/", .port),
        ("http://[::1]x/", .host),
        ("http://[]/", .host),
        ("http://[1:2:3:4:5:6:7:8:9]/", .host),
        ("http://[1:2:3]/", .host),
        ("http://[1::2::3]/", .host),
        ("http://[12345::]/", .host),
        ("http://[:::]/", .host),
        ("http://[fe80::1%25eth0]/", .host),
        ("http://[v1.x]/", .host),
        ("http://[::1.2.3.04]/", .host),
        ("http://[::1.2.3]/", .host),
        ("http://exa!mple.org/", .host),
        ("http://exa$(id).org/", .host),
        ("http://exa'mple.org/", .host),
        ("http://exa,mple.org/", .host),
        ("http://exa<mple>.org/", .host),
        ("http://exa|mple.org/", .host),
        ("http://ＧＯＯＤ.com/", .host),
        ("https://straße.example/", .host),
        ("http://ⓖⓞⓞⓓ.com/", .host),
        ("http://good。com/", .host),
        ("http://goo\u{2044}d.com/", .host),
        ("http://good\u{FF0F}evil.com/", .host),
        ("http://Ünal.example/", .host),
        ("http://ﬁ.example/", .host),
        ("http://u\u{308}ber.example/", .host),
        ("http://\u{1100}\u{1161}.example/", .host),
        ("http://☃.example/", .host),
        ("http://a\u{200D}b.example/", .host),
        ("http://-ü.example/", .host),
    ]

    @Test("the shown host is the one a browser connects to", arguments: opened)
    func host(url: String, host: String) throws {
        let target = try LinkTarget(url, schemes: Self.schemes)
        #expect(target.host == host)
        #expect(target.summary.utf8.allSatisfy { (0x21...0x7E).contains($0) })
    }

    @Test("a link that programs read differently is not opened, with a reason", arguments: refused)
    func refusal(url: String, fault: LinkFault) {
        #expect(throws: fault) { try LinkTarget(url, schemes: Self.schemes) }
    }

    @Test("the tables are complete")
    func count() { #expect(Self.opened.count + Self.refused.count >= 120) }

    @Test("the lengths of a link, a label and a name are bounded")
    func lengths() throws {
        let path = String(repeating: "a", count: LinkTarget.maximumBytes - "http://a/".utf8.count)
        #expect(try LinkTarget("http://a/\(path)", schemes: Self.schemes).host == "a")
        #expect(throws: LinkFault.tooLong) { try LinkTarget("http://a/\(path)b", schemes: Self.schemes) }
        let label = String(repeating: "a", count: 63)
        #expect(try LinkTarget("http://\(label)/", schemes: Self.schemes).host == label)
        #expect(throws: LinkFault.host) { try LinkTarget("http://\(label)a/", schemes: Self.schemes) }
        let name = Array(repeating: "a", count: 127).joined(separator: ".")
        #expect(try LinkTarget("http://\(name)/", schemes: Self.schemes).host == name)
        #expect(throws: LinkFault.host) { try LinkTarget("http://\(name).a/", schemes: Self.schemes) }
        // A character with thousands of combining marks takes no longer than others.
        let marks = String(repeating: "\u{301}", count: 4_000)
        #expect(try LinkTarget("http://a/e\(marks)", schemes: Self.schemes).host == "a")
        #expect(throws: LinkFault.host) { try LinkTarget("http://e\(marks)/", schemes: Self.schemes) }
    }

    @Test("a non-ASCII label and the name are bounded in bytes before conversion")
    func longLabels() throws {
        func label(_ letters: Int) -> String { String(repeating: "ä", count: letters) }
        // A label has at most 63 bytes of UTF-8: 62 are accepted and 64 refused, although the second label has only 40 bytes in Punycode.
        #expect(try LinkTarget("http://\(label(31)).example/", schemes: Self.schemes).host?.hasPrefix("xn--") == true)
        #expect(throws: LinkFault.host) { try LinkTarget("http://\(label(32)).example/", schemes: Self.schemes) }
        let name = Array(repeating: label(30), count: 4).joined(separator: ".")
        #expect(throws: Never.self) { try LinkTarget("http://\(name)/", schemes: Self.schemes) }
        #expect(throws: LinkFault.host) { try LinkTarget("http://\(name).\(label(30))/", schemes: Self.schemes) }
    }

    @Test("configured schemes are opened, except for schemes that run or read something on this machine")
    func configured() throws {
        let schemes = ["https", "magnet", "gemini", "ftp", "javascript", "file"]
        #expect(try LinkTarget("magnet:?xt=urn:x", schemes: schemes).summary == "magnet:")
        #expect(try LinkTarget("gemini://example.org/", schemes: schemes).summary == "gemini:")
        #expect(try LinkTarget("ftp://Example.org/", schemes: schemes).host == "example.org")
        #expect(throws: LinkFault.user) { try LinkTarget("ftp://a@example.org/", schemes: schemes) }
        #expect(throws: LinkFault.whiteSpace) { try LinkTarget("magnet:?xt=urn:x --help", schemes: schemes) }
        for url in ["javascript:alert(1)", "file:///etc/passwd"] {
            #expect(throws: LinkFault.scheme(String(url.prefix { $0 != ":" }))) { try LinkTarget(url, schemes: schemes) }
        }
        #expect(throws: LinkFault.scheme("http")) { try LinkTarget("http://example.org", schemes: schemes) }
    }

    @Test(
        "Punycode (RFC 3492)",
        arguments: [
            ("ليهمابتكلموشعربي؟", "egbpdaj6bu4bxfgehfvwxn"), ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
            ("почемужеонинеговорятпорусски", "b1abfaaepdrnnbgefbadotcwatmq2g4l"), ("3年B組金八先生", "3B-ww4c5e180e575a65lsy2b"),
            ("-> $1.00 <-", "-> $1.00 <--"), ("ü", "tda"),
        ])
    func punycode(text: String, encoded: String) {
        #expect(Punycode.encode(Array(text.unicodeScalars)) == encoded)
    }
}

extension String {
    fileprivate var replacingSpaces: String { String(map { $0 == " " ? "+" : $0 }) }
}
