import Foundation
import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

@testable import hexlist

@Suite("Messages of the browser extension") struct NativeMessageTests {
    private static func framed(_ texts: String...) -> [UInt8] { texts.flatMap { NativeMessageDecoder.framed(Array($0.utf8)) } }

    @Test("messages are read whole at any chunk size") func cut() throws {
        let bytes = Self.framed("{}", "[1]", "\"x\"")
        for size in 1...bytes.count {
            var decoder = NativeMessageDecoder()
            var messages: [String] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                messages += try decoder.feed(bytes[start..<min(start + size, bytes.count)]).map { String(decoding: $0, as: UTF8.self) }
            }
            #expect(messages == ["{}", "[1]", "\"x\""])
            try decoder.finish()
        }
    }

    @Test("the length is in native byte order") func order() {
        #expect(NativeMessageDecoder.framed([1, 2]) == withUnsafeBytes(of: UInt32(2)) { Array($0) } + [1, 2])
    }

    @Test("a length out of bounds ends the input", arguments: [0, (1 << 20) + 1, .max] as [UInt32])
    func lengths(length: UInt32) {
        var decoder = NativeMessageDecoder()
        #expect(throws: HexlistError.self) { try decoder.feed(withUnsafeBytes(of: length) { Array($0) }) }
    }

    @Test("the longest message is accepted; a truncated one is reported") func bounds() throws {
        var decoder = NativeMessageDecoder()
        let body = [UInt8](repeating: 0x20, count: NativeMessageDecoder.maximumBytes)
        #expect(try decoder.feed(NativeMessageDecoder.framed(body)).map(\.count) == [body.count])
        _ = try decoder.feed([1, 0, 0])
        #expect(throws: HexlistError.self) { try decoder.finish() }
    }
}

@Suite("Requests of the extension") struct BrowserRequestTests {
    private static func request(_ text: String) throws -> BrowserRequest { try BrowserRequest(Array(text.utf8)) }

