import HexlistAPI
import HexlistModel

/// Texts about hexes of My Hexlist. Also converts the links of a hex to lines for an editor (`URL description`), and edited lines back to
/// changes of the hex.
enum MineText {
    /// Returns `tags` with `new` added and `old` removed. Upper and lower case do not matter.
    static func tags(_ tags: [String], adding new: [String], removing old: [String]) -> [String] {
        func has(_ tags: [String], _ tag: String) -> Bool { tags.contains { $0.lowercased().utf8.elementsEqual(tag.lowercased().utf8) } }
        var result = tags.filter { !has(old, $0) }
        for tag in new where !has(result, tag) { result.append(tag) }
        return result
    }

    /// Returns one line per link, cleaned for display.
    static func lines(_ links: [LinkJSON]) -> [String] {
        links.map { link in
            let url = TerminalText.clean(link.url)
            let line = link.linkDescription.isEmpty ? url : "\(url) \(TerminalText.clean(link.linkDescription))"
            // An empty line would be ignored when the text is read back.
            return HexSubject.isBlank(line) ? "(empty)" : line
        }
    }

    /// Returns the text that is opened in the editor: comments and one line per link.
    static func editorText(_ hex: HexJSON) -> String {
        let title = TerminalText.clean(HexText.subject(hex), columns: 60)
        let head = [
            "# Hex \(hex.id)\(title.isEmpty ? "" : ": \(title)")",
            "# One link a line: its URL, a space, its description. Save and close to keep.",
            "# Lines that begin with # are ignored. Deleting a line deletes the link.",
        ]
        return (head + lines(hex.links ?? [])).joined(separator: "\n") + "\n"
    }

    /// Compares edited lines with the links of a hex. An unchanged line keeps its link with all data; a line with the URL of an existing
    /// link changes the description of that link; any other line adds a link.
    /// - Throws: `HexlistError` for an added line that is not a link.
    static func edits(_ text: String, of links: [LinkJSON], from name: String) throws -> [LinkEdit] {
        let written = lines(links)
        var isUsed = Array(repeating: false, count: links.count)
        /// Groups the indices by text, each group in descending order, so that `popLast` returns the first.
        func linesByText(_ texts: [String]) -> [[UInt8]: [Int]] {
            Dictionary(grouping: texts.indices.reversed()) { Array(texts[$0].utf8) }
        }
        /// Removes and returns the index of the first unused link with this text.
        func take(_ text: String, from linesByText: inout [[UInt8]: [Int]]) -> Int? {
            while let index = linesByText[Array(text.utf8)]?.popLast() {
                guard isUsed[index] else {
                    isUsed[index] = true
                    return index
                }
            }
            return nil
        }
        let edited = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        // Whole lines are matched before URLs, so that each of several links with the same URL keeps its own data.
        var byLine = linesByText(written)
        let same = edited.map { take($0, from: &byLine) }
        var byURL = linesByText(links.map { TerminalText.clean($0.url) })
        return try zip(edited, same).enumerated().flatMap { number, pair in
            let (line, index) = pair
            if let index { return [LinkEdit(from: index + 1)] }
            guard let link = LinkInput(line), !link.url.hasPrefix("#") else { return [] }
            if let index = take(link.url, from: &byURL) {
                return [LinkEdit(from: index + 1, linkDescription: link.description)]
            }
            return try LinkInput.all(line, .scheme).map { link in
                let checked = try withoutFlags { try TypedLinkCheck.scheme.checked(link, from: "\(name), line \(number + 1)") }
                return LinkEdit(url: checked.url, linkDescription: checked.description)
            }
        }
    }

