import ArgumentParser
import Glibc
import HexlistAPI
import HexlistClient
import HexlistModel

struct SaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "save", abstract: "Copy hexes to My Hexlist, with everything inside them.",
        discussion: "Hexes in the inbox stay there. `hexlist mine` lists My Hexlist.")

    @OptionGroup var common: CommonOptions

    @Option(name: .customLong("in"), help: ArgumentHelp("Copy into this hex of My Hexlist.", valueName: "hex"), completion: .mine)
    var parent: HexID?

    @Argument(help: ArgumentHelp("Numbers from `hexlist inbox`.", valueName: "hex"))
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
            A hex can contain hexes, like a folder. `hexlist show` shows a hex with its links, `hexlist send --hex` sends it with \
            everything inside.
            """,
        subcommands: [
            MineListCommand.self, MineAddCommand.self, MineEditCommand.self, MineTagCommand.self, MineMoveCommand.self,
            MineCheckCommand.self, MineTidyCommand.self, MineRemoveCommand.self, MineRestoreCommand.self, MineBinCommand.self,
            MineLogCommand.self, MineUndoCommand.self, MineTrashCommand.self,
            MineShareCommand.self, MineUnshareCommand.self, MineJoinCommand.self,
        ], defaultSubcommand: MineListCommand.self)
}

struct MineListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List My Hexlist, or the content of one hex.",
        discussion: """
            New hexes are the first, unless you move some (`mine move`). INSIDE counts the hexes inside at all levels. SHARED has the number \
            of new links in a shared hex: those that others added since you saw it with `hexlist show` or on the page.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Show the content of each hex too.")
    var tree = false

    @OptionGroup var page: PageOptions

    @Argument(help: ArgumentHelp("List the content of this hex.", valueName: "hex"), completion: .mine)
    var hex: String?

    /// The names of the subcommands of `mine`, used to suggest one for a typo.
    private static let subcommands = [
        "list", "add", "edit", "tag", "move", "check", "tidy", "rm", "restore", "bin", "log", "undo", "trash", "share", "unshare", "join",
    ]

    /// Other words for subcommands, each with the subcommand to suggest.
    private static let synonyms = [
        "duplicates": "tidy", "dedupe": "tidy", "dedup": "tidy", "merge": "tidy", "history": "log", "changes": "log", "redo": "undo",
        "revert": "undo", "delete": "rm", "remove": "rm", "del": "rm",
        "purge": "trash --empty", "empty": "trash --empty", "deleted": "trash", "undelete": "restore",
        "members": "share", "accept": "join", "offers": "join", "decline": "join --decline", "follow": "join", "unfollow": "rm",
    ]

    /// Returns the subcommand that a word probably means; `nil` if there is none.
    static func meant(by word: String) -> String? {
        synonyms[word.lowercased()] ?? NearestName.likely(word, among: subcommands)
    }

    func validate() throws {
        if let hex, HexID(argument: hex) == nil {
            let meant = Self.meant(by: hex).map { "Did you mean `mine \($0)`?" }
            throw ValidationError(
                "`\(TerminalText.clean(hex, columns: 40))` is not a hex. \(meant ?? "Give a number from `hexlist mine`.")")
        }
        if hex != nil, page.after != nil { throw ValidationError("Leave out --after: one hex is listed as a whole.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if let hex = hex.flatMap(HexID.init(argument:)) {
                let hex = try await client.mineHex(hex)
                try show(hex, output)
                if !output.json, let shared = hex.shared {
                    try output.flush()
                    StandardError.wrapped(SharingText.note(shared, of: hex.id, try await client.sharedHex(hex.id)))
                }
            } else {
                // Only the table has a column for shared hexes. JSON output must stay as in earlier releases.
                try await list(client, output, output.json ? [] : client.sharedHexesIfAny().shared)
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
            return StandardError.note("Hex \(hex.id) contains no hexes. Its links: `hexlist show \(hex.id)`.")
        }
        let hasNew = children.contains { $0.newLinks > 0 }
        var table = Table(["HEX", "LINKS", "INSIDE"] + (hasNew ? ["NEW"] : []) + ["DESCRIPTION"])
        for child in children {
            let inside = child.inside.hexes
            let new = hasNew ? [Table.Cell(count: child.newLinks, none: "–")] : []
            table.add(
                [
                    Table.Cell(String(child.id)),
                    MineText.count(child.links.count, dead: child.links.count { $0.dead != nil }), Table.Cell(count: inside, none: "–"),
                ] + new + [Table.Cell(HexText.title(child) ?? "", minimum: 16)])
        }
        try output.table(table)
    }

    /// - Parameter shared: the shared hexes.
    private func list(_ client: HexlistClient, _ output: Output, _ shared: [SharedHexView]) async throws {
        let marks = Dictionary(shared.compactMap { hex in hex.hex.map { ($0, SharingText.mark(hex)) } }) { first, _ in first }
            .compactMapValues(\.self)
        let header = ["HEX", "ADDED", "LINKS", "INSIDE"] + (marks.isEmpty ? [] : ["SHARED"]) + ["DESCRIPTION"]
        var cursor = page.after
        var left = page.maximum(for: output)
        var listed = 0
        repeat {
            let page = try await client.hexes(
                .init(location: "mine", countsFiles: !output.json && !tree), limit: min(left, LocalAPI.pageLimit), after: cursor)
            cursor = page.next
            left -= page.items.count
            var table = Table(listed == 0 ? header : [])
            listed += page.items.count
            for hex in page.items {
                if tree {
                    let whole = hex.hexesInside == nil ? hex : try await client.hex(hex.id)
                    if output.json {
                        try output.object(whole)
                    } else {
                        for line in MineText.tree(whole, mark: marks[hex.id]) { try output.wrapped(line) }
                    }
                } else if output.json {
                    try output.object(hex)
                } else {
                    let first = [
                        Table.Cell(String(hex.id)), Table.Cell(HumanText.moment(hex.receivedAt), .faint), HexText.contents(hex),
                        Table.Cell(count: hex.hexesInside ?? 0, none: "–"),
                    ]
                    let mark = marks.isEmpty ? [] : [Table.Cell(marks[hex.id] ?? "–", columns: 40, minimum: 12)]
                    table.add(first + mark + [Table.Cell(HexText.subject(hex), minimum: 16)])
                }
            }
            if !table.isEmpty { try output.table(table) }
        } while cursor != nil && left > 0
        try output.cut(cursor)
        try output.flush()
        if listed == 0, !output.json {
            StandardError.note(
                page.after == nil
                    ? "My Hexlist is empty. Copy a hex from the inbox with `hexlist save HEX`, or make one with `hexlist mine add`."
                    : "No more hexes in My Hexlist.")
        }
        if let cursor { StandardError.note(NextPageHint.text(cursor)) }
    }
}

