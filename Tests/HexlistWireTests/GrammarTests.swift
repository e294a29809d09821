import Foundation
import HexlistModel
import HexlistWire
import Testing

/// The decoder accepts exactly the JSON of RFC 8259 (Docs/Protocol.md, rule T22).
struct GrammarTests {
    /// Valid JSON values.
    static let values = [
        "0", "-0", "1", "-1", "10", "0.0", "-0.5", "1e0", "1E+2", "1e-2", "0e1", "1.5E10", "123456789012345678901234567890.5e+400", "true",
        "false", "null",
        #""""#, #""a""#, #""\"\\\/\b\f\n\r\t""#, #""\u0000\uFFFF\uffff\uD800\udc00""#, "\"\u{7F}\u{80}\u{FFFD}\u{FEFF}\u{10FFFF}\"",
        "\"\u{2028}\u{2029}\"",
        "[]", "[ ]", "[1]", "[1,2]", "[ 1 , [ ] , { } ]", "{}", "{ }", #"{"":0}"#, #"{"a":1,"a":2}"#, "[\n\t\r 1 \n]",
        #"{"a" : [ {"b":[ ]} ] }"#,
    ]

    /// Texts that are not valid JSON.
    static let faults = [
        "", "+1", "01", "-", "--1", "-01", "1.", ".5", "1.e1", "1e", "1e+", "1E-", "0x1", "1_0", "Infinity", "NaN", "-Infinity", "tru",
        "True", "nul", "nulll", "truefalse",
        "'a'", #"""#, #""\""#, #""\x""#, #""\u12""#, #""\u123G""#, #""\U0041""#, "\"\n\"", "\"\t\"", "\"\u{0}\"", "\"\u{1F}\"", "a", "[",
        "]", "[,]", "[1,]", "[,1]", "[1 2]", "[1,,2]", "[1",
        "{", "}", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,"a":1}"#, #"{"a" 1}"#, "{a:1}", "{1:1}", "{'a':1}", #"{"a":1 "b":2}"#,
        #"{"a":1;"b":2}"#, "[1]]", "{}}", "[1}", #"{"a":1]"#,
        "/**/1", "// \n1", "1 1", "\u{A0}1", "\u{FEFF}1", "[\u{B}]", "[\u{C}]", "[\u{2028}]", "#", "\\u0031", "\"\\\u{0}\"",
    ]

    /// Frames with a value in place of `$`, in known and unknown members.
    static let places = [
        #"{"operationType":"Ping","x":$}"#, #"{"operationType":"Ping","message":$}"#,
        #"{"operationType":"Ping","sequence":$}"#, #"{"sequence":$,"operationType":"Ping"}"#,
        #"{"operationType":"Ping","jmObject":$}"#, #"{"jmObject":$,"operationType":"Ping"}"#,
        #"{"operationType":"Store","jmObject":{"links":$}}"#, #"{"operationType":"Store","jmObject":{"links":[$]}}"#,
        #"{"operationType":"Store","jmObject":{"links":{"p":$}}}"#, #"{"operationType":"Store","jmObject":{"links":[{"url":$}]}}"#,
        #"{"operationType":"Store","jmObject":{"links":[{"service":$}]}}"#, #"{"operationType":"Store","jmObject":{"links":[{"x":$}]}}"#,
        #"{"operationType":"Store","jmObject":{"senderName":$,"hexColor":"c"}}"#,
        #"{"operationType":"Store","jmObject":{"senderName":$,"senderName":"a"}}"#,
        #"{"operationType":"Hello","jmObject":{"protocols":$,"window":1}}"#, #"{"operationType":"Ack","jmObject":{"rejected":[$]}}"#,
        #"{"operationType":"Nope","x":[[$]]}"#, #"{"links":$}"#, #"{"operationType":$}"#,
    ]

    @Test("JSON is decoded in every member", arguments: values) func accepted(_ value: String) {
        for place in Self.places {
            switch decode(Self.put(value, place)) {
            case .wrapper: break
            case .refused(let refusal): #expect(!refusal.isUndecodable, "\(Self.put(value, place)): \(refusal.message)")
            }
        }
    }

    @Test("invalid JSON is malformed in every member", arguments: faults) func rejected(_ value: String) throws {
        for place in Self.places where value != "" || !Self.put("", place).contains("[]") {
            let refusal = try refusal(decode(Self.put(value, place)))
            #expect(refusal.code == .malformed && refusal.isUndecodable, "\(Self.put(value, place))")
            #expect(refusal.sequence == nil && refusal.operation == nil)
        }
    }

    @Test(
        "UTF-8 is validated",
        arguments: [
            ([0x80], false), ([0xBF], false), ([0xC0, 0x80], false), ([0xC1, 0xBF], false), ([0xC2], false), ([0xC2, 0x20], false),
            ([0xC2, 0x80], true),
            ([0xDF, 0xBF], true), ([0xE0, 0x9F, 0xBF], false), ([0xE0, 0xA0, 0x80], true), ([0xE1, 0x80], false),
            ([0xED, 0x9F, 0xBF], true),
            ([0xED, 0xA0, 0x80], false), ([0xED, 0xBF, 0xBF], false), ([0xEE, 0x80, 0x80], true), ([0xEF, 0xBF, 0xBF], true),
            ([0xF0, 0x8F, 0xBF, 0xBF], false),
            ([0xF0, 0x90, 0x80, 0x80], true), ([0xF4, 0x8F, 0xBF, 0xBF], true), ([0xF4, 0x90, 0x80, 0x80], false),
            ([0xF5, 0x80, 0x80, 0x80], false),
            ([0xF0, 0x90, 0x80], false), ([0xF8, 0x88, 0x80, 0x80, 0x80], false), ([0xFE], false), ([0xFF], false),
            ([0xC3, 0xA9, 0xC3], false),
            ([0x00], false), ([0x1F], false), ([0x7F], true), ([0x5C, 0x6E], true), ([0x5C, 0x78], false), ([0x22, 0x22], false),
        ] as [([UInt8], Bool)]) func utf8(_ bytes: [UInt8], _ isText: Bool)
    {
        // The character at each distance from the start and end of a string, so that each lane of the wide loads is tested.
        for before in 0..<36 {
            for after in [0, 1, 15, 16, 17] {
                let text = Array(repeating: UInt8(ascii: "x"), count: before) + bytes + Array(repeating: UInt8(ascii: "y"), count: after)
                for name in ["message", "unknown"] {
                    let frame = Array(#"{"operationType":"Ping","\#(name)":""#.utf8) + text + Array("\"}".utf8)
                    switch decode(frame) {
                    case .wrapper(let wrapper):
                        #expect(isText)
                        if name == "message", bytes.first != 0x5C { #expect(wrapper.message.map { Array($0.utf8) } == text) }
                    case .refused(let refusal): #expect(!isText && refusal.isUndecodable)
                    }
                }
            }
        }
    }

    @Test("escapes are decoded in every member") func escapes() throws {
        for before in 0..<40 {
            for (escape, character) in [
                (#"\n"#, "\n"), (#"\u00e9"#, "é"), (#"\u5c71"#, "山"), (#"\ud83d\ude00"#, "😀"), (#"\\"#, "\\"), (#"\""#, "\""),
            ] {
                let text = String(repeating: "x", count: before)
                let hex = try hex(decode(#"{"operationType":"Store","jmObject":{"links":["\#(text)\#(escape)\#(text)\#(escape)"]}}"#))
                #expect(hex.links.map { hex.string($0.url) } == [text + character + text + character])
            }
        }
    }

    @Test(
        "nesting depth counts from the frame: 64 levels",
        arguments: [
            (#"{"operationType":"Ping","x":$}"#, 63), (#"{"operationType":"Store","jmObject":{"x":$}}"#, 62),
            (#"{"operationType":"Store","jmObject":{"links":[$]}}"#, 61),
            (#"{"operationType":"Store","jmObject":{"links":[{"x":$}]}}"#, 60),
            (#"{"operationType":"Store","jmObject":{"links":{"p":{"url":$}}}}"#, 60),
            (#"{"operationType":"Store","jmObject":{"senderName":$}}"#, 62),
            (#"{"operationType":"Hello","jmObject":{"protocols":[$]}}"#, 61),
            (#"{"operationType":"Ack","jmObject":{"rejected":[{"x":$}]}}"#, 60),
            (#"{"links":[{"x":$}]}"#, 61), (#"{"jmObject":{"links":[{"x":$}]},"operationType":"Ping"}"#, 60),
        ]) func nesting(_ place: String, _ levels: Int) throws
    {
        func nested(_ count: Int) -> String { String(repeating: "[", count: count) + String(repeating: "]", count: count) }
        func objects(_ count: Int) -> String { String(repeating: #"{"a":"#, count: count) + "1" + String(repeating: "}", count: count) }
        for value in [nested, objects] {
            _ = try wrapper(decode(Self.put(value(levels), place)))
            let refusal = try refusal(decode(Self.put(value(levels + 1), place)))
            #expect(refusal.isUndecodable && refusal.message.contains("nested"))
        }
    }

    @Test("JSON in a text (T5, T18) counts its own levels") func embeddedNesting() throws {
        func nested(_ count: Int) -> String { String(repeating: "[", count: count) + String(repeating: "]", count: count) }
        _ = try hex(decode(#"{"operationType":"Store","jmObject":\#(quoted(#"{"x":\#(nested(63))}"#))}"#))
        let refusal = try refusal(decode(#"{"operationType":"Store","jmObject":\#(quoted(#"{"x":\#(nested(64))}"#)),"sequence":4}"#))
        #expect(refusal.code == .malformed && !refusal.isUndecodable && refusal.sequence == 4)
        let deep = try hex(decode(#"{"operationType":"Store","jmObject":{"links":\#(quoted(#"[{"x":\#(nested(62))}]"#))}}"#))
        #expect(deep.links.count == 1 && !deep.links[0].extra.isEmpty)
        let tooDeep = #"[{"x":\#(nested(63))}]"#
        let url = try hex(decode(#"{"operationType":"Store","jmObject":{"links":\#(quoted(tooDeep))}}"#))
        #expect(url.links.map { url.string($0.url) } == [tooDeep])
    }

    @Test(
        "a byte order mark is allowed only at the start",
        arguments: [
            ("\u{FEFF}{\"operationType\":\"Ping\"}", true), ("\u{FEFF} \n{\"operationType\":\"Ping\"} \r\n\t", true),
            (" \u{FEFF}{\"operationType\":\"Ping\"}", false),
            ("\u{FEFF}\u{FEFF}{\"operationType\":\"Ping\"}", false), ("{\u{FEFF}\"operationType\":\"Ping\"}", false),
            ("{\"operationType\":\"Ping\"}\u{FEFF}", false),
            ("\u{FEFF}", false),
        ]) func mark(_ input: String, _ isAccepted: Bool)
    {
        switch decode(input) {
        case .wrapper: #expect(isAccepted)
        case .refused(let refusal): #expect(!isAccepted && refusal.isUndecodable)
        }
    }

    @Test(
        "UTF-16 and UTF-32 are refused",
        arguments: [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian])
    func otherEncodings(_ encoding: String.Encoding) throws {
        let data = try #require(#"{"operationType":"Ping"}"#.data(using: encoding))
        #expect(try refusal(decode(Array(data))).isUndecodable)
    }

    private static func put(_ value: String, _ place: String) -> String { place.replacingOccurrences(of: "$", with: value) }
}
