import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

/// The number of a change in the log of My Hexlist, or of an item in its trash.
struct HistoryNumber: ExpressibleByArgument {
    var value: Int64

    init?(argument: String) {
        guard let value = Int64(argument), value > 0 else { return nil }
        self.value = value
    }
}

struct MineLogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log", abstract: "List the changes of My Hexlist, newest first.",
        discussion: """
            With a hex, only changes of this hex and of its links, with the values before. `hexlist mine undo` reverts changes. The log has \
            the changes of the last 30 days, at most 20,000, of a shared hex at most 2,000. AUTHOR is the peer from which \
            a change came to this machine: another machine of yours (`hexlist own`), or a person with whom a hex is shared \
            (`hexlist mine share`). The peer may have received the change from another machine or member.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Only changes since then: 7d, 12h, or a day such as 2031-04-05.", valueName: "time"))
    var since: String?

    @Option(
        help: ArgumentHelp("Only changes that came from this peer; `here` for those made on this machine.", valueName: "peer"),
        completion: .peers)
    var from: String?

    @OptionGroup var rows: RowLimit

    @Argument(help: ArgumentHelp("The number of a hex of My Hexlist, which may be deleted.", valueName: "hex"), completion: .mineAndDeleted)
    var hex: HexID?

    func run() async throws {
        let output = common.output
        let since = try since.map { try TimeInput.parse($0, isEnd: false) }
        try await common.withClient { client in
            let own = output.json ? [] : Set(try await client.ownMachinesIfAny().map(\.uuid))
            let (listed, hasMore) = try await output.pages(maximum: rows.maximum(for: output)) {
                try await client.mineLog(hex: hex?.value, since: since, from: from, limit: $0, after: $1)
            } columns: { changes in
                MineHistoryText.columns(
                    hasAuthors: from != nil || !own.isEmpty || changes.contains { $0.by != nil }, ofHex: hex != nil, own: own)
            }
            if listed == 0, !output.json {
                StandardError.note(
                    hex == nil && since == nil && from == nil ? "The change log is empty." : "There are no such changes in the log.")
            }
            if hasMore { StandardError.note("There are more; list all with --limit 0.") }
        }
    }
}

struct MineUndoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "undo", abstract: "Revert changes of My Hexlist.",
        discussion: """
            `hexlist mine log` numbers the changes. Values that were changed again later stay as they are, and are listed. An undo is a \
            change too: it can be undone.
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: ArgumentHelp("Numbers from `hexlist mine log`.", valueName: "change"), completion: .mineChanges)
    var changes: [HistoryNumber]

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            let undone = try await client.undoMine(changes.map(\.value))
            if output.json {
                try output.object(undone)
            } else {
                for line in MineHistoryText.undone(changes.map(\.value), undone) { try output.wrapped(line) }
            }
            try output.flush()
            if !output.json { UndoHint.note(["mine", "undo", "\(undone.number)"]) }
        }
    }
}

