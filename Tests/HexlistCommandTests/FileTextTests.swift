import HexlistAPI
import HexlistJSON
import HexlistModel
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
            (#"{"hex":{"mood":1,"tags":["a"]},"links":{"0":{"tags":["b"],"note":"n"}}}"#, #"{"hex":{"mood":1}}"#),
            (#"{"hex":{"mood":1},"links":{"1":{"size":6}}}"#, #"{"hex":{"mood":1}}"#),
            (
                #"{"links":{"0":{"size":6},"1":{"size":6,"mood":"x"},"7":{"size":1}}}"#,
                #"{"links":{"0":{"size":6},"1":{"mood":"x"},"7":{"size":1}}}"#
            ),
            (#"{"children":{"0":{"links":{"0":{"size":6}}}}}"#, nil),
            (#"{"hex":{"folder":"a"},"children":{"0":{"hex":{"folder":"b"}}}}"#, nil),
            (#"{"children":{"0":{"hex":{"mood":1},"links":{"0":{"size":6}}}}}"#, #"{"children":{"0":{"hex":{"mood":1}}}}"#),
            ("{}", nil),
        ] as [(String, String?)])
    func extra(json: String, rest: String?) throws {
        let child = InnerHexJSON(id: 2, senderUUID: "", senderName: "", description: "", color: "", links: [Self.file])
        #expect(LinkedFileMetadata.rest(try JSONValue(parsing: json), [Self.page, Self.file], [child])?.text == rest)
    }

    @Test(
        "the word for a row with files, and the explanation",
        arguments: [
            (OutboxState.stored, OutboxFiles(state: .offered, count: 3, bytes: 9), "offered", ""),
            (.stored, OutboxFiles(state: .offered, count: 3, bytes: 9, fetched: 1), "offered", "1 of 3 files fetched"),
            (.stored, OutboxFiles(state: .fetched, count: 3, bytes: 9, fetched: 3), "fetched", ""),
            (.stored, OutboxFiles(state: .withdrawn, count: 1, bytes: 9), "withdrawn", ""),
            (
                .stored,
                OutboxFiles(state: .offered, count: 3, bytes: 9, fetched: 1, failed: 2, failedName: "a\u{1B}.txt", problem: .missing),
                "offered", "1 of 3 files fetched; a\u{FFFD}.txt (and 1 more) deleted or moved since it was sent: send it again"
            ),
            (.queued, OutboxFiles(state: .offered, count: 3, bytes: 9), "queued", "sent, not confirmed yet"),
            (.stored, nil, "stored", ""),
        ] as [(OutboxState, OutboxFiles?, String, String)])
    func words(state: OutboxState, files: OutboxFiles?, word: String, why: String) {
        var row = OutboxView(
            outboxID: 7, messageID: MessageID(.nil), peer: PeerID(.nil), state: state, attempts: 1, createdAt: Timestamp(milliseconds: 0),
            bytes: 10)
        row.files = files
        #expect(OutboxStateText(OutboxRowExplanation(row)).word == word && OutboxRowExplanation(row).why == why)
    }

    @Test("file names are in natural order")
    func naturalOrder() {
        let names = ["a1", "A2", "a10", "a10b", "b", "img 9.jpg", "img 010.jpg", "img 10.jpg", "img 11.jpg", "é"]
        for seed in 0..<5 {
            let mixed = names.indices.map { names[($0 * 7 + seed * 3) % names.count] }
            #expect(mixed.sorted(by: NaturalOrder.precedes) == names)
        }
        let digits = String(repeating: "9", count: 200)
        #expect(NaturalOrder.precedes(digits, "1" + digits) && !NaturalOrder.precedes("1" + digits, digits))
        #expect(!NaturalOrder.precedes("a", "a") && NaturalOrder.precedes("", "a"))
    }

    @Test("a list shows files as files, and a hex of files one command to download them")
    func contents() {
        var hex = HexJSON(
            id: 5, location: "inbox", senderUUID: "", senderName: "", description: "photos", color: "", linkCount: 0, unread: false,
            receivedAt: Timestamp(milliseconds: 0))
        #expect(HexText.contents(hex).text == "0")
        (hex.files, hex.fileBytes, hex.linksInside) = (2_000, 18 << 10, 2_000)
        #expect(HexText.contents(hex).text == "2 000 files, 18.0 KiB")
        (hex.files, hex.linkCount) = (1, 1)
        #expect(HexText.contents(hex).text == "1 file, 18.0 KiB, 2 000 links")
        #expect(ShowCommand.advice(hex) == nil)
        hex.links = [Self.page, Self.file]
        #expect(ShowCommand.advice(hex) == "To download the files: `hexlist fetch 5 --to FOLDER`, one of them: `hexlist fetch 5 2`.")
        hex.links = []
        hex.children = [InnerHexJSON(id: 6, senderUUID: "", senderName: "", description: "", color: "", links: [Self.file])]
        #expect(ShowCommand.advice(hex) == "To download the files: `hexlist fetch 5 --to FOLDER`.")
        #expect(FileText.name(of: "hexlist://x/y/a%20b%2Fc.txt") == "a b/c.txt" && FileText.name(of: "hexlist://x/%zz") == "%zz")
        #expect([0, 999, 1_000, 1_234_567].map(HumanText.grouped) == ["0", "999", "1 000", "1 234 567"])
    }

    @Test("the advice after a send of files")
    func advice() {
        func outcome(_ number: UInt64, _ alias: String, _ trust: Trust, files: Int = 1) -> SendOutcome {
            var outcome = SendOutcome(
                outboxID: 1, messageID: MessageID(.nil), peer: PeerID(UUIDBytes(high: number, low: 1)),
                tag: PeerSummary(name: "n", alias: alias, trust: trust), state: .stored)
            outcome.files = OutboxFiles(state: .offered, count: files, bytes: 9)
            return outcome
        }
        let (tom, ada, eve) = (outcome(1, "tom", .trusted), outcome(2, "ada", .trusted, files: 2), outcome(3, "eve", .stranger))
        #expect(
            FileAdvice.of([tom], areCopied: false) == [
                "tom fetches the file from here: keep this machine on and the file unchanged until then."
            ])
        #expect(
            FileAdvice.of([ada, tom], areCopied: true) == [
                "They fetch the files from here: keep this machine on until then. Hexlist has a copy, so the files may change."
            ])
        #expect(FileAdvice.of([eve], areCopied: false) == ["eve can only fetch the files once you trust it: `hexlist pair eve`."])
        var link = tom
        link.files = nil
        #expect(FileAdvice.of([link], areCopied: false).isEmpty)
    }

    @Test func size() throws {
        let extra = try JSONValue(parsing: #"{"links":{"1":{"size":6}},"children":{"0":{"links":{"0":{"size":-7}}}}}"#)
        #expect(
            LinkedFileMetadata.size(extra, link: 1) == 6 && LinkedFileMetadata.size(extra, link: 0) == nil
                && LinkedFileMetadata.size(nil, link: 0) == nil)
        #expect(LinkedFileMetadata.size(LinkedFileMetadata.child(extra, 0), link: 0) == nil)
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
        let wide = FetchedTransfersWait.line(summary, since: begun)
        #expect(wide.hasPrefix("10.0 MiB of 100.0 MiB, ") && wide.contains("/s, ") && wide.hasSuffix(" left"))
        let narrow = FetchedTransfersWait.line(summary, since: begun, columns: 39)
        #expect(narrow.hasPrefix("10.0 MiB of 100.0 MiB, ") && !narrow.contains("/s") && narrow.hasSuffix(" left"))
    }
}
