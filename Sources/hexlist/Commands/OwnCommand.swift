import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct OwnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "own", abstract: "Keep one My Hexlist on several machines of yours.",
        discussion: """
            hexlist own add laptop2

            Run it on both machines; the order does not matter. The two collections become one, and later changes on one machine appear on \
            the other, also after a time without connection. Inbox, outbox, peers and settings stay separate. Without a subcommand it lists \
            your machines.
            """,
        subcommands: [OwnListCommand.self, OwnAddCommand.self, OwnRemoveCommand.self], defaultSubcommand: OwnListCommand.self)
}

struct OwnListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List your other machines, and whether they have the same My Hexlist.",
        discussion: "TO SEND counts the changed hexes and links that a machine has not received yet.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let machines = try await common.withClient { try await $0.ownMachines() }
        let output = common.output
        if output.json {
            for machine in machines { try output.object(machine) }
        } else if machines.isEmpty {
            StandardError.note("No other machines of yours. To add one: `hexlist own add PEER`.")
        } else {
            var table = Table(["NAME", "UUID", "STATE", "LAST CHANGE", "TO SEND", "WHY"])
            for machine in machines { table.add(OwnText.cells(machine)) }
            try output.table(table)
        }
        try output.flush()
    }
}

struct OwnAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Keep one My Hexlist with another machine of yours.",
        discussion: """
            Run it on both machines. If they do not trust each other yet, both show six digits to compare first. Then it asks before the \
            collections are merged, which begins once both machines are added: hexes with the same name, and links with the same address, \
            at the same place become one, with the tags of both and the later title, color and note; everything else is added. Before that, each machine writes its hexes to a file \
            `before-join-….ndjson` beside the store.

            On a terminal it waits for the other machine; Ctrl-C ends only the waiting. Exit codes: 0 added, and merged if it waited; 1 the \
            other machine did not answer in time, or nothing can be exchanged with it.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Do not ask.")
    var yes = false

    @Option(
        help: ArgumentHelp(
            "Wait this long for the other machine; 0 does not wait. Default: on a terminal without end.", valueName: "duration")
    )
    var wait: Seconds?

    @Argument(help: ArgumentHelp("An alias, a UUID or the beginning of one.", valueName: "peer"), completion: .peers)
    var peer: String

    func run() async throws {
        let output = common.output
        let isInteractive = isatty(STDIN_FILENO) == 1
        try await common.withClient { client in
            var peer = try await client.peer(self.peer)
            guard let id = peer.uuid else { throw HexlistError(.badRequest, "\(peer.label.shown()) has no UUID.") }
            let own = try await client.status()
            let command = OwnText.command(own.name)
            if peer.trust != .trusted {
                let name = peer.label.shown(.named)
                guard isInteractive, !output.json else { throw OwnText.notTrusted(name, id) }
                StandardError.wrapped("\(name) is not trusted yet. Run `\(command)` there too; both screens will then show six digits.")
                try await PairingDialog(client: client, output: output, isInteractive: true, command: command, asksOwner: false)
                    .ask(id.description)
                peer = try await client.peer(id.description)
            }
            let preview = try await client.previewOwnMachine(id.description)
            if !preview.own {
                let confirmation = OwnText.adding(preview, command: command)
                if !yes, isInteractive { for line in OwnText.lines(preview) { StandardError.wrapped(line) } }
                if !yes { try confirmation.ask() }
                _ = try await client.addOwnMachine(id.description)
            }
            let waiting = wait.map { $0.value > 0 ? $0.value : nil } ?? (isInteractive ? .infinity : nil)
            try await OwnMachineDialog(client: client, output: output, machine: id, command: command).follow(waiting: waiting)
        }
    }
}

struct OwnRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Stop keeping one My Hexlist with a machine.",
        discussion: """
            Both machines keep their copies, and still trust each other. If a machine was lost or stolen, remove it on each of your other \
            machines; it keeps the copy it had. To stop trusting it as well: `hexlist peer untrust`.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Do not ask.")
    var yes = false

    @Argument(help: ArgumentHelp("An alias, a UUID or the beginning of one.", valueName: "peer"), completion: .ownMachines)
    var peer: String

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if !yes {
                let peer = try await client.peer(self.peer)
                guard peer.own else { throw OwnText.noOwnMachine(peer.label.shown(.named)) }
                try OwnText.removing(peer.label.shown(.named), word: self.peer).ask()
            }
            let removed = try await client.removeOwnMachine(peer)
            if output.json { try output.object(removed) } else { try output.wrapped(OwnText.removed(removed)) }
            try output.flush()
            if !output.json { UndoHint.note(["own", "add", removed.uuid.shortID]) }
        }
    }
}

