import HexlistAPI
import HexlistModel

/// Texts about the user's other machines.
enum OwnText {
    /// A part of a message.
    enum Line: Equatable {
        case text(String)
        /// A command or path, which is not wrapped, so that it can be copied.
        case literal(String)
    }

    /// Writes the lines to standard error.
    static func show(_ lines: [Line]) {
        for line in lines {
            switch line {
            case .text(let text): StandardError.wrapped(text)
            case .literal(let text): StandardError.note(text)
            }
        }
    }

    /// Returns the lines before the pairing with a machine.
    static func pairing(_ name: String, _ there: OwnAddLines, isTrustedHere: Bool) -> [Line] {
        [
            .text(
                isTrustedHere
                    ? "\(name) does not trust this machine any more. Run there too, so that both screens show six digits:"
                    : "\(name) is not trusted yet. Run there too, so that both screens show six digits:")
        ] + there.lines
    }

    static func notPaired(_ name: String, _ peer: PeerID, isTrustedHere: Bool, isInteractive: Bool) -> HexlistError {
        let fault = isTrustedHere ? "\(name) does not trust this machine" : "\(name) is not trusted"
        return HexlistError(
            .badRequest,
            isInteractive
                ? "\(fault). With --json, six digits are not shown." : "\(fault), and there is no terminal to compare six digits.",
            hint: "First pair: `hexlist pair \(peer.shortID)` here, and `hexlist pair` there.")
    }

    /// Returns the sentence about an online machine that has the name of one that is away.
    static func replaced(_ gone: PeerView, by here: PeerView) -> String {
        let name = gone.label.shown(.named)
        return
            "\(name) is away (UUID \(gone.uuid?.shortID ?? "")), and another machine with this name is online: \(here.label.shown(.full)). "
            + "It may be the same one, reinstalled or with a new identity."
    }

    static func noOwnMachine(_ name: String) -> HexlistError {
        HexlistError(.notFound, "\(name) is not one of your own machines.", hint: "To list them: `hexlist own`.")
    }

    /// Returns the lines that describe what will happen, before the user is asked.
    static func lines(_ preview: OwnMachinePreview) -> [String] {
        let name = preview.label.shown(.named)
        var lines = ["Only add a machine of your own: \(name) gets all of My Hexlist, and its changes appear here."]
        if preview.same ?? false {
            lines.append("Both have had one My Hexlist before. The changes since then are exchanged.")
        } else {
            let there = preview.there.map(size) ?? "not known before this machine is added there"
            lines += ["  this machine: \(size(preview.here))", "  \(name): \(there)"]
            lines.append(
                """
                Hexes and links that both have at the same place become one, with the tags of both; of other values, the later one stays. \
                Everything else is added.
                """)
        }
        if let problem = preview.problem { lines.append(TerminalText.clean(problem, columns: 400)) }
        return lines
    }

    /// Returns the question before a machine is added.
    /// - Parameter isPaired: whether it was paired just now.
    static func adding(_ preview: OwnMachinePreview, isPaired: Bool) -> Confirmation {
        let name = preview.label.shown(.named)
        let question =
            preview.confirmed ?? false
            ? (preview.same ?? false ? "Exchange My Hexlist with \(name) again?" : "Merge them now?")
            : "Add \(name)? They are merged once this machine is added there, too."
        return Confirmation(
            deed: "merges My Hexlist with that of \(name)", question: question,
            line: "hexlist own add \(preview.uuid.shortID) --yes",
            refused: isPaired
                ? "\(name) was not added. It is paired, and stays trusted; to undo that: `hexlist peer untrust \(preview.uuid.shortID)`."
                : "Nothing was changed.")
    }

    /// - Parameter word: the peer as the user typed it.
    static func removing(_ name: String, word: String) -> Confirmation {
        Confirmation(
            deed: "stops the exchange of My Hexlist with \(name)",
            question: "Stop exchanging My Hexlist with \(name)? Both machines keep their copies.",
            line: "hexlist own remove \(ShellText.quoted(TerminalText.clean(word, columns: 60))) --yes")
    }

    static func removed(_ machine: OwnMachineView) -> String {
        let waiting = machine.behind > 0 ? " It did not receive the last \(changes(machine.behind)) of this machine." : ""
        let there = machine.receivedAt == nil ? "" : " It still lists this machine, until you run `hexlist own remove` there."
        return "\(machine.label.shown(.named)) is no longer one of your own machines. Both keep their copies.\(waiting)\(there)"
    }

    /// The sentence printed when an own machine is not trusted any more.
    static let ended = "My Hexlist is no longer exchanged with it; both keep their copies."

