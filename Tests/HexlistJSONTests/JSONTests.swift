import HexlistJSON
import Testing

@Suite("JSON of the local API")
struct JSONTests {
    @Test(
        "values are kept as written",
        arguments: [
            "0", "-0", "1.50", "1e5", "-12.5E+3", "true", "false", "null", #""""#, #""a\/b\u00e9\ud83d\ude00""#, "[]", "[ 1 ,2]", "{}",
            #"{ "a" : [ {} ] , "a":1 }"#, "\"é😀\"",
        ])
    func kept(json: String) throws {
        #expect(try JSONValue(parsing: " \n\(json)\t").text == json)
        #expect(JSONValue(try JSONValue(parsing: json)).text == json)
    }

    @Test(
        "values that differ only in member order, escapes and white space have one canonical form",
        arguments: [
            (#"{"b":1,"a":{"d":[{"y":1,"x":1.0}],"c":"\u00e9\/"}}"#, #"{"a":{"c":"é/","d":[{"x":1.0,"y":1}]},"b":1}"#),
            (#"{"a":2,"B":3,"a":1}"#, #"{"B":3,"a":2,"a":1}"#), ("[ 2, 1 ]", "[2,1]"), ("1e5", "1e5"), (#""\ud800""#, #""\ud800""#),
            ("{}", "{}"), ("null", "null"),
        ])
    func canonical(json: String, expected: String) throws {
        #expect(String(decoding: try JSONValue(parsing: json).canonicalBytes, as: UTF8.self) == expected)
    }

    private struct Widths: JSONShape, Equatable {
        var small: UInt16
        var large: UInt64
    }

    @Test("integers of each width are written and read; larger ones are refused") func widths() throws {
        let widths = Widths(small: .max, large: 7)
        let text = JSONValue(widths).text
        #expect(text == #"{"small":65535,"large":7}"#)
        #expect(try Widths(jsonBytes: Array(text.utf8)) == widths)
        #expect(throws: JSONFault.self) { try Widths(jsonBytes: Array(#"{"small":65536,"large":7}"#.utf8)) }
    }

    @Test(
        "invalid JSON is refused with the offset",
        arguments: [
            ("", 0), (" ", 1), ("tru", 3), ("nul1", 3), ("01", 1), ("-", 1), ("1.", 2), (".5", 0), ("1e", 2), ("+1", 0), ("'a'", 0),
            ("\"a", 1),
            ("\"\u{1}\"", 1), (#""\x""#, 2), (#""\u12g4""#, 5), ("[1,]", 3), ("[1 2]", 3), ("[", 1), ("{\"a\"}", 4), ("{a:1}", 1),
            ("{\"a\":1,}", 7),
            ("1 2", 2), ("{} {}", 3), ("NaN", 0), ("\u{FEFF}1", 0),
        ])
    func refused(json: String, offset: Int) throws {
        let fault = try #require(throws: JSONFault.self) { try JSONValue(parsing: json) }
        #expect(fault.offset == offset, "\(fault)")
    }

    @Test(
        "invalid UTF-8 is refused",
        arguments: [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]] as [[UInt8]])
    func encoding(bytes: [UInt8]) {
        #expect(throws: JSONFault.self) { try JSONValue(parsing: bytes) }
    }

    @Test("nesting is bounded")
    func nesting() throws {
        let depth = JSONValue.maximumDepth
        #expect(throws: Never.self) { try JSONValue(parsing: String(repeating: "[", count: depth) + String(repeating: "]", count: depth)) }
        #expect(throws: JSONFault.self) {
            try JSONValue(parsing: String(repeating: "[", count: depth + 1) + String(repeating: "]", count: depth + 1))
        }
        #expect(throws: JSONFault.self) { try JSONValue(parsing: String(repeating: "{\"a\":", count: 1_000_000)) }
    }

    @Test(
        "strings are unescaped",
        arguments: [
            (#""a\"\\\/\b\f\n\r\t""#, "a\"\\/\u{8}\u{C}\n\r\t"), (#""\u00e9\u4e2d""#, "é中"), (#""\ud83d\ude00!""#, "😀!"),
            (#""\ud83d""#, "\u{FFFD}"),
            (#""\ude00x""#, "\u{FFFD}x"), (#""\ud83d\u0041""#, "\u{FFFD}A"), (#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀"), (#""\u0000""#, "\0"),
        ])
    func strings(json: String, text: String) throws {
        #expect(try JSONValue(parsing: json).string?.unicodeScalars.elementsEqual(text.unicodeScalars) == true)
    }

    @Test(
        "strings are written with the escapes JSON requires, and those that make them printable",
        arguments: [
            ("a/b", #""a/b""#), ("\"\\\n\r\t", #""\"\\\n\r\t""#), ("\u{0}\u{1F}\u{7F}", #""\u0000\u001f\u007f""#),
            ("é😀\u{2028}\u{202E}", #""é😀\u2028\u202e""#),
        ])
    func written(text: String, json: String) throws {
        #expect(text.jsonText == json)
        #expect(try JSONValue(parsing: json).string?.unicodeScalars.elementsEqual(text.unicodeScalars) == true)
    }

    @Test(
        "numbers are read exactly or refused",
        arguments: [
            ("7", 7), ("-7", -7), ("9223372036854775807", Int64.max), ("9223372036854775808", nil), ("7.0", nil), ("1e2", nil),
            ("\"7\"", nil), ("true", nil),
        ] as [(String, Int64?)])
    func integers(json: String, number: Int64?) throws {
        #expect(try JSONValue(parsing: json).integer == number)
    }

    @Test("elements are read up to a limit") func limit() throws {
        let array = try JSONValue(parsing: "[1, [2], {}]")
        #expect(array.elements(atMost: 3)?.map(\.text) == ["1", "[2]", "{}"] && array.elements(atMost: 2) == nil)
        #expect(try JSONValue(parsing: "[]").elements(atMost: 0) == [] && JSONValue(parsing: "{}").elements(atMost: 9) == nil)
    }

    @Test("member names compare as bytes, and the last duplicate counts")
    func members() throws {
        let object = try JSONObject(JSONValue(parsing: #"{"e\u0301":1,"é":2,"a":3,"a":4}"#))
        #expect(object["é"]?.integer == 2)
        #expect(object["e\u{301}"]?.integer == 1)
        #expect(object["a"]?.integer == 4)
        #expect(object.names.count == 4)
    }
}
