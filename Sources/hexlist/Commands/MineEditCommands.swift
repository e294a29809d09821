import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct MineEditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Change a hex of My Hexlist.",
        discussion: """
            Without options it opens the links in $EDITOR, one `URL description` per line.

            Links have the numbers that `hexlist show` prints. First links are removed, then one is moved, then links are added. Links \
            that stay keep all their data, and links that others add or change at the same time stay too.
            """)

    @OptionGroup var common: CommonOptions

    @Option(name: [.customShort("d"), .long], help: ArgumentHelp("The title; '' removes it.", valueName: "text"))
    var description: String?

    @Option(
        name: [.customShort("c"), .long],
        help: ArgumentHelp("The colour, such as '#3366CC', or a CSS name; '' removes it.", valueName: "color"))
    var color: String?

    @Option(parsing: .upToNextOption, help: ArgumentHelp("Add links, each a URL or \"URL description\".", valueName: "url"))
    var add: [String] = []

    @Option(parsing: .upToNextOption, help: ArgumentHelp("Remove the links with these numbers.", valueName: "n"))
    var remove: [Int] = []

    @Option(parsing: .upToNextOption, help: ArgumentHelp("Move a link: its number, and its new position.", valueName: "n m"))
    var move: [Int] = []

    @Argument(help: ArgumentHelp("The number of the hex.", valueName: "hex"), completion: .mine)
    var hex: HexID

    private var changesLinks: Bool { !add.isEmpty || !remove.isEmpty || !move.isEmpty }

    func validate() throws {
        guard move.isEmpty || move.count == 2 else {
            throw ValidationError("--move needs the number of a link and its new position, such as --move 5 1.")
        }
    }

    func run() async throws {
        guard description == nil, color == nil, !changesLinks else { return try await edit() }
        try await common.withClient { client in
            let hex = try await client.mineHex(hex)
            try checkIsWritable(hex)
            try await Editor.edit(MineText.editorText(hex), name: "hex-\(hex.id).txt") { text, path in
                let changes = try MineText.edits(text, of: hex.links ?? [], from: path).changes(of: hex)
                guard !changes.isEmpty else { return StandardError.note("Nothing was changed.") }
                try await report(client.editMine(hex.id, MineEditRequest(changes: changes)), client)
            }
        }
    }

    /// Refuses a hex of another person that the user cannot change, before the editor opens.
    private func checkIsWritable(_ hex: HexJSON) throws {
        guard let shared = hex.shared, !shared.owned, shared.access.known != .write else { return }
        let title = SharingText.title(hex.subject ?? hex.description)
        let reason =
            shared.access.known == .read
            ? "\(title) belongs to another person, and you can only read it." : "The sharing of \(title) has ended, so it stays as it is."
        throw HexlistError(.badRequest, reason, hint: "To make your own copy: `hexlist save \(hex.id)`")
    }

    private func edit() async throws {
        let color = try color.map(ColorInput.parse)
        let added = try MineText.withoutFlags { try LinkInput.read(add, .scheme) }
        try await common.withClient { client in
            var changes: [MineNodeChange] = []
            if !remove.isEmpty || !move.isEmpty {
                let hex = try await client.mineHex(hex)
                changes = try MineText.edits(of: hex.linkCount, removing: remove, moving: move.isEmpty ? nil : (move[0], move[1]))
                    .changes(of: hex)
            }
            changes += added.map { MineNodeChange(add: MineNewLink(url: $0.url, title: $0.description)) }
            let wanted = MineEditRequest(description: description, color: color, changes: changes.isEmpty ? nil : changes)
            try await report(client.editMine(hex.value, wanted), client)
        }
    }

    private func report(_ hex: HexJSON, _ client: HexlistClient) async throws {
        let output = common.output
        if output.json {
            try output.object(hex)
            return try output.flush()
        }
        var change: MineChangeJSON?
        if let number = hex.change {
            change = try await client.mineLog(hex: hex.id, limit: 1, after: "\(number + 1)").items.first { $0.number == number }
        }
        try output.wrapped(MineText.edited(hex, change))
        try output.flush()
        hex.noteUndo()
    }
}

