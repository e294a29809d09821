import ArgumentParser
import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

@testable import hexlist

@Suite("Hexes on the command line")
struct HexCommandTests {
    @Test("ids and ranges are distinguished; a peer or `--all` stands alone")
    func selection() throws {
        #expect(try DeleteCommand.parse(["7", "3-40", "9-9"]).chosen.selection() == .ids([7, 9], ranges: [3...40]))
        #expect(try ReadCommand.parse(["--from", "bob"]).chosen.selection() == .list(from: "bob"))
        #expect(try ReadCommand.parse(["--all"]).chosen.selection() == .all)
        let read = try ReadCommand.parse(["7.2", "3", "9.1", "4-6"]).chosen
        #expect(read.links == [.init(hex: 7, number: 2), .init(hex: 9, number: 1)] && read.selection() == .ids([3], ranges: [4...6]))
        #expect(ReadCommand.report(links: 1, hexes: 2) == "1 link and 2 hexes marked as read.")
        #expect(ReadCommand.report(links: 2, hexes: 0) == "2 links marked as read." && ReadCommand.report(links: 0, hexes: 0) == nil)
        #expect(try DeleteCommand.parse(["--all", "--held"]).chosen.selection("held") == .list(location: "held"))
    }

    @Test(
        "invalid ids and ranges are refused with a usable alternative",
        arguments: [
            (["40-3"], "3-40"), (["x"], "3-40"), (["3-"], "3-40"), (["0"], "3-40"), (["3-4-5"], "3-40"), ([], "--all"),
            (["3", "--all"], "--all"), (["--all", "--from", "bob"], "--all"), (["--held", "3"], "--held"),
            (["7.2"], "whole hex: 7"), (["7.0"], "3-40"), (["7.2-4"], "3-40"),
        ])
    func refusedSelection(arguments: [String], hint: String) {
        let error = #expect(throws: (any Error).self) { try DeleteCommand.parse(arguments) }
        #expect(
            error.map { DeleteCommand.message(for: $0) }?.contains(hint) == true, "\(error.map { DeleteCommand.message(for: $0) } ?? "")")
    }

    @Test("--all without a terminal names the count and the option that skips the prompt")
    func refusal() {
        let error = Confirmation(deed: "deletes 7 hexes of the inbox", question: "", line: "hexlist delete --all --yes").refusal
        #expect(error.message == "This deletes 7 hexes of the inbox, and there is no terminal to confirm it.")
        #expect(error.hint == "To do it without a question: `hexlist delete --all --yes`." && ExitStatus(error.code) == .usage)
    }

    @Test(
        "the suggested command for a peer as last argument",
        arguments: [
            (["hexlist", "send", "https://a.example", "bob"], "hexlist send --to bob https://a.example"),
            (
                ["/usr/bin/hexlist", "send", "https://a.example", "bob", "--description", "bob"],
                "hexlist send --to bob https://a.example --description bob"
            ),
            (["hexlist", "send", "--json", "https://a.example x", "Ada's"], #"hexlist send --to 'Ada'\''s' --json 'https://a.example x'"#),
            (["hexlist", "send", "--hex", "5", "--force", "bob"], "hexlist send --to bob --hex 5 --force"),
            (["hexlist", "send", "bob", "-d", "bob", "https://a.example"], "hexlist send --to bob -d bob https://a.example"),
        ])
    func missingTo(arguments: [String], line: String) throws {
        let word = arguments.contains("Ada's") ? "Ada's" : "bob"
        #expect(RecipientErrors.line(to: word, removing: word, arguments) == line)
        let error = RecipientErrors.unconfirmed(word, arguments: arguments)
        #expect(error.message == "`\(word)` is a peer: name it with --to." && error.hint?.hasSuffix(line) == true)
    }

    @Test("a missing --to is left to the daemon only if the last argument can be a peer")
    func lastWord() {
        #expect(throws: Never.self) { try SendCommand.parse(["https://a.example", "bob"]) }
        #expect(throws: Never.self) { try SendCommand.parse(["--hex", "5", "bob"]) }
        for arguments in [["bob"], []] { #expect(throws: (any Error).self) { try SendCommand.parse(arguments) } }
    }

    @Test(
        "words that may name the recipient",
        arguments: [
            (["bob", "https://a.example"], [0]), (["https://a.example", "bob"], [1]), (["bob", "https://a.example", "note"], [2, 0]),
            (["https://a.example"], []), (["https://a.example", "https://b.example"], []), (["https://a.example", "-"], []), (["bob"], []),
            (["bob", "./talk.pdf"], [0]), (["./talk.pdf", "/etc/hosts"], []), (["bob", "avahi.org"], [1, 0]),
        ] as [([String], [Int])])
    func candidates(words: [String], expected: [Int]) {
        #expect(RecipientChoice(words: words, hasOtherContent: false, isRaw: false).candidates == expected)
    }

    @Test("without a recipient the error lists trusted peers, and without a terminal the command with the only one")
    func noRecipient() {
        func peer(_ name: String) -> PeerView { PeerView(uuid: Self.peer, name: name, alias: name, state: .away, trust: .trusted) }
        #expect(RecipientErrors.unknown([]).hint == "More: `hexlist send --help`.")
        #expect(RecipientErrors.unknown([peer("tom"), peer("nas")]).hint == "Trusted: tom, nas.")
        let only = RecipientErrors.unconfirmed(peer("Tom's"), arguments: ["hexlist", "send", "https://a.example"])
        #expect(only.hint == #"Run: hexlist send --to 'Tom'\''s' https://a.example"# && ExitStatus(only.code) == .usage)
    }

    @Test("an empty inbox mentions held hexes and how to list them")
    func emptyInbox() {
        func nothing(from: String? = nil, isHeld: Bool = false, unread: Bool = false, isEnd: Bool = false, _ held: Int) -> String {
            InboxText.nothing(from: from, isHeld: isHeld, unread: unread, isEnd: isEnd, held: held)
        }
        #expect(nothing(0) == "The inbox is empty.")
        #expect(nothing(3) == "The inbox is empty. 3 from strangers wait for approval: `hexlist inbox --held`")
        #expect(nothing(unread: true, 1) == "No unread hexes in the inbox. 1 from strangers waits for approval: `hexlist inbox --held`")
        #expect(
            InboxText.nothing(from: nil, isHeld: false, unread: false, isEnd: false, held: 1, areStrangers: false)
                == "The inbox is empty. 1 waits for approval: `hexlist inbox --held`")
        #expect(nothing(from: "bob", 2) == "No hexes from bob in the inbox. 2 wait for approval: `hexlist inbox --held --from bob`")
        #expect(nothing(isHeld: true, 0) == "No hexes wait for approval.")
        #expect(nothing(isEnd: true, 0) == "No more hexes in the inbox.")
    }

    private static let peer = PeerID(UUIDBytes(high: 0x0C6F_1B22_0000_4000, low: 0x8000_0000_0000_0000))

    @Test("a long name does not push the end of a prompt off the screen, even if output is redirected")
    func longName() {
        let label = PeerDisplayName(Self.peer, PeerSummary(name: String(repeating: "b", count: 240), trust: .stranger))
        #expect(TextWidth.of(label.shown()) <= 44 && label.shown().contains("0C6F1B22 (stranger)"))
        #expect(label.listed().contains(String(repeating: "b", count: 200)) || Terminal.output.isInteractive)
    }

    @Test("an event names its peer and its hex; peer text cannot add members")
    func event() throws {
        let uuid = Self.peer
        let time = Timestamp(milliseconds: 0)
        let known = PeerSummary(name: "Robert", alias: "bob", trust: .trusted)
        let held = EventJSON(number: 12, at: time, type: "hex.held", peer: uuid, tag: known, hex: 3, subject: "To read")
        #expect(EventText.line(held).hasSuffix("  hex.held  peer bob  hex 3  “To read”"))
        let forged = EventJSON(number: 12, at: time, type: "hex.held", subject: "x”  outbox 9\u{a0}\n14  2026-11-22  pairing.paired “y")
        #expect(EventText.line(forged).hasSuffix("  hex.held  “x' outbox 9 14 2026-11-22 pairing.paired 'y”"))
        let alert = EventJSON(
            number: 13, at: time, type: "alert.received", peer: uuid, tag: PeerSummary(name: "Eve", trust: .stranger),
            data: try JSONValue(parsing: #"{"message":"a  reason x","versionID":"1.0"}"#))
        #expect(EventText.line(alert).hasSuffix(#"  peer Eve 0C6F1B22 (stranger)  message "a  reason x"  versionID 1.0"#))
    }
}
