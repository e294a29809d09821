import HexlistAPI
import HexlistModel
import HexlistNode
import HexlistStore

/// The sharing of a hex of My Hexlist that is shared, or inside a shared hex.
struct MineSharing: Sendable {
    private var sharing: HexSharing
    /// The shared hex, if it is around this one.
    private var outer: Int64?
    private var newLinks: Set<LinkPosition>

    /// Returns `nil` if the hex is not shared.
    init?(_ hex: HexDetail, _ reader: StoreReader) throws {
        let id = hex.summary.id
        if hex.summary.parent == nil {
            guard let sharing = try reader.sharing(of: [id])[id] else { return nil }
            self.sharing = sharing
        } else {
            guard let around = try reader.sharing(around: id) else { return nil }
            (outer, sharing) = around
        }
        newLinks = try sharing.new > 0 ? reader.newLinks(in: hex) : []
    }

    fileprivate func shape(_ api: APIContext) async -> HexSharingJSON {
        var shape = HexSharingJSON(sharing, await api.node.peers.labels(of: sharing.owner.map { [$0] } ?? []))
        shape.sequence = sharing.sequence
        shape.hex = outer
        return shape
    }

    fileprivate func marked(_ links: [LinkJSON], of hex: Int64) -> [LinkJSON] {
        var links = links
        for position in newLinks where position.hex == hex && links.indices.contains(position.position) {
            links[position.position].new = true
        }
        return links
    }

    /// Returns a hex with marks of its new links. Recursive, bounded by `ProtocolLimits.levels`.
    fileprivate func marked(_ child: InnerHexJSON) -> InnerHexJSON {
        var child = child
        child.links = marked(child.links, of: child.id)
        child.children = child.children?.map(marked)
        return child
    }
}

extension HexJSON {
    /// Sets the sharing, and the marks of new links, also in inner hexes.
    mutating func add(_ sharing: MineSharing, _ api: APIContext) async {
        shared = await sharing.shape(api)
        links = links.map { sharing.marked($0, of: id) }
        children = children?.map(sharing.marked)
    }
}
