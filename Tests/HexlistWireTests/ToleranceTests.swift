import Foundation
import HexlistModel
import HexlistWire
import Testing

/// Each rule of Docs/Protocol.md, "Tolerant decoding", in several forms.
struct ToleranceTests {
    /// The hex of a Store, and the members kept with it.
    struct Case: Sendable, CustomTestStringConvertible {
        var rule: String
        /// The hex's members, without the braces.
        var members: String
        var hex: String
        var extra: String = "{}"

        var testDescription: String { "\(rule): \(members)" }
    }

    static let blank = #"{"senderUUID":"","senderName":"","hexDescription":"","hexColor":"","links":[]}"#

    static func named(_ name: String) -> String {
        #"{"senderUUID":"","senderName":\#(name),"hexDescription":"","hexColor":"","links":[]}"#
    }

    /// A hex with inner hexes.
    static func tree(of links: String = "", _ children: String...) -> String {
        String(self.links(links).dropLast()) + #","children":[\#(children.joined(separator: ","))]}"#
    }

    static func links(_ links: String) -> String {
        #"{"senderUUID":"","senderName":"","hexDescription":"","hexColor":"","links":[\#(links)]}"#
    }

    static func link(_ url: String = "", _ description: String = "", _ service: String = "Unknown") -> String {
        #"{"url":\#(quoted(url)),"linkDescription":\#(quoted(description)),"service":\#(quoted(service))}"#
    }

