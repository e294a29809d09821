import DaemonTestSupport
import HexlistAPI
import HexlistClient
import HexlistModel
import HexlistWire
import HostileTexts
import NIOCore
import Testing

@testable import HexlistDaemon

/// Every text arrives unchanged through the local API, outbox, TLS, decoder, store and local API. The time limit allows for 800 consecutive
/// requests.
@Suite("Texts from end to end", .timeLimit(.minutes(15)))
struct RoundTripTests {
    /// Two daemons. The second accepts the hexes of the first.
    private func withTrust(_ body: (_ from: TestDaemon, _ to: TestDaemon) async throws -> Void) async throws {
        try await TestDaemon.with("ada", "bob") { daemons in
            try await daemons[0].awaitPeers(1)
            try await daemons[1].awaitPeers(1)
            let ada = try await daemons[1].client.peer(daemons[0].uuid)
            _ = try await daemons[1].client.trust(daemons[0].uuid, fingerprint: ada.fingerprint?.description)
            _ = try await daemons[0].client.trust(daemons[1].uuid, fingerprint: nil)
            try await body(daemons[0], daemons[1])
        }
    }

    /// The text as it arrives. The only permitted change is that U+0000 becomes U+FFFD (Docs/Protocol.md, rule T20).
    private func received(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0 == "\u{0}" ? "\u{FFFD}" : $0 }))
    }

    @Test("hostile text as name, title, colour, link, note or unknown member arrives unchanged")
    func hostileTexts() async throws {
        try await withTrust { ada, bob in
            let texts = HostileTexts.all
            let lines = texts.map { text in
                let quoted = text.jsonText
                return
                    #"{"senderUUID":\#(quoted),"senderName":\#(quoted),"hexDescription":\#(quoted),"hexColor":\#(quoted),"x":\#(quoted),"#
                    + #""links":[{"url":\#(quoted),"linkDescription":\#(quoted),"service":\#(quoted),"y":\#(quoted)}]}"# + "\n"
            }
            var summary: BulkSummary?
            let (input, pieces) = AsyncStream.makeStream(of: ByteBuffer.self)
            for line in lines { pieces.yield(ByteBuffer(string: line)) }
            pieces.finish()
            try await ada.client.sendBulk(.init(peers: [bob.uuid], timeout: TestDaemon.patience), input: input) { line in
                if case .summary(let end) = line { summary = end }
                return true
            }
            #expect(summary?.stored == texts.count, "\(String(describing: summary))")

            var hexes: [HexJSON] = []
            var cursor: String?
            repeat {
                let page = try await bob.client.hexes(.init(location: "inbox"), limit: 200, after: cursor)
                hexes += page.items
                cursor = page.next
            } while cursor != nil
            #expect(hexes.count == texts.count)
            for (summary, text) in zip(hexes.reversed(), texts) {
                let expected = received(text)
                func expect(_ found: String?, _ name: String) {
                    #expect(
                        found?.utf8.elementsEqual(expected.utf8) == true, "\(name) of \(text.debugDescription): \(found.debugDescription)")
                }
                let hex = try await bob.client.hex(summary.id)
                expect(summary.description, "description")
                expect(hex.color, "color")
                if !text.isEmpty {
                    expect(hex.senderName, "senderName")
                    expect(hex.senderUUID, "senderUUID")
                }
                let link = try #require(hex.links?.first)
                expect(link.url, "url")
                expect(link.linkDescription, "linkDescription")
                if !text.isEmpty { expect(link.service, "service") }
                // Unknown members arrive unchanged, including U+0000.
                let extra = try #require(hex.extra).members?.first { $0.name == "hex" }?.value.members?.first
                #expect(extra?.value.string?.utf8.elementsEqual(text.utf8) == true, "unknown member of \(text.debugDescription)")
            }
        }
    }

    /// The description that each entry point reads from a HexJM, or `nil` if it refuses the input.
    static let decisions: [(name: String, json: [UInt8], description: String?)] = [
        ("a name twice: the last", Array(#"{"hexDescription":"a","hexDescription":"b","links":["u"]}"#.utf8), "b"),
        ("a name twice, once escaped", Array(#"{"hexDescription":"a","hex\u0044escription":"b","links":["u"]}"#.utf8), "b"),
        ("byte order mark", [0xEF, 0xBB, 0xBF] + Array(#"{"hexDescription":"a","links":["u"]}"#.utf8), "a"),
        ("UTF-16", Array(#"{"hexDescription":"a","links":["u"]}"#.utf8).flatMap { [$0, 0] }, nil),
        ("trailing comma", Array(#"{"hexDescription":"a","links":["u"],}"#.utf8), nil),
        ("trailing comma of links", Array(#"{"hexDescription":"a","links":["u",]}"#.utf8), nil),
        ("NFC and NFD stay two texts", Array("{\"hexDescription\":\"\u{E9}e\u{301}\",\"links\":[\"u\"]}".utf8), "\u{E9}e\u{301}"),
        (
            "an NFD name is another name", Array("{\"hexDescription\":\"a\",\"hexDescriptio\u{6E}\u{303}\":\"b\",\"links\":[\"u\"]}".utf8),
            "a"
        ),
        ("lone surrogate", Array(#"{"hexDescription":"a\ud800b","links":["u"]}"#.utf8), "a\u{FFFD}b"),
        ("surrogates the wrong way round", Array(#"{"hexDescription":"\udc00\ud800","links":["u"]}"#.utf8), "\u{FFFD}\u{FFFD}"),
        ("a surrogate in UTF-8", Array(#"{"hexDescription":""#.utf8) + [0xED, 0xA0, 0x80] + Array(#"","links":["u"]}"#.utf8), nil),
        ("U+0000 escaped", Array(#"{"hexDescription":"a\u0000b","links":["u"]}"#.utf8), "a\u{FFFD}b"),
        ("U+0000", Array("{\"hexDescription\":\"a\u{0}b\",\"links\":[\"u\"]}".utf8), nil),
        ("unknown members", Array(#"{"hexDescription":"a","x":{"y":[1,2]},"links":["u"]}"#.utf8), "a"),
        ("a number for a text", Array(#"{"hexDescription":1e5,"links":["u"]}"#.utf8), "1e5"),
        ("single quotes", Array(#"{'hexDescription':'a','links':['u']}"#.utf8), nil),
        ("comment", Array(#"{"hexDescription":"a"/**/,"links":["u"]}"#.utf8), nil),
        ("text behind", Array(#"{"hexDescription":"a","links":["u"]} x"#.utf8), nil),
        ("overlong UTF-8", Array(#"{"hexDescription":""#.utf8) + [0xC0, 0xAF] + Array(#"","links":["u"]}"#.utf8), nil),
    ]

    @Test("the wire, the local API and bulk streams accept the same input")
    func sameDecisions() async throws {
        try await withTrust { ada, bob in
            for test in Self.decisions {
                // First entry point: a frame on the wire.
                var decoder = WrapperDecoder()
                let isMarked = test.json.starts(with: [0xEF, 0xBB, 0xBF])  // allowed only at the start of the frame
                let frame = Array(#"{"operationType":"Store","jmObject":"#.utf8) + test.json.dropFirst(isMarked ? 3 : 0) + Array("}".utf8)
                var onWire: String?
                if case .wrapper(let wrapper) = decoder.decode(frame), case .hex(let hex) = wrapper.object {
                    onWire = hex.string(hex.hexDescription)
                }
                #expect(same(onWire, test.description), "\(test.name): \(onWire.debugDescription) on the wire")

                // Second entry point: a hex in a request to the local API.
                let sent: [SendOutcome]?
                do {
                    sent = try await ada.client.send(.init(content: .hex(test.json), peers: [bob.uuid], timeout: TestDaemon.patience))
                } catch let error as HexlistError {
                    #expect(error.code == .badRequest, "\(test.name): \(error)")
                    sent = nil
                }
                #expect((sent != nil) == (test.description != nil), "\(test.name) in the API")
                if sent != nil { #expect(same(try await newest(bob), test.description), "\(test.name) in the API") }

                // Third entry point: a line of a bulk stream.
                var summary: BulkSummary?
                let (input, pieces) = AsyncStream.makeStream(of: ByteBuffer.self)
                pieces.yield(ByteBuffer(bytes: test.json + [0x0A]))
                pieces.finish()
                try await ada.client.sendBulk(.init(peers: [bob.uuid], timeout: TestDaemon.patience, force: true), input: input) { line in
                    if case .summary(let end) = line { summary = end }
                    return true
                }
                #expect(
                    summary?.stored == (test.description == nil ? 0 : 1), "\(test.name) in a bulk stream: \(String(describing: summary))")
                if test.description != nil { #expect(same(try await newest(bob), test.description), "\(test.name) in a bulk stream") }
            }
        }
    }

    @Test("a messageID with a NUL is invalid: a new one is created") func uuidWithNUL() throws {
        var decoder = WrapperDecoder()
        for id in [#"6F9619FF-8B86-8011-B42D-00CF4FC964FF\u0000"#, #"6F9619FF-8B86-8011-B42D-00CF4FC964F\u0000"#] {
            guard case .wrapper(let wrapper) = decoder.decode(Array(#"{"messageID":"\#(id)","operationType":"Store","jmObject":{}}"#.utf8))
            else {
                Issue.record("refused")
                return
            }
            #expect(wrapper.messageID == nil)
        }
    }

    private func newest(_ daemon: TestDaemon) async throws -> String? {
        try await daemon.client.hexes(.init(location: "inbox"), limit: 1).items.first?.description
    }

    private func same(_ left: String?, _ right: String?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return left.utf8.elementsEqual(right.utf8)
    }
}
