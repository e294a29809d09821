import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct SaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "save", abstract: "Copy hexes to My Hexlist, with all that is in them.",
        discussion: "The ones in the inbox stay there. `hexlist mine` lists My Hexlist.")

    @OptionGroup var common: CommonOptions

    @Option(name: .customLong("in"), help: ArgumentHelp("Put the copies into this hex of My Hexlist.", valueName: "hex"), completion: .mine)
    var parent: HexID?

    @Argument(help: ArgumentHelp("Local ids that `hexlist inbox` prints.", valueName: "hex"))
    var hexes: [HexID]

    func run() async throws {
        let output = common.output
        let saved = try await common.withClient { try await $0.saveMine(hexes.map(\.value), into: parent?.value) }
        if output.json {
            try output.object(saved)
        } else {
            let what = "\(HumanText.count(saved.hexes, "hex", "hexes")) with \(HumanText.count(saved.links, "link", "links"))"
            try output.wrapped("\(what) saved as \(saved.ids.map(String.init).joined(separator: ", ")).")
        }
        try output.flush()
    }
}

struct MineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mine", abstract: "My Hexlist: your own hexes, made here, saved or imported.",
        discussion: """
            A hex may contain hexes, as a folder does. `hexlist show` shows one with its links, `hexlist send --hex` sends it with all that \
            is in it.
            """,
        subcommands: [
            MineListCommand.self, MineAddCommand.self, MineEditCommand.self, MineMoveCommand.self, MineRemoveCommand.self,
        ], defaultSubcommand: MineListCommand.self)
}

struct MineListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List My Hexlist, newest first, or what is in one of its hexes.",
        discussion: "The INSIDE column counts the hexes inside at all levels.")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Show what is inside each hex too.")
    var tree = false

    @OptionGroup var page: PageOptions

    @Argument(help: ArgumentHelp("List what is in this one.", valueName: "hex"), completion: .mine)
    var hex: String?

    /// The commands of `mine`, one of which a word that is no id may be meant as.
    private static let others = ["list", "add", "edit", "move", "rm"]

    func validate() throws {
        if let hex, HexID(argument: hex) == nil {
            let meant = NearestName.likely(hex, among: Self.others).map { "Did you mean `mine \($0)`?" }
            throw ValidationError(
                "`\(TerminalText.clean(hex, columns: 40))` is no hex. \(meant ?? "An id is a number that `hexlist mine` prints.")")
        }
        if hex != nil, page.after != nil { throw ValidationError("--after goes with the list of all, not with a hex.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if let hex = hex.flatMap(HexID.init(argument:)) {
                try show(try await client.mineHex(hex), output)
            } else {
                try await list(client, output)
            }
            try output.flush()
        }
    }

    private func show(_ hex: HexJSON, _ output: Output) throws {
        if output.json { return try output.object(hex) }
        if tree {
            for line in MineText.tree(hex) { try output.wrapped(line) }
            return
        }
        let children = hex.children ?? []
        guard !children.isEmpty else {
            return StandardError.note("No hex is in hex \(hex.id). `hexlist show \(hex.id)` shows its links.")
        }
        var table = Table(["HEX", "LINKS", "INSIDE", "DESCRIPTION"])
        for child in children {
            let inside = child.inside.hexes
            table.add([
                Table.Cell(String(child.id)), Table.Cell(count: child.links.count), Table.Cell(count: inside, none: "–"),
                Table.Cell(HexText.title(child) ?? "", minimum: 16),
            ])
        }
        try output.table(table)
    }

    private func list(_ client: HexlistClient, _ output: Output) async throws {
        var cursor = page.after
        var left = page.most
        var listed = 0
        repeat {
            let page = try await client.hexes(.init(location: "mine"), limit: min(left, LocalAPI.pageLimit), after: cursor)
            cursor = page.next
            left -= page.items.count
            var table = Table(listed == 0 ? ["HEX", "ADDED", "LINKS", "INSIDE", "DESCRIPTION"] : [])
            listed += page.items.count
            for hex in page.items {
                if tree {
                    let whole = hex.hexesInside == nil ? hex : try await client.hex(hex.id)
                    if output.json { try output.object(whole) } else { for line in MineText.tree(whole) { try output.wrapped(line) } }
                } else if output.json {
                    try output.object(hex)
                } else {
                    table.add([
                        Table.Cell(String(hex.id)), Table.Cell(HumanText.moment(hex.receivedAt), .faint), Table.Cell(count: hex.linkCount),
                        Table.Cell(count: hex.hexesInside ?? 0, none: "–"), Table.Cell(HexText.subject(hex), minimum: 16),
                    ])
                }
            }
            if !table.isEmpty { try output.table(table) }
        } while cursor != nil && left > 0
        try output.flush()
        if listed == 0, !output.json {
            StandardError.note(
                page.after == nil
                    ? "My Hexlist is empty. `hexlist save HEX` copies a hex of the inbox there, `hexlist mine add` makes one."
                    : "Nothing more is in My Hexlist.")
        }
        if let cursor { StandardError.note(MoreNote.text(cursor)) }
    }
}

