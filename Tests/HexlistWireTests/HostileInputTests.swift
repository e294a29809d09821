import Foundation
import HexlistModel
import HexlistWire
import TestSupport
import Testing

/// Arbitrary bytes: always a result, never a trap, and each slice within its buffer.
struct HostileInputTests {
    /// Checks the decoder's guarantees for any result.
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
        #expect(hex.fitsBounds && hex.levels <= ProtocolLimits.levels)
        let texts = [hex.senderUUID, hex.senderName, hex.hexDescription, hex.hexColor]
        let inside = hex.children.flatMap { [$0.senderUUID, $0.senderName, $0.hexDescription, $0.hexColor] }
        for slice in texts + inside + (hex.links + hex.childLinks).flatMap({ [$0.url, $0.linkDescription, $0.service] }) {
            #expect(slice.count <= ProtocolLimits.stringBytes)
            #expect(slice.offset + slice.count <= (slice.isInArena ? hex.arena : hex.frame).count)
            #expect(hex.withBytes(of: slice) { String(validating: $0, as: UTF8.self) } != nil)
        }
    }

    /// Frames that are expensive to decode, each of the maximum length for a trusted peer. `Benchmarks/decode --bombs` measures them too.
    static let bombs = Bombs.all(bytes: ProtocolLimits.trustedFrameBytes)

    @Test("a bomb is decoded or refused", arguments: bombs.map(\.0)) func bomb(_ name: String) throws {
        let frame = Array(try #require(Self.bombs.first { $0.0 == name }).1.utf8)
        var decoder = WrapperDecoder()
        #expect(frame.count <= ProtocolLimits.trustedFrameBytes)
        check(frame, &decoder)
        // The decoded value takes at most twice the bytes of the frame: the frame itself, and rewritten texts.
        if case .wrapper(let wrapper) = decoder.decode(frame) {
            #expect(wrapper.extra.count <= frame.count)
            if case .hex(let hex) = wrapper.object {
                #expect(hex.frame.count <= frame.count && hex.arena.count <= frame.count + 64 && hex.links.count <= ProtocolLimits.links)
            }
        }
        // The decoder is reusable.
        #expect(try described(decoder.decode(Array(#"{"operationType":"Ping","message":"m"}"#.utf8)))["message"] as? String == "m")
    }

    @Test("every prefix and every damaged byte of each vector") func prefixes() {
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

    @Test("random damage with a fixed seed") func randomDamage() throws {
        var generator = SeededGenerator(seed: 2)
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

    /// Foundation does not validate strictly (trailing commas, UTF-16) and refuses lone surrogates. Apart from that both must agree.
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

    @Test("a decoded hex is unchanged by encoding and decoding") func roundTrip() throws {
        var generator = SeededGenerator(seed: 3)
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
