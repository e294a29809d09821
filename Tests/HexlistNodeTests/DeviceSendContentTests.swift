import HexlistFiles
import HexlistModel
import HexlistStore
import Testing

@testable import HexlistNode

@Suite struct DeviceContentTests {
    private static let own = PeerID(UUIDBytes(high: 1, low: 1))
    private static let other = PeerID(UUIDBytes(high: 2, low: 2))
    private static let message = MessageID(UUIDBytes(high: 3, low: 3))

    private func content(_ json: String, offers: [OfferRow] = []) throws -> DeviceSendContent {
        try DeviceSendContent(OutgoingHex(id: 1, messageID: Self.message, body: ArraySlice(json.utf8)), own: Self.own) { id in
            offers.first { $0.id == id.bytes }
        }
    }

    @Test(
        "the text of a hex without files",
        arguments: [
            (#"{"links":[{"url":"https://e.org/a"}]}"#, "https://e.org/a"),
            (#"{"hexDescription":"Title","links":[{"url":"https://e.org/a","linkDescription":"Title"}]}"#, "https://e.org/a"),
            (
                #"{"hexDescription":"Read this","links":[{"url":"https://e.org/a","linkDescription":"Title"}]}"#,
                "Read this\n\nhttps://e.org/a"
            ),
            (
                #"{"hexDescription":"Two","links":[{"url":"https://e.org/a","linkDescription":"A"},{"url":"https://e.org/b"}]}"#,
                "Two\n\nA\nhttps://e.org/a\nhttps://e.org/b"
            ),
            (
                #"{"hexDescription":"Top","links":[],"children":[{"hexDescription":"Inner","links":[{"url":"https://e.org/a"}]}]}"#,
                "Top\n\nInner\n\nhttps://e.org/a"
            ),
            (#"{"hexDescription":"Only a text"}"#, "Only a text"),
        ])
    func texts(json: String, text: String) throws {
        let content = try content(json)
        #expect(content.files.map(\.file.preview) == [text])
        #expect(content.files.first?.file.fileType == "text/plain" && content.files.first?.file.size == Int64(text.utf8.count))
        #expect(content.unreachable == 0)
    }

    @Test("a text of more than 64 KiB is a file of bookmarks; the IDs are the same on each attempt") func long() throws {
        let links = (0..<3_000).map { #"{"url":"https://example.org/\#($0)/some/longer/path"}"# }.joined(separator: ",")
        let json = #"{"hexDescription":"Many / links","links":[\#(links)]}"#
        let (one, again) = (try content(json), try content(json))
        #expect(one.files.map(\.file.preview) == [nil])
        #expect(one.files.first?.file.fileType == "text/html" && one.files.first?.file.fileName.hasSuffix(".html") == true)
        #expect(one.files.map(\.file.id) == again.files.map(\.file.id))
    }

    @Test("own files keep their folders, other links go into one more file, and foreign files are counted") func files() throws {
        let id = OfferID.random
        let row = OfferRow(
            id: id.bytes, path: "/home/ada/Photos/May/a.jpg", identity: "", name: "a.jpg", size: 5,
            sha256: [UInt8](repeating: 1, count: 32), mediaType: "image/jpeg", modified: 0, ends: 0)
        let link = FileLink(peer: Self.own, target: .offer(id, name: "a.jpg")).description
        let foreign = FileLink(peer: Self.other, target: .offer(.random, name: "b.jpg")).description
        let json = """
            {"hexDescription":"Photos","links":[{"url":"\(foreign)"}],"children":[{"hexDescription":"May","links":[{"url":"\(link)"}]}]}
            """
        let content = try content(json, offers: [row])
        #expect(content.files.map(\.file.fileName) == ["Photos/May/a.jpg", "links.html"])
        #expect(content.files.first?.file.modified == "1970-01-01T00:00:00.000Z" && content.unreachable == 1)
        #expect(throws: DeviceSendContent.Fault.notOffered("a.jpg")) { _ = try self.content(json) }
    }
}
