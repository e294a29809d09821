import HexlistModel
import Testing

@Suite("The nearest name")
struct NearestNameTests {
    @Test(
        "near misses are suggested, unrelated names are not",
        arguments: [
            ("sned", "send"), ("SEND", "send"), ("inbx", "inbox"), ("desc", "description"), ("frameBytes", "limits.frameBytes"),
            ("bbo", "bob"), ("bo", "bob"), ("a", nil), ("x", nil), ("", nil), ("foo", nil), ("zebra", nil), ("bobsled", nil),
            ("scription", "description"),
        ] as [(String, String?)])
    func likely(name: String, expected: String?) {
        let names = ["send", "inbox", "description", "limits.frameBytes", "bob", "to", "b"]
        #expect(NearestName.likely(name, among: names) == expected)
    }

    @Test("a long hostile name costs no more than a short one")
    func long() {
        let long = String(repeating: "a\u{301}", count: 100_000)
        #expect(NearestName.likely(long, among: ["bob", long + "b"]) != "bob")
    }
}
