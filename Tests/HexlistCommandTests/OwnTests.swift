import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

@testable import hexlist

/// The texts of `own`, and those about own machines of other commands.
@Suite("Texts about own machines") struct OwnTests {
    private static let laptop = PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0002))

    private func machine(
        _ state: OwnMachineView.State, _ alias: String = "laptop2", message: String? = nil, receivedAt: Int64? = nil, behind: Int = 0
    ) -> OwnMachineView {
        OwnMachineView(
            uuid: Self.laptop, tag: PeerSummary(name: alias, alias: alias, trust: .trusted), state: state, message: message,
            addedAt: Timestamp(milliseconds: 0), receivedAt: receivedAt.map { Timestamp(milliseconds: $0) }, behind: behind)
    }

    /// The commands for a machine with the name `my desk`.
    private static let there = OwnAddLines(
        name: "my desk", uuid: PeerID(UUIDBytes(high: 0x0A0B_0C0D_0000_8000, low: 0x8000_0000_0000_0001)))
    private static let commands: [OwnText.Line] = [
        .literal("  hexlist own add 'my desk'"), .text("or, if this machine has another name there:"),
        .literal("  hexlist own add 0A0B0C0D"),
    ]

    private func preview(confirmed: Bool?, same: Bool? = nil, there: CollectionSize? = nil, problem: String? = nil) -> OwnMachinePreview {
        OwnMachinePreview(
            uuid: Self.laptop, tag: PeerSummary(name: "laptop2", alias: "laptop2", trust: .trusted), own: false, online: confirmed != nil,
            confirmed: confirmed, same: same, here: CollectionSize(hexes: 212, links: 4_880), there: there, problem: problem)
    }

    @Test("the question names what is known about both collections") func question() {
        let first = preview(confirmed: false)
        #expect(
            OwnText.lines(first) == [
                "Only add a machine of your own: laptop2 gets all of My Hexlist, and its changes appear here.",
                "  this machine: 212 hexes, 4 880 links", "  laptop2: not known before this machine is added there",
                "Hexes and links that both have at the same place become one, with the tags of both; of other values, the later one stays. Everything else is added.",
            ])
        #expect(OwnText.adding(first, isPaired: false).question == "Add laptop2? They are merged once this machine is added there, too.")
        #expect(OwnText.adding(first, isPaired: false).refused == "Nothing was changed.")
        #expect(OwnText.adding(first, isPaired: true).refused.contains("stays trusted; to undo that: `hexlist peer untrust 1A2B3C4D`"))
        let second = preview(confirmed: true, same: false, there: CollectionSize(hexes: 1, links: 402))
        #expect(OwnText.lines(second)[2] == "  laptop2: 1 hex, 402 links")
        #expect(OwnText.adding(second, isPaired: false).question == "Merge them now?")
        let again = preview(confirmed: true, same: true, there: CollectionSize(hexes: 1, links: 402), problem: "clock \u{1B}[1m")
        #expect(OwnText.lines(again).count == 3 && OwnText.lines(again)[2] == "clock \u{FFFD}[1m")
        #expect(OwnText.adding(again, isPaired: false).question == "Exchange My Hexlist with laptop2 again?")
        let refusal = OwnText.adding(first, isPaired: false).refusal
        #expect(refusal.code == .badRequest && refusal.hint == "To do it without a question: `hexlist own add 1A2B3C4D --yes`.")
    }

    @Test("the line of `status`") func summary() {
        #expect(OwnText.summary([machine(.inSync), machine(.inSync, "phone")]) == "in sync with laptop2, phone")
        #expect(
            OwnText.summary([machine(.away, behind: 1_200), machine(.inSync, "desk")])
                == "in sync with desk; laptop2 away, 1 200 changes to send")
        #expect(OwnText.summary([machine(.waiting)]) == "laptop2 waits for `hexlist own add` there")
        #expect(OwnText.summary([machine(.waiting, receivedAt: 1)]) == "laptop2 has removed this machine")
        // The message names the machine.
        #expect(OwnText.summary([machine(.clock, message: "The clock of laptop2 differs.")]) == "The clock of laptop2 differs.")
    }

    @Test("the list fits into a narrow terminal") func list() {
        var table = Table(["NAME", "UUID", "STATE", "LAST CHANGE", "TO SEND", "WHY"])
        for state in OwnMachineView.State.allCases {
            table.add(OwnText.cells(machine(state, message: state == .full ? "My Hexlist has the maximum of rows." : nil, behind: 7)))
        }
        for width in [40, 80] {
            let lines = table.lines(Terminal(isInteractive: true, hasColor: false, width: width))
            #expect(lines.allSatisfy { TextWidth.of($0) <= width }, "\(lines)")
            #expect(lines.contains { $0.contains("laptop2") })
        }
    }

    @Test func results() {
        #expect(
            OwnText.merged("laptop2", CollectionSize(hexes: 225, links: 5_101), backup: "/home/ada/before\u{1B}-join-1.ndjson") == [
                .text("laptop2 and this machine have one My Hexlist now: 225 hexes, 5 101 links."),
                .text("Your hexes before the merge are in a file, which you can delete when you do not need it any more:"),
                .literal("  /home/ada/before\u{FFFD}-join-1.ndjson"),
            ])
        #expect(OwnText.merged("laptop2", CollectionSize(hexes: 1, links: 1), backup: nil).count == 1)
        #expect(
            OwnText.removed(machine(.removed, receivedAt: 1)) == "laptop2 is no longer one of your own machines. Both keep their copies. "
                + "It still lists this machine, until you run `hexlist own remove` there.")
        #expect(OwnText.removed(machine(.removed)).hasSuffix("Both keep their copies."))
        #expect(OwnText.removed(machine(.removed, behind: 1)).contains("It did not receive the last 1 change of this machine."))
        let removing = OwnText.removing("laptop2", word: "lap top")
        #expect(removing.line == "hexlist own remove 'lap top' --yes")
    }

    @Test("the command for the other machine is shown, unless this machine is known to be added there") func states() {
        func lines(_ machine: OwnMachineView) -> (added: Bool, waiting: Bool, stopped: Bool) {
            func has(_ lines: [OwnText.Line]) -> Bool { Self.commands.allSatisfy(lines.contains) }
            return (
                has(OwnText.added(machine, Self.there).result), has(OwnText.waiting(machine, Self.there)),
                has(OwnText.stopped(machine, Self.there))
            )
        }
        #expect(lines(machine(.waiting)) == (true, true, true))
        #expect(lines(machine(.waiting, receivedAt: 1)) == (true, true, true))
        #expect(lines(machine(.away)) == (true, true, true))
        #expect(lines(machine(.away, receivedAt: 1)) == (false, false, false))
        #expect(lines(machine(.joining)) == (false, false, false))
        #expect(lines(machine(.failed, message: "No.")) == (false, false, true))
        #expect(OwnText.added(machine(.failed, message: "No."), Self.there).problem == "No.")
        #expect(
            OwnText.stopped(machine(.away), Self.there).first
                == .text(
                    "laptop2 stays added; the merge goes on as soon as it can. To see the state: `hexlist own`. To undo: `hexlist own remove 1A2B3C4D`."
                ))
    }

    @Test("a machine that was removed on the other side is not one that was never added") func removedThere() {
        #expect(OwnText.state(machine(.waiting)) == "not added there" && OwnText.state(machine(.waiting, receivedAt: 1)) == "removed there")
        #expect(OwnText.state(machine(.away)) == "away" && OwnText.state(machine(.away, message: "No session.")) == "no session")
        #expect(OwnText.summary([machine(.away, message: "laptop2 is online.")]) == "laptop2 is online.")
        #expect(OwnText.why(machine(.waiting)) == "`hexlist own add` was not run there yet")
        #expect(OwnText.why(machine(.waiting, receivedAt: 1)) == "run `hexlist own add` there, or `hexlist own remove` here")
    }

    @Test("pairing first, and a new identity") func pairing() {
        #expect(
            OwnText.pairing("laptop2", Self.there, isTrustedHere: true).first
                == .text(
                    "laptop2 does not trust this machine any more. Run there too, so that both screens show six digits:"))
        #expect(OwnText.pairing("laptop2", Self.there, isTrustedHere: false).dropFirst() == Self.commands[...])
        func message(_ isTrustedHere: Bool, _ isInteractive: Bool) -> String {
            OwnText.notPaired("laptop2", Self.laptop, isTrustedHere: isTrustedHere, isInteractive: isInteractive).message
        }
        #expect(message(false, false) == "laptop2 is not trusted, and there is no terminal to compare six digits.")
        #expect(message(true, true) == "laptop2 does not trust this machine. With --json, six digits are not shown.")
        let changed = OwnText.identityChanged([machine(.inSync), machine(.away, "my \u{1B}tab")], Self.there)
        #expect(changed[1...2] == [.literal("  hexlist own add laptop2"), .literal("  hexlist own add 'my \u{FFFD}tab'")])
        #expect(changed.last == .literal("  hexlist own add 0A0B0C0D"))
        let old = PeerView(uuid: Self.laptop, name: "laptop", alias: "laptop", state: .away, trust: .trusted)
        let new = PeerView(
            uuid: PeerID(UUIDBytes(high: 0x0A0B_0C0D_0000_8000, low: 0x8000_0000_0000_0001)), name: "laptop", state: .verified,
            trust: .stranger)
        #expect(ReinstalledPeerFinder.of(old, among: [old, new]) == new)
        #expect(
            OwnText.replaced(old, by: new).hasPrefix(
                "laptop is away (UUID 1A2B3C4D), and another machine with this name is online: laptop 0A0B0C0D (stranger)."))
    }

    @Test("the author of a change, and a merge") func log() {
        func change(by: PeerID?, joined: Bool = false) -> MineChangeJSON {
            MineChangeJSON(
                number: 7, at: Timestamp(milliseconds: 0), hexes: MineChangeCounts(added: 2), links: nil, hex: 1, subject: "", others: 0,
                by: by, tag: by.map { _ in PeerSummary(name: "laptop2", alias: "laptop2", trust: .trusted) }, joined: joined, undo: false,
                undoneBy: nil, undoable: !joined, values: [])
        }
        #expect(MineHistoryText.author(change(by: nil)).text == "here")
        #expect(MineHistoryText.author(change(by: Self.laptop)).text == "laptop2")
        let merge = change(by: Self.laptop, joined: true)
        #expect(MineHistoryText.change(merge) == "first exchange, which added 2 hexes")
        #expect(MineHistoryText.subject(merge, own: [Self.laptop]) == "My Hexlist of laptop2")
        // The first contents of a shared hex.
        #expect(MineHistoryText.subject(merge) == "(no description)")
        let columns = MineHistoryText.columns(hasAuthors: true, ofHex: false)
        #expect(columns.header == ["NUMBER", "WHEN", "AUTHOR", "CHANGE", "HEX", "DESCRIPTION"])
        #expect(columns.cells(merge).count == 6)
        #expect(MineHistoryText.columns(hasAuthors: false, ofHex: true).header == ["NUMBER", "WHEN", "CHANGE", "BEFORE"])
    }

    @Test("notifications of a large deletion, and of an exchange that stopped") func notifications() throws {
        func event(_ type: String, _ data: String) throws -> EventJSON {
            EventJSON(
                number: 1, at: Timestamp(milliseconds: 0), type: type, peer: Self.laptop,
                tag: PeerSummary(name: "laptop2", alias: "laptop2", trust: .trusted), data: try JSONValue(parsing: Array(data.utf8)))
        }
        let deletion = NotificationText(try event("list.deleted", #"{"changes":"951 952","links":"812","of":"3000"}"#))
        #expect(deletion?.summary == "laptop2 deleted 812 of 3 000 links")
        #expect(deletion?.body == "To restore them: `hexlist mine undo 951 952`")
        let stuck = NotificationText(try event("list.stuck", #"{"reason":"clock","milliseconds":"90000000"}"#))
        #expect(stuck?.summary == "Changes are not exchanged with laptop2")
    }
}
