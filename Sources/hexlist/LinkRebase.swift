import HexlistAPI
import HexlistClient
import HexlistModel

extension [LinkEdit] {
    /// Returns the edits for the present links of a hex, after others have added, removed or moved some: links that were removed meanwhile
    /// stay removed, and added ones stay, behind those of the edits.
    /// - Parameters:
    ///   - base: the links to which the edits refer.
    ///   - current: the present links.
    func rebased(from base: [LinkJSON], onto current: [LinkJSON]) -> [LinkEdit] {
        let number = Dictionary(current.enumerated().compactMap { index, link in link.node.map { ($0, index + 1) } }) { first, _ in first }
        let known = Set(base.compactMap(\.node))
        let kept = compactMap { edit -> LinkEdit? in
            guard let from = edit.from else { return edit }
            guard base.indices.contains(from - 1), let present = base[from - 1].node.flatMap({ number[$0] }) else { return nil }
            var edit = edit
            edit.from = present
            return edit
        }
        let added = current.enumerated().compactMap { index, link in
            link.node.map { known.contains($0) } ?? false ? nil : LinkEdit(from: index + 1)
        }
        let end = (kept.lastIndex { $0.from != nil } ?? -1) + 1
        return kept[..<end] + added + kept[end...]
    }
}

extension HexlistClient {
    /// Changes the links of a hex of My Hexlist. Changes that others make at the same time stay.
    /// - Parameters:
    ///   - hex: the hex to whose links the edits refer.
    ///   - edit: the change, with `links`.
    func editMineLinks(_ hex: HexJSON, _ edit: MineEditRequest) async throws -> HexJSON {
        var (base, edit) = (hex, edit)
        for _ in 0..<Self.editAttempts {
            edit.version = base.version
            do {
                return try await editMine(hex.id, edit)
            } catch let error as HexlistError where error.code == .changed {
                let current = try await mineHex(HexID(hex.id))
                edit.links = edit.links?.rebased(from: base.links ?? [], onto: current.links ?? [])
                base = current
            }
        }
        throw HexlistError(
            .changed, "Hex \(hex.id) is being changed by others all the time. Nothing was changed.", hint: "Try again later.")
    }

    /// Maximum attempts of one change. Each fails only if another change was made within milliseconds.
    private static let editAttempts = 50
}