    /// Returns the note printed after a change of this machine's identity: the commands after which My Hexlist is exchanged again.
    static func identityChanged(_ machines: [OwnMachineView], _ there: OwnAddLines) -> [Line] {
        let other = machines.count == 1 ? "the other machine" : "each other machine"
        return [.text("My Hexlist is exchanged again after two commands, run at the same time. Here:")]
            + machines.map { machine in
                let argument = machine.label.alias.map { ShellText.quoted(TerminalText.clean($0, columns: 40)) } ?? machine.uuid.shortID
                return .literal("  hexlist own add \(argument)")
            } + [.text("On \(other), which also asks whether this is the same machine:"), .literal("  \(there.byUUID)")]
    }

    /// Returns the size of a collection: `212 hexes, 4 880 links`.
    static func size(_ size: CollectionSize) -> String {
        "\(count(size.hexes, "hex", "hexes")), \(count(size.links, "link", "links"))"
    }

    private static func changes(_ number: Int) -> String { count(number, "change", "changes") }

    private static func count(_ number: Int, _ one: String, _ more: String) -> String {
        "\(HumanText.grouped(number)) \(number == 1 ? one : more)"
    }

    /// Returns the lines about a machine with which all changes are exchanged.
    /// - Parameter backup: the file with the hexes of this machine before the merge; `nil` if nothing was merged just now.
    static func merged(_ name: String, _ size: CollectionSize, backup: String?) -> [Line] {
        let text = "\(name) and this machine have one My Hexlist now: \(Self.size(size))."
        guard let backup else { return [.text(text)] }
        return [
            .text(text), .text("Your hexes before the merge are in a file, which you can delete when you do not need it any more:"),
            .literal("  \(TerminalText.clean(backup))"),
        ]
    }

    /// Returns the lines about the state at the end of `own add`, unless it is `inSync`; the second part is a problem.
    static func added(_ machine: OwnMachineView, _ there: OwnAddLines) -> (result: [Line], problem: String?) {
        let name = machine.label.shown(.named)
        let ifNeeded = "Run there, if you have not yet:"
        switch machine.state.known {
        case .away where machine.message != nil, .clock, .differs, .full, .disk, .unsupported, .failed:
            return ([], why(machine).map { TerminalText.clean($0, columns: 400) } ?? state(machine))
        case .waiting:
            let text =
                machine.receivedAt == nil
                ? "\(name) is added. Now run there:" : "\(name) is added, but this machine was removed there. Run there:"
            return ([.text(text)] + there.lines, nil)
        case .away where machine.receivedAt == nil:
            return (
                [
                    .text(
                        "\(name) is added here, and is away. The merge begins when it is online, and this machine is added there. \(ifNeeded)"
                    )
                ] + there.lines, nil
            )
        case .away: return ([.text("\(name) is added, and away. The exchange goes on when it is online.")], nil)
        case .joining: return ([.text("\(name) is added; the collections are being merged.")], nil)
        case .exchanging where machine.receivedAt != nil: return ([.text("\(name) is added; changes are being exchanged.")], nil)
        case .exchanging, .inSync, .removed, nil: return ([.text("\(name) is added. \(ifNeeded)")] + there.lines, nil)
        }
    }

    /// Returns the lines about a new state while `own add` waits.
    static func waiting(_ machine: OwnMachineView, _ there: OwnAddLines) -> [Line] {
        let name = machine.label.shown(.named)
        let patience = Line.text("Waiting for it; Ctrl-C ends only the waiting.")
        switch machine.state.known {
        case .waiting where machine.receivedAt != nil:
            return [.text("This machine was removed on \(name). Run there:")] + there.lines + [patience]
        case .waiting: return [.text("Now run on \(name):")] + there.lines + [patience]
        case .away where machine.message != nil: return [.text(TerminalText.clean(machine.message ?? "", columns: 400)), patience]
        case .away where machine.receivedAt == nil:
            return [.text("\(name) is away. When it is online, run there, if you have not yet:")] + there.lines + [patience]
        case .away: return [.text("\(name) is away. Waiting until it is online; Ctrl-C ends only the waiting.")]
        case .joining: return [.text("Merging …")]
        case .failed: return [.text(machine.message.map { "\(TerminalText.clean($0, columns: 400)) Trying again …" } ?? "Trying again …")]
        case .exchanging, .inSync, .clock, .differs, .full, .disk, .unsupported, .removed, nil: return []
        }
    }

