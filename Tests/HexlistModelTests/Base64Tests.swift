import HexlistModel
import Testing

@Suite("Base64") struct Base64Tests {
    @Test(
        "the texts of RFC 4648",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
            ("\u{FB}\u{FF}", "w7vDvw=="), ("~~>", "fn4+"), ("?!?", "PyE/"),
        ])
    func texts(_ source: String, _ text: String) {
        let bytes = Array(source.utf8)
        #expect(Base64.encode(bytes) == text && Base64.decode(text, count: bytes.count) == bytes)
        #expect(Base64.textBytes(of: bytes.count) == text.utf8.count)
    }

    @Test(
        "any other text is not decoded: alphabet, length, padding, unused bits",
        arguments: ["Zg", "Zg=", "Zg===", "Zh==", "Z===", "====", "Zé==", "Zg=a", "Zga=", " Zg==", "-w==", "Zg=\n"])
    func others(_ text: String) {
        #expect(Base64.decode(text, count: 1) == nil)
    }

    @Test("each byte count up to 100 is read again, in no other count") func counts() {
        for count in 0..<100 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            let text = Base64.encode(bytes)
            #expect(Base64.decode(text, count: count) == bytes && Base64.decode(text, count: count + 1) == nil)
        }
    }
}
