internal import GRDB
internal import HexlistModel

// Changes of inner hexes. Call these methods inside `change`.
extension StoreWriter {
    /// Deletes an inner hex with its own inner hexes. The caller has to remove them from the search index first. Has no effect if there is
    /// no such hex.
    func removeInside(_ id: Int64) throws {
        let found = try first("SELECT parent, hexesInside, linksInside, linkCount FROM hex WHERE id = ? AND parent IS NOT NULL", id) {
            (parent: $0.int64(0), hexes: $0.int64(1) + 1, links: $0.int64(2) + $0.int64(3))
        }
        guard let found else { return }
        try countInside(found.parent, hexes: -found.hexes, links: -found.links)
        try run("DELETE FROM hex WHERE id = ?", id)
    }

    /// Adds to the counts of inner hexes and their links (`hexesInside`, `linksInside`) of a hex and of all hexes that contain it.
    func countInside(_ id: Int64, hexes: Int64, links: Int64) throws {
        var next: Int64? = id
        for _ in 0..<ProtocolLimits.levels {
            guard let id = next else { return }
            try run("UPDATE hex SET hexesInside = hexesInside + ?, linksInside = linksInside + ? WHERE id = ?", hexes, links, id)
            next = try first("SELECT parent FROM hex WHERE id = ?", id) { $0.optionalInt64(0) } ?? nil
        }
    }
}