    /// Returns the lines after the waiting of `own add` was ended before the result.
    static func stopped(_ machine: OwnMachineView, _ there: OwnAddLines) -> [Line] {
        let isNew = machine.receivedAt == nil
        let text =
            "\(machine.label.shown(.named)) stays added; the \(isNew ? "merge" : "exchange") goes on as soon as it can. To see the state: "
            + "`hexlist own`. To undo: `hexlist own remove \(machine.uuid.shortID)`."
        let isAddedThere = !isNew && machine.state.known != .waiting || machine.state.known == .joining
        return [.text(text)] + (isAddedThere ? [] : [.text("Run there, if you have not yet:")] + there.lines)
    }

    /// Returns the state of a machine in one or two words.
    static func state(_ machine: OwnMachineView) -> String {
        switch machine.state.known {
        case .away: machine.message == nil ? "away" : "no session"
        case .waiting: machine.receivedAt == nil ? "not added there" : "removed there"
        case .joining: "merging"
        case .exchanging: "exchanging"
        case .inSync: "in sync"
        case .clock: "clocks differ"
        case .differs: "differs"
        case .full: "full"
        case .disk: "disk full"
        case .failed: "failed"
        case .unsupported: "too old"
        case .removed: "removed"
        case nil: machine.state.text
        }
    }

    /// Returns the reason for the state; `nil` if there is nothing to add.
    static func why(_ machine: OwnMachineView) -> String? {
        if let message = machine.message { return message }
        switch machine.state.known {
        case .waiting where machine.receivedAt != nil: return "run `hexlist own add` there, or `hexlist own remove` here"
        case .waiting: return "`hexlist own add` was not run there yet"
        case .away: return machine.lastSeen.map { "last seen \(HumanText.moment($0))" }
        default: return nil
        }
    }

    static func isProblem(_ machine: OwnMachineView) -> Bool {
        switch machine.state.known {
        case .clock, .differs, .full, .disk, .failed, .unsupported: true
        case .away, .waiting, .joining, .exchanging, .inSync, .removed, nil: false
        }
    }

    static func cells(_ machine: OwnMachineView) -> [Table.Cell] {
        let style: Terminal.Style =
            switch machine.state.known {
            case .inSync: .good
            case .away: .faint
            default: isProblem(machine) ? .failure : .plain
            }
        return [
            Table.Cell(machine.label.head, .strong, columns: 32, minimum: 12), Table.Cell(machine.uuid.shortID),
            Table.Cell(state(machine), style), Table.Cell(machine.receivedAt.map { HumanText.moment($0) } ?? "–", .faint),
            Table.Cell(count: machine.behind, none: "–"), Table.Cell(why(machine) ?? "", columns: 400),
        ]
    }

    /// Returns the line of `hexlist status` about all machines: `in sync with laptop2; desk away, last seen 3 h ago, 12 changes to send`.
    static func summary(_ machines: [OwnMachineView]) -> String {
        func name(_ machine: OwnMachineView) -> String { machine.label.shown(.named, columns: 44) }
        let synced = machines.filter { $0.state.known == .inSync }.map(name)
        let others = machines.filter { $0.state.known != .inSync }.map { machine in
            if let message = machine.message { return message }  // it has the name
            if machine.state.known == .waiting {
                return machine.receivedAt == nil
                    ? "\(name(machine)) waits for `hexlist own add` there" : "\(name(machine)) has removed this machine"
            }
            let state = Self.state(machine)
            let waiting = machine.behind > 0 ? "\(changes(machine.behind)) to send" : nil
            let parts = ([state, why(machine)] + (machine.state.known == .away ? [waiting] : [])).compactMap(\.self)
            return "\(name(machine)) \(parts.joined(separator: ", "))"
        }
        return ((synced.isEmpty ? [] : ["in sync with \(synced.joined(separator: ", "))"]) + others).joined(separator: "; ")
    }
}

/// The commands to run on the other machine: with the name of this machine, and with its UUID, because it may have another alias there.
struct OwnAddLines: Equatable {
    let byName: String
    let byUUID: String

    /// - Parameters:
    ///   - name: the name of this machine.
    ///   - uuid: its UUID.
    init(name: String, uuid: PeerID) {
        byName = "hexlist own add \(ShellText.quoted(TerminalText.clean(name, columns: 40)))"
        byUUID = "hexlist own add \(uuid.shortID)"
    }

    init(_ own: StatusJSON) { self.init(name: own.name, uuid: own.uuid) }

    var lines: [OwnText.Line] {
        [.literal("  \(byName)"), .text("or, if this machine has another name there:"), .literal("  \(byUUID)")]
    }
}
