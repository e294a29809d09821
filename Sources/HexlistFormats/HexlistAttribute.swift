import HexlistJSON
import HexlistModel

/// The attribute `data-hexlist`: a JSON object with the members of a hex or link that a format cannot express, so that an export of Hexlist
/// is read back completely. Other programs ignore it.
enum HexlistAttribute {
    static let attribute: StaticString = "data-hexlist"

    /// - Parameters:
    ///   - placed: unknown members that the format expresses itself.
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

    /// - Parameter hasURL: whether the URL is written outside the attribute.
    static func text(of link: HexTree.Link, placed: [String], hasURL: Bool = true) -> String {
        object { json in
            if !hasURL || !MarkupText.survives(link.url) { json.member("url", link.url) }
            // The URL stands for an empty title, so without a URL the empty title is written.
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

    /// - Returns: whether the attribute had the URL.
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

    /// Members of `data-hexlist` replace those of other attributes, which may have a date in another form.
    private static func remove(_ members: [JSONMember], from extra: inout [HexTree.Member]) {
        extra.removeAll { own in members.contains { own.name.utf8.elementsEqual($0.nameBytes) } }
    }

    private static func members(_ text: String?) -> [JSONMember] {
        text.flatMap { try? JSONValue(parsing: $0) }?.members ?? []
    }
}