struct MineAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Make a hex in My Hexlist.",
        discussion: """
            hexlist mine add -d "to read" "https://example.org a page"

            hexlist mine add --description Folder

            hexlist mine add --in 7 ./talk.pdf ./photos/

            Links are found in a text, and the rest of it is the description. A hex without links is a note, or a folder for others.

            For files and folders, the hex gets links. Your other machines, and the people with whom you share the hex, can fetch the files from \
            this machine (`hexlist fetch`) until you delete the links. Of small files (16 MiB in all, `files.copyBelow`) Hexlist keeps \
            copies, so that the originals may change or go; larger ones must not change. --copy and --no-copy decide it.
            """)

    @OptionGroup var common: CommonOptions

    @Option(name: [.customShort("d"), .long], help: ArgumentHelp("The title of the hex.", valueName: "text"))
    var description = ""

    @Option(name: [.customShort("c"), .long], help: ArgumentHelp("The colour, such as '#3366CC', or a CSS name.", valueName: "color"))
    var color = ""

    @Option(name: .customLong("in"), help: ArgumentHelp("Add it to this hex of My Hexlist.", valueName: "hex"), completion: .mine)
    var parent: HexID?

    @Option(
        help: ArgumentHelp(
            "Read links from a file (- reads standard input), one `URL description` per line; lines that begin with # are ignored.",
            valueName: "file"), completion: .file())
    var from: String?

    @Flag(help: "Put https:// in front of bare host names.")
    var guess = false

    @Flag(help: "Keep links and colour unchecked, and treat no text as a path.")
    var raw = false

    @Flag(
        inversion: .prefixedNo,
        help: "Keep copies of the files, so that the originals may change or go. Without either, small files are copied.")
    var copy: Bool?

    @Argument(
        help: ArgumentHelp(
            "A link, \"URL description\" or any text in quotes; - reads it from standard input. A file or folder begins with /, ./ or ../.",
            valueName: "text"), completion: .file())
    var links: [String] = []

    /// The files and folders among the arguments.
    private var paths: [String] { raw ? [] : links.filter(FileArgument.isPath) }

    func validate() throws {
        if guess && raw { throw ValidationError("Give --guess or --raw, not both.") }
        if let copy, paths.isEmpty { throw ValidationError("--\(copy ? "" : "no-")copy needs files.") }
        guard !links.isEmpty || from != nil || !description.isEmpty else {
            throw ValidationError("Nothing to add: give a link or text, --from FILE, or --description for an empty hex.")
        }
        if links.count(where: { $0 == "-" }) + (from == "-" ? 1 : 0) > 1 {
            throw ValidationError("Standard input can be read only once: give - once.")
        }
    }

    func run() async throws {
        let check: TypedLinkCheck = raw ? .raw : guess ? .guess : .scheme
        let color = raw ? color : try ColorInput.parse(color)
        let paths = paths
        let words = raw ? links : links.filter { !FileArgument.isPath($0) }
        if !raw { for word in words { try FileArgument.refuseBareName(word, verb: "add") } }
        let typed = try TypedText(words, check)
        let given = typed.links + (try from.map { try LinkInput.read(from: $0, check) } ?? [])
        let hex = HexInput(description: typed.description(description), color: color, links: given)
        try await common.reportHex { client in
            guard !paths.isEmpty else { return try await client.addMine(hex.jsonBytes, into: parent?.value) }
            let offer = try await FileArgument.offerMine(paths, in: parent?.value, copy: copy, client)
            return try await client.addMine(HexWithOfferedFiles(hex: hex, offered: offer.hex).jsonBytes, into: parent?.value)
        } as: {
            "Hex \($0.id) with \(HumanText.count($0.linkCount + ($0.linksInside ?? 0), "link", "links")) added\($0.parent.map { " to hex \($0)" } ?? "")."
        }
    }
}