    /// Runs `body`, and replaces the hints of its errors, which recommend options that the command does not have.
    static func withoutFlags<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch var error as HexlistError {
            error.hint = "A line is a link such as https://…, a space, and its description."
            throw error
        }
    }

    /// Returns the links of a hex after some were removed and one was moved.
    /// - Parameters:
    ///   - removed: numbers of links as in `hexlist show`.
    ///   - move: the number of a link, and its new position.
    static func edits(of count: Int, removing removed: [Int], moving move: (Int, Int)?) throws(HexlistError) -> [LinkEdit] {
        for number in removed + (move.map { [$0.0] } ?? []) where !(1...max(count, 1)).contains(number) || count == 0 {
            throw HexlistError(
                .badRequest, "There is no link \(number): the hex has \(HumanText.count(count, "link", "links")).",
                hint: "`hexlist show` numbers them.")
        }
        var numbers = (0..<count).map { $0 + 1 }.filter { !removed.contains($0) }
        if let (number, target) = move {
            guard let index = numbers.firstIndex(of: number) else {
                throw HexlistError(.badRequest, "Link \(number) cannot be both removed and moved.")
            }
            guard (1...numbers.count).contains(target) else {
                throw HexlistError(.badRequest, "There is no position \(target): give 1 to \(numbers.count).")
            }
            numbers.remove(at: index)
            numbers.insert(number, at: target - 1)
        }
        return numbers.map { LinkEdit(from: $0) }
    }

    /// Returns the cell for a number of links, with the number of those that are marked as dead.
    static func count(_ links: Int, dead: Int) -> Table.Cell {
        dead == 0 ? Table.Cell(count: links) : Table.Cell("\(HumanText.grouped(links)), \(HumanText.grouped(dead)) dead")
    }

    /// Returns the note in the output of `show` that a link is marked as dead.
    static func dead(_ mark: DeadLinkJSON) -> String { "dead: the page is gone (\(mark.status)), found \(HumanText.moment(mark.since))" }

    /// Returns the lines that show a hex and the hexes inside it as a tree: id, title and number of links of each.
    /// - Parameter mark: that of a shared hex, such as `with 2`; `nil` for none.
    static func tree(_ hex: HexJSON, mark: String? = nil) -> [String] {
        [line(hex.id, HexText.subject(hex), links: hex.linkCount, depth: 0) + (mark.map { "  [shared: \($0)]" } ?? "")]
            + tree(hex.children ?? [], depth: 1)
    }

    /// Returns the lines for the hexes inside another one, indented by `depth`. Recursive, with one call per level.
    private static func tree(_ children: [InnerHexJSON], depth: Int) -> [String] {
        children.flatMap {
            [line($0.id, HexText.title($0) ?? "", links: $0.links.count, new: $0.links.count { $0.new == true }, depth: depth)]
                + tree($0.children ?? [], depth: depth + 1)
        }
    }

    private static func line(_ id: Int64, _ title: String, links: Int, new: Int = 0, depth: Int) -> String {
        let title = HexSubject.isBlank(title) ? "" : "  \(title)"
        let news = new == 0 ? "" : ", \(HumanText.grouped(new)) new"
        let count = links == 0 ? "" : "  (\(HumanText.count(links, "link", "links"))\(news))"
        return "\(String(repeating: "  ", count: depth))\(id)\(title)\(count)"
    }

    /// Describes the hexes inside those to delete, such as `3 hexes with 40 links`; `nil` if there are none.
    static func inside(_ deletion: ChangeCountJSON) -> String? {
        guard deletion.hexesInside > 0 else { return nil }
        return "\(HumanText.count(deletion.hexesInside, "hex", "hexes")) with \(HumanText.count(deletion.linksInside, "link", "links"))"
    }

    /// Describes everything that will be deleted: `2 hexes with 40 links, and 6 hexes with 9 links inside`.
    static func deletion(_ deletion: ChangeCountJSON) -> String {
        let links = deletion.links > 0 ? " with \(HumanText.count(deletion.links, "link", "links"))" : ""
        return HumanText.count(deletion.changed, "hex", "hexes") + links + (inside(deletion).map { ", and \($0) inside" } ?? "")
    }

    /// Returns the sentence printed after an edit, such as `Hex 7: renamed, added 2 links. It now has 12 links.`
    /// - Parameter change: the change in the log; `nil` if nothing changed.
    static func edited(_ hex: HexJSON, _ change: MineChangeJSON?) -> String {
        guard let change else { return "Nothing was changed." }
        let own = (change.hexes?.changed ?? 0) > 0 ? [MineHistoryText.verb(change.values, isLink: false)] : []
        let links = change.links.map { [MineHistoryText.changes(nil, $0, change.values)] } ?? []
        let count = (change.links?.added ?? 0) + (change.links?.deleted ?? 0) > 0
        return "Hex \(hex.id): \((own + links).joined(separator: ", "))."
            + (count ? " It now has \(HumanText.count(hex.linkCount, "link", "links"))." : "")
    }

    /// Returns the sentence printed after a move.
    /// - Parameters:
    ///   - before: the hex before which it was inserted; `nil` if none was named.
    ///   - after: the hex after which it was inserted.
    static func moved(_ hex: HexJSON, before: Int64?, after: Int64?) -> String {
        let place = before.map { ", before hex \($0)" } ?? after.map { ", after hex \($0)" } ?? ""
        return "Hex \(hex.id) is now \(hex.parent.map { "in hex \($0)" } ?? "at the top level")\(place)."
    }

    /// Returns the sentence printed after a deletion.
    /// - Parameter inside: the result of `inside(_:)`.
    static func deleted(_ count: Int, inside: String?) -> String {
        "\(HumanText.count(count, "hex", "hexes")) deleted\(inside.map { ", and \($0) inside" } ?? "")."
    }
}

extension InnerHexJSON {
    /// The number of new links of this hex and of those inside at all levels. Recursive, with one call per level.
    var newLinks: Int { links.count { $0.new == true } + (children ?? []).reduce(0) { $0 + $1.newLinks } }

    /// The number of hexes inside this one at all levels, and of the links in them. Recursive, with one call per level.
    var inside: (hexes: Int, links: Int) {
        (children ?? []).reduce(into: (0, 0)) { sum, child in
            let inner = child.inside
            sum.0 += 1 + inner.hexes
            sum.1 += child.links.count + inner.links
        }
    }
}
