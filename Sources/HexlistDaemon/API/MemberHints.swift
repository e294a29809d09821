import HexlistAPI
import HexlistJSON
import HexlistModel

/// Finds unknown members in a bulk's lines that are probably misspelt known ones. They are sent like any unknown member, and each is
/// reported once.
///
/// Bounded: stops after `mostTold` names, or after `mostLooked` lines with unknown members.
struct MemberHints {
    private static let mostTold = 20
    private static let mostLooked = 1_000
    private static let ofHex = [
        "description", "color", "links", "children", "key", "hexDescription", "hexColor", "senderName", "senderUUID",
    ]
    private static let ofLink = ["url", "linkDescription", "service"]

    private var told: Set<String> = []
    private var looked = 0

    /// - Returns: a text for each name that was not reported before.
    mutating func hints(of content: HexContent) -> [String] {
        guard told.count < Self.mostTold, looked < Self.mostLooked else { return [] }
        let link = content.links.lazy.map(\.extra).first { $0.count > 0 }
        guard content.extra.count > 0 || link != nil else { return [] }
        looked += 1
        return hints(content.extra, of: content, "a hex", Self.ofHex) + (link.map { hints($0, of: content, "a link", Self.ofLink) } ?? [])
    }

    private mutating func hints(_ extra: TextSlice, of content: HexContent, _ owner: String, _ known: [String]) -> [String] {
        guard extra.count > 0, let object = try? JSONObject(JSONValue(parsing: content.string(extra))) else { return [] }
        var hints: [String] = []
        for name in object.names.prefix(Self.mostTold) where name.utf8.count <= 40 && told.count < Self.mostTold {
            guard let meant = NearestName.likely(name, among: known), told.insert("\(owner) \(name)").inserted else { continue }
            hints.append("Unknown member `\(name)` of \(owner); it is sent unchanged. Did you mean `\(meant)`?")
        }
        return hints
    }
}
