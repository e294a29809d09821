import HexlistAPI
import HexlistModel

extension [LinkEdit] {
    /// Returns the changes that turn the links of a hex into the edited ones. They name only the links that the edit removes, changes or
    /// moves, so links that others add or change meanwhile stay.
    /// - Parameter hex: the hex to whose links `from` refers.
    /// - Throws: `.versionMismatch` if the hex has no ids of its links.
    func changes(of hex: HexJSON) throws(HexlistError) -> [MineNodeChange] {
        let links = hex.links ?? []
        let nodes = links.compactMap(\.node)
        guard let node = hex.node, nodes.count == links.count else { throw HexlistError.noNodes }
        let kept = Set(compactMap(\.from))
        var changes = nodes.indices.filter { !kept.contains($0 + 1) }.map { MineNodeChange(remove: nodes[$0]) }
        for edit in self {
            guard let from = edit.from, let title = edit.linkDescription,
                !PeerTextComparison.areEqual(title, links[from - 1].linkDescription)
            else { continue }
            changes.append(MineNodeChange(node: nodes[from - 1], title: title))
        }
        let fixed = map(\.from).longestAscendingIndices
        var previous = node
        var index = 0
        while index < count {
            if fixed.contains(index), let from = self[index].from {
                previous = nodes[from - 1]
                index += 1
                continue
            }
            let end = indices[index...].firstIndex { fixed.contains($0) } ?? count
            // Links at the end are put behind those that others add there meanwhile.
            let after = end == count ? nil : previous
            for edit in self[index..<end] {
                changes.append(
                    edit.from.map { MineNodeChange(move: nodes[$0 - 1], after: after) }
                        ?? MineNodeChange(add: MineNewLink(url: edit.url ?? "", title: edit.linkDescription), after: after))
            }
            index = end
        }
        return changes
    }
}

extension HexlistError {
    /// The daemon is older than this program.
    static let noNodes = HexlistError(
        .versionMismatch, "The running hexlistd does not send the ids of links, which this hexlist needs.",
        hint: "Restart hexlistd, so that both have the same version.")
}
