import HexlistModel
import Testing

@Suite("Addresses instead of names")
struct AddressTextTests {
    @Test(
        "an address contains a dot, a colon or a port; a name contains none",
        arguments: [
            ("10.0.0.1", "10.0.0.1"), ("10.0.0.1:1", "10.0.0.1"), ("::1", "::1"), ("fe80::1%eth0", "fe80::1%eth0"), ("[::1]", "::1"),
            ("[::1]:65535", "::1"), ("[fe80::1%2]:1", "fe80::1%2"), ("ada.example", "ada.example"), ("ada.example:1", "ada.example"),
            ("ada:1", "ada"), ("größe.example", "größe.example"), ("ada_1.local.", "ada_1.local."), ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
            ("", nil), ("ada", nil), ("ada lovelace", nil), ("@team", nil), ("ada.", nil), (".", nil), (".ada", nil), ("a..b", nil),
            ("ada:0", nil),
            ("ada:x", nil), ("ada:65536", nil), ("[ada]", nil), ("[10.0.0.1", nil), ("10.0.0.1:", nil), ("https://ada.example/", nil),
            ("hexlist://peer/ab", nil), ("Mr. X", nil), ("ada@home.example", nil), ("AAAA0000-0000-8000-8000-000000000001", nil),
            ("a." + String(repeating: "b", count: 64), nil), (String(repeating: "a.", count: 200), nil),
        ] as [(String, String?)])
    func texts(text: String, host: String?) {
        #expect(TypedNetworkAddress(text)?.host == host)
        if host != nil { #expect(TypedNetworkAddress(text)?.advice.contains("`peers: [\"\(text)\"]`") == true) }
    }
}
