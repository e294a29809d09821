import HexlistAPI
import HexlistModel

/// The links of a hex as lines to be edited, `URL description`, and what was changed in them.
enum MineText {
    /// One line a link. Texts are cleaned, as everywhere else where they are shown.
    static func lines(_ links: [LinkJSON]) -> [String] {
        links.map { link in
            let url = TerminalText.clean(link.url)
            let line = link.linkDescription.isEmpty ? url : "\(url) \(TerminalText.clean(link.linkDescription))"
            // A line that would be passed over otherwise.
            return HexSubject.isBlank(line) ? "(empty)" : line
        }
    }

    /// What the editor is given.
    static func page(_ hex: HexJSON) -> String {
        let title = TerminalText.clean(HexText.subject(hex), columns: 60)
        let head = [
            "# Hex \(hex.id)\(title.isEmpty ? "" : ": \(title)")",
            "# One link a line: its URL, a space, its description. Save and close to keep.",
            "# Lines that begin with # are passed over. A line that is gone is a link that is gone.",
        ]
        return (head + lines(hex.links ?? [])).joined(separator: "\n") + "\n"
    }

    /// The links that edited lines stand for. An unchanged line is the link it was, with all that it has; a line with the URL of one is
    /// that link with another description.
    /// - Throws: `HexlistError` for a new line that is no link.
    static func edits(_ text: String, of links: [LinkJSON], from name: String) throws -> [LinkEdit] {
        let written = lines(links)
        var isUsed = Array(repeating: false, count: links.count)
        /// The places of each text, the last first.
        func places(_ texts: [String]) -> [[UInt8]: [Int]] {
            Dictionary(grouping: texts.indices.reversed()) { Array(texts[$0].utf8) }
        }
        /// The first link that has the text and stands for no line yet.
        func take(_ text: String, from places: inout [[UInt8]: [Int]]) -> Int? {
            while let index = places[Array(text.utf8)]?.popLast() {
                guard isUsed[index] else {
                    isUsed[index] = true
                    return index
                }
            }
            return nil
        }
        let edited = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        // Whole lines first: of two links with one URL each stays what it is.
        var byLine = places(written)
        let same = edited.map { take($0, from: &byLine) }
        var byURL = places(links.map { TerminalText.clean($0.url) })
        return try zip(edited, same).enumerated().flatMap { number, pair in
            let (line, index) = pair
            if let index { return [LinkEdit(from: index + 1)] }
            guard let link = LinkInput(line), !link.url.hasPrefix("#") else { return [] }
            if let index = take(link.url, from: &byURL) {
                return [LinkEdit(from: index + 1, linkDescription: link.description)]
            }
            return try LinkInput.all(line, .scheme).map { link in
                let checked = try withoutFlags { try LinkCheck.scheme.checked(link, from: "\(name), line \(number + 1)") }
                return LinkEdit(url: checked.url, linkDescription: checked.description)
            }
        }
    }

    /// Runs a check of links whose hints would name flags that are not there.
    static func withoutFlags<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch var error as HexlistError {
            error.hint = "A link begins as https:// does; its description follows behind a space."
            throw error
        }
    }

    /// The links after removing some, moving one, and adding some.
    /// - Parameters:
    ///   - removed: numbers as `hexlist show` prints them.
    ///   - move: the number of a link, and the place it comes to stand at.
    static func edits(
        of count: Int, removing removed: [Int], moving move: (Int, Int)?, adding added: [LinkInput]
    ) throws(HexlistError) -> [LinkEdit] {
        for number in removed + (move.map { [$0.0] } ?? []) where !(1...max(count, 1)).contains(number) || count == 0 {
            throw HexlistError(.badRequest, "There is no link \(number); the hex has \(count).", hint: "`hexlist show` numbers them.")
        }
        var numbers = (0..<count).map { $0 + 1 }.filter { !removed.contains($0) }
        if let (number, place) = move {
            guard let index = numbers.firstIndex(of: number) else {
                throw HexlistError(.badRequest, "Link \(number) is removed: it cannot be moved.")
            }
            guard (1...numbers.count).contains(place) else {
                throw HexlistError(.badRequest, "There is no place \(place); the places are 1 to \(numbers.count).")
            }
            numbers.remove(at: index)
            numbers.insert(number, at: place - 1)
        }
        return numbers.map { LinkEdit(from: $0) } + added.map { LinkEdit(url: $0.url, linkDescription: $0.description) }
    }

    /// The lines of a tree: each hex with its id, its title and its number of links.
    static func tree(_ hex: HexJSON) -> [String] {
        [line(hex.id, HexText.subject(hex), links: hex.linkCount, depth: 0)] + tree(hex.children ?? [], depth: 1)
    }

    /// It calls itself once for each level.
    private static func tree(_ children: [ChildJSON], depth: Int) -> [String] {
        children.flatMap {
            [line($0.id, HexText.title($0) ?? "", links: $0.links.count, depth: depth)] + tree($0.children ?? [], depth: depth + 1)
        }
    }

    private static func line(_ id: Int64, _ title: String, links: Int, depth: Int) -> String {
        let title = HexSubject.isBlank(title) ? "" : "  \(title)"
        let count = links == 0 ? "" : "  (\(HumanText.count(links, "link", "links")))"
        return "\(String(repeating: "  ", count: depth))\(id)\(title)\(count)"
    }

    /// What is inside hexes that are to be deleted; `nil` for nothing.
    static func inside(_ deletion: ChangedJSON) -> String? {
        guard deletion.hexesInside > 0 else { return nil }
        return "\(HumanText.count(deletion.hexesInside, "hex", "hexes")) with \(HumanText.count(deletion.linksInside, "link", "links"))"
    }

    /// - Parameter inside: what was inside, as `inside` has it.
    static func deleted(_ count: Int, inside: String?) -> String {
        "\(HumanText.count(count, "hex", "hexes")) deleted\(inside.map { "; inside were \($0)" } ?? "")."
    }
}

extension ChildJSON {
    /// The hexes inside it at all levels, and their links. It calls itself once for each level.
    var inside: (hexes: Int, links: Int) {
        (children ?? []).reduce(into: (0, 0)) { sum, child in
            let inner = child.inside
            sum.0 += 1 + inner.hexes
            sum.1 += child.links.count + inner.links
        }
    }
}
