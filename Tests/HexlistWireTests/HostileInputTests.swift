import Foundation
import HexlistModel
import HexlistWire
import Testing

/// Whatever the bytes: no trap, an outcome, and every slice inside its buffer.
struct HostileInputTests {
    /// Checks what the decoder promises of any outcome.
    private func check(_ frame: [UInt8], _ decoder: inout WrapperDecoder) {
        switch decoder.decode(frame) {
        case .refused(let refusal):
            #expect(!refusal.isUndecodable || refusal.code == .malformed)
        case .wrapper(let wrapper):
            #expect(String(validating: wrapper.extra, as: UTF8.self) != nil)
            guard case .hex(let hex) = wrapper.object else { return }
            check(hex)
        }
    }

    private func check(_ hex: HexContent) {
        #expect(hex.links.count <= ProtocolLimits.links)
        let texts = [hex.senderUUID, hex.senderName, hex.hexDescription, hex.hexColor]
        for slice in texts + hex.links.flatMap({ [$0.url, $0.linkDescription, $0.service] }) {
            #expect(slice.count <= ProtocolLimits.stringBytes)
            #expect(slice.offset + slice.count <= (slice.isInArena ? hex.arena : hex.frame).count)
            #expect(hex.withBytes(of: slice) { String(validating: $0, as: UTF8.self) } != nil)
        }
    }

