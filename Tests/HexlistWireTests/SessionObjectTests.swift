import Foundation
import HexlistModel
import HexlistWire
import NIOCore
import Testing

/// The objects of Hello, Ack and Pair.
struct SessionObjectTests {
    private func hello(_ members: String) throws -> Hello {
        guard case .hello(let hello) = try wrapper(decode(#"{"operationType":"Hello","jmObject":{\#(members)}}"#)).object else {
            throw TestFailure()
        }
        return hello
    }

    private func receipt(_ members: String) throws -> Receipt {
        guard case .receipt(let receipt) = try wrapper(decode(#"{"operationType":"Ack","jmObject":{\#(members)}}"#)).object else {
            throw TestFailure()
        }
        return receipt
    }

    private static let id = "6F9619FF-8B86-8011-B42D-00CF4FC964FF"

    @Test("a Hello's defaults") func helloDefaults() throws {
        #expect(try hello("") == Hello(uuid: nil, name: "", boot: nil, protocols: [1], features: [], maxFrameBytes: 1 << 20, window: 1_024))
        let nulls = #""uuid":null,"name":null,"boot":null,"protocols":null,"features":null,"maxFrameBytes":null,"window":null"#
        #expect(try hello(nulls) == hello(""))
        let odd = #""uuid":7,"name":{},"boot":[],"protocols":1,"features":"f","maxFrameBytes":"9","window":{}"#
        #expect(try hello(odd) == hello(""))
    }

    @Test("a complete Hello: members in any order, unknown ones ignored, the last duplicate counts") func helloInFull() throws {
        let found = try hello(
            #"""
            "window":1,"x":{},"features":["a",1,null,"b\n"],"protocols":[1,2,1.5,"3",-4],"boot":"00ff00ff00ff00FF",\#
            "name":"old","name":"N\u00e9","window":7,"maxFrameBytes":9000,"uuid":"\#(Self.id.lowercased())"
            """#
        )
        #expect(
            found
                == Hello(
                    uuid: PeerID(Self.id), name: "Né", boot: BootNonce(0x00FF_00FF_00FF_00FF), protocols: [1, 2, -4],
                    features: ["a", "b\n"], maxFrameBytes: 9_000, window: 7))
    }

    @Test("a Hello's card: exactly 1 840 characters, written again unchanged; any other text is none") func helloCard() throws {
        let text = String(repeating: "A", count: 1_839) + "="
        let found = try hello(#""card":"\#(text)""#)
        #expect(found.card == text)
        var buffer = ByteBuffer()
        WrapperEncoder.hello(Hello(uuid: nil, name: String(repeating: "\u{1}", count: 4_096), boot: nil, card: text), into: &buffer)
        #expect(buffer.readableBytes <= ProtocolLimits.firstFrameBytes)
        buffer.moveReaderIndex(forwardBy: 4)
        guard case .hello(let written) = try wrapper(decode(String(buffer: buffer))).object else { throw TestFailure() }
        #expect(written.card == text)
        for other in [#""""#, #""\#(text)A""#, #""\#(text.dropLast())""#, "null", "7", "{}"] {
            #expect(try hello(#""card":\#(other)"#).card == nil)
        }
    }

    @Test("a Hello as text, and before its operationType") func helloElsewhere() throws {
        for input in [
            #"{"operationType":"Hello","jmObject":"{\"name\":\"a\\u0062\"}"}"#, #"{"jmObject":{"name":"ab"},"operationType":"HELLO"}"#,
            #"{"jmObject":{"links":[],"name":"ab"},"operationType":"Hello","jmObjectType":"PEER"}"#,
        ] {
            guard case .hello(let hello) = try wrapper(decode(input)).object else { throw TestFailure() }
            #expect(hello.name == "ab")
        }
    }

    @Test(
        "numbers of a Hello",
        arguments: [
            // A peer with a limit below 8 KiB gets receipts of up to 8 KiB all the same, the limit of a first frame.
            ("1", 8_192, 1), ("0", 8_192, 1), ("-5", 8_192, 1), ("8191", 8_192, 8_191), ("8192", 8_192, 8_192), ("8193", 8_193, 8_193),
            ("65536", 65_536, 65_536), ("65537", 65_537, 65_536), ("16777215", 16_777_215, 65_536),
            ("16777216", 16_777_215, 65_536), ("9223372036854775808", 16_777_215, 65_536), ("-99999999999999999999", 8_192, 1),
            ("1.0", 1 << 20, 1_024), ("1e3", 1 << 20, 1_024),
            ("1e400", 1 << 20, 1_024), ("true", 1 << 20, 1_024),
        ]) func helloNumbers(_ number: String, _ maxFrameBytes: Int, _ window: Int) throws
    {
        let found = try hello(#""maxFrameBytes":\#(number),"window":\#(number)"#)
        #expect(found.maxFrameBytes == maxFrameBytes && found.window == window)
    }

    @Test(
        "invalid identifiers of a Hello",
        arguments: [
            "", "x", "6F9619FF-8B86-8011-B42D-00CF4FC964F", "6F9619FF-8B86-8011-B42D-00CF4FC964FFF", "00ff00ff00ff00f", "00ff00ff00ff00fff",
            "00ff00ff00ff00fg",
        ])
    func helloIdentifiers(_ text: String) throws {
        let found = try hello(#""uuid":"\#(text)","boot":"\#(text)""#)
        #expect(found.uuid == nil && found.boot == nil)
    }

    @Test(
        "a receipt",
        arguments: [
            (#""through":7,"status":"stored""#, Receipt(through: 7, status: .stored)),
            (#""through":7,"status":"duplicate","of":"held","rejected":[]"#, Receipt(through: 7, status: .duplicate, of: .held)),
            (#""through":1,"through":2,"status":"held","status":null"#, Receipt(through: 2, status: nil)),
            (#""through":2,"status":"archived","of":"duplicate""#, Receipt(through: 2, status: nil)),
            (#""through":9223372036854775807"#, Receipt(through: -1, status: nil)),
            // A malformed receipt confirms nothing.
            ("", Receipt(through: -1, status: nil)), (#""through":"7""#, Receipt(through: -1, status: nil)),
            (#""through":1.0"#, Receipt(through: -1, status: nil)),
            (#""through":-3"#, Receipt(through: -1, status: nil)), (#""through":1e2"#, Receipt(through: -1, status: nil)),
            (#""through":99999999999999999999"#, Receipt(through: -1, status: nil)),
            (
                #"""
                "through":3,"rejected":[{"sequence":2,"code":"blocked","message":"m","retryAfter":9},{"code":"quotaExceeded",\#
                "sequence":3,"retryAfter":60,"x":1}]
                """#,
                Receipt(
                    through: 3, status: nil,
                    rejected: [
                        HexRejection(sequence: 2, code: .blocked, message: "m"),
                        HexRejection(sequence: 3, code: .quotaExceeded, retryAfter: 60),
                    ])
            ),
            (
                #""through":1,"rejected":[{"sequence":1,"code":"tired","message":"later"}]"#,
                Receipt(through: 1, status: nil, rejected: [HexRejection(sequence: 1, code: .internal, message: "tired: later")])
            ),
            (
                #""through":1,"rejected":[{"sequence":1,"code":"tired"},{"sequence":1}]"#,
                Receipt(
                    through: 1, status: nil,
                    rejected: [HexRejection(sequence: 1, code: .internal, message: "tired"), HexRejection(sequence: 1, code: .internal)])
            ),
            (
                #"""
                "through":1,"rejected":[{"sequence":1,"code":"internal","retryAfter":1},{"sequence":2,\#
                "code":"internal","retryAfter":99999999999999999999},{"sequence":3,"code":"internal","retryAfter":"9"}]
                """#,
                Receipt(
                    through: 1, status: nil,
                    rejected: [
                        HexRejection(sequence: 1, code: .internal, retryAfter: 5),
                        HexRejection(sequence: 2, code: .internal, retryAfter: 3_600),
                        HexRejection(sequence: 3, code: .internal),
                    ])
            ),
            (
                #""through":1,"rejected":[7,null,{"sequence":"1"}]"#,
                Receipt(through: 1, status: nil, rejected: Array(repeating: HexRejection(sequence: -1, code: .internal), count: 3))
            ),
            (
                #""through":1,"rejected":{"sequence":1}"#,
                Receipt(through: 1, status: nil, rejected: [HexRejection(sequence: -1, code: .internal)])
            ),
            (#""rejected":[1],"through":1,"rejected":null"#, Receipt(through: 1, status: nil)),
        ]) func receipts(_ members: String, _ expected: Receipt) throws
    {
        #expect(try receipt(members) == expected)
    }

    @Test("long lists of a peer are cut") func bounds() throws {
        let many = (1...65_537).map { #"{"sequence":\#($0),"code":"blocked"}"# }
        let full = try receipt(#""through":65536,"rejected":[\#(many.dropLast().joined(separator: ","))]"#)
        #expect(full.rejected.count == 65_536 && full.rejected.last?.sequence == 65_536)
        let over = try receipt(#""through":65537,"rejected":[\#((many + many).joined(separator: ","))]"#)
        #expect(over.rejected.count == 65_537 && over.rejected.last?.sequence == -1)
        let features = try hello(#""features":[\#(Array(repeating: #""f""#, count: 5_000).joined(separator: ","))]"#).features
        #expect(features.count == 64)
        let (word, long) = (String(repeating: "w", count: 64), String(repeating: "w", count: 65))
        #expect(try hello(#""features":["\#(long)","\#(word)"]"#).features == [word])
    }

    /// Texts slightly over the limit, with a scalar of 1 to 4 bytes that ends at it or spans it; each also as an escape.
    private static let cuts: [(tail: String, kept: Int)] = [
        ("", 0), ("a", 0), ("é", -1), ("\u{20AC}", -1), ("\u{20AC}", -2), ("😀", -1), ("😀", -3), ("é", -2), ("😀", -4),
    ]

    @Test(
        "peer text is cut when it is decoded, between two scalars",
        arguments: [
            ("message of an Alert", 512, #"{"operationType":"Alert","message":"%"}"#),
            ("message of a Bye", 512, #"{"operationType":"Bye","message":"%"}"#),
            ("versionID", 64, #"{"operationType":"Alert","versionID":"%"}"#),
            ("versionID under an older name", 64, #"{"operationType":"Alert","versionType":"%"}"#),
            ("name of a Hello", 256, #"{"operationType":"Hello","jmObject":{"name":"%"}}"#),
            (
                "message of a receipt", 512,
                #"{"operationType":"Ack","jmObject":{"rejected":[{"sequence":1,"code":"blocked","message":"%"}]}}"#
            ),
            ("message of a Pair", 512, #"{"operationType":"Pair","jmObject":{"step":"cancel","message":"%"}}"#),
            ("commitment", 64, #"{"operationType":"Pair","jmObject":{"step":"commit","commitment":"%"}}"#),
        ])
    func cut(_ what: String, _ limit: Int, _ frame: String) throws {
        for (tail, kept) in Self.cuts {
            for escapes in [false, true] {
                let whole = String(repeating: "m", count: limit + kept)
                let text = whole + (escapes ? tail.utf16.map { "\\u" + String(65_536 + Int($0), radix: 16).dropFirst() }.joined() : tail)
                let expected = (whole + tail).utf8.count <= limit ? whole + tail : whole
                let found = try said(wrapper(decode(frame.replacingOccurrences(of: "%", with: text + "more"))))
                #expect(found.hasPrefix(expected) && found.utf8.count <= limit && found.utf8.count > limit - 4, "\(what), \(tail), \(kept)")
            }
        }
    }

    private func said(_ wrapper: DecodedWrapper) -> String {
        switch wrapper.object {
        case .hello(let hello): hello.name
        case .receipt(let receipt): receipt.rejected.first?.message ?? ""
        case .pairing(let pairing): pairing.message.isEmpty ? pairing.commitment : pairing.message
        case .none, .hex: wrapper.message ?? wrapper.versionID
        }
    }

    @Test("an unknown code and the message after it are cut together") func cutCode() throws {
        let long = String(repeating: "x", count: 600)
        let message = try receipt(#""through":1,"rejected":[{"sequence":1,"code":"tired\#(long)","message":"\#(long)"}]"#).rejected[0]
            .message
        #expect(message.utf8.count == 512 && message.hasPrefix("tiredxxx"))
    }

    @Test("tokens are not cut", arguments: ["Ping", "Pong", "DialBack", "DialedBack", "FileDial"]) func tokens(_ operation: String) throws {
        let token = String(repeating: "t", count: 2_000)
        #expect(try wrapper(decode(#"{"operationType":"\#(operation)","message":"\#(token)"}"#)).message == token)
    }

    @Test("a pairing") func pairing() throws {
        guard
            case .pairing(let found) = try wrapper(
                decode(#"{"operationType":"pair","jmObject":{"step":"commit","nonce":null,"commitment":"QQ==","message":7,"x":[]}}"#)
            ).object
        else { throw TestFailure() }
        #expect(found == Pairing(step: "commit", commitment: "QQ==", nonce: "", message: "7"))
    }

    // MARK: - Encoding

    private func frames(_ write: (inout ByteBuffer) -> Void) throws -> [DecodedWrapper] {
        var buffer = ByteBuffer()
        write(&buffer)
        var decoder = FrameDecoder(limit: ProtocolLimits.largestFrameBytes)
        var frames: [DecodedWrapper] = []
        while let body = try decoder.next(from: &buffer) { frames.append(try wrapper(decode(body))) }
        #expect(buffer.readableBytes == 0)
        return frames
    }

    @Test("an encoded object is decoded unchanged") func roundTrip() throws {
        let hello = Hello(
            uuid: PeerID(Self.id), name: "Zoë \"the\" \u{1}\n\\", boot: BootNonce(5), protocols: [1, 2], features: ["a"],
            maxFrameBytes: 65_536, window: 3)
        let receipt = Receipt(
            through: 9, status: .duplicate, of: .stored,
            rejected: [
                HexRejection(sequence: 8, code: .internal, message: "no \u{7}", retryAfter: 60), HexRejection(sequence: 9, code: .tooLarge),
            ])
        let pairing = Pairing(step: "cancel", commitment: "", nonce: "", message: "no")
        let found = try frames {
            WrapperEncoder.hello(hello, into: &$0)
            WrapperEncoder.ack(receipt, into: &$0)
            WrapperEncoder.pair(pairing, into: &$0)
            WrapperEncoder.alert(message: "A\tB", sequence: 4, into: &$0)
            WrapperEncoder.ping(message: "p", sequence: nil, into: &$0)
            WrapperEncoder.pong(message: "p", into: &$0)
            WrapperEncoder.pong(message: nil, into: &$0)
            WrapperEncoder.bye(.idle, text: "nothing to do", into: &$0)
        }
        #expect(found.map(\.operation) == [.hello, .ack, .pair, .alert, .ping, .pong, .pong, .bye])
        #expect(found.allSatisfy { $0.versionID == ProtocolLimits.appVersion && $0.messageID == nil && $0.extra.isEmpty })
        guard case .hello(let helloFound) = found[0].object, case .receipt(let receiptFound) = found[1].object,
            case .pairing(let pairingFound) = found[2].object
        else { throw TestFailure() }
        #expect(helloFound == hello && receiptFound == receipt && pairingFound == pairing)
        #expect(found.dropFirst(3).map(\.message) == ["A\tB", "p", "p", nil, "idle: nothing to do"])
        #expect(found.map(\.sequence) == [nil, nil, nil, 4, nil, nil, nil, nil])
    }

    @Test("a Hello stays under 8 KiB for any name") func helloSize() throws {
        var buffer = ByteBuffer()
        let name = String(repeating: "\u{1}", count: 100_000)
        WrapperEncoder.hello(Hello(uuid: PeerID(Self.id), name: name, boot: BootNonce(.max)), into: &buffer)
        #expect(buffer.readableBytes <= ProtocolLimits.firstFrameBytes)
    }
}