struct MineAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Make a hex in My Hexlist.",
        discussion: """
            hexlist mine add --description "to read" "https://example.org a page" https://example.net

            hexlist mine add --description Folder

            A hex without links is a folder for others.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("What the hex is about.", valueName: "text"))
    var description = ""

    @Option(help: ArgumentHelp("The colour, as '#3366CC' or by its name in CSS.", valueName: "color"))
    var color = ""

    @Option(name: .customLong("in"), help: ArgumentHelp("Put it into this hex of My Hexlist.", valueName: "hex"), completion: .mine)
    var parent: HexID?

    @Option(
        help: ArgumentHelp(
            "Read links from a file (- is standard input), one `URL description` a line; lines that begin with # are passed over.",
            valueName: "file"))
    var from: String?

    @Flag(help: "Put https:// before links that are bare host names.")
    var guess = false

    @Flag(help: "Keep links and colour as they are given, whatever they are.")
    var raw = false

    @Argument(
        help: ArgumentHelp(
            "A link, or \"URL description\" in quotes, with a further link behind each further address; - reads them from standard input.",
            valueName: "url"))
    var links: [String] = []

    func validate() throws {
        if guess && raw { throw ValidationError("--guess and --raw do not go together.") }
        guard !links.isEmpty || from != nil || !description.isEmpty else {
            throw ValidationError("Give a link, --from FILE, or --description for an empty hex.")
        }
        if links.count(where: { $0 == "-" }) + (from == "-" ? 1 : 0) > 1 {
            throw ValidationError("Standard input can be read once: give - once.")
        }
    }

    func run() async throws {
        let check: LinkCheck = raw ? .raw : guess ? .guess : .scheme
        let color = raw ? color : try ColorInput.parse(color)
        let given = try LinkInput.read(links, check) + (try from.map { try LinkInput.read(from: $0, check) } ?? [])
        let hex = HexInput(description: description, color: color, links: given)
        try await common.tellMine {
            try await $0.addMine(hex.jsonBytes, into: parent?.value)
        } as: {
            "Hex \($0.id) with \(HumanText.count($0.linkCount, "link", "links")) added\($0.parent.map { " to hex \($0)" } ?? "")."
        }
    }
}

struct MineEditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Change a hex of My Hexlist.",
        discussion: """
            Without flags its links are opened in $EDITOR, one `URL description` a line.

            Links are numbered as `hexlist show` prints them: first some are removed, then one is moved, then others are added. A link that \
            stays keeps all that it came with.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("What the hex is about; '' for nothing.", valueName: "text"))
    var description: String?

    @Option(help: ArgumentHelp("The colour, as '#3366CC' or by its name in CSS; '' for none.", valueName: "color"))
    var color: String?

    @Option(parsing: .upToNextOption, help: ArgumentHelp("Add links, each a URL or \"URL description\".", valueName: "url"))
    var add: [String] = []

    @Option(parsing: .upToNextOption, help: ArgumentHelp("Remove links by their numbers.", valueName: "n"))
    var remove: [Int] = []

    @Option(parsing: .upToNextOption, help: ArgumentHelp("Move a link to another place: its number, and the place.", valueName: "n m"))
    var move: [Int] = []

    @Argument(help: ArgumentHelp("Its local id.", valueName: "hex"), completion: .mine)
    var hex: HexID

    private var changesLinks: Bool { !add.isEmpty || !remove.isEmpty || !move.isEmpty }

    func validate() throws {
        guard move.isEmpty || move.count == 2 else {
            throw ValidationError("--move takes the number of a link and the place it is moved to, as --move 5 1.")
        }
    }

    func run() async throws {
        guard description == nil, color == nil, !changesLinks else { return try await edit() }
        try await common.withClient { client in
            let hex = try await client.mineHex(hex)
            try await Editor.edit(MineText.page(hex), name: "hex-\(hex.id).txt") { text, path in
                let links = try MineText.edits(text, of: hex.links ?? [], from: path)
                guard links != (hex.links ?? []).indices.map({ LinkEdit(from: $0 + 1) }) else {
                    return StandardError.note("Nothing was changed.")
                }
                try tell(try await client.editMine(hex.id, MineEditRequest(links: links)))
            }
        }
    }

    private func edit() async throws {
        let color = try color.map(ColorInput.parse)
        let added = try MineText.withoutFlags { try LinkInput.read(add, .scheme) }
        try await common.withClient { client in
            var wanted = MineEditRequest(description: description, color: color)
            if changesLinks {
                let hex = try await client.mineHex(hex)
                wanted.links = try MineText.edits(
                    of: hex.linkCount, removing: remove, moving: move.isEmpty ? nil : (move[0], move[1]), adding: added)
            }
            try tell(try await client.editMine(hex.value, wanted))
        }
    }

    private func tell(_ hex: HexJSON) throws {
        let output = common.output
        if output.json {
            try output.object(hex)
        } else {
            try output.wrapped("Hex \(hex.id) has \(HumanText.count(hex.linkCount, "link", "links")) now.")
        }
        try output.flush()
    }
}

