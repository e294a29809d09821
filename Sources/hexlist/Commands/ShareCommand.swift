import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct ShareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Share folders of this machine with peers, read-only.",
        discussion: """
            hexlist share add ~/Pictures/2026 --to bob --to @family

            Peers you trust list a share with `hexlist files` and fetch from it with `hexlist fetch`. They cannot change anything. \
            Symlinks and hidden files are not shared. Without a subcommand it lists the shares.
            """,
        subcommands: [ShareListCommand.self, ShareAddCommand.self, ShareRemoveCommand.self], defaultSubcommand: ShareListCommand.self)
}

struct ShareListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the shares, and the peers that may read them.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let shares = try await common.withClient { try await $0.shares() }
        let output = common.output
        if output.json {
            for share in shares { try output.object(share) }
        } else if shares.isEmpty {
            StandardError.note("No folder is shared. To share one: `hexlist share add FOLDER`.")
        } else {
            var table = Table(["NAME", "FOR", "FOLDER", "WHY"])
            for share in shares {
                table.add([
                    Table.Cell(share.name, .strong, columns: 64, minimum: 12), Table.Cell(ShareText.audience(share), columns: 400),
                    Table.Cell(share.path + (share.hidden ? " (with hidden files)" : ""), columns: 400),
                    Table.Cell(share.why ?? "", .doubtful, columns: 400),
                ])
            }
            try output.table(table)
        }
        try output.flush()
    }
}

struct ShareAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Share a folder, or change who may read it.",
        discussion: """
            Without --to all trusted peers may read it, including peers you trust later. A group stands for its current members. Adding \
            a folder again replaces the list of peers that may read it.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        name: .customLong("as"), help: ArgumentHelp("The name peers see; by default the name of the folder.", valueName: "name"))
    var name: String?

    @Option(
        name: .long, help: ArgumentHelp("A peer that may read it, or a group as @NAME; may be repeated.", valueName: "peer"),
        completion: .recipients)
    var to: [String] = []

    @Flag(help: "Include files and folders whose names begin with a dot.")
    var hidden = false

    @Argument(help: ArgumentHelp("The folder.", valueName: "folder"), completion: .directory)
    var folder: String

    func run() async throws {
        let request = ShareRequest(
            path: try FileArgument.absolute(folder), name: name, to: to.isEmpty ? nil : to, hidden: hidden ? true : nil)
        let share = try await common.withClient { try await $0.share(request) }
        let output = common.output
        if output.json { try output.object(share) } else { try output.wrapped(ShareText.sentence(share)) }
        try output.flush()
    }
}

struct ShareRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Stop sharing a folder. The folder itself stays.",
        discussion: "Downloads from it are stopped.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("The name of the share; `hexlist share` lists them.", valueName: "name"), completion: .shares)
    var name: String

    func run() async throws {
        let share = try await common.withClient { try await $0.endShare(name) }
        let output = common.output
        if output.json {
            try output.object(share)
        } else {
            try output.wrapped("\(TerminalText.clean(share.name)) is no longer shared. \(TerminalText.clean(share.path)) was not changed.")
        }
        try output.flush()
        guard !output.json else { return }
        let peers = share.groups.map(GroupName.marked) + share.peers.map { $0.label.alias ?? $0.uuid.shortID }
        UndoHint.note(
            ["share", "add", share.path, "--as", share.name] + (share.toAll ? [] : peers.flatMap { ["--to", $0] })
                + (share.hidden ? ["--hidden"] : []))
    }
}

/// Texts about shares.
enum ShareText {
    /// Returns the peers that may fetch the files of a share: `all trusted peers`, or the names of groups and peers.
    static func audience(_ share: ShareView) -> String {
        guard !share.toAll else { return "all trusted peers" }
        let names = share.groups.map(GroupName.marked) + share.peers.map { $0.label.shown() }
        return names.isEmpty ? "nobody" : names.joined(separator: ", ")
    }

    static func sentence(_ share: ShareView) -> String {
        let hidden = share.hidden ? ", with hidden files" : ""
        return "\(TerminalText.clean(share.path)) is shared as \(TerminalText.clean(share.name)) with \(audience(share))\(hidden)."
    }
}