    /// About a quarter of a MiB each; the decoder takes time linear in that.
    static let bombs: [(String, String)] = {
        let count = 1 << 18
        func many(_ piece: String, _ head: String = "", _ tail: String = "") -> String {
            head + String(repeating: piece, count: count / piece.utf8.count) + tail
        }
        let keys = (0..<24_000).map { "\"k\($0)\":1" }.joined(separator: ",")
        let escapedKeys = (0..<12_000).map { "\"\\u006b\($0)\":1,\"k\($0)\":2" }.joined(separator: ",")
        let store = #"{"operationType":"Store","jmObject":{"#
        return [
            ("marks in a name", many("\u{301}", "{\"operationType\":\"Ping\",\"a", "\":1}")),
            ("marks in a value", many("\u{301}\u{323}", "{\"operationType\":\"Ping\",\"message\":\"a", "\"}")),
            ("marks in a type name", many("\u{301}", "{\"operationType\":\"Store", "\"}")),
            ("marks in a code", many("\u{301}", #"{"operationType":"Ack","jmObject":{"rejected":[{"code":"blocked"#, "\"}]}}")),
            ("elements", many("1,", "{\"operationType\":\"Ping\",\"x\":[", "1]}")),
            ("empty objects", many("{},", "{\"operationType\":\"Ping\",\"x\":[", "1]}")),
            ("links that are not", many("1,", store + "\"links\":[", "1]}}")), ("empty links", many("{},", store + "\"links\":[", "1]}}")),
            ("keys", "{\"operationType\":\"Ping\",\(keys)}"), ("keys of a hex", store + keys + "}}"),
            ("keys of a link", store + "\"links\":[{\(keys)}]}}"),
            ("keys of a package", "{\"links\":[],\(keys)}"), ("escaped keys", "{\"operationType\":\"Ping\",\(escapedKeys)}"),
            ("one key", many("\"k\":1,", "{\"operationType\":\"Ping\",", "\"k\":1}")),
            ("one alias", many("\"fileName\":1,", store + "\"links\":[{", "\"url\":\"u\"}]}}")),
            ("depth", many("[", "{\"operationType\":\"Ping\",\"x\":")), ("depth of objects", many("{\"a\":", "{\"x\":")),
            ("digits", many("7", "{\"operationType\":\"Ping\",\"sequence\":", "}")),
            ("digits of a window", many("7", "{\"operationType\":\"Hello\",\"jmObject\":{\"window\":", "}}")),
            ("escapes", many("\\u0041", "{\"operationType\":\"Ping\",\"message\":\"", "\"}")),
            ("lone surrogates", many("\\ud800", store + "\"x\":\"", "\"}}")), ("zeros", many("\\u0000", store + "\"links\":\"[", "\"}}")),
            ("links again and again", many("\"links\":[],", store, "\"x\":1}}")),
            ("heavy links again and again", many("\"links\":[\"u\",{\"x\":1}],", store, "\"x\":1}}")),
            ("texts of links again and again", many("\"links\":\"[1,2,3]\",", store, "\"x\":1}}")),
            ("objects again and again", many("\"jmObject\":{\"links\":[\"u\"]},", "{", "\"x\":1}")),
            ("texts of objects again and again", many("\"jmObject\":\"{}\",", "{", "\"x\":1}")),
            (
                "operations again and again",
                many("\"operationType\":\"Hello\",\"jmObject\":{\"links\":[1]},", "{", "\"operationType\":\"Store\"}")
            ),
            ("a text of texts", #"{"operationType":"Store","jmObject":\#(quoted(#"{"links":\#(quoted(many("\\\"", "[\"", "\"]")))}"#))}"#),
            ("white space", many(" \n\t\r", "{\"operationType\":\"Ping\"", "}")),
            ("quotes", many("\"")), ("backslashes", many("\\")),
            ("rejections", many("{},", #"{"operationType":"Ack","jmObject":{"rejected":["#, "{}]}}")),
            ("features", many("\"a\",", #"{"operationType":"Hello","jmObject":{"features":["#, "1]}}")),
        ]
    }()

    @Test("a bomb is decoded or refused", arguments: bombs.map(\.0)) func bomb(_ name: String) throws {
        let frame = Array(try #require(Self.bombs.first { $0.0 == name }).1.utf8)
        var decoder = WrapperDecoder()
        check(frame, &decoder)
        // The same decoder is as good as new.
        #expect(try described(decoder.decode(Array(#"{"operationType":"Ping","message":"m"}"#.utf8)))["message"] as? String == "m")
    }

    @Test("every prefix and every damaged byte of every vector") func prefixes() {
        var decoder = WrapperDecoder()
        for vector in VectorTests.vectors where vector.input.utf8.count < 2_000 {
            let bytes = Array(vector.input.utf8)
            for count in 0..<bytes.count { check(Array(bytes[..<count]), &decoder) }
            for index in bytes.indices {
                var damaged = bytes
                damaged[index] ^= 0x80
                check(damaged, &decoder)
            }
        }
    }

    @Test("random damage, the same at every run") func randomDamage() throws {
        var generator = SeededGenerator(state: 2)
        var decoder = WrapperDecoder()
        let seeds = VectorTests.vectors.map { Array($0.input.utf8) }.filter { $0.count < 2_000 }
        let pieces = [
            "\"", "\\", "{", "}", "[", "]", ",", ":", "\\u", "\\ud800", "null", "-", "0", "e", " ", "\u{E9}", "\"links\":", "\"jmObject\":",
            "\"\":",
        ].map { Array($0.utf8) }
        for _ in 0..<6_000 {
            guard var bytes = seeds.randomElement(using: &generator) else { return }
            for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
                let index = Int.random(in: bytes.indices, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes.removeSubrange(index..<min(bytes.count, index + Int.random(in: 1...8, using: &generator)))
                case 2: bytes.insert(contentsOf: pieces.randomElement(using: &generator) ?? [], at: index)
                default:
                    bytes.insert(
                        contentsOf: bytes[index..<min(bytes.count, index + 20)], at: Int.random(in: bytes.indices, using: &generator))
                }
            }
            check(bytes, &decoder)
            compare(bytes, decoder.decode(bytes))
        }
    }

    /// Foundation is no validator (trailing commas, UTF-16) and takes no lone surrogates; apart from these both must agree.
    private func compare(_ bytes: [UInt8], _ frame: DecodedFrame) {
        guard !bytes.contains(0), !bytes.starts(with: [0xEF]) else { return }
        let text = String(decoding: bytes, as: UTF8.self)
        let isJSON = (try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) != nil
        switch frame {
        case .refused(let refusal) where refusal.isUndecodable:
            let isObject = text.drop(while: \.isWhitespace).first == "{" && !refusal.message.contains("nested")
            guard isObject, text.firstMatch(of: /,\s*[}\]]/) == nil else { return }
            #expect(!isJSON, "\(text)")
        case .refused, .wrapper:
            guard text.firstMatch(of: /\\u[dD]/) == nil, text.firstMatch(of: /[0-9][eE.]|[0-9]{15}/) == nil else { return }
            #expect(isJSON, "\(text)")
        }
    }

    @Test("a decoded hex goes out and comes in unchanged") func roundTrip() throws {
        var generator = SeededGenerator(state: 3)
        let texts = [
            "", "a", "Zoë", "山田 太郎", "😀", "\"q\"", "a\\b", "\n\t", "https://example.org/a?b=c", "{\"a\":[1]}", "[]", "Dropbox",
            "google_drive", "\u{7F}\u{80}",
        ]
        let values = ["1", "null", "[1,{\"a\":2}]", "\"\\u0041\\ud800\"", "{}", "-0.0e-7", "\"é\""]
        for _ in 0..<300 {
            func text() -> String { quoted(texts.randomElement(using: &generator) ?? "") }
            func value() -> String { values.randomElement(using: &generator) ?? "0" }
            let links = (0..<Int.random(in: 0...7, using: &generator)).map { _ in
                #"""
                {"url":\#(text()),"linkDescription":\#(text()),"service":\#(text()),\#
                "x\#(Int.random(in: 0...9, using: &generator))":\#(value())}
                """#
            }
            let object =
                #"""
                {"senderUUID":\#(text()),"senderName":\#(text()),"hexDescription":\#(text()),"hexColor":\#(text()),\#
                "links":[\#(links.joined(separator: ","))],"u":\#(value()),"é\n":\#(value())}
                """#
                .replacingOccurrences(of: "é\n", with: "é\\n")
            let first = try hex(decode(#"{"operationType":"Store","jmObject":\#(object)}"#))
            let json = HexEncoder.encode(first)
            let second = try hex(decode(Array(#"{"operationType":"Store","jmObject":"#.utf8) + json + Array("}".utf8)))
            #expect(PlainHex(first) == PlainHex(second))
            #expect(HexEncoder.encode(second) == json)
        }
    }
}
