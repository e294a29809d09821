import HexlistAPI
import HexlistJSON
import HexlistModel

/// Finds probable mistakes in the lines of a bulk send: unknown members whose names resemble known ones, and links without a scheme. The
/// lines are sent unchanged. Each mistake is reported once.
///
/// The work is bounded: at most `maximumHints` mistakes are reported, and unknown members are checked in at most `maximumLines` lines.
struct BulkLineHints {
    private static let maximumHints = 20
    private static let maximumLines = 1_000
    private static let ofHex = [
        "description", "color", "links", "children", "key", "hexDescription", "hexColor", "senderName", "senderUUID",
    ]
    private static let ofLink = ["url", "linkDescription", "service"]

    private var reported: Set<String> = []
    private var looked = 0

    /// Checks the hex of a line.
    /// - Returns: a text for each mistake that was not reported before.
    mutating func hints(of content: HexContent) -> [String] {
        guard reported.count < Self.maximumHints else { return [] }
        let links = linkHints(of: content)
        guard looked < Self.maximumLines else { return links }
        let link = content.links.lazy.map(\.extra).first { $0.count > 0 }
        guard content.extra.count > 0 || link != nil else { return links }
        looked += 1
        return links + hints(content.extra, of: content, "a hex", Self.ofHex)
            + (link.map { hints($0, of: content, "a link", Self.ofLink) } ?? [])
    }

    private mutating func linkHints(of content: HexContent) -> [String] {
        content.links.compactMap { link in
            // No string is created in the common case, because every line of a bulk send is checked.
            guard link.url.count > 0, !content.withBytes(of: link.url, { $0.starts(with: "http".utf8) }) else { return nil }
            let url = content.string(link.url)
            guard LinkTextKind(url) != .link else { return nil }
            let shown = TerminalText.clean(url, columns: 60)
            guard reported.count < Self.maximumHints, reported.insert("link \(shown)").inserted else { return nil }
            return "`\(shown)` is not a link (no https://); it is sent unchanged."
        }
    }

    private mutating func hints(_ extra: TextSlice, of content: HexContent, _ owner: String, _ known: [String]) -> [String] {
        var hints: [String] = []
        for name in content.memberNames(of: extra).prefix(Self.maximumHints)
        where name.utf8.count <= 40 && reported.count < Self.maximumHints {
            guard let meant = NearestName.likely(name, among: known), reported.insert("\(owner) \(name)").inserted else { continue }
            hints.append("Unknown member `\(name)` of \(owner); it is sent unchanged. Did you mean `\(meant)`?")
        }
        return hints
    }
}