struct MineRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Delete hexes of My Hexlist, with everything inside.",
        discussion: """
            The command asks first if there are hexes inside, or if you share a hex with others; on a terminal also from 20 links on. For \
            60 days, `hexlist mine restore` brings them back. `hexlist mine trash` lists them, and deleted links. A hex that you share is \
            no longer shared afterwards. A hex of another person is deleted only on your machines.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Do not ask.")
    var yes = false

    @Argument(help: ArgumentHelp("Numbers from `hexlist mine`.", valueName: "hex"), completion: .mine)
    var hexes: [HexID]

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            for id in hexes { _ = try await client.mineHex(id) }
            let deletion = try await client.deletion(.ids(hexes.map(\.value)))
            let shared = try await client.sharedHexesIfAny().shared.filter { hex in hexes.contains { $0.value == hex.hex } }
            let effects = SharingText.deletion(shared)
            let inside = MineText.inside(deletion)
            let isLarge = deletion.links >= Confirmation.linkLimit && isatty(STDIN_FILENO) == 1
            let endsSharing = shared.contains { $0.owned && !SharingText.current($0).isEmpty }
            if !yes, inside != nil || isLarge || endsSharing {
                let what = MineText.deletion(deletion)
                try Confirmation(
                    deed: "deletes \(what)\(endsSharing ? ", and ends the sharing" : "")",
                    question: (effects + ["Delete \(what)?"]).joined(separator: " "),
                    line: "hexlist mine rm --yes \(hexes.map { "\($0.value)" }.joined(separator: " "))"
                ).ask()
            }
            let changed = try await client.delete(.ids(hexes.map(\.value)))
            if output.json {
                try output.object(changed)
            } else {
                try output.wrapped(MineText.deleted(changed.changed, inside: inside))
                for line in SharingText.deleted(shared) { try output.wrapped(line) }
            }
            try output.flush()
            guard !output.json else { return }
            var seen: Set<Int64> = []
            let numbers = hexes.map(\.value).filter { seen.insert($0).inserted }
            UndoHint.note(["mine", "restore"] + numbers.prefix(20).map(String.init))
        }
    }
}

struct MineRestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Bring back deleted hexes by their numbers. For links: `trash --restore`.",
        discussion: """
            `hexlist mine trash` lists them. If one cannot be restored, none is. A hex goes back to its place, with everything inside, and \
            has its number again; if the hex that it was in is gone, it goes to the top level. `hexlist mine trash --restore` also restores single links.
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("Numbers that the hexes had.", valueName: "hex"), completion: .binned)
    var hexes: [HexID]

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            for item in try await client.restoreMine(hexes: hexes.map(\.value)).restored {
                if output.json {
                    try output.object(try await client.hex(item.hex))
                } else {
                    try output.wrapped(MineHistoryText.restored(item))
                }
            }
            try output.flush()
        }
    }
}

