import HexlistModel
import Testing

@Suite("Identity of an address")
struct AddressIdentityTests {
    private func identity(_ address: String) -> String { String(decoding: NormalizedLinkAddress.of(address), as: UTF8.self) }

    @Test(
        "spellings of one address are equal",
        arguments: [
            [
                "https://example.com", "https://Example.com", "https://example.com/", "HTTPS://EXAMPLE.COM/", "https://example.com:443/",
                "https://example.com:/",
                "https://example.com/#top", "https://example.com/#", "https://example.com/?",
                "https://example.com?utm_source=x&UTM_medium=y",
            ],
            [
                "http://example.com:80/a?b=1&a=2", "http://example.com/a?a=2&b=1&fbclid=x",
                "http://example.com/a?&a=2&&b=1&gclid=1&igshid=2&mc_cid=3&mc_eid=4",
            ],
            ["https://example.com/~ada/\u{fc}", "https://example.com/%7Eada/%c3%bc", "https://example.com/%7eada/%C3%BC"],
            ["https://example.com/a/./b/../c", "https://example.com/a/c", "https://example.com/x/../a/c", "https://example.com/../a/c"],
            ["https://example.com/a/", "https://example.com/a/b/..", "https://example.com/a/."],
            ["https://b\u{fc}cher.example/", "https://xn--bcher-kva.example/", "https://B\u{dc}CHER.example/"],
            ["http://[2001:DB8::1]/", "http://[2001:db8:0:0:0:0:0:1]:80/"],
            ["https://example.com/#!/a", "https://example.com/#!/a:~:text=b"],
            ["https://example.com/a#:~:text=b", "https://example.com/a"],
            ["ftp://example.com:21/a", "FTP://example.com/a"],
            ["MAILTO:ada@example.com", "mailto:ada@example.com"],
        ])
    func equal(addresses: [String]) {
        for address in addresses { #expect(identity(address) == identity(addresses[0]), "\(address)") }
    }

    @Test(
        "different addresses stay different",
        arguments: [
            [
                "https://example.com/", "http://example.com/", "https://www.example.com/", "https://example.com:80/",
                "https://example.com:8443/",
                "https://ada@example.com/", "https://example.com./",
            ],
            [
                "https://example.com/a", "https://example.com/A", "https://example.com/a/", "https://example.com/a%2Fb",
                "https://example.com/a/b",
                "https://example.com//a", "https://example.com/.a", "https://example.com/..a", "https://example.com/#!a",
                "https://example.com/#/a",
            ],
            [
                "https://example.com/?a=1", "https://example.com/?a=2", "https://example.com/?a", "https://example.com/?A=1",
                "https://example.com/?a=1&a=2",
                "https://example.com/?a=2&a=1", "https://example.com/?utm=1", "https://example.com/?xutm_a=1",
                "https://example.com/?a=%26b=1",
                "https://example.com/?a=&b=1",
            ],
            ["mailto:ada@example.com", "mailto:Ada@example.com", "a", "A", "", ":", "https:", "https:example.com", "https:/example.com"],
        ])
    func different(addresses: [String]) {
        #expect(Set(addresses.map(identity)).count == addresses.count, "\(addresses.map(identity))")
    }

    @Test(
        "the form of an identity",
        arguments: [
            ("https://Example.com:443?b=2&a=1#x", "https://example.com/?a=1&b=2"),
            ("https://example.com/a b%zz%4", "https://example.com/a%20b%zz%4"),
            ("https:///a", "https:///a"), ("http://[::1", "http://[::1/"), ("HTTPS://U:P@EXAMPLE.com/", "https://U:P@example.com/"),
            ("no scheme", "no scheme"), ("1a:b", "1a:b"), ("javascript:A", "javascript:A"), ("hexlist://A/B", "hexlist://A/B"),
        ])
    func form(address: String, expected: String) { #expect(identity(address) == expected) }

    @Test("an identity is its own identity")
    func idempotent() {
        for address in [
            "https://E.example/%7E%41/../b?z&a#!%7e", "http://\u{4f8b}.example/\u{4f8b}?\u{4f8b}", "ftp://X:21", "x:Y", "https://a:443:443",
            "https://a::", "https://a/#!:%7E:b",
        ] {
            #expect(identity(identity(address)) == identity(address), "\(address)")
        }
    }
}
