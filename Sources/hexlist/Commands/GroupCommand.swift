import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct GroupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "group", abstract: "Group peers under a name, to send to all of them.",
        discussion: """
            hexlist group add team ada bob

            hexlist send --to @team https://example.org

            Without a subcommand it lists the groups. A NAME may be written with @; upper and lower case do not matter. A peer may be in \
            several groups.
            """,
        subcommands: [GroupListCommand.self, GroupAddCommand.self, GroupRemoveCommand.self, GroupDeleteCommand.self],
        defaultSubcommand: GroupListCommand.self)
}

struct GroupArgument: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("The name of the group, with or without @.", valueName: "name"), completion: .groups)
    var name: String

    /// Runs `body`, which changes a group, and prints the result.
    func change(_ body: (HexlistClient) async throws -> GroupView, as text: (GroupView) -> String) async throws {
        let output = common.output
        let changed = try await common.withClient(body)
        if output.json {
            try output.object(changed)
        } else {
            try output.wrapped(text(changed))
        }
        try output.flush()
    }
}

struct GroupListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the groups and their members.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let groups = try await common.withClient { try await $0.groups() }
        let output = common.output
        if output.json {
            for group in groups { try output.object(group) }
        } else if groups.isEmpty {
            StandardError.note("No groups. To create one: `hexlist group add NAME PEER…`.")
        } else {
            var table = Table()
            for group in groups {
                table.add([
                    Table.Cell(GroupName.marked(group.name), .strong, columns: 32, minimum: 12),
                    Table.Cell(GroupText.members(group), group.peers.isEmpty ? .faint : .plain, columns: 400),
                ])
            }
            try output.table(table)
        }
        try output.flush()
    }
}

struct GroupAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add peers to a group; creates the group if needed.")

    @OptionGroup var argument: GroupArgument

    @Argument(
        help: ArgumentHelp("An alias, a UUID or the beginning of one, or the name of a stranger.", valueName: "peer"), completion: .peers)
    var peers: [String]

    func run() async throws {
        try await argument.change {
            try await $0.addToGroup(argument.name, peers)
        } as: {
            GroupText.sentence($0)
        }
    }
}

struct GroupRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove peers from a group.",
        discussion: "An empty group stays; `hexlist group rm` deletes it.")

    @OptionGroup var argument: GroupArgument

    @Argument(
        help: ArgumentHelp("A member: an alias, a UUID or the beginning of one, or the name of a stranger.", valueName: "peer"),
        completion: .peers)
    var peers: [String]

    func run() async throws {
        try await argument.change {
            try await $0.removeFromGroup(argument.name, peers)
        } as: {
            GroupText.sentence($0)
        }
    }
}

struct GroupDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Delete a group. Its peers are not changed.")

    @OptionGroup var argument: GroupArgument

    func run() async throws {
        var members: [String] = []
        try await argument.change {
            try await $0.deleteGroup(argument.name)
        } as: {
            members = $0.peers.map { $0.label.alias ?? $0.uuid.shortID }
            return "\(GroupName.marked($0.name)) deleted; it had \(HumanText.count($0.peers.count, "peer", "peers"))."
        }
        if !members.isEmpty, members.count <= 20 { UndoHint.note(["group", "add", argument.name] + members) }
    }
}

/// Texts about groups.
enum GroupText {
    static func members(_ group: GroupView) -> String {
        group.peers.isEmpty ? "nobody" : group.peers.map { $0.label.shown() }.joined(separator: ", ")
    }

    static func sentence(_ group: GroupView) -> String { "\(GroupName.marked(group.name)): \(members(group))" }
}
