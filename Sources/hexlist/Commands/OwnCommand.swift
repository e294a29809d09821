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

            On a terminal it waits for the other machine; Ctrl-C ends only the waiting. Delete the file when you do not need it any more. Exit codes: 0 added, and merged if it waited; 1 the \
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

    @Argument(
        help: ArgumentHelp("An alias, a UUID or the beginning of one, or the name of a stranger.", valueName: "peer"),
        completion: .otherPeers)
    var peer: String

    func run() async throws {
        let output = common.output
        let begun = Timestamp.now
        let isInteractive = isatty(STDIN_FILENO) == 1
        try await common.withClient { client in
            let peer = try await named(client, asks: isInteractive && !yes && !output.json)
            guard let id = peer.uuid else { throw HexlistError(.badRequest, "\(peer.label.shown()) has no UUID.") }
            let there = OwnAddLines(try await client.status())
            var known = peer.trust == .trusted ? try await client.previewOwnMachine(id.description) : nil
            let isPaired = known.map { $0.trustedThere == false } ?? true
            if isPaired {
                try await pair(peer, id, client, there, isInteractive: isInteractive)
                known = nil
            }
            let preview = if let known { known } else { try await client.previewOwnMachine(id.description) }
            if !preview.own {
                let confirmation = OwnText.adding(preview, isPaired: isPaired)
                if !yes, isInteractive { for line in OwnText.lines(preview) { StandardError.wrapped(line) } }
                if !yes { try confirmation.ask() }
                _ = try await client.addOwnMachine(id.description)
            }
            let waiting = wait.map { $0.value > 0 ? $0.value : nil } ?? (isInteractive ? .infinity : nil)
            try await OwnMachineDialog(client: client, output: output, machine: id, there: there, begun: begun, isPaired: isPaired).follow(
                waiting: waiting)
        }
    }

    /// Returns the peer that the user named. If it is away, and another machine with its name is online, that may be the same machine with a
    /// new identity.
    /// - Parameter asks: whether the user chooses between both. Otherwise the command for the other one is printed.
    private func named(_ client: HexlistClient, asks: Bool) async throws -> PeerView {
        let peer = try await client.peer(self.peer)
        guard peer.state == .away, let other = ReinstalledPeerFinder.of(peer, among: try await client.peers(all: true)),
            other.trust != .blocked, other.kind?.known != .localsend, let id = other.uuid
        else { return peer }
        StandardError.wrapped(OwnText.replaced(peer, by: other))
        guard asks else {
            OwnText.show([.text("If so, run:"), .literal("  hexlist own add \(id.shortID)")])
            return peer
        }
        return Terminal.ask("Is it the same machine, with a new identity? [y/N]") ? other : peer
    }

    /// Pairs with a peer that one of both machines does not trust.
    /// - Throws: `HexlistError` if nobody can compare the digits; `SilentExit` if the machines were not paired.
    private func pair(_ peer: PeerView, _ id: PeerID, _ client: HexlistClient, _ there: OwnAddLines, isInteractive: Bool) async throws {
        let isTrusted = peer.trust == .trusted
        let name = peer.label.shown(.named)
        guard isInteractive, !common.json else {
            throw OwnText.notPaired(name, id, isTrustedHere: isTrusted, isInteractive: isInteractive)
        }
        OwnText.show(OwnText.pairing(name, there, isTrustedHere: isTrusted))
        try await PairingDialog(client: client, output: common.output, isInteractive: true, asksOwner: false)
            .ask(id.description)
    }
}

struct OwnRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Stop keeping one My Hexlist with a machine.",
        discussion: """
            Both machines keep their copies, and still trust each other. If a machine was lost or stolen, remove it on each of your other \
            machines; it keeps the copy it had. The other machine still lists this one, until you run the command there too. To stop trusting \
            it as well: `hexlist peer untrust`.
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