struct MineTrashCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trash", abstract: "List the deleted hexes and links of My Hexlist, or restore some.",
        discussion: """
            Newest first. They can be restored for 60 days, unless more than 64 MiB were deleted since. A hex is restored with everything \
            inside, at its former place; if the hex that contained it is gone, at the top level. `hexlist mine bin` is an older list, \
            without links.
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        parsing: .upToNextOption, help: ArgumentHelp("Restore the items with these numbers.", valueName: "item"), completion: .trashed)
    var restore: [HistoryNumber] = []

    @Flag(help: "Remove everything from the trash for good, and clear the change log.")
    var empty = false

    @Flag(help: "Do not ask.")
    var yes = false

    @OptionGroup var rows: RowLimit

    func validate() throws {
        if empty, !restore.isEmpty { throw ValidationError("Give --restore or --empty, not both.") }
        if yes, !empty { throw ValidationError("--yes needs --empty.") }
    }

    func run() async throws {
        let output = common.output
        try await common.withClient { client in
            if empty {
                return try await MineHistoryText.emptyTrash(client, output, line: yes ? nil : "hexlist mine trash --empty --yes")
            }
            if !restore.isEmpty { return try await restoreItems(client, output) }
            let header = ["ITEM", "DELETED", "WHAT", "IN HEX", "LINKS", "DESCRIPTION"]
            let (listed, hasMore) = try await output.pages(maximum: rows.maximum(for: output), header: header) {
                try await client.mineTrash(limit: $0, after: $1)
            } cells: { item in
                [
                    Table.Cell(String(item.number)), Table.Cell(HumanText.moment(item.deletedAt), .faint),
                    Table.Cell(MineHistoryText.kind(item)),
                    MineHistoryText.cell(hex: item.parent),
                    item.url == nil ? Table.Cell(count: item.links) : item.links > 0 ? Table.Cell(count: item.links + 1) : Table.Cell("–"),
                    Table.Cell(MineHistoryText.title(item), minimum: 16),
                ]
            }
            if listed == 0, !output.json { StandardError.note("The trash is empty.") }
            if hasMore { StandardError.note("There are more; list all with --limit 0.") }
        }
    }

    private func restoreItems(_ client: HexlistClient, _ output: Output) async throws {
        let result = try await client.restoreMine(numbers: restore.map(\.value))
        if output.json {
            try output.object(result)
        } else {
            for item in result.restored { try output.wrapped(MineHistoryText.restored(item)) }
        }
        try output.flush()
    }
}

/// Texts about the change log and the trash of My Hexlist.
enum MineHistoryText {
    /// Returns what a change did, such as `deleted 1 hex and 18 links`.
    static func change(_ change: MineChangeJSON) -> String {
        let text = changes(change.hexes, change.links, change.values)
        let done = change.undo ? "undo, which \(text)" : change.joined ? "first exchange, which \(text)" : text
        // At the beginning, because the end of the text is cut on a narrow terminal.
        return change.undoneBy == nil ? done : "undone: \(done)"
    }

    /// Returns the header of the log, and the cells of a change.
    /// - Parameters:
    ///   - hasAuthors: whether it names the machines from which changes came.
    ///   - ofHex: whether the log is that of one hex.
    ///   - own: the user's other machines.
    static func columns(hasAuthors: Bool, ofHex: Bool, own: Set<PeerID> = []) -> (header: [String], cells: (MineChangeJSON) -> [Table.Cell])
    {
        let header = ["NUMBER", "WHEN"] + (hasAuthors ? ["AUTHOR"] : []) + ["CHANGE"] + (ofHex ? ["BEFORE"] : ["HEX", "DESCRIPTION"])
        return (
            header,
            { change in
                let first =
                    [Table.Cell(String(change.number)), Table.Cell(HumanText.moment(change.at), .faint)]
                    + (hasAuthors ? [author(change)] : []) + [Table.Cell(Self.change(change), minimum: 30)]
                guard !ofHex else { return first + [Table.Cell(before(change), columns: 200, minimum: 16)] }
                return first + [cell(hex: change.hex), Table.Cell(subject(change, own: own), minimum: 16)]
            }
        )
    }

    /// Returns the cell with the machine from which a change came.
    static func author(_ change: MineChangeJSON) -> Table.Cell {
        guard let by = change.by else { return Table.Cell("here", .faint) }
        return Table.Cell(PeerDisplayName(by, change.tag).shown(.named, columns: 40), columns: 40)
    }

    /// Returns the parts of a change, such as `added 2 links, renamed 1 hex`.
    /// - Parameter values: the first values that changed.
    static func changes(_ hexes: MineChangeCounts?, _ links: MineChangeCounts?, _ values: [MineChangedValue] = []) -> String {
        let (hexes, links) = (hexes ?? MineChangeCounts(), links ?? MineChangeCounts())
        let (hexVerb, linkVerb) = (verb(values, isLink: false), verb(values, isLink: true))
        let parts =
            [
                ("added", hexes.added, links.added), ("deleted", hexes.deleted, links.deleted),
                ("restored", hexes.restored, links.restored), ("moved", hexes.moved, links.moved),
            ]
            + (hexVerb.utf8.elementsEqual(linkVerb.utf8)
                ? [(hexVerb, hexes.changed, links.changed)] : [(hexVerb, hexes.changed, 0), (linkVerb, 0, links.changed)])
        return parts.filter { $0.1 + $0.2 > 0 }.map { verb, hexes, links in
            let counts = [
                hexes > 0 ? HumanText.count(hexes, "hex", "hexes") : nil, links > 0 ? HumanText.count(links, "link", "links") : nil,
            ]
            return "\(verb) \(counts.compactMap(\.self).joined(separator: " and "))"
        }.joined(separator: ", ")
    }

    /// Maximum number of values of a change that the local API lists. If there are as many, there may be more.
    private static let listedValues = 10

    /// Returns the verb for hexes or links whose values changed, such as `renamed` or `coloured and tagged`; `changed` if it is not known.
    static func verb(_ values: [MineChangedValue], isLink: Bool) -> String {
        let values = values.count < listedValues ? values.filter { ($0.link != nil) == isLink } : []
        func has(_ isWanted: (MineChangedValue) -> Bool) -> Bool { values.contains(where: isWanted) }
        func isNamed(_ name: String) -> (MineChangedValue) -> Bool { { $0.name.utf8.elementsEqual(name.utf8) } }
        func isTag(_ value: MineChangedValue) -> Bool { value.name.utf8.starts(with: "tag ".utf8) }
        let verbs = [
            has(isNamed("title")) ? "renamed" : nil, has(isNamed("color")) ? "coloured" : nil,
            has { isTag($0) && !$0.after.isEmpty } ? "tagged" : has(isTag) ? "untagged" : nil, has(isNamed("note")) ? "noted" : nil,
            has(isNamed("other")) ? "changed" : nil,
        ].compactMap(\.self)
        guard let last = verbs.last else { return "changed" }
        return verbs.count == 1 ? last : "\(verbs.dropLast().joined(separator: ", ")) and \(last)"
    }

    /// Returns the subject of the first changed hex, and the number of the others.
    static func subject(_ change: MineChangeJSON, own: Set<PeerID> = []) -> String {
        if change.joined, let by = change.by, own.contains(by) {
            return "My Hexlist of \(PeerDisplayName(by, change.tag).shown(.named, columns: 40))"
        }
        let subject = HexSubject.isBlank(change.subject) ? "(no description)" : change.subject
        return change.others == 0 ? subject : "\(subject), and \(HumanText.count(change.others, "other", "others"))"
    }

    /// Returns the values before a change, such as `title: Reading; https://a.example note: later; deleted: https://b.example`.
    static func before(_ change: MineChangeJSON) -> String {
        change.values.map { value in
            if value.name.utf8.elementsEqual("deleted".utf8) { return "deleted: \(value.link ?? "")" }
            return "\(value.link.map { "\($0) " } ?? "")\(value.name): \(value.before.isEmpty ? "(none)" : value.before)"
        }.joined(separator: "; ")
    }

    /// Returns the result of an undo, one line each: the reverted changes, and the values that stay.
    static func undone(_ numbers: [Int64], _ result: MineUndoResult) -> [String] {
        let (all, undone) = (Set(numbers).count, result.undone.count)
        let what =
            if all == 1 {
                "Change \(numbers[0]) is undone"
            } else if undone == all {
                "\(all) changes are undone"
            } else {
                "Of \(all) changes, \(result.undone.map(String.init).joined(separator: ", ")) \(undone == 1 ? "is" : "are") undone"
            }
        let done = changes(result.hexes, result.links)
        var lines = [done.isEmpty ? "\(what)." : "\(what). This \(done)."]
        guard result.keptCount > 0 else { return lines }
        lines.append("\(HumanText.count(result.keptCount, "value stays as it is", "values stay as they are")), because of later changes:")
        lines += result.kept.map { kept in
            let hex = kept.hex.map { "hex \($0)" } ?? "a hex"
            return
                "  \(hex)\(kept.link.map { ", \(TerminalText.clean($0, columns: 60))" } ?? ""): \(TerminalText.clean(kept.name, columns: 40))"
        }
        if result.keptCount > result.kept.count { lines.append("  and \(result.keptCount - result.kept.count) more") }
        return lines
    }

    /// Returns the sentence printed after an item was restored, with its place.
    static func restored(_ item: RestoredItemJSON) -> String {
        guard let link = item.link else {
            return "Hex \(item.hex) is back, \(item.parent.map { "in hex \($0)" } ?? "at the top level")."
        }
        let others = [
            item.otherHexes > 0 ? HumanText.count(item.otherHexes, "hex", "hexes") : nil,
            item.otherLinks > 0 ? HumanText.count(item.otherLinks, "more link", "more links") : nil,
        ].compactMap(\.self)
        let with = others.isEmpty ? "" : ", with \(others.joined(separator: " and "))"
        let text = "The link is back, as link \(link) of hex \(item.hex)\(with)."
        guard item.hexRestored else { return text }
        guard !item.around.isEmpty else {
            return "\(text) Hex \(item.hex) was deleted too: it is shown again, with the restored links only."
        }
        let around = (item.around.count == 1 ? "hex " : "hexes ") + item.around.map(String.init).joined(separator: " and ")
        return "\(text) Hex \(item.hex) and \(around) around it were deleted too: they are shown again, with the restored links only."
    }

    /// Returns the cell with the number of a hex. On a very narrow terminal the header is put before the number, as before a count.
    static func cell(hex: Int64?) -> Table.Cell {
        guard let hex else { return Table.Cell("–") }
        return Table.Cell(count: Int(hex))
    }

    /// Returns the kind of an item: a hex with its number, a link, or links that are one item.
    static func kind(_ item: TrashedItemJSON) -> String {
        guard item.url != nil else { return item.hex.map { "hex \($0)" } ?? "hex" }
        return item.links + item.hexesInside > 0 ? "links" : "link"
    }

    /// Returns the description of an item; for a link, also its URL.
    static func title(_ item: TrashedItemJSON) -> String {
        guard let url = item.url else { return item.subject }
        return HexSubject.isBlank(item.subject) ? url : "\(item.subject)  \(url)"
    }

    /// Removes everything from the trash, and prints how much that was.
    /// - Parameter line: the command that does it without a question; `nil` if it is not asked.
    static func emptyTrash(_ client: HexlistClient, _ output: Output, line: String?) async throws {
        if let line { try emptying(try await client.trashCount(), line).ask() }
        let changed = try await client.emptyTrash()
        if output.json { try output.object(changed) } else { try output.wrapped(emptied(changed.changed)) }
        try output.flush()
    }

    /// Returns the sentence printed after the trash was emptied.
    static func emptied(_ count: Int) -> String {
        count == 0
            ? "The trash was empty. The change log is cleared."
            : "\(HumanText.count(count, "item", "items")) removed from the trash, and the change log is cleared."
    }

    /// Returns the question before the trash is emptied.
    /// - Parameter count: the number of items in the trash, and of the links among them.
    static func emptying(_ count: ChangeCountJSON, _ line: String) -> Confirmation {
        let hexes = count.changed - count.links
        let parts = [
            hexes > 0 ? "\(HumanText.count(hexes, "hex", "hexes")) with everything inside" : nil,
            count.links > 0 ? HumanText.count(count.links, "link", "links") : nil,
        ].compactMap(\.self)
        guard !parts.isEmpty else {
            return Confirmation(
                deed: "clears the change log", question: "The trash is empty. Clear the change log? This cannot be undone.", line: line)
        }
        let items = parts.joined(separator: " and ")
        return Confirmation(
            deed: "removes \(items) from the trash for good, and clears the change log",
            question: "Remove \(items) from the trash for good, and clear the change log? This cannot be undone.", line: line)
    }
}
