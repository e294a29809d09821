import HexlistAPI
import HexlistJSON

/// Reads the members that describe linked files, such as their sizes, from `HexJSON.extra`: the unknown members of a hex and its links.
enum LinkedFileMetadata {
    /// The members of a file link that this program understands (Docs/Protocol.md, "Files").
    private static let understood = ["size", "sha256", "mediaType", "modified"]

    /// Returns the size of a linked file in bytes; `nil` if unknown.
    static func size(_ extra: JSONValue?, link index: Int) -> Int64? {
        extra?.member("links")?.member(String(index))?.member("size")?.integer.flatMap { $0 < 0 ? nil : $0 }
    }

    /// Whether the hex that `extra` belongs to was made from a folder.
    static func isFolder(_ extra: JSONValue?) -> Bool { extra?.member("hex")?.member("folder")?.string != nil }

    /// Returns the part of `extra` that belongs to the child hex at this index.
    static func child(_ extra: JSONValue?, _ index: Int) -> JSONValue? { extra?.member("children")?.member(String(index)) }

    /// The members that `show` prints in lines of their own (`LinkJSON.tags`, `LinkJSON.note`).
    private static let annotations = ["tags", "note"]

    /// Returns `extra` without the members that describe files, and without tags and notes; `nil` if nothing is left.
    static func rest(_ extra: JSONValue?, _ links: [LinkJSON], _ children: [InnerHexJSON]) -> JSONValue? {
        extra?.filtered { name, value in
            switch name {
            case "hex": value.filtered { $0 == "folder" || annotations.contains($0) ? nil : $1 }
            case "links":
                value.filtered { index, members in
                    let isFile = Int(index).map { links.indices.contains($0) && FileArgument.isLink(links[$0].url) } ?? false
                    return members.filtered { annotations.contains($0) || isFile && understood.contains($0) ? nil : $1 }
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

    /// Returns an object with each member's value replaced by the result of `body`. Omits members for which it returns `nil`. Returns `nil`
    /// instead of an empty object, and any other value unchanged.
    fileprivate func filtered(_ body: (_ name: String, JSONValue) -> JSONValue?) -> JSONValue? {
        guard let members else { return self }
        let kept = members.compactMap { member in body(member.name, member.value).map { (member.name, $0) } }
        guard !kept.isEmpty else { return nil }
        return JSONValue { json in json.object { for (name, value) in kept { $0.member(name, value) } } }
    }
}
