internal import GRDB
internal import HexlistJSON
internal import HexlistLists
internal import HexlistModel

/// Changes by node. They read and write the rows of the named links and of their new neighbours only, because a hex may have 5 000 links.
extension MyHexlistTransaction {
    /// Changes links of a hex, and the hex itself.
    /// - Parameter number: the id of its row.
    mutating func apply(_ edit: MineNodeEdit, to hex: ListNode.ID, number: Int64) throws {
        if edit.values != MineNodeEdit.Values() { try set(edit.values, ofHex: hex, number: number) }
        var editor = NodeEditor(hex: hex, number: number)
        var rest = edit.changes[...]
        while let change = rest.first {
            let run = rest.prefix { $0.isPlaced(like: change) }
            rest = rest.dropFirst(max(1, run.count))
            switch change {
            case .set(hex, let values): try set(values, ofHex: hex, number: number)
            case .set(let id, let values): try set(values, ofLink: id, &editor)
            case .remove(let id): try nodes.delete(link(id, editor).node.id)
            case .add(_, let after), .move(_, let after): try place(run, after: after, &editor)
            }
        }
    }

    /// The state of `apply`.
    private struct NodeEditor {
        var hex: ListNode.ID
        var number: Int64
        /// The links that replaced others, which got new URLs, by the replaced ones.
        var replacements: [ListNode.ID: ListNode.ID] = [:]
        /// Whether the stored tree has to be derived again before a link is placed, because there are links that it does not show yet.
        var needsTree = false
    }

    private mutating func set(_ values: MineNodeEdit.Values, ofHex hex: ListNode.ID, number: Int64) throws {
        guard let node = try nodes.storage.row(hex)?.node else { throw HexlistError.noHex(number) }
        try set(values, of: node)
    }

    private mutating func set(_ values: MineNodeEdit.Values, ofLink id: ListNode.ID, _ editor: inout NodeEditor) throws {
        let row = try link(id, editor)
        editor.needsTree = editor.needsTree || row.state != .present
        var node = row.node
        let url = values.url.map { UTF8Text($0) } ?? node.url
        let service = values.service.map { UTF8Text(MineNodeEdit.serviceName($0)) } ?? node.service
        if url != node.url || service != node.service {
            guard let new = try nodes.setURL(of: id, to: url, service: service, using: &generator),
                let stored = try nodes.storage.row(new)?.node
            else { throw noLink(id, editor) }
            editor.replacements[id] = new
            editor.needsTree = true
            node = stored
        }
        try set(values, of: node)
    }

    private mutating func set(_ values: MineNodeEdit.Values, of node: ListNode) throws {
        if let title = values.title { try setTitle(of: node, to: Array(title.utf8)) }
        if let color = values.color { try set([NodeRegisters.color: UTF8Text(color)], of: node) }
        guard values.tags != nil || values.note != nil else { return }
        let extra = NodeRegisters.extra(of: node.registers.mapValues(\.value))
        try setExtra(of: node, to: Annotations.extra(extra, settingTags: values.tags, note: values.note))
    }

    /// Puts new and moved links at one place, one after the other.
    private mutating func place(
        _ run: ArraySlice<MineNodeEdit.Change>, after sibling: ListNode.ID?, _ editor: inout NodeEditor
    ) throws {
        if editor.needsTree {
            try deriveTree()
            editor.needsTree = false
        }
        let position = try position(after: sibling, editor)
        if run.count == 1, case .move(let id, _)? = run.first {
            let link = try link(id, editor).node.id
            let (before, after) = try nodes.storage.neighbors(of: position, in: editor.hex)
            if before?.node.id == link || after?.node.id == link { return }  // it is there already
        }
        var content = HexContent()
        var keys: [OrderKey] = []
        for (change, key) in zip(run, try nodes.keys(count: run.count, at: position, in: editor.hex, using: &generator)) {
            switch change {
            case .add(let link, _):
                content.links.append(content.newLink(link))
                keys.append(key)
            case .move(let id, _):
                let row = try link(id, editor)
                editor.needsTree = editor.needsTree || row.state != .present
                try nodes.move(row.node.id, to: editor.hex, key: key)
            case .set, .remove: break  // are not placed
            }
        }
        try insert(content.links, of: content, in: editor.hex, at: keys)
    }

    /// Returns the position behind a link, or the former one of a deleted link.
    /// - Parameter sibling: `nil` for the end, the hex itself for its beginning.
    private func position(after sibling: ListNode.ID?, _ editor: NodeEditor) throws -> ListPosition {
        guard let sibling else { return .last }
        guard sibling != editor.hex else { return .first }
        let row = try link(sibling, editor)
        guard row.state != .present else { return .after(row.node.id) }
        guard let key = row.node.place?.key else { return .last }
        let before = try writer.first(
            """
            SELECT uuid FROM node WHERE container = ? AND state <> 1 AND list = \(list.row) AND (orderKey, uuid) < (?, ?)
            ORDER BY orderKey DESC, uuid DESC LIMIT 1
            """, editor.hex.uuid, key.bytes, row.node.id.uuid
        ) { $0.nodeID(0) }
        return (before ?? nil).map { .after($0) } ?? .first
    }

    /// Returns the row of a link of the hex, or of the link that replaced it. The link may be deleted.
    private func link(_ id: ListNode.ID, _ editor: NodeEditor) throws -> ListRow {
        guard let row = try nodes.storage.row(editor.replacements[id] ?? id), !row.node.isPurged else { throw noLink(id, editor) }
        let container = row.container ?? list.id  // links whose hex is unknown are shown in the root
        guard container != editor.hex else { return row }
        guard row.state == .present, let other = try writer.hex(ofNode: container, in: list.row) else { throw noLink(id, editor) }
        throw HexlistError(.badRequest, "Link \(id) is in hex \(other), not in hex \(editor.number).")
    }

    private func noLink(_ id: ListNode.ID, _ editor: NodeEditor) -> HexlistError {
        HexlistError(
            .notFound, "There is no link \(id) in hex \(editor.number).",
            hint: "`GET /v1/hexes/\(editor.number)` has its links, with `node`.")
    }
}

extension MineNodeEdit {
    fileprivate static func serviceName(_ service: String) -> String { service.isEmpty ? Service.unknown.rawValue : service }
}

extension HexContent {
    fileprivate mutating func newLink(_ link: MineNodeEdit.NewLink) -> LinkContent {
        LinkContent(
            url: add(link.url), linkDescription: add(link.title), service: add(MineNodeEdit.serviceName(link.service)),
            extra: add(bytes: Annotations.extra([], settingTags: link.tags, note: link.note)))
    }
}
