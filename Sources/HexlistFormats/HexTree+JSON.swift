public import HexlistJSON
import HexlistModel

// Converts hexes from and to HexJM, the JSON object of a hex with its links and inner hexes (Docs/Protocol.md, "Wrapper").
extension HexTree {
    /// Appends the hex of a HexJM with its inner hexes. Links and children that are not JSON objects are ignored. Recursive; JSON is at
    /// most `JSONValue.maximumDepth` levels deep.
    public mutating func append(_ json: JSONValue, inside parent: Int? = nil) {
        guard let members = json.members else { return }
        var hex = Hex(parent: parent)
        var children: [JSONValue] = []
        for member in members {
            switch KnownMember(member) {
            case .senderUUID: hex.senderUUID = member.value.string ?? ""
            case .senderName: hex.senderName = member.value.string ?? ""
            case .hexDescription: hex.description = member.value.string ?? ""
            case .hexColor: hex.color = member.value.string ?? ""
            case .links: hex.links = (member.value.elements ?? []).compactMap(Link.init)
            case .children where member.value.elements != nil: children = member.value.elements ?? []
            default: hex.extra.append(Member(member.name, member.value))
            }
        }
        let index = hexes.count
        hexes.append(hex)
        for child in children { append(child, inside: index) }
    }

    /// Returns a hex with its inner hexes as HexJM.
    func json(of index: Int, _ lists: [[Int]]) -> JSONValue {
        JSONValue { json in write(index, lists, to: &json) }
    }

    /// Recursive. After `divided`, a hex has at most as many levels as `ProtocolLimits` allows.
    private func write(_ index: Int, _ lists: [[Int]], to json: inout JSONWriter) {
        let hex = hexes[index]
        json.object { json in
            if !hex.senderUUID.isEmpty { json.member("senderUUID", hex.senderUUID) }
            if !hex.senderName.isEmpty { json.member("senderName", hex.senderName) }
            json.member("hexDescription", hex.description)
            json.member("hexColor", hex.color)
            json.named("links") { json in json.array(hex.links) { $1.write(to: &$0) } }
            if !lists[index].isEmpty {
                json.named("children") { json in json.array(lists[index]) { json, child in write(child, lists, to: &json) } }
            }
            for member in hex.extra { json.member(member.name, member.value) }
        }
    }
}

extension HexTree.Link {
    init?(_ json: JSONValue) {
        if let url = json.string {
            self.init(url: url)
            return
        }
        guard let members = json.members else { return nil }
        self.init(url: "")
        for member in members {
            switch KnownMember(member) {
            case .url: url = member.value.string ?? ""
            case .linkDescription: title = member.value.string ?? ""
            case .service: service = member.value.string ?? ""
            default: extra.append(HexTree.Member(member.name, member.value))
            }
        }
    }

    func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("url", url)
            if !title.isEmpty { json.member("linkDescription", title) }
            if !service.isEmpty { json.member("service", service) }
            for member in extra { json.member(member.name, member.value) }
        }
    }

    /// Estimated bytes of the link's JSON, without escapes.
    var weight: Int {
        extra.reduce(64 + url.utf8.count + title.utf8.count + service.utf8.count) { $0 + $1.name.utf8.count + $1.value.bytes.count + 4 }
    }
}

/// Members of HexJM and LinkJM that the protocol defines. All other members are unknown members.
enum KnownMember: String, CaseIterable {
    case senderUUID, senderName, hexDescription, hexColor, links, children
    case url, linkDescription, service

    init?(_ member: JSONMember) {
        guard let known = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(member.nameBytes) }) else { return nil }
        self = known
    }
}
