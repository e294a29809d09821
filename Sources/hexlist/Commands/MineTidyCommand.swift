import ArgumentParser
import HexlistAPI
import HexlistClient
import HexlistModel

struct MineTidyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tidy", abstract: "Find duplicates in My Hexlist, and merge them.",
        discussion: """
            Links with the same URL in one hex become one, and so do hexes with the same title in one hex or at the top level, with their \
            contents. URLs are compared exactly. Two whose other values differ, such as the description or date of a link or the note of a \
            hex, stay as they are. The one that is kept gets all tags. Shared hexes are merged with no other, and those that you can only \
            read are left out. The command lists the duplicates and asks. `hexlist mine undo` reverts the merge, unless it is very large; \
            `hexlist mine trash` has the deleted ones in any case.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Merge links only, not hexes with the same title.")
    var linksOnly = false

    @Flag(help: "Only list the duplicates.")
    var dryRun = false

    @Flag(help: "Do not ask.")
    var yes = false

    @Argument(help: ArgumentHelp("Only this hex and the hexes inside.", valueName: "hex"), completion: .mine)
    var hex: HexID?

    func validate() throws {
        if yes, dryRun { throw ValidationError("Give --yes or --dry-run, not both.") }
    }

    func run() async throws {
        let output = common.output
        let request = MineTidyRequest(hex: hex?.value, linksOnly: linksOnly ? true : nil)
        try await common.withClient { client in
            if !yes {
                let found = try await client.mineDuplicates(request)
                let isFinished = dryRun || found.isEmpty
                if !output.json { try list(found, output) } else if isFinished { try output.object(found) }
                try output.flush()
                if isFinished { return }
                try MineTidyText.confirmation(found, line: commandLine).ask()
            }
            let merged = try await client.mergeMineDuplicates(request)
            if output.json { try output.object(merged) } else { try output.wrapped(MineTidyText.merged(merged)) }
            if yes, !output.json, merged.different > 0 { StandardError.wrapped(MineTidyText.different(merged.different)) }
            try output.flush()
            if let changes = merged.changes, !output.json { UndoHint.note(["mine", "undo"] + changes.map(String.init)) }
        }
    }

    private func list(_ found: MineTidyResult, _ output: Output) throws {
        if found.isEmpty { StandardError.note(MineTidyText.merged(found)) }
        if !found.items.isEmpty {
            var table = Table(["HEX", "DUPLICATES", "DESCRIPTION"])
            for item in found.items {
                table.add([
                    Table.Cell(String(item.hex)), Table.Cell(MineTidyText.duplicates(item), columns: 60, minimum: 12),
                    Table.Cell(item.subject, minimum: 16),
                ])
            }
            try output.table(table)
            try output.flush()
            if found.items.reduce(0, { $0 + $1.links + ($1.others?.count ?? 0) }) < found.hexes + found.links {
                StandardError.note("Only the first \(found.items.count) hexes with duplicates are listed.")
            }
        }
        if found.different > 0 { StandardError.wrapped(MineTidyText.different(found.different)) }
    }

    private var commandLine: String {
        (["hexlist mine tidy"] + (hex.map { ["\($0.value)"] } ?? []) + (linksOnly ? ["--links-only"] : []) + ["--yes"]).joined(
            separator: " ")
    }
}

/// Texts about duplicates in My Hexlist.
enum MineTidyText {
    /// Maximum number of hexes that a row names.
    private static let hexLimit = 5

    /// Returns the duplicates of a hex: `3 links`, `hexes 15 and 19, 2 links`.
    static func duplicates(_ item: MineTidyItem) -> String {
        let others = item.others ?? []
        let links = item.links > 0 ? HumanText.count(item.links, "link", "links") : nil
        let hexes =
            others.isEmpty
            ? nil : "\(others.count == 1 ? "hex" : "hexes") \(SharingText.names(others.map(String.init), limit: hexLimit))"
        return [hexes, links].compactMap(\.self).joined(separator: ", ")
    }

    static func count(_ result: MineTidyResult) -> String {
        [
            result.hexes > 0 ? HumanText.count(result.hexes, "hex", "hexes") : nil,
            result.links > 0 ? HumanText.count(result.links, "link", "links") : nil,
        ].compactMap(\.self).joined(separator: " and ")
    }

    static func different(_ count: Int) -> String {
        let (more, they) =
            count == 1
            ? ("1 link or hex has", "It stays as it is.") : ("\(HumanText.grouped(count)) links and hexes have", "They stay as they are.")
        return "\(more) the URL or title of another one, but other values, or would make the hex too large. \(they)"
    }

    static func confirmation(_ found: MineTidyResult, line: String) -> Confirmation {
        let number = found.hexes + found.links
        return Confirmation(
            deed: "merges \(count(found)) with \(number == 1 ? "an equal one" : "equal ones")",
            question: "Merge \(count(found)) with \(number == 1 ? "the equal one" : "the equal ones")?", line: line)
    }

    /// Returns the sentence after duplicates were merged.
    static func merged(_ result: MineTidyResult) -> String {
        guard result.isEmpty else { return "\(count(result)) merged." }
        return result.different == 0 ? "There are no duplicates." : "Nothing can be merged."
    }
}
