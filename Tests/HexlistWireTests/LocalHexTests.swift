import HexlistModel
import HexlistWire
import Testing

/// A HexJM outside a frame: an import, a line of a bulk stream.
struct LocalHexTests {
    private func local(_ json: String) throws -> LocalHex {
        var decoder = WrapperDecoder()
        return try decoder.decodeHex(Array(json.utf8), acceptsLocalNames: true).get()
    }

    @Test(
        "local names are used if the wire's are missing",
        arguments: [
            (#"{"description":"d","color":"c"}"#, "d", "c", ""), (#"{"description":7,"color":null}"#, "7", "", #"{"color":null}"#),
            (#"{"description":"d","hexDescription":"h","color":"c","hexColor":""}"#, "h", "", #"{"description":"d","color":"c"}"#),
            (#"{"description":"d","hexDescription":null,"hexColor":"x"}"#, "d", "x", ""),
            (#"{"description":"a","description":"b"}"#, "b", "", ""),
            (#"{"description":"a","description":null}"#, "", "", #"{"description":null}"#),
        ]) func names(_ json: String, _ description: String, _ color: String, _ extra: String) throws
    {
        let hex = PlainHex(try local(json).content)
        #expect(hex.hexDescription == description && hex.hexColor == color && hex.extra == extra)
    }

    @Test(
        "the key is extracted",
        arguments: [
            (#"{"key":"k"}"#, "k" as String?), (#"{"key":7}"#, "7"), (#"{"key":"\u006b\ud800"}"#, "k\u{FFFD}"),
            (#"{"key":"a","key":"b"}"#, "b"), (#"{"key":"","x":1}"#, nil),
            (#"{"key":{}}"#, nil), ("{}", nil),
        ]) func key(_ json: String, _ key: String?) throws
    {
        let hex = try local(json)
        #expect(hex.key == key)
        #expect(!String(decoding: HexEncoder.encode(hex.content), as: UTF8.self).contains("key"))
    }

    @Test("on the wire these are unknown members") func onTheWire() throws {
        var decoder = WrapperDecoder()
        let json = #"{"description":"d","color":"c","key":"k","packageUUID":"p"}"#
        let hex = try decoder.decodeHex(Array(json.utf8), acceptsLocalNames: false).get()
        #expect(hex.key == nil && PlainHex(hex.content).extra == json && PlainHex(hex.content).hexDescription == "")
    }

    @Test("the rules for a hex apply, those for a wrapper do not") func rules() throws {
        let hex = PlainHex(
            try local("\u{FEFF} {\"links\":\"[\\\"u\\\"]\",\"senderName\":7,\"operationType\":\"Alert\",\"jmObject\":3} \n").content)
        #expect(hex.links.map(\.url) == ["u"] && hex.senderName == "7" && hex.extra == #"{"operationType":"Alert","jmObject":3}"#)
    }

    @Test(
        "anything but a hex is refused",
        arguments: [
            ("", RefusalCode.malformed), ("[]", .malformed), (#""{}""#, .malformed), ("{} {}", .malformed), (#"{"links":[}"#, .malformed),
            (#"{"color":"\#(String(repeating: "x", count: 65_537))"}"#, .tooLarge),
            (#"{"links":[\#(Array(repeating: "{}", count: 5_001).joined(separator: ","))]}"#, .tooManyLinks),
        ]) func refused(_ json: String, _ code: RefusalCode)
    {
        var decoder = WrapperDecoder()
        switch decoder.decodeHex(Array(json.utf8), acceptsLocalNames: true) {
        case .success: Issue.record("accepted")
        case .failure(let refusal): #expect(refusal.code == code && refusal.isUndecodable == (code == .malformed))
        }
    }
}