struct MineTagCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tag", abstract: "Tag a hex of My Hexlist, or one of its links.",
        discussion: """
            hexlist mine tag 7 recipes "to read"

            hexlist mine tag 7.2 --remove recipes

            7.2 is the second link of hex 7. Without tags it prints those there are. `hexlist search tag:recipes` finds them, with --links \
            as links.
            """)

    @OptionGroup var common: CommonOptions

    @Option(parsing: .upToNextOption, help: ArgumentHelp("Remove these tags.", valueName: "tag"))
    var remove: [String] = []

    @Argument(help: ArgumentHelp("The number of a hex, or with .N of its link N.", valueName: "hex[.n]"))
    var target: HexOrLinkID

    @Argument(help: ArgumentHelp("Tags to add.", valueName: "tag"))
    var tags: [String] = []

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            var hex = try await client.mineHex(HexID(target.hex))
            let link = try target.link.map { try OpenCommand.choose($0, of: hex) }
            var current = (link == nil ? hex.tags : link?.tags) ?? []
            if !tags.isEmpty || !remove.isEmpty {
                current = MineText.tags(current, adding: tags, removing: remove)
                var edit = MineEditRequest(tags: link == nil ? current : nil)
                if let link {
                    guard let node = link.node else { throw HexlistError.noNodes }
                    edit.changes = [MineNodeChange(node: node, tags: current)]
                }
                hex = try await client.editMine(hex.id, edit)
            }
            if output.json { try output.object(hex) } else { try output.wrapped(Self.report(current, target)) }
            try output.flush()
            if !output.json { hex.noteUndo() }
        }
    }

    static func report(_ tags: [String], _ target: HexOrLinkID) -> String {
        let what = target.link.map { "Link \($0) of hex \(target.hex)" } ?? "Hex \(target.hex)"
        return tags.isEmpty ? "\(what) has no tags." : "\(what) is tagged \(tags.joined(separator: ", "))."
    }
}

struct MineMoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Move a hex of My Hexlist, with everything inside, into another hex or to another position.",
        discussion: """
            hexlist mine move 7 --in 3

            hexlist mine move 7 --before 12

            With --before or --after, the hex is put beside that one, wherever it is; --top then requires that it is at the top level. With \
            only --in, it is put at the end of that hex; with only --top, in front of the hex at the top level that has the next lower \
            number. New hexes are at the beginning of the top level.
            """)

    @OptionGroup var common: CommonOptions

    @Option(name: .customLong("in"), help: ArgumentHelp("Into this hex of My Hexlist.", valueName: "hex"), completion: .mine)
    var parent: HexID?

    @Flag(help: "To the top level.")
    var top = false

    @Option(help: ArgumentHelp("In front of this hex.", valueName: "hex"), completion: .mine)
    var before: HexID?

    @Option(help: ArgumentHelp("Behind this hex.", valueName: "hex"), completion: .mine)
    var after: HexID?

    @Argument(help: ArgumentHelp("The number of the hex.", valueName: "hex"), completion: .mine)
    var hex: HexID

    func validate() throws {
        guard parent != nil || top || before != nil || after != nil else {
            throw ValidationError("Where to? --in HEX, --top, --before HEX or --after HEX.")
        }
        if parent != nil, top { throw ValidationError("Give --in or --top, not both.") }
        if before != nil, after != nil { throw ValidationError("Give --before or --after, not both.") }
    }

    func run() async throws {
        try await common.reportHex { client in
            if top, let sibling = before ?? after, let outer = try await client.mineHex(sibling).parent {
                throw HexlistError(
                    .badRequest, "Hex \(sibling.value) is inside hex \(outer), not at the top level.", hint: "Leave out --top.")
            }
            return try await client.moveMine(
                hex.value, MineMoveRequest(into: parent?.value, before: before?.value, after: after?.value))
        } as: {
            MineText.moved($0, before: before?.value, after: after?.value)
        }
    }
}

extension HexJSON {
    /// Prints the command that undoes the change of which this is the reply.
    func noteUndo() {
        if let change { UndoHint.note(["mine", "undo", "\(change)"]) }
    }
}
