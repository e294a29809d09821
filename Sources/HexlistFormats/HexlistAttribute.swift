import HexlistJSON
import HexlistModel

/// The attribute `data-hexlist` of exported HTML and OPML. Its value is a JSON object with those members of a hex or link that the format
/// cannot express, so that a re-imported export is complete. Other programs ignore the attribute.
enum HexlistAttribute {
    static let attribute: StaticString = "data-hexlist"

    /// - Parameters:
    ///   - placed: names of unknown members that are already written in the format itself, and so are left out.
    /// - Returns: the attribute with a leading space; empty if it would have no members.
    static func text(of hex: HexTree.Hex, placed: [String]) -> String {
        object { json in
            if !hex.senderUUID.isEmpty { json.member("senderUUID", hex.senderUUID) }
            if !hex.senderName.isEmpty { json.member("senderName", hex.senderName) }
            if !hex.color.isEmpty { json.member("hexColor", hex.color) }
            if !MarkupText.survives(hex.description) { json.member("hexDescription", hex.description) }
            for member in hex.extra where !isOne(member, of: placed) { json.member(member.name, member.value) }
        }
    }

    /// - Parameter hasURL: whether the URL is also written in the format itself.
    static func text(of link: HexTree.Link, placed: [String], hasURL: Bool = true) -> String {
        object { json in
            if !hasURL || !MarkupText.survives(link.url) { json.member("url", link.url) }
            // When reading, an empty title is replaced by the URL of the format. Without such a URL, the empty title must be written.
            if !hasURL && link.title.isEmpty || !MarkupText.survives(link.title) { json.member("linkDescription", link.title) }
            if !link.service.isEmpty { json.member("service", link.service) }
            for member in link.extra where !isOne(member, of: placed) { json.member(member.name, member.value) }
        }
    }

    private static func isOne(_ member: HexTree.Member, of names: [String]) -> Bool {
        names.contains { $0.utf8.elementsEqual(member.name.utf8) }
    }

    private static func object(_ write: (inout JSONWriter) -> Void) -> String {
        let json = JSONValue { json in json.object(write) }
        guard json.bytes.count > 2 else { return "" }
        return " \(attribute)=\"\(MarkupText.escaped(json.text))\""
    }

    static func apply(_ text: String?, to hex: inout HexTree.Hex) {
        let members = members(text)
        remove(members, from: &hex.extra)
        for member in members {
            switch KnownMember(member) {
            case .senderUUID: hex.senderUUID = member.value.string ?? ""
            case .senderName: hex.senderName = member.value.string ?? ""
            case .hexColor: hex.color = member.value.string ?? ""
            case .hexDescription: hex.description = member.value.string ?? ""
            case .links, .children: break
            default: hex.extra.append(HexTree.Member(member.name, member.value))
            }
        }
    }

    /// Applies the members in the attribute's value to a link. They replace the values that were read from other attributes.
    /// - Returns: whether `data-hexlist` contained the URL.
    @discardableResult
    static func apply(_ text: String?, to link: inout HexTree.Link) -> Bool {
        let members = members(text)
        remove(members, from: &link.extra)
        var hasURL = false
        for member in members {
            switch KnownMember(member) {
            case .url: (link.url, hasURL) = (member.value.string ?? "", true)
            case .linkDescription: link.title = member.value.string ?? ""
            case .service: link.service = member.value.string ?? ""
            default: link.extra.append(HexTree.Member(member.name, member.value))
            }
        }
        return hasURL
    }

    /// Removes the members that `data-hexlist` also has. Its values are exact, whereas other attributes may have a date in another form.
    private static func remove(_ members: [JSONMember], from extra: inout [HexTree.Member]) {
        extra.removeAll { own in members.contains { own.name.utf8.elementsEqual($0.nameBytes) } }
    }

    private static func members(_ text: String?) -> [JSONMember] {
        text.flatMap { try? JSONValue(parsing: $0) }?.members ?? []
    }
}
