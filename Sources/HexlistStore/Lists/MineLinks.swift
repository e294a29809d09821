internal import GRDB
public import HexlistLists
public import HexlistModel

/// The ids of the nodes of a hex of My Hexlist and of its links. Requests name links by them. The version differs after links were added,
/// removed or moved.
public struct MineLinks: Sendable, Equatable {
    public var hex: ListNode.ID
    /// In order, at most 5 000.
    public var ids: [ListNode.ID]
    /// 16 hexadecimal digits: `ListDigest.init(ofOrder:)`.
    public var version: String

    init(of hex: ListNode.ID, _ ids: [ListNode.ID]) {
        self.hex = hex
        self.ids = ids
        version = ListDigest(ofOrder: ids).description
    }
}

extension StoreReader {
    /// Returns the links of a hex of My Hexlist, without those of inner hexes; `nil` for a hex elsewhere.
    public func mineLinkIDs(of hex: Int64) throws -> MineLinks? {
        guard let node = try node(ofHex: hex) else { return nil }
        let storage = try SQLListStorage(ListRecord(on: self, row: node.list), on: self)
        return MineLinks(of: node.id, try storage.links(in: node.id))
    }
}