    @Test("each operation is decoded") func operations() throws {
        #expect(try Self.request(#"{"id":1,"operation":"recipients"}"#).operation == .recipients(after: 0))
        #expect(try Self.request(#"{"id":1,"operation":"recipients","after":"7"}"#).operation == .recipients(after: 7))
        #expect(try Self.request(#"{"id":1,"operation":"rows","ids":[3]}"#).operation == .rows([3]))
        #expect(try Self.request(#"{"id":1,"operation":"inbox"}"#).operation == .inbox(unread: false, after: nil, limit: 20))
        #expect(
            try Self.request(#"{"id":1,"operation":"inbox","unread":true,"after":"9","limit":100}"#).operation
                == .inbox(unread: true, after: "9", limit: 100))
        #expect(try Self.request(#"{"id":1,"operation":"hex","hex":5,"after":"2"}"#).operation == .hex(5, after: 2))
        #expect(try Self.request(#"{"id":1,"operation":"mark","ids":[5],"unread":true}"#).operation == .mark([5], unread: true))
        let unread = try Self.request(#"{"id":9007199254740991,"operation":"unread"}"#)
        #expect(unread.operation == .unread && unread.id == 9_007_199_254_740_991)
    }

    @Test("a hex becomes a HexJM with texts, links and hexes only") func hex() throws {
        let text = """
            {"id":1,"operation":"send","to":["@team"],"key":"k","hex":{"description":"A","links":[{"url":"https://a.example/","title":"a"}],
            "hexes":[{"links":[{"url":"https://b.example/"}]}]}}
            """
        guard case .send(let send) = try Self.request(text).operation else {
            Issue.record("no send")
            return
        }
        #expect(send.to == ["@team"] && send.key == "k" && send.hex.linkCount == 2)
        #expect(
            send.hex.jsonText == #"{"hexDescription":"A","links":[{"url":"https://a.example/","linkDescription":"a"}],"#
                + #""children":[{"links":[{"url":"https://b.example/"}]}]}"#)
    }

    @Test(
        "unknown operations and members are refused",
        arguments: [
            "", "null", "[]", #"{"operation":"unread"}"#, #"{"id":0,"operation":"unread"}"#,
            #"{"id":9007199254740992,"operation":"unread"}"#,
            #"{"id":1,"operation":"trust"}"#, #"{"id":1,"operation":"peers"}"#, #"{"id":1,"operation":"unread","x":1}"#,
            #"{"id":1,"operation":"inbox","location":"held"}"#, #"{"id":1,"operation":"inbox","limit":101}"#,
            #"{"id":1,"operation":"hex","hex":1,"after":"-1"}"#, #"{"id":1,"operation":"hex","hex":1,"after":"99999999999999999999"}"#,
            #"{"id":1,"operation":"mark","ids":[],"unread":false}"#, #"{"id":1,"operation":"mark","all":true,"unread":false}"#,
            #"{"id":1,"operation":"send","to":["a"],"key":"k","hex":{"links":[]}}"#,
            #"{"id":1,"operation":"send","to":[],"key":"k","hex":{"links":[{"url":"https://a.example/"}]}}"#,
            #"{"id":1,"operation":"send","to":["a"],"key":"","hex":{"links":[{"url":"https://a.example/"}]}}"#,
            #"{"id":1,"operation":"send","to":["a"],"key":"k","toAll":true,"hex":{"links":[{"url":"https://a.example/"}]}}"#,
            #"{"id":1,"operation":"send","to":["a"],"key":"k","hex":{"links":[{"url":"a.example"}]}}"#,
            #"{"id":1,"operation":"send","to":["a"],"key":"k","hex":{"senderUUID":"x","links":[{"url":"https://a.example/"}]}}"#,
        ]) func refused(text: String)
    {
        #expect(throws: JSONFault.self) { try Self.request(text) }
    }

    @Test("nesting is limited to the levels of a hex") func levels() throws {
        func nested(_ levels: Int) -> String {
            let opening = String(repeating: #"{"hexes":["#, count: levels - 1)
            let hex = opening + #"{"links":[{"url":"https://a.example/"}]}"# + String(repeating: "]}", count: levels - 1)
            return #"{"id":1,"operation":"send","to":["a"],"key":"k","hex":\#(hex)}"#
        }
        #expect(throws: Never.self) { try Self.request(nested(ProtocolLimits.levels)) }
        #expect(throws: JSONFault.self) { try Self.request(nested(ProtocolLimits.levels + 1)) }
    }

    @Test("the id is read even from a malformed message") func id() {
        #expect(BrowserRequest.id(of: Array(#"{"id":4,"operation":"x"}"#.utf8)) == 4)
        #expect(BrowserRequest.id(of: Array(#"{"id":"4"}"#.utf8)) == nil)
        #expect(BrowserRequest.id(of: [0xFF]) == nil)
    }
}

@Suite("Answers to the extension") struct BrowserReplyTests {
    @Test("pages of a list contain all items in order") func pages() {
        let list = (0..<1_000).map { "\($0) " + String(repeating: "x", count: 2_000) }
        var (seen, index, count): ([JSONValue], Int, Int) = ([], 0, 0)
        while true {
            let page = BrowserListReply.of(list, after: index)
            #expect(BrowserMessage.reply(id: 1, page).bytes.count <= NativeMessageDecoder.replyBytes)
            seen += page.items
            count += 1
            guard let next = page.next.flatMap({ Int($0) }) else { break }
            index = next
        }
        #expect(count > 4 && seen.compactMap(\.string) == list)
        #expect(BrowserListReply.of(list, after: 5_000).items.isEmpty)
    }

    @Test("a reply that is too long is replaced by an error") func tooLong() {
        let text = String(repeating: "x", count: NativeMessageDecoder.replyBytes)
        let bytes = BrowserMessage.reply(id: 3, text).bytes
        #expect(String(decoding: bytes, as: UTF8.self).hasPrefix(#"{"id":3,"error":{"code":"tooLarge","#))
    }

    @Test("peer text is cleaned; a link is whole if it can be opened") func clean() throws {
        let hostile = "\u{202E}evil\u{1B}[1m\u{2028}"
        let hex = HexJSON(
            id: 1, location: "inbox", senderUUID: "", senderName: "", description: hostile, subject: hostile, color: hostile, linkCount: 2,
            unread: true, receivedAt: Timestamp(milliseconds: 0),
            links: [
                LinkJSON(url: "https://a.example/" + String(repeating: "x", count: 4_000), linkDescription: hostile, opens: "a.example"),
                LinkJSON(url: "javascript:" + String(repeating: "x", count: 4_000), notOpened: "a reason"),
            ],
            children: [InnerHexJSON(id: 2, senderUUID: "", senderName: "", description: hostile, color: "", links: [])])
        let items = BrowserItem.all(hex)
        #expect(items.count == 3)
        let text = BrowserHexRow(hex: hex).jsonText + items.jsonText
        for escape in ["\\u202e", "\\u001b", "\\u2028"] { #expect(!text.contains(escape)) }
        #expect(items[0].jsonText.utf8.count > 4_000 && items[1].jsonText.utf8.count < 1_000)
    }

    @Test("manifests allow only this extension, in each browser's format") func manifests() {
        #expect(
            BrowserManifest(path: "/x", isFirefox: false).jsonText.hasSuffix(
                #""path":"/x","type":"stdio","allowed_origins":["chrome-extension://pamclaachjdhfkjccgmdmcncljffaodl/"]}"#))
        #expect(
            BrowserManifest(path: "/x", isFirefox: true).jsonText.hasSuffix(
                #""path":"/x","type":"stdio","allowed_extensions":["hexlist@hexlist.example.org"]}"#))
        #expect(BrowserExtension.isCaller([BrowserExtension.origin]))
        #expect(BrowserExtension.isCaller(["/x/hexlist.json", BrowserExtension.firefox]))
        for callers in [
            [], [BrowserExtension.firefox], ["/x", "other@example.org"], ["chrome-extension://\(String(repeating: "a", count: 32))/"],
        ] {
            #expect(!BrowserExtension.isCaller(callers))
        }
    }
}
