import HexlistJSON
import HexlistModel

/// The member `folder` in the JSON of a hex that was made from a folder. It has the name of the folder (Docs/Protocol.md, "Files").
enum FolderMember {
    private static let name = "folder"

    /// Returns a JSON object with this member, for the unknown members of a hex.
    static func json(_ folder: String) -> [UInt8] {
        var json = JSONWriter(wireCapacity: 64)
        json.object { $0.member(name, folder) }
        return json.bytes
    }

    /// Returns the name of the folder from the unknown members of a hex; `nil` if there is none. Untrusted text of a peer.
    static func folder(_ extra: TextSlice, of hex: HexContent) -> String? {
        guard !extra.isEmpty, let members = (try? JSONValue(parsing: hex.string(extra)))?.members else { return nil }
        return members.first { $0.nameBytes.elementsEqual(name.utf8) }?.value.string
    }
}
