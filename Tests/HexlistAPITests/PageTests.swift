import HTTPTypes
import HexlistAPI
import HexlistJSON
import Hummingbird
import NIOCore
import Testing

@testable import HexlistDaemon

@Suite("Pages of the local API", .timeLimit(.minutes(5)))
struct PageTests {
    private static let page = #"{"items":[{"id":1,"t":"a,]}\"[\\"},{"id":2,"n":[1,[2,{}]]}],"next":"7"}"#

    @Test("a page is split into items as it arrives, at any chunk size", arguments: [1, 2, 3, 7, 1_000])
    func pieces(size: Int) throws {
        var parser = ListPageParser()
        var items: [String] = []
        var rest = Array(Self.page.utf8)[...]
        while !rest.isEmpty {
            items += try parser.feed(rest.prefix(size)).map { String(decoding: $0, as: UTF8.self) }
            rest = rest.dropFirst(size)
        }
        #expect(items == [#"{"id":1,"t":"a,]}\"[\\"}"#, #"{"id":2,"n":[1,[2,{}]]}"#])
        #expect(try parser.finish() == "7")
    }

    @Test("an item is buffered until it is complete, within the bound")
    func bound() throws {
        var parser = ListPageParser(limit: 100)
        #expect(try parser.feed(#"{"items":["#.utf8).isEmpty)
        for _ in 0..<1_000 { #expect(try parser.feed(#"{"id":1},"#.utf8).count == 1) }
        #expect(throws: JSONFault.self) { try parser.feed(("{" + String(repeating: " \"x\":1,", count: 40)).utf8) }
    }

    @Test(
        "truncated pages and other JSON are refused",
        arguments: ["", #"{"items":[{"id":1}"#, #"{"items":[]"#, #"{"item":[],"next":null}"#, "[]", "7"])
    func noPage(text: String) throws {
        var parser = ListPageParser()
        _ = try parser.feed(text.utf8)
        #expect(throws: JSONFault.self) { try parser.finish() }
    }

    @Test("an empty page, and one with spaces and other members")
    func others() throws {
        var parser = ListPageParser()
        #expect(try parser.feed(#"{"items":[],"next":null}"#.utf8).isEmpty)
        #expect(try parser.finish() == nil)
        parser = ListPageParser()
        #expect(try parser.feed(#" { "more" : [1,{"items":[2]}] , "next" : "3", "items" : [ 1 , "a" ] } "#.utf8).count == 2)
        #expect(try parser.finish() == "3")
    }

    private struct Text: JSONEncodable {
        var count: Int

        func write(to json: inout JSONWriter) { json.string(String(repeating: "\u{1}", count: count)) }
    }

    @Test("a page ends at 4 MiB of JSON, counted with escapes, and has at least one item")
    func bytes() async throws {
        func page(_ counts: [Int], next: Int64?) async throws -> (items: Int, next: String?) {
            let response = APIReply.page(counts.indices.map { $0 }, next: next, cursor: { Int64($0) }, shape: { Text(count: counts[$0]) })
            let collector = Collector()
            try await response.body.write(collector)
            var parser = ListPageParser()
            let items = try parser.feed(collector.bytes.readableBytesView).count
            #expect(collector.bytes.readableBytes <= LocalAPI.pageBytes + 64 || items == 1)
            return (items, try parser.finish())
        }
        // Each character has six bytes in JSON, as an escape.
        let mebibyte = (1 << 20) / 6
        #expect(try await page([mebibyte, mebibyte], next: nil) == (2, nil))
        #expect(try await page([mebibyte, mebibyte], next: 9) == (2, "9"))
        #expect(try await page(Array(repeating: mebibyte, count: 9), next: 9) == (3, "2"))
        #expect(try await page([9 * mebibyte, 1], next: nil) == (1, "0"))
        #expect(try await page([], next: nil) == (0, nil))
    }
}

private final class Collector: ResponseBodyWriter {
    var bytes = ByteBuffer()

    func write(_ buffer: ByteBuffer) async throws {
        var buffer = buffer
        bytes.writeBuffer(&buffer)
    }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
