import Foundation
import HexlistModel
import HexlistWire
import NIOCore
import Testing

struct EncoderTests {
    private func store(_ object: String) throws -> HexContent { try hex(decode(#"{"operationType":"Store","jmObject":\#(object)}"#)) }

    @Test("each character is unchanged by encoding and decoding") func characters() throws {
        var text = ""
        for value in UInt32(0)...0x2FF { text.unicodeScalars.append(Unicode.Scalar(value) ?? "?") }
        for value in [0xFFFF, 0x1_F600, 0x10_FFFF, 0x2028, 0xFEFF] as [UInt32] { text.unicodeScalars.append(Unicode.Scalar(value) ?? "?") }
        var hex = HexContent()
        hex.hexDescription = hex.add(text)
        hex.links = [LinkContent(url: hex.hexDescription, linkDescription: hex.add("d"), service: hex.add("\"\\"))]
        let json = HexEncoder.encode(hex)
        #expect(json.allSatisfy { $0 >= 0x20 })
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
        #expect(object["hexDescription"] as? String == text)
        var decoder = WrapperDecoder()
        let found = try decoder.decodeHex(json, acceptsLocalNames: false).get().content
        #expect(PlainHex(found).hexDescription == "\u{FFFD}" + text.dropFirst())  // U+0000 is replaced (rule T20)
        #expect(PlainHex(found).links.map(\.service) == ["\"\\"])
    }

    @Test("an empty hex has all members") func empty() {
        #expect(
            String(decoding: HexEncoder.encode(HexContent()), as: UTF8.self)
                == #"{"senderUUID":"","senderName":"","hexDescription":"","hexColor":"","links":[]}"#)
    }

    @Test("unknown members are forwarded byte for byte") func unknownMembers() throws {
        let object =
            #"""
            {"senderName":"n","a\u0062" : [ 1.0 , "\ud800\/" ],"links":[{"url":"u","thumb" :{ "w":1e0}},\#
            {"url":"v"}],"é":null,"fileName":"x"}
            """#
        let json = String(decoding: HexEncoder.encode(try store(object)), as: UTF8.self)
        #expect(
            json
                == #"""
                {"senderUUID":"","senderName":"n","hexDescription":"","hexColor":"","links":[{"url":"u",\#
                "linkDescription":"","service":"Unknown","thumb" :{ "w":1e0}},{"url":"v","linkDescription":"",\#
                "service":"Unknown"}],"a\u0062" : [ 1.0 , "\ud800\/" ],"é":null,"fileName":"x"}
                """#
        )
        #expect(PlainHex(try store(json)) == PlainHex(try store(object)))
    }

    @Test(
        "a link is encoded the same, wherever its texts are stored",
        arguments: [
            #"{"url":"https://a.example/ü","linkDescription":"b","service":"Box"}"#,
            #"{"url":"a","linkDescription":"b","service":"Box","x":1}"#, #"{"x":1,"url":"a","linkDescription":"b","service":"Box"}"#,
            #"{"url":"a","linkDescription":"b","service":"box"}"#, #"{"url":"a","linkDescription":"b","service":""}"#,
            #"{"url":"","linkDescription":"","service":"Box"}"#, #"{"url":"a","linkDescription":"b"}"#,
            #"{"url":"\u0061","linkDescription":"b","service":"Box"}"#, #"{"url":"a","linkDescription":"\"","service":"Box"}"#,
            #"{"url": "a", "linkDescription": "b", "service": "Box"}"#, #"{"linkDescription":"b","url":"a","service":"Box"}"#,
            #"{"url":"a","linkDescription":"b","service":"Box" }"#, #"{"url":"a","fileName":"b","service":"Box"}"#,
            #"{"url":"a","linkDescription":"b","type":"Box"}"#, #"{"url":"a","linkDescription":"b","service":"Box","url":"c"}"#,
            #"{"url":"a\",\"linkDescription\":\"b","linkDescription":"b","service":"Box"}"#,
        ]) func asRead(link: String) throws
    {
        let read = try store(#"{"hexDescription":"d","links":[\#(link),\#(link),{"url":"z","linkDescription":"","service":"Drive"}]}"#)
        var made = read
        func moved(_ slice: TextSlice) -> TextSlice { slice.isEmpty ? .empty : read.withBytes(of: slice) { made.add(bytes: $0) } }
        made.hexDescription = moved(read.hexDescription)
        made.links = read.links.map {
            LinkContent(
                url: moved($0.url), linkDescription: moved($0.linkDescription), service: moved($0.service), extra: moved($0.extra))
        }
        #expect(String(decoding: HexEncoder.encode(read), as: UTF8.self) == String(decoding: HexEncoder.encode(made), as: UTF8.self))
    }

    @Test("an overridden alias does not count later") func aliases() throws {
        for object in [
            #"{"links":[{"fileName":"f","linkDescription":"","type":"Box","service":""}]}"#,
            #"{"links":[{"fileName":"f","linkDescription":{},"type":null}]}"#,
            #"{"links":{"p":{"fileName":null}}}"#, #"{"links":[{"fileName":"a","type":"b"}]}"#,
        ] {
            let hex = try store(object)
            #expect(PlainHex(try store(String(decoding: HexEncoder.encode(hex), as: UTF8.self))) == PlainHex(hex), "\(object)")
        }
    }

    @Test(
        "a kept member whose name this version knows is omitted",
        arguments: [
            (#"{"a":1,"senderName":"x","b":2}"#, #"{"links":3,"url":"x","c":4}"#, #","a":1,"b":2}"#, #","links":3,"c":4}"#),
            (#"{"lin\u006bs":[]}"#, #"{"\u0075rl":"x"}"#, "]}", "}"),
            (#"{"hexDescription":1,"hexColor":2,"senderUUID":3,"links":4}"#, #"{"service":1,"linkDescription":2}"#, "]}", "}"),
        ]) func presentNames(_ extra: String, _ linkExtra: String, _ hexEnd: String, _ linkEnd: String) throws
    {
        var hex = HexContent()
        hex.extra = hex.add(extra)
        hex.links = [LinkContent(url: hex.add("u"), linkDescription: hex.add("d"), service: hex.add("Box"), extra: hex.add(linkExtra))]
        #expect(
            String(decoding: HexEncoder.encode(hex), as: UTF8.self)
                == #"""
                {"senderUUID":"","senderName":"","hexDescription":"","hexColor":"","links":[{"url":"u",\#
                "linkDescription":"d","service":"Box"
                """#
                + linkEnd + "]" + (hexEnd == "]}" ? "}" : hexEnd))
    }

    @Test(
        "members damaged in the store are not sent",
        arguments: ["x", "{", "[]", #"{"a"}"#, #"{"a":}"#, "\u{0}", #"{"a":1"#, "{}", #"{"a":1} x"#])
    func damagedExtra(_ extra: String) throws {
        var hex = HexContent()
        hex.extra = hex.add(extra)
        let json = HexEncoder.encode(hex)
        var decoder = WrapperDecoder()
        _ = try decoder.decodeHex(json, acceptsLocalNames: false).get()
    }

    @Test("a member nested too deep for a frame is omitted, because the frame would be refused") func deepMembers() throws {
        func nested(_ count: Int) -> String { String(repeating: "[", count: count) + String(repeating: "]", count: count) }
        for (levels, isKept) in [(62, true), (63, false)] {
            let hex = try store(quoted(#"{"x":\#(nested(levels)),"y":1}"#))
            #expect(hex.string(hex.extra).contains("x"))
            let again = try store(String(decoding: HexEncoder.encode(hex), as: UTF8.self))
            #expect(again.string(again.extra).contains("x") == isKept && again.string(again.extra).contains("y"))
        }
        let hex = try store(#"{"links":\#(quoted(#"[{"x":\#(nested(62)),"y":1}]"#))}"#)
        let again = try store(String(decoding: HexEncoder.encode(hex), as: UTF8.self))
        #expect(again.links.map { again.string($0.extra) } == [#"{"y":1}"#])
    }

    @Test("a Store frame") func storeFrame() throws {
        let id = try #require(MessageID("018F4B0E-7C1A-7CC0-9D6E-3A2B1C0D9E8F"))
        for sequence in [1, 9, 10, 12_345, .max] as [Int64] {
            var hex = HexContent()
            hex.senderName = hex.add("n")
            let json = HexEncoder.encode(hex)
            var buffer = ByteBuffer()
            WrapperEncoder.store(hexJSON: json, messageID: id, sequence: sequence, into: &buffer)
            var decoder = FrameDecoder(limit: ProtocolLimits.trustedFrameBytes)
            let found = try wrapper(decode(try #require(try decoder.next(from: &buffer))))
            #expect(
                found.operation == .store && found.messageID == id && found.sequence == sequence
                    && found.versionID == ProtocolLimits.appVersion)
            guard case .hex(let content) = found.object else { throw TestFailure() }
            #expect(content.string(content.senderName) == "n")
        }
    }

    @Test("a description is one line of JSON") func descriptionIsOneLine() throws {
        let frame = decode(
            "{\"operationType\":\"Store\",\"x\":\n[1,\r\n2],\"jmObject\":{\"y\"\n:\r1,\"links\":[{\"z\":{\n}}],\"senderName\":\"a\\nb\"}}")
        let json = FrameJSON.json(frame)
        #expect(!json.contains(0x0A) && !json.contains(0x0D))
        let found = try described(frame)
        #expect(
            same(
                try #require(found["extra"] as? [String: Any]), try parsed(#"{"wrapper":{"x":[1,2]},"hex":{"y":1},"links":{"0":{"z":{}}}}"#)
            ))
        #expect((found["hex"] as? [String: Any])?["senderName"] as? String == "a\nb")
    }

    @Test("description of a refusal") func refusalDescription() throws {
        let found = try described(decode(#"{"operationType":"a\"\n\u0000b"}"#))
        #expect(
            found["ok"] as? Bool == false && found["code"] as? String == "unsupportedOperation"
                && (found["message"] as? String)?.isEmpty == false)
    }

    @Test("a canonical frame keeps its creator's texts") func canonicalFrame() throws {
        let input =
            #"""
             {"jmObject":"{\"links\":{\"p\":\"u\"},\"t\":1}","operationType":"STORE","version":"3",\#
            "priority":[1],"sequence":5,"messageID":"0b3d2c1a-1111-4222-8333-444455556666"}
            """#
        let frame = try FrameJSON.frame(fromJSON: Array(input.utf8)).get()
        var buffer = ByteBuffer(bytes: frame)
        var decoder = FrameDecoder(limit: ProtocolLimits.trustedFrameBytes)
        let body = try #require(try decoder.next(from: &buffer))
        #expect(
            String(decoding: body, as: UTF8.self)
                == #"""
                {"versionID":"3","operationType":"Store","jmObjectType":"Hex","messageID":"0B3D2C1A-1111-4222-8333-444455556666",\#
                "sequence":5,"jmObject":{"senderUUID":"","senderName":"","hexDescription":"","hexColor":"",\#
                "links":[{"url":"u","linkDescription":"p","service":"Unknown"}],"t":1},"priority":[1]}
                """#
        )
        #expect(throws: Refusal.self) { try FrameJSON.frame(fromJSON: Array("{".utf8)).get() }
    }
}
