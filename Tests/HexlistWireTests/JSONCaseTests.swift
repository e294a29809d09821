import Foundation
import HexlistJSON
import HexlistModel
import HexlistWire
import NIOCore
import Testing

/// Corner cases of JSON (Vectors/README.md) through the path of a peer's bytes: frame codec, then tolerant decoder.
@Suite("Corner cases of JSON")
struct JSONCaseTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var isJSON: Bool
        var bytes: [UInt8]

        var testDescription: String { name }
    }

    static let cases: [Case] = {
        guard let url = Bundle.module.url(forResource: "Vectors/json", withExtension: "ndjson"),
            let text = try? String(contentsOf: url, encoding: .utf8)
        else { return [] }
        return text.split(separator: "\n").compactMap { line in
            guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
                let name = object["name"] as? String, let verdict = object["verdict"] as? String
            else { return nil }
            let bytes =
                if let base64 = object["base64"] as? String {
                    Data(base64Encoded: base64).map(Array.init)
                } else if let piece = object["repeat"] as? String, let times = object["times"] as? Int {
                    Array(String(repeating: piece, count: times).utf8)
                } else {
                    (object["input"] as? String).map { Array($0.utf8) }
                }
            return bytes.map { Case(name: name, isJSON: verdict == "accept", bytes: $0) }
        }
    }()

    /// The frame as the frame codec delivers it after receiving two pieces.
    private func received(_ body: [UInt8]) throws -> DecodedFrame {
        var codec = FrameDecoder(limit: ProtocolLimits.trustedFrameBytes)
        var buffer = ByteBuffer(integer: UInt32(body.count))
        buffer.writeBytes(body.prefix(body.count / 2))
        #expect(try codec.next(from: &buffer) == nil)
        buffer.writeBytes(body.dropFirst(body.count / 2))
        return decode(try #require(try codec.next(from: &buffer)))
    }

    private func isDecodable(_ frame: DecodedFrame) -> Bool {
        switch frame {
        case .wrapper: true
        case .refused(let refusal): !refusal.isUndecodable
        }
    }

    @Test("the file is present and complete") func count() {
        #expect(Self.cases.count == 659 && Self.cases.count(where: \.isJSON) == 161)
    }

    @Test("as the value of an unknown member it is accepted or refused as a whole")
    func asValue() throws {
        for (head, tail) in [
            (#"{"operationType":"Ping","x":"#, "}"), (#"{"operationType":"Store","jmObject":{"links":["u"],"x":"#, "}}"),
            (#"{"operationType":"Store","jmObject":{"links":[{"url":"u","x":"#, "}]}}"), (#"{"links":["u"],"x":"#, "}"),
        ] {
            for test in Self.cases {
                let frame = try received(Array(head.utf8) + test.bytes + Array(tail.utf8))
                #expect(isDecodable(frame) == test.isJSON, "\(test.name) in \(head)")
                if test.isJSON { _ = try wrapper(frame) }
            }
        }
    }

    @Test("as the value of a known member it is read tolerantly, or refused as invalid JSON")
    func asKnownMember() throws {
        for head in [#""message":"#, #""versionID":"#, #""messageID":"#, #""sequence":"#, #""jmObject":"#, #""operationType":"#] {
            for test in Self.cases {
                let frame = try received(Array("{\(head)".utf8) + test.bytes + Array(#","y":0}"#.utf8))
                #expect(isDecodable(frame) == test.isJSON, "\(test.name) behind \(head)")
            }
        }
        for head in [#""links":"#, #""hexDescription":"#, #""links":[{"service":"#, #""links":[{"url":"#] {
            let tail = head.hasPrefix(#""links":["#) ? "}]}}" : "}}"
            for test in Self.cases {
                let frame = try received(Array(#"{"operationType":"Store","jmObject":{\#(head)"#.utf8) + test.bytes + Array(tail.utf8))
                #expect(isDecodable(frame) == test.isJSON, "\(test.name) behind \(head)")
            }
        }
    }

    @Test("as a whole frame it is refused unless it is an object, optionally after a byte order mark")
    func asFrame() throws {
        for test in Self.cases where !test.bytes.isEmpty {
            let isMarked = test.bytes.starts(with: [0xEF, 0xBB, 0xBF])
            let text = isMarked ? test.bytes.dropFirst(3) : test.bytes[...]
            let isObject = text.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "{")
            let isFrame = isObject && (test.isJSON || test.name == "undefined: structure BOM empty object")
            #expect(isDecodable(try received(test.bytes)) == isFrame, "\(test.name)")
        }
    }

    @Test("nesting: 64 levels of either kind, in every place", arguments: [62, 63, 64, 65, 66, 1_000])
    func nesting(levels: Int) throws {
        for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
            let value = String(repeating: open, count: levels - 1) + "0" + String(repeating: close, count: levels - 1)
            let frame = try received(Array(#"{"operationType":"Ping","x":\#(value)}"#.utf8))
            #expect(isDecodable(frame) == (levels <= 64))
        }
    }

    @Test("texts inside the frame are JSON of their own, by the same rules")
    func embedded() throws {
        for test in Self.cases {
            guard let text = String(validating: test.bytes, as: UTF8.self), !text.unicodeScalars.contains("\u{0}") else { continue }
            guard text.utf8.count <= ProtocolLimits.stringBytes else { continue }
            // Rules of Docs/Protocol.md for a text in a string. T5, `jmObject`: an object, otherwise the frame is `malformed`. T18,
            // `links`: an array or an object, otherwise the text is one link.
            let object = try received(Array(#"{"operationType":"Store","jmObject":\#(quotedAll(text))}"#.utf8))
            let isTaken = if case .wrapper = object { true } else { false }
            let start = text.unicodeScalars.first { !" \t\r\n".unicodeScalars.contains($0) }
            // Rule T20 replaces lone surrogates in the outer string only. In the embedded JSON they are escapes, which stay unchanged.
            #expect(isTaken == (test.isJSON && start == "{"), "\(test.name)")
            let links = try hex(received(Array(#"{"operationType":"Store","jmObject":{"links":\#(quotedAll(text))}}"#.utf8)))
            if text.isEmpty {
                #expect(links.links.isEmpty)
            } else if !test.isJSON || (start != "[" && start != "{") {
                #expect(links.links.map { links.string($0.url) } == [text], "\(test.name)")
            }
        }
    }

    /// A JSON string for any text.
    private func quotedAll(_ text: String) -> String {
        var json: [UInt8] = []
        JSONText.append(text, to: &json)
        return String(decoding: json, as: UTF8.self)
    }
}
