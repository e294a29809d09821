import HexlistAPI
import HexlistModel
import HexlistStore

extension MineNodeEdit {
    /// Creates the edit for a request with `changes`; `nil` for any other request.
    /// - Throws: `.badRequest` for changes that have not exactly one form, or name something by an invalid id.
    init?(_ request: MineEditRequest) throws(HexlistError) {
        guard let changes = request.changes else { return nil }
        guard request.links == nil else {
            throw HexlistError(
                .badRequest, "`links` and `changes` do not go together.", hint: "`links` replaces all links; `changes` only those it names."
            )
        }
        var edits: [Change] = []
        for (index, change) in changes.enumerated() { edits.append(try Change(change, named: "changes[\(index)]")) }
        self.init(
            values: Values(title: request.description, color: request.color, tags: request.tags), changes: edits, version: request.version)
    }
}

extension MineNodeEdit.Change {
    /// - Parameter name: the place of the change in the request, for errors.
    fileprivate init(_ change: MineNodeChange, named name: String) throws(HexlistError) {
        let values = MineNodeEdit.Values(
            url: change.url, service: change.service, title: change.title, color: change.color, tags: change.tags, note: change.note)
        let hasValues = values != MineNodeEdit.Values()
        let after = try change.after.map { text throws(HexlistError) in try MineNodeEdit.node(text, named: "\(name).after") }
        switch (change.node, change.remove, change.add, change.move) {
        case (let node?, nil, nil, nil) where after == nil:
            self = .set(try MineNodeEdit.node(node, named: "\(name).node"), values)
        case (nil, let node?, nil, nil) where after == nil && !hasValues:
            self = .remove(try MineNodeEdit.node(node, named: "\(name).remove"))
        case (nil, nil, let link?, nil) where !hasValues:
            self = .add(MineNodeEdit.NewLink(link), after: after)
        case (nil, nil, nil, let node?) where !hasValues:
            self = .move(try MineNodeEdit.node(node, named: "\(name).move"), after: after)
        default:
            throw HexlistError(
                .badRequest, "`\(name)` has not exactly one of the forms of a change.",
                hint: "They are `{\"node\", \"title\"?, …}`, `{\"remove\"}`, `{\"add\", \"after\"?}` and `{\"move\", \"after\"?}`.")
        }
    }
}

extension MineNodeEdit.NewLink {
    fileprivate init(_ link: MineNewLink) {
        self.init(
            url: link.url, title: link.title ?? "", service: link.service ?? "", tags: link.tags ?? [], note: link.note ?? "",
            wantsTitle: link.readTitle ?? true)
    }
}