struct MineMoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Move a hex of My Hexlist, with all that is in it, into another one or out of it.")

    @OptionGroup var common: CommonOptions

    @Option(name: .customLong("in"), help: ArgumentHelp("Into this hex of My Hexlist.", valueName: "hex"), completion: .mine)
    var parent: HexID?

    @Flag(help: "Out of the one it is in.")
    var top = false

    @Option(help: ArgumentHelp("With --in: before this one of those inside; otherwise at the end.", valueName: "hex"))
    var before: HexID?

    @Argument(help: ArgumentHelp("Its local id.", valueName: "hex"), completion: .mine)
    var hex: HexID

    func validate() throws {
        guard (parent != nil) != top else { throw ValidationError("Say where to: either --in HEX or --top.") }
        if top, before != nil { throw ValidationError("--before goes with --in: My Hexlist itself is listed newest first.") }
    }

    func run() async throws {
        try await common.tellMine {
            try await $0.moveMine(hex.value, MineMove(into: parent?.value, before: before?.value))
        } as: {
            $0.parent.map { "Hex \(hex.value) is in hex \($0) now." } ?? "Hex \(hex.value) is in no other hex now."
        }
    }
}

struct MineRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Delete hexes of My Hexlist, with all that is in them.",
        discussion: "Where hexes are inside, it says how many and asks.")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Delete what is inside without asking.")
    var yes = false

    @Argument(help: ArgumentHelp("Local ids that `hexlist mine` prints.", valueName: "hex"), completion: .mine)
    var hexes: [HexID]

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            for id in hexes { _ = try await client.mineHex(id) }
            let what = HumanText.count(Set(hexes.map(\.value)).count, "hex", "hexes")
            let inside = MineText.inside(try await client.deletion(.ids(hexes.map(\.value))))
            if let inside, !yes {
                try AllQuestion(
                    deed: "deletes \(what) and, inside, \(inside)",
                    question: "Delete \(what) and, inside, \(inside)? Nothing brings them back.",
                    line: "hexlist mine rm --yes \(hexes.map { "\($0.value)" }.joined(separator: " "))"
                ).ask()
            }
            let changed = try await client.delete(.ids(hexes.map(\.value)))
            if output.json {
                try output.object(changed)
            } else {
                try output.wrapped(MineText.deleted(changed.changed, inside: inside))
            }
            try output.flush()
        }
    }
}

extension HexlistClient {
    /// One hex of My Hexlist with all that is in it.
    fileprivate func mineHex(_ id: HexID) async throws -> HexJSON {
        do {
            let hex = try await self.hex(id.value)
            guard hex.location == "mine" else {
                throw HexlistError(
                    .badRequest, "Hex \(hex.id) is not in My Hexlist (\(TerminalText.clean(hex.location, columns: 20))).",
                    hint: "`hexlist save \(hex.id)` copies it there.")
            }
            return hex
        } catch var error as HexlistError where error.code == .notFound {
            error.hint = "`hexlist mine --tree` lists those there are."
            throw error
        }
    }
}

extension CommonOptions {
    /// Runs a change of one hex and says what it is like then.
    fileprivate func tellMine(_ body: (HexlistClient) async throws -> HexJSON, as text: (HexJSON) -> String) async throws {
        let output = output
        let hex = try await withClient(body)
        if output.json { try output.object(hex) } else { try output.wrapped(text(hex)) }
        try output.flush()
    }
}
