import HexlistAPI
import HexlistJSON
import HexlistModel
import Testing

@testable import hexlist

/// The texts of `own`, and those about own machines of other commands.
@Suite("Texts about own machines") struct OwnTests {
    private static let laptop = PeerID(UUIDBytes(high: 0x1A2B_3C4D_0000_8000, low: 0x8000_0000_0000_0002))

    private func machine(
        _ state: OwnMachineView.State, _ alias: String = "laptop2", message: String? = nil, behind: Int = 0
    ) -> OwnMachineView {
        OwnMachineView(
            uuid: Self.laptop, tag: PeerSummary(name: alias, alias: alias, trust: .trusted), state: state, message: message,
            addedAt: Timestamp(milliseconds: 0), receivedAt: nil, behind: behind)
    }

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
        let command = OwnText.command("my desk")
        #expect(command == "hexlist own add 'my desk'")
        #expect(
            OwnText.adding(first, command: command).question
                == "Add laptop2? They are merged once you have run `hexlist own add 'my desk'` there.")
        let second = preview(confirmed: true, same: false, there: CollectionSize(hexes: 1, links: 402))
        #expect(OwnText.lines(second)[2] == "  laptop2: 1 hex, 402 links")
        #expect(OwnText.adding(second, command: command).question == "Merge them now?")
        let again = preview(confirmed: true, same: true, there: CollectionSize(hexes: 1, links: 402), problem: "clock \u{1B}[1m")
        #expect(OwnText.lines(again).count == 3 && OwnText.lines(again)[2] == "clock \u{FFFD}[1m")
        #expect(OwnText.adding(again, command: command).question == "Exchange My Hexlist with laptop2 again?")
        let refusal = OwnText.adding(first, command: command).refusal
        #expect(refusal.code == .badRequest && refusal.hint == "To do it without a question: `hexlist own add 1A2B3C4D --yes`.")
    }

    @Test("the line of `status`") func summary() {
        #expect(OwnText.summary([machine(.inSync), machine(.inSync, "phone")]) == "in sync with laptop2, phone")
        #expect(
            OwnText.summary([machine(.away, behind: 1_200), machine(.inSync, "desk")])
                == "in sync with desk; laptop2 away, 1 200 changes to send")
        #expect(OwnText.summary([machine(.waiting)]) == "laptop2 waits for `hexlist own add` there")
        #expect(OwnText.summary([machine(.clock, message: "The clocks differ.")]) == "laptop2 The clocks differ.")
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
            OwnText.merged("laptop2", CollectionSize(hexes: 225, links: 5_101), backup: "/home/ada/before-join-1.ndjson") == [
                "laptop2 and this machine have one My Hexlist now: 225 hexes, 5 101 links.",
                "Your hexes before the merge: /home/ada/before-join-1.ndjson",
            ])
        #expect(OwnText.removed(machine(.inSync)) == "laptop2 is no longer one of your own machines. Both keep their copies.")
        #expect(OwnText.removed(machine(.away, behind: 1)).hasSuffix("It did not receive the last 1 change of this machine."))
        let removing = OwnText.removing("laptop2", word: "lap top")
        #expect(removing.line == "hexlist own remove 'lap top' --yes")
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
        #expect(MineHistoryText.change(change(by: Self.laptop, joined: true)) == "merged, which added 2 hexes")
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
        #expect(stuck?.summary == "My Hexlist is not in sync with laptop2")
    }
}