/// Texts about the user's other machines.
enum OwnText {
    /// Returns the command to run on the other machine.
    /// - Parameter name: the name of this machine.
    static func command(_ name: String) -> String { "hexlist own add \(ShellText.quoted(TerminalText.clean(name, columns: 40)))" }

    static func notTrusted(_ name: String, _ peer: PeerID) -> HexlistError {
        HexlistError(
            .badRequest, "\(name) is not trusted, and there is no terminal to compare six digits.",
            hint: "First pair: `hexlist pair \(peer.shortID)` here, and `hexlist pair` there.")
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
    /// - Parameter command: the command to run on the other machine.
    static func adding(_ preview: OwnMachinePreview, command: String) -> Confirmation {
        let name = preview.label.shown(.named)
        let question =
            preview.confirmed ?? false
            ? (preview.same ?? false ? "Exchange My Hexlist with \(name) again?" : "Merge them now?")
            : "Add \(name)? They are merged once you have run `\(command)` there."
        return Confirmation(
            deed: "merges My Hexlist with that of \(name)", question: question,
            line: "hexlist own add \(preview.uuid.shortID) --yes")
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
        return "\(machine.label.shown(.named)) is no longer one of your own machines. Both keep their copies.\(waiting)"
    }

    /// The sentence printed when an own machine is not trusted any more.
    static let ended = "My Hexlist is no longer exchanged with it; both keep their copies."

    /// The note printed after a change of this machine's identity, if there are own machines.
    static let identityChanged =
        "Your other machines exchange My Hexlist with this one again once they trust it again and you have run `hexlist own add` there."

    /// Returns the size of a collection: `212 hexes, 4 880 links`.
    static func size(_ size: CollectionSize) -> String {
        "\(count(size.hexes, "hex", "hexes")), \(count(size.links, "link", "links"))"
    }

    private static func changes(_ number: Int) -> String { count(number, "change", "changes") }

    private static func count(_ number: Int, _ one: String, _ more: String) -> String {
        "\(HumanText.grouped(number)) \(number == 1 ? one : more)"
    }

    /// Returns the sentences about a machine with which all changes are exchanged.
    /// - Parameter backup: the file with the hexes of this machine before the merge; `nil` if nothing was merged just now.
    static func merged(_ name: String, _ size: CollectionSize, backup: String?) -> [String] {
        let text = "\(name) and this machine have one My Hexlist now: \(Self.size(size))."
        return [text] + (backup.map { ["Your hexes before the merge: \(TerminalText.clean($0))"] } ?? [])
    }

    /// Returns the state of a machine in one or two words.
    static func state(_ machine: OwnMachineView) -> String {
        switch machine.state.known {
        case .away: "away"
        case .waiting: "not added there"
        case .joining: "merging"
        case .exchanging: "exchanging"
        case .inSync: "in sync"
        case .clock: "clocks differ"
        case .differs: "differs"
        case .full: "full"
        case .disk: "disk full"
        case .failed: "failed"
        case .unsupported: "too old"
        case nil: machine.state.text
        }
    }

    /// Returns the reason for the state; `nil` if there is nothing to add.
    static func why(_ machine: OwnMachineView) -> String? {
        if let message = machine.message { return message }
        switch machine.state.known {
        case .waiting: return "`hexlist own add` was not run there yet"
        case .away: return machine.lastSeen.map { "last seen \(HumanText.moment($0))" }
        default: return nil
        }
    }

    static func isProblem(_ machine: OwnMachineView) -> Bool {
        switch machine.state.known {
        case .clock, .differs, .full, .disk, .failed, .unsupported: true
        case .away, .waiting, .joining, .exchanging, .inSync, nil: false
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
            if machine.state.known == .waiting { return "\(name(machine)) waits for `hexlist own add` there" }
            let state = isProblem(machine) ? nil : Self.state(machine)
            let waiting = machine.behind > 0 ? "\(changes(machine.behind)) to send" : nil
            let parts = ([state, why(machine)] + (machine.state.known == .away ? [waiting] : [])).compactMap(\.self)
            return "\(name(machine)) \(parts.joined(separator: ", "))"
        }
        return ((synced.isEmpty ? [] : ["in sync with \(synced.joined(separator: ", "))"]) + others).joined(separator: "; ")
    }
}