struct MineBinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bin", abstract: "The older list of deleted hexes, without links. Use `trash`.",
        discussion: """
            Newest first. They can be restored for 60 days, unless more than 64 MiB were deleted since. `hexlist mine trash` lists deleted \
            links too. --empty removes all deleted hexes and links at once, and clears the change log.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Remove all deleted hexes and links for good, and clear the change log.")
    var empty = false

    @Flag(help: "Do not ask.")
    var yes = false

    @OptionGroup var rows: RowLimit

    func validate() throws {
        if yes, !empty { throw ValidationError("--yes needs --empty.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if empty { return try await MineHistoryText.emptyTrash(client, output, line: yes ? nil : "hexlist mine bin --empty --yes") }
            let header = ["HEX", "DELETED", "LINKS", "INSIDE", "DESCRIPTION"]
            let (listed, hasMore) = try await output.pages(maximum: rows.maximum(for: output), header: header) {
                try await client.binnedHexes(limit: $0, after: $1)
            } cells: { hex in
                [
                    Table.Cell(String(hex.id)), Table.Cell(HumanText.moment(hex.deletedAt), .faint), Table.Cell(count: hex.links),
                    Table.Cell(count: hex.hexesInside, none: "–"), Table.Cell(hex.subject, minimum: 16),
                ]
            }
            if listed == 0, !output.json { StandardError.note("The bin is empty.") }
            if hasMore { StandardError.note("There are more; list all with --limit 0.") }
        }
    }
}

extension HexlistClient {
    /// Returns a hex of My Hexlist with its content.
    /// - Throws: `HexlistError` if the hex is in another location.
    func mineHex(_ id: HexID) async throws -> HexJSON {
        do {
            let hex = try await self.hex(id.value)
            guard hex.location == "mine" else {
                throw HexlistError(
                    .badRequest, "Hex \(hex.id) is not in My Hexlist (\(TerminalText.clean(hex.location, columns: 20))).",
                    hint: "To copy it there: `hexlist save \(hex.id)`.")
            }
            return hex
        } catch var error as HexlistError where error.code == .notFound {
            error.hint = "`hexlist mine --tree` lists your hexes."
            throw error
        }
    }
}

extension CommonOptions {
    /// Runs `body`, which changes one hex, and prints the result.
    func reportHex(_ body: (HexlistClient) async throws -> HexJSON, as text: (HexJSON) -> String) async throws {
        let output = output
        let hex = try await withClient(body)
        if output.json { try output.object(hex) } else { try output.wrapped(text(hex)) }
        try output.flush()
        if !output.json { hex.noteUndo() }
    }
}
