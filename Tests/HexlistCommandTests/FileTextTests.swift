import HexlistAPI
import HexlistJSON
import Testing

@testable import hexlist

@Suite("Texts about files")
struct FileTextTests {
    private static let file = LinkJSON(url: "hexlist://3BC4DCA3-25F2-85CA-8131-8729A7FC4733/459211b8ec824f067e22deb3b0716904/a.txt")
    private static let page = LinkJSON(url: "https://example.org")

    @Test(
        "known members of a file link are shown as text, unknown members unchanged",
        arguments: [
            (#"{"links":{"1":{"size":6,"sha256":"58","mediaType":"text/plain","modified":"2026"}}}"#, nil),
            (#"{"hex":{"mood":1},"links":{"1":{"size":6}}}"#, #"{"hex":{"mood":1}}"#),
            (
                #"{"links":{"0":{"size":6},"1":{"size":6,"mood":"x"},"7":{"size":1}}}"#,
                #"{"links":{"0":{"size":6},"1":{"mood":"x"},"7":{"size":1}}}"#
            ),
            (#"{"children":{"0":{"links":{"0":{"size":6}}}}}"#, nil),
            (#"{"children":{"0":{"hex":{"mood":1},"links":{"0":{"size":6}}}}}"#, #"{"children":{"0":{"hex":{"mood":1}}}}"#),
            ("{}", nil),
        ] as [(String, String?)])
    func extra(json: String, rest: String?) throws {
        let child = ChildJSON(id: 2, senderUUID: "", senderName: "", description: "", color: "", links: [Self.file])
        #expect(FileExtra.rest(try JSONValue(parsing: json), [Self.page, Self.file], [child])?.text == rest)
    }

    @Test func size() throws {
        let extra = try JSONValue(parsing: #"{"links":{"1":{"size":6}},"children":{"0":{"links":{"0":{"size":-7}}}}}"#)
        #expect(FileExtra.size(extra, link: 1) == 6 && FileExtra.size(extra, link: 0) == nil && FileExtra.size(nil, link: 0) == nil)
        #expect(FileExtra.size(FileExtra.child(extra, 0), link: 0) == nil)
    }

    @Test("the next steps of the browser setup name the extension's folder")
    func extensionFolder() {
        let lines = BrowserInstallation.next([.firefox], folder: "/usr/share/hexlist/browser")
        #expect(lines.count == 2 && lines[0].contains("/usr/share/hexlist/browser") && lines[1].contains("manifest.json"))
        #expect(BrowserInstallation.next([.brave, .firefox], folder: nil).count == 3)
    }

    @Test("a narrow terminal still shows the remaining time")
    func progress() {
        var summary = TransferSummary()
        (summary.running, summary.bytes, summary.size) = (1, 10 << 20, 100 << 20)
        let begun = (at: ContinuousClock.now - .seconds(10), bytes: Int64(0))
        let wide = FetchWaiting.line(summary, since: begun)
        #expect(wide.hasPrefix("10.0 MiB of 100.0 MiB, ") && wide.contains("/s, ") && wide.hasSuffix(" left"))
        let narrow = FetchWaiting.line(summary, since: begun, columns: 39)
        #expect(narrow.hasPrefix("10.0 MiB of 100.0 MiB, ") && !narrow.contains("/s") && narrow.hasSuffix(" left"))
    }
}
