import HexlistAPI
import HexlistClient
import HexlistModel

/// Prints the output of `hexlist inbox --links`.
struct LinkList {
    var filter: HexlistClient.HexFilter
    /// Whether a link that several hexes contain is listed only once.
    var isUnique: Bool
    /// The time from which received links are listed; `nil` for all.
    var since: Timestamp?
    var page: PageOptions

    func list(_ client: HexlistClient, _ output: Output) async throws {
        var cursor = page.after
        let limit = page.maximum(for: output)
        var left = limit
        var (listed, behind) = (0, 0)
        var hasReachedStart = false
        var table = Table(["HEX", "N", "RECEIVED", "FROM", "LINK", "DESCRIPTION"])
        repeat {
            (cursor, behind) = try await client.links(filter, unique: isUnique, limit: min(left, LocalAPI.pageLimit), after: cursor) {
                link in
                hasReachedStart = hasReachedStart || since.map { link.receivedAt.milliseconds < $0.milliseconds } ?? false
                guard !hasReachedStart else { return }
                listed += 1
                left -= 1
                if output.json { try output.object(link) } else { table.add(Self.cells(link)) }
            }
            // If all links are listed (--limit 0), each page is printed as soon as it arrives.
            if limit == .max, !table.isEmpty {
                try output.table(table)
                table = Table()
            }
            if hasReachedStart { cursor = nil }
        } while cursor != nil && left > 0
        if !table.isEmpty { try output.table(table) }
        try output.cut(cursor)
        try output.flush()
        if listed == 0, !output.json { StandardError.note("No \(page.after == nil ? "" : "more ")links.") }
        if let cursor { StandardError.note(NextPageHint.text(cursor)) }
        if behind > 0 {
            StandardError.note("\(HumanText.count(behind, "hex is", "hexes are")) not indexed yet: links may be listed twice.")
        }
    }

    private static func cells(_ link: ListedLinkJSON) -> [Table.Cell] {
        [
            Table.Cell(String(link.hex)), Table.Cell(count: link.number), Table.Cell(HumanText.moment(link.receivedAt), .faint),
            Table.Cell(link.label?.listed(columns: 44) ?? "", columns: 72, minimum: 10),
            Table.Cell(link.url, link.unread ? .strong : .plain, columns: 200, minimum: 24), Table.Cell(link.linkDescription, minimum: 10),
        ]
    }

    /// Returns the note in the output of `show` that an earlier hex contains the same link.
    static func earlier(_ earlier: EarlierLinkJSON) -> String {
        let sender = earlier.label.map { " from \($0.listed(columns: 44))" } ?? ""
        return "also in hex \(earlier.hex)\(sender), \(HumanText.moment(earlier.receivedAt))"
    }
}
