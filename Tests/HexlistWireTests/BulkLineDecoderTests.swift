import HexlistWire
import Testing

struct BulkLineDecoderTests {
    private func code(_ line: [UInt8]?, allowsEmpty: Bool = false) -> String {
        var decoder = BulkLineDecoder(allowsEmpty: allowsEmpty)
        switch decoder.decode(line) {
        case .blank: return "blank"
        case .hex: return "hex"
        case .refused(let code, _): return code
        }
    }

    @Test(
        "a line is a hex, empty, or refused with a code",
        arguments: [
            (#"{"links":["u"]}"#, "hex"), (#"{"links":["u"]}"# + "\r", "hex"), (#"{"url":"u"}"#, "noLink"), ("{}", "noLink"), ("", "blank"),
            (" \t\r", "blank"), ("[]", "malformed"), (#"{"links":["u"]"#, "malformed"), (#"{"links":["u"]} x"#, "malformed"),
        ])
    func line(_ text: String, _ expected: String) { #expect(code(Array(text.utf8)) == expected) }

    @Test(
        "a line without links names the member that may have been meant as the links",
        arguments: [
            (#"{"link":["a:b"]}"#, "there is no link in it; did you mean `links` instead of `link`?"),
            (#"{"x":1,"Links":["a:b"]}"#, "there is no link in it; did you mean `links` instead of `Links`?"),
            (#"{"links":[],"url":"a:b"}"#, "there is no link in it"),
        ])
    func misspelt(text: String, expected: String) {
        var decoder = BulkLineDecoder(allowsEmpty: false)
        guard case .refused(_, let message) = decoder.decode(Array(text.utf8)) else {
            Issue.record("accepted")
            return
        }
        #expect(message == expected)
    }

    @Test("a hex without links is accepted if allowed") func empty() {
        #expect(code(Array("{}".utf8), allowsEmpty: true) == "hex")
        #expect(code(Array("{".utf8), allowsEmpty: true) == "malformed")
    }

    @Test("invalid UTF-8, and a line over the bound") func bytes() {
        #expect(code(Array(#"{"description":""#.utf8) + [0xFF] + Array(#"","links":["u"]}"#.utf8)) == "malformed")
        #expect(code(nil) == "tooLarge")
        #expect(code(Array(repeating: 0x20, count: BulkLineDecoder.lineBytes + 1)) == "tooLarge")
    }
}