    static let cases: [Case] = [
        Case(
            rule: "T1", members: #""children":{"links":[]},"tags":{}"#, hex: blank, extra: #"{"hex":{"children":{"links":[]},"tags":{}}}"#),
        Case(rule: "T1", members: #""children":"[]""#, hex: blank, extra: #"{"hex":{"children":"[]"}}"#),
        Case(rule: "T1", members: #""children":[{"links":[]}],"tags":{}"#, hex: tree(blank), extra: #"{"hex":{"tags":{}}}"#),
        Case(
            rule: "T1", members: #""children":[{},{"x":1,"children":[{"links":[{"y":2}]}]}]"#,
            hex: tree(blank, tree(links(link()))),
            extra: #"{"children":{"1":{"hex":{"x":1},"children":{"0":{"links":{"0":{"y":2}}}}}}}"#),
        Case(rule: "T2", members: #""children":null"#, hex: blank),
        Case(rule: "T2", members: #""children":[]"#, hex: blank),
        Case(rule: "T2", members: #""children":[{"children":null,"senderName":null}]"#, hex: tree(blank)),
        Case(rule: "T3", members: #""children":[{"senderName":7}]"#, hex: tree(named(#""7""#))),
        Case(rule: "T12", members: #""children":[{"links":[{"fileName":"f"}]}]"#, hex: tree(links(link("", "f")))),
        Case(rule: "T16", members: #""children":[null,1,true,"a",[{}],{"hexColor":""}]"#, hex: tree(blank)),
        Case(rule: "T17", members: #""children":[{"links":{"p":"u"}}]"#, hex: tree(links(link("u", "p")))),
        Case(rule: "T18", members: #""children":[{"links":"[\"u\",{\"url\":\"v\"}]"}]"#, hex: tree(links(link("u") + "," + link("v")))),
        Case(rule: "T18", members: #""links":["t"],"children":[{"links":"[{},x"}]"#, hex: tree(of: link("t"), links(link("[{},x")))),
        Case(rule: "T19", members: #""children":[{"links":["u"]}],"children":[{},{}]"#, hex: tree(blank, blank)),
        Case(rule: "T19", members: #""children":[{}],"children":7"#, hex: blank, extra: #"{"hex":{"children":7}}"#),
        Case(rule: "T19", members: #""children":7,"children":8,"children":[{}]"#, hex: tree(blank)),
        Case(
            rule: "T19", members: #""links":["t"],"children":[{"links":["u","v"],"links":["w"]},{"links":["x"]}]"#,
            hex: tree(of: link("t"), links(link("w")), links(link("x")))),
        Case(rule: "T19", members: #""children":[{"links":["u"]}],"links":["t"]"#, hex: tree(of: link("t"), links(link("u")))),
        Case(
            rule: "T1", members: #""":1,"senderName ":2,"SenderName":3"#, hex: blank,
            extra: #"{"hex":{"":1,"senderName ":2,"SenderName":3}}"#),
        Case(rule: "T1", members: #""links":[{"URL":"u","x":null}]"#, hex: links(link()), extra: #"{"links":{"0":{"URL":"u","x":null}}}"#),
        Case(rule: "T2", members: "", hex: blank),
        Case(rule: "T2", members: #""senderUUID":null,"links":null,"hexColor":null"#, hex: blank),
        Case(rule: "T2", members: #""links":[{"url":null,"service":null,"linkDescription":null}]"#, hex: links(link())),
        Case(rule: "T3", members: #""senderName":-0.50E+7"#, hex: named(#""-0.50E+7""#)),
        Case(rule: "T3", members: #""senderName":false"#, hex: named(#""false""#)),
        Case(rule: "T3", members: #""senderName":123456789012345678901234567890"#, hex: named(#""123456789012345678901234567890""#)),
        Case(rule: "T3", members: #""links":[{"url":1,"linkDescription":2.0,"service":true}]"#, hex: links(link("1", "2.0", "true"))),
        Case(rule: "T4", members: #""senderName":{"a":[1]},"hexColor":[]"#, hex: blank),
        Case(rule: "T4", members: #""links":[{"url":[],"linkDescription":{},"service":{"a":1}}]"#, hex: links(link())),
        Case(rule: "T4", members: #""links":true"#, hex: blank),
        Case(rule: "T4", members: #""links":-1.5"#, hex: blank),
        Case(rule: "T12", members: #""links":[{"fileName":"f","type":"box"}]"#, hex: links(link("", "f", "Box"))),
        Case(
            rule: "T12", members: #""links":[{"fileName":"f","linkDescription":null,"service":null,"type":7}]"#,
            hex: links(link("", "f", "7"))),
        Case(
            rule: "T12", members: #""links":[{"linkDescription":"","fileName":"f","service":"","type":"Box"}]"#, hex: links(link()),
            extra: #"{"links":{"0":{"fileName":"f","type":"Box"}}}"#),
        Case(
            rule: "T12", members: #""links":[{"fileName":"f","linkDescription":{},"type":null}]"#, hex: links(link()),
            extra: #"{"links":{"0":{"fileName":"f","type":null}}}"#),
        Case(rule: "T12", members: #""links":[{"fileName":{"a":1},"type":[]}]"#, hex: links(link())),
        Case(rule: "T12", members: #""fileName":"f","type":"t""#, hex: blank, extra: #"{"hex":{"fileName":"f","type":"t"}}"#),
        Case(
            rule: "T13",
            members: #""links":[{"service":"UNKNOWN"},{"service":"googledrive"},{"service":"GOOGLE_DRIVE"},{"service":"google drive"}]"#,
            hex: links(
                [link(), link("", "", "GoogleDrive"), link("", "", "GoogleDrive"), link("", "", "GoogleDrive")].joined(separator: ","))),
        Case(
            rule: "T13", members: #""links":[{"service":" Box"},{"service":"google  drive"},{"service":"Dropbo\u0078"},{"service":"Boх"}]"#,
            hex: links(
                [link("", "", " Box"), link("", "", "google  drive"), link("", "", "Dropbox"), link("", "", "Boх")].joined(separator: ","))),
        Case(rule: "T13", members: #""links":[{"service":"DROPBO\u212A"}]"#, hex: links(link("", "", "DROPBO\u{212A}"))),
        Case(
            rule: "T15", members: #""links":["a","b\n","\u00e9"]"#, hex: links([link("a"), link("b\n"), link("é")].joined(separator: ","))),
        Case(rule: "T16", members: #""links":[[],[{"url":"u"}],false,0,"",null]"#, hex: blank),
        Case(
            rule: "T17", members: #""links":{"":"u","p":{"url":"v"},"q":{"linkDescription":"d"},"r":"","s":{}}"#,
            hex: links([link("u"), link("v", "p"), link("", "d"), link("", "s")].joined(separator: ","))),
        Case(
            rule: "T17", members: #""links":{"p":{"fileName":null,"url":"u"}}"#, hex: links(link("u", "p")),
            extra: #"{"links":{"0":{"fileName":null}}}"#),
        Case(rule: "T17", members: #""links":{"p":{"linkDescription":{}}}"#, hex: links(link())),
        Case(rule: "T17", members: #""links":{"\ud800\u0000":"u"}"#, hex: links(link("u", "\u{FFFD}\u{FFFD}"))),
        Case(
            rule: "T17", members: #""links":{"url":"u","service":"Box"}"#,
            hex: links([link("u", "url"), link("Box", "service")].joined(separator: ","))),
        Case(rule: "T18", members: #""links":"""#, hex: blank),
        Case(rule: "T18", members: #""links":"  ""#, hex: links(link("  "))),
        Case(rule: "T18", members: #""links":"[]""#, hex: blank),
        Case(rule: "T18", members: #""links":"\n\t[1,\"u\"] ""#, hex: links(link("u"))),
        Case(rule: "T18", members: #""links":"{\"p\":\"u\"}""#, hex: links(link("u", "p"))),
        Case(rule: "T18", members: #""links":"{\"p\":\"u\"} x""#, hex: links(link(#"{"p":"u"} x"#))),
        Case(rule: "T18", members: #""links":"\"[1]\"""#, hex: links(link(#""[1]""#))),
        Case(rule: "T18", members: #""links":"\ufeff[]""#, hex: links(link("\u{FEFF}[]"))),
        Case(
            rule: "T18", members: #""links":"[{\"url\":\"a\\u0000\",\"x\":\"\\u0000\"}]""#, hex: links(link("a\u{FFFD}")),
            extra: #"{"links":{"0":{"x":"\u0000"}}}"#),
        Case(rule: "T18", members: #""links":"[{\"x\":\"\u0000\"}]""#, hex: links(link()), extra: #"{"links":{"0":{"x":"�"}}}"#),
        Case(rule: "T18", members: #""links":"[{\"links\":\"[1]\"}]""#, hex: links(link()), extra: #"{"links":{"0":{"links":"[1]"}}}"#),
        Case(rule: "T19", members: #""senderName":"a","senderName":null"#, hex: blank),
        Case(rule: "T19", members: #""senderName":"a","senderN\u0061me":"b""#, hex: named(#""b""#)),
        Case(rule: "T19", members: #""links":["a"],"links":null"#, hex: blank),
        Case(rule: "T19", members: #""links":["a"],"links":"u""#, hex: links(link("u"))),
        Case(rule: "T19", members: #""links":"[\"a\"]","links":["b"]"#, hex: links(link("b"))),
        Case(
            rule: "T19", members: #""links":[{"x":1,"url":"a","x":2,"url":"b"}]"#, hex: links(link("b")), extra: #"{"links":{"0":{"x":2}}}"#
        ),
        Case(rule: "T19", members: #""x":1,"\u0078":{"y":1,"y":2},"z":0"#, hex: blank, extra: #"{"hex":{"x":{"y":2},"z":0}}"#),
        Case(rule: "T19", members: #""links":[{"fileName":"a","fileName":"b"}]"#, hex: links(link("", "b"))),
        Case(
            rule: "T19", members: #""links":[{"fileName":"a","fileName":null}]"#, hex: links(link()),
            extra: #"{"links":{"0":{"fileName":null}}}"#),
        Case(rule: "T19", members: #""links":[{"service":"Box","service":null,"type":"Dropbox"}]"#, hex: links(link("", "", "Dropbox"))),
        Case(
            rule: "T20", members: #""senderName":"\ud83d\ude00\ud83d\udc00\udc00\ud800\ud800""#,
            hex: named("\"😀🐀\u{FFFD}\u{FFFD}\u{FFFD}\"")),
        Case(rule: "T20", members: #""senderName":"\ud800\u0041\ud800x\ud800""#, hex: named(#""�A�x�""#)),
        Case(rule: "7", members: #""\u006cinks":[{"lin\u006bDescription":"d"}]"#, hex: links(link("", "d"))),
        Case(rule: "7", members: #""senderName":"\"\\\/\b\f\n\r\t\u00e9\u5c71""#, hex: named(#""\"\\/\b\f\n\r\té山""#)),
    ]

    @Test("a decoded hex", arguments: cases) func understood(_ test: Case) throws {
        let input = #"{"versionID":"1","operationType":"Store","jmObject":{\#(test.members)}}"#
        try expect(
            described(decode(input)),
            #"""
            {"ok":true,"operation":"Store","object":"Hex","versionID":"1","messageID":null,"sequence":null,\#
            "hex":\#(test.hex),"extra":\#(test.extra)}
            """#
        )
        // The object comes first, so that it is read before the operation is known.
        let early = #"{"jmObject":{\#(test.members)},"operationType":"store","versionID":"1"}"#
        #expect(try same(described(decode(early)), described(decode(input))))
    }

    @Test("the same as text (T5)", arguments: cases) func embedded(_ test: Case) throws {
        let object = "{\(test.members)}"
        let plain = try described(decode(#"{"operationType":"Store","jmObject":\#(object)}"#))
        let text = try described(decode(#"{"operationType":"Store","jmObject":\#(quoted(" \n" + object + "\t"))}"#))
        #expect(same(plain, text))
    }

    @Test("the same without a wrapper (T14)", arguments: cases) func asPackage(_ test: Case) throws {
        let found = try described(decode("{\(test.members)}"))
        let kept = try parsed(test.extra)["hex"] as? [String: Any]
        // Without the member `links` the object is not a link package, and the frame is refused.
        guard found["ok"] as? Bool == true else { return #expect(found["code"] as? String == "unsupportedOperation") }
        #expect(same(try #require(found["hex"] as? [String: Any]), try parsed(test.hex)))
        let extra = try #require(found["extra"] as? [String: Any])
        #expect(same(extra["hex"] as? [String: Any] ?? [:], kept ?? [:]))
    }

    @Test("repairs change only the report", arguments: cases) func repairing(_ test: Case) throws {
        let input = #"{"operationType":"Store","jmObject":{\#(test.members)}}"#
        #expect(try same(described(decode(input, repairs: true)), described(decode(input))))
    }

    private func expect(_ found: [String: Any], _ json: String) throws {
        #expect(same(found, try parsed(json)), "\(found)")
    }

    @Test(
        "kept members are unchanged, byte for byte",
        arguments: [
            (#""\ud800":1,"\ud801":2"#, #"{"\ud800":1,"\ud801":2}"#),
            (#""a" : [ 1 , 2.0e0 ] ,"b":{ "c" :"\u0041" }"#, #"{"a" : [ 1 , 2.0e0 ],"b":{ "c" :"\u0041" }}"#),
            (#""\u0061":1"#, #"{"\u0061":1}"#), (#""x":-0,"y":1E400"#, #"{"x":-0,"y":1E400}"#),
            (#""é\/":"\ud800\u0000""#, #"{"é\/":"\ud800\u0000"}"#),
            (#""x":1,"y":2,"\u0078":3"#, #"{"y":2,"\u0078":3}"#),
        ]) func keptBytes(_ members: String, _ kept: String) throws
    {
        let hex = try hex(decode(#"{"operationType":"Store","jmObject":{\#(members),"links":[{\#(members)}]}}"#))
        #expect(hex.string(hex.extra) == kept)
        #expect(hex.links.map { hex.string($0.extra) } == [kept])
        #expect(try String(decoding: wrapper(decode(#"{"operationType":"Ping",\#(members)}"#)).extra, as: UTF8.self) == kept)
    }

    @Test("a service name with one flipped bit is another service", arguments: Service.allCases)
    func nearlyKnown(_ service: Service) throws {
        let spelled = Array(service.rawValue.utf8)
        for index in 0...spelled.count {
            for bit in 0..<7 {
                var text = spelled + [UInt8(ascii: "\"")]
                text[index] ^= 1 << bit
                let frame =
                    Array(#"{"operationType":"Store","jmObject":{"links":[{"service":""#.utf8) + text
                    + Array(#"","x":"0123456789abcdef"}]}}"#.utf8)
                guard case .wrapper(let wrapper) = decode(frame), case .hex(let content) = wrapper.object, let link = content.links.first
                else { continue }
                // The same link with another member order takes the slow path.
                let other =
                    Array(#"{"operationType":"Store","jmObject":{"links":[{"x":"0123456789abcdef","service":""#.utf8) + text
                    + Array("\"}]}}".utf8)
                let long = try hex(decode(other))
                #expect(content.string(link.service) == long.links.first.map { long.string($0.service) })
            }
        }
    }
}
