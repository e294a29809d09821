import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct DropCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Let a shortcut on a phone send links and files with one tap.",
        discussion: """
            hexlist drop add "my iPhone"

            Prints an address with a secret token, for iOS Shortcuts, Android's HTTP Shortcuts, curl or any other program: a POST request \
            with a text or a file goes to your inbox, until you remove the token. Docs/Drops.md has the steps for each program.

            The connection is not encrypted: others on the same network can read the token, and send to your inbox with it. Use it in \
            networks you trust. Without a subcommand it lists the tokens.
            """,
        subcommands: [DropListCommand.self, DropAddCommand.self, DropRemoveCommand.self], defaultSubcommand: DropListCommand.self)
}

struct DropListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the drop tokens.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let output = common.output
        let drops = try await common.withClient { try await $0.drops() }
        if output.json {
            for drop in drops { try output.object(drop) }
        } else if drops.isEmpty {
            StandardError.note("No drop tokens. To add one: `hexlist drop add NAME`.")
        } else {
            var table = Table(["NAME", "ADDED", "LAST USED", "UUID"])
            for drop in drops {
                table.add([
                    Table.Cell(drop.name, .strong, columns: 48, minimum: 12), Table.Cell(HumanText.time(drop.createdAt)),
                    Table.Cell(drop.usedAt.map { HumanText.time($0) } ?? "never"), Table.Cell(drop.uuid.shortID),
                ])
            }
            try output.table(table)
        }
        try output.flush()
    }
}

struct DropAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add a drop token, and print its address once.",
        discussion: "The address cannot be shown again, because only a hash of the token is stored.")

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("The address of this machine in the QR code. Default: its name.", valueName: "address"))
    var address: String?

    @Argument(help: ArgumentHelp("A name for the device. Its hexes are listed as `NAME (drop)`.", valueName: "name"))
    var name: String

    func run() async throws {
        let output = common.output
        let drop = try await common.withClient { try await $0.addDrop(DropTokenRequest(name: name, address: address)) }
        let url = drop.url ?? ""
        if output.json {
            try output.object(drop)
        } else {
            if output.terminal.isInteractive { try QRCodeText.write(url, output) }
            try output.line(url)
            try output.flush()
            if let others = drop.urls, !others.isEmpty {
                StandardError.note("If a phone cannot reach it: \(others.joined(separator: "  "))")
            }
            StandardError.note(
                "Copy the address now; it is not shown again. Not encrypted: others on this network can read it when it is used.")
        }
        try output.flush()
    }
}

struct DropRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Remove drop tokens; their addresses stop working.", discussion: "What they sent stays.")

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("The names or UUIDs of drop tokens.", valueName: "name"))
    var names: [String]

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            let drops = try await client.drops()
            for name in names {
                // The daemon accepts only names and whole UUIDs, so this command resolves the beginning of a UUID.
                let begun = drops.filter { $0.uuid.begins(with: name) }
                let removed = try await client.removeDrop(begun.count == 1 ? begun[0].uuid.description : name)
                if output.json {
                    try output.object(removed)
                } else {
                    try output.line("\(removed.label.shown(columns: 80)) removed.")
                }
                try output.flush()  // prints the removed one even if a later name is unknown
            }
        }
    }
}
