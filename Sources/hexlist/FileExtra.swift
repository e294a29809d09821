import HexlistAPI
import HexlistJSON

/// Reads the members about linked files in `HexJSON.extra`.
enum FileExtra {
    /// The members of a link to a file that `hexlist fetch` uses (Docs/Protocol.md, "Files").
    private static let understood = ["size", "sha256", "mediaType", "modified"]

    /// The size of a linked file in bytes; `nil` if unknown.
    static func size(_ extra: JSONValue?, link index: Int) -> Int64? {
        extra?.member("links")?.member(String(index))?.member("size")?.integer.flatMap { $0 < 0 ? nil : $0 }
    }

    /// The members of a hex inside.
    static func child(_ extra: JSONValue?, _ index: Int) -> JSONValue? { extra?.member("children")?.member(String(index)) }

    /// The unknown members without those about files; `nil` if none are left.
    static func rest(_ extra: JSONValue?, _ links: [LinkJSON], _ children: [ChildJSON]) -> JSONValue? {
        extra?.filtered { name, value in
            switch name {
            case "links":
                value.filtered { index, members in
                    guard let index = Int(index), links.indices.contains(index), FileArgument.isLink(links[index].url) else {
                        return members
                    }
                    return members.filtered { understood.contains($0) ? nil : $1 }
                }
            case "children":
                value.filtered { index, inner in
                    guard let index = Int(index), children.indices.contains(index) else { return inner }
                    return rest(inner, children[index].links, children[index].children ?? [])
                }
            default: value
            }
        }
    }
}

extension JSONValue {
    fileprivate func member(_ name: String) -> JSONValue? { members?.first { $0.nameBytes.elementsEqual(name.utf8) }?.value }

    /// The object with the values that `body` returns for its members; members with `nil` are dropped. `nil` for an empty object.
    fileprivate func filtered(_ body: (_ name: String, JSONValue) -> JSONValue?) -> JSONValue? {
        guard let members else { return self }
        let kept = members.compactMap { member in body(member.name, member.value).map { (member.name, $0) } }
        guard !kept.isEmpty else { return nil }
        return JSONValue { json in json.object { for (name, value) in kept { $0.member(name, value) } } }
    }
}
