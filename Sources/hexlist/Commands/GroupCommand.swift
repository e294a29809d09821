import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct GroupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "group", abstract: "Put peers under one name, to send to them together.",
        discussion: """
            hexlist group add team ada bob

            hexlist send --to @team https://example.org

            By itself it lists the groups. A NAME may be written with the @ that --to takes; upper and lower case are one. Peers may be \
            in several groups.
            """,
        subcommands: [GroupListCommand.self, GroupAddCommand.self, GroupRemoveCommand.self, GroupDeleteCommand.self],
        defaultSubcommand: GroupListCommand.self)
}

struct GroupArgument: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("The group's name, with or without @.", valueName: "name"), completion: .groups)
    var name: String

    /// Runs one change and shows its result.
    func change(_ body: (HexlistClient) async throws -> GroupView, told: (GroupView) -> String) async throws {
        let output = common.output
        let changed = try await common.withClient(body)
        if output.json {
            try output.object(changed)
        } else {
            try output.wrapped(told(changed))
        }
        try output.flush()
    }
}

struct GroupListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the groups and who is in them.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let groups = try await common.withClient { try await $0.groups() }
        let output = common.output
        if output.json {
            for group in groups { try output.object(group) }
        } else if groups.isEmpty {
            StandardError.note("There is no group. `hexlist group add NAME PEER…` makes one.")
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
        commandName: "add", abstract: "Add peers to a group, which is made where there is none.")

    @OptionGroup var argument: GroupArgument

    @Argument(help: ArgumentHelp("A UUID, a prefix of one, an alias, or a stranger's name.", valueName: "peer"), completion: .peers)
    var peers: [String]

    func run() async throws {
        try await argument.change {
            try await $0.addToGroup(argument.name, peers)
        } told: {
            GroupText.sentence($0)
        }
    }
}

struct GroupRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Take peers out of a group.",
        discussion: "The group stays, also without peers: `hexlist group rm` deletes it.")

    @OptionGroup var argument: GroupArgument

    @Argument(
        help: ArgumentHelp("A member: a UUID, a prefix of one, an alias, or a stranger's name.", valueName: "peer"), completion: .peers)
    var peers: [String]

    func run() async throws {
        try await argument.change {
            try await $0.removeFromGroup(argument.name, peers)
        } told: {
            GroupText.sentence($0)
        }
    }
}

struct GroupDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Delete a group. Its peers stay what they are.")

    @OptionGroup var argument: GroupArgument

    func run() async throws {
        try await argument.change {
            try await $0.deleteGroup(argument.name)
        } told: {
            "\(GroupName.marked($0.name)) is deleted; \(HumanText.count($0.peers.count, "peer was", "peers were")) in it."
        }
    }
}

/// Texts about groups.
enum GroupText {
    static func members(_ group: GroupView) -> String {
        group.peers.isEmpty ? "nobody" : group.peers.map { $0.label.shown() }.joined(separator: ", ")
    }

    static func sentence(_ group: GroupView) -> String { "\(GroupName.marked(group.name)): \(members(group))" }
}
