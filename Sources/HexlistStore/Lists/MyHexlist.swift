internal import GRDB
internal import HexlistJSON
public import HexlistModel

/// A change of a hex of My Hexlist. Properties that are `nil` leave the value unchanged.
public struct MineEdit: Sendable {
    /// One link of the new list of links.
    public struct Link: Sendable {
        /// The current position of an existing link, from 0; `nil` for a new link. Of an existing link, properties that are `nil` and
        /// unknown members stay unchanged.
        public var from: Int?
        public var url: String?
        public var linkDescription: String?
        public var service: String?
        /// The complete new list of tags.
        public var tags: [String]?
        /// Whether a title is read for a new link without a description.
        public var wantsTitle: Bool

        public init(
            from: Int? = nil, url: String? = nil, linkDescription: String? = nil, service: String? = nil, tags: [String]? = nil,
            wantsTitle: Bool = true
        ) {
            self.from = from
            self.url = url
            self.linkDescription = linkDescription
            self.service = service
            self.tags = tags
            self.wantsTitle = wantsTitle
        }
    }

    public var description: String?
    public var color: String?
    /// The complete new list of tags of the hex itself.
    public var tags: [String]?
    /// The complete new list of links. Existing links that it does not contain are deleted.
    public var links: [Link]?

    public init(description: String? = nil, color: String? = nil, tags: [String]? = nil, links: [Link]? = nil) {
        self.description = description
        self.color = color
        self.tags = tags
        self.links = links
    }
}

// Operations on My Hexlist: the user's own hexes with their inner hexes.
extension HexStore {
    /// Adds a hex to My Hexlist.
    /// - Parameters:
    ///   - parent: the hex to which it is appended as an inner hex; `nil` for the top level.
    ///   - wantsTitles: whether the titles of pages are to be read for links without a description (`PendingTitle`).
    /// - Returns: the id of the new hex.
    /// - Throws: `.notFound`, `.badRequest` if the topmost hex would exceed the bounds of a hex.
    public func addMine(
        _ content: HexContent, into parent: Int64? = nil, wantsTitles: Bool = false, at now: Int64
    ) async throws -> Int64 {
        try await write(rows: content.hexCount + content.allLinkCount) { writer in
            try writer.change {
                let id = try writer.addMine(content, into: parent, at: now)
                // The ids of its inner hexes follow the id of a new hex.
                if wantsTitles { try writer.enqueueTitles(ofLinks: id << 13...((id + Int64(content.hexCount)) << 13) - 1) }
                return id
            }
        }
    }

    /// Copies hexes with their inner hexes into My Hexlist, in the given order. A copy of a hex that claims no sender gets the proven
    /// sender.
    /// - Returns: the new ids, and the numbers of copied hexes and links.
    /// - Throws: the errors of `addMine`, and `.badRequest` if all hexes together have more than 100 000 hexes and links or 96 MiB of
    ///   texts. Then no hex is copied.
    public func saveMine(
        _ ids: [Int64], into parent: Int64? = nil, at now: Int64
    ) async throws -> (ids: [Int64], hexes: Int, links: Int) {
        let rows = try await read { try $0.rowsToSave(ids) }
        return try await write(rows: rows) { writer in
            try writer.change {
                var saved: (ids: [Int64], hexes: Int, links: Int) = ([], 0, 0)
                for id in ids {
                    guard let hex = try writer.hex(id) else { throw HexlistError.noHex(id) }
                    saved.ids.append(try writer.addMine(hex.contentWithSender, into: parent, at: now))
                    saved.hexes += hex.content.hexCount
                    saved.links += hex.content.allLinkCount
                }
                return saved
            }
        }
    }

    /// - Parameter wantsTitles: as for `addMine`, for new links.
    /// - Throws: `.notFound`, `.badRequest` if the hex is not in My Hexlist, or the result would not be a valid hex.
    public func editMine(_ id: Int64, _ edit: MineEdit, wantsTitles: Bool = false) async throws {
        try await write(rows: 1 + (edit.links?.count ?? 0)) { writer in
            try writer.change {
                try writer.editMine(id, edit)
                guard wantsTitles else { return }
                for (position, link) in (edit.links ?? []).enumerated() where link.from == nil && link.wantsTitle {
                    let place = LinkPosition(hex: id, position: position).id
                    try writer.enqueueTitles(ofLinks: place...place)
                }
            }
        }
    }

    /// Moves a hex within My Hexlist, with its inner hexes.
    /// - Parameters:
    ///   - parent: the hex that will contain it; `nil` for the top level.
    ///   - sibling: the hex inside `parent` before which it is inserted; `nil` for the end.
    /// - Throws: `.notFound`; `.badRequest` if the hex would be inside itself, or the topmost hex would exceed the bounds of a hex.
    public func moveMine(_ id: Int64, into parent: Int64?, before sibling: Int64? = nil) async throws {
        try await write { try $0.moveMine(id, into: parent, before: sibling) }
    }
}

extension StoreReader {
    /// Maximum number of hexes and links that one request copies, and maximum bytes of their texts.
    private static let (savedRows, savedBytes) = (100_000, 96 << 20)

    /// Returns the number of rows that copies of hexes need, including links and inner hexes.
    /// - Throws: `.notFound`, `.badRequest` if they exceed the limits of one request.
    fileprivate func rowsToSave(_ ids: [Int64]) throws -> Int {
        let sizes = try all(
            "SELECT id, 1 + linkCount + hexesInside + linksInside, byteCount FROM hex WHERE id IN (SELECT value FROM json_each(?))",
            jsonArray(Set(ids))
        ) { ($0.int64(0), (rows: $0.int(1), bytes: $0.int(2))) }
        let known = Dictionary(sizes) { first, _ in first }
        var (rows, bytes) = (0, 0)
        for id in ids {
            guard let size = known[id] else { throw HexlistError.noHex(id) }
            rows += size.rows
            bytes += size.bytes
        }
        guard rows <= Self.savedRows, bytes <= Self.savedBytes else {
            throw HexlistError(
                .badRequest,
                rows > Self.savedRows
                    ? "One request saves \(Self.savedRows) hexes and links at most; these have \(rows)."
                    : "One request saves \(Self.savedBytes >> 20) MiB at most; these hexes have \(bytes >> 20).",
                hint: "Nothing was saved. Save fewer at once.")
        }
        return rows
    }
}

extension HexDetail {
    /// The content for a copy in My Hexlist. If the hex claims no sender, the proven sender is filled in, because hexes in My Hexlist have
    /// no proven sender, and the copy would look like a hex of the user.
    fileprivate var contentWithSender: HexContent {
        guard let peer = summary.peer, content.senderUUID.isEmpty, content.senderName.isEmpty else { return content }
        var content = content
        content.senderUUID = content.add(peer.description)
        return content
    }
}

extension StoreWriter {
    func addMine(_ content: HexContent, into parent: Int64?, at now: Int64) throws -> Int64 {
        try change {
            guard content.levels <= ProtocolLimits.levels else { throw HexlistError.tooDeep }
            if let parent { _ = try mineRow(parent) }  // before the insert: the new hex may get the id given for the parent
            let id = try insertMine(content, at: now)
            if let parent { try nest(id, into: parent, before: nil) }
            return id
        }
    }

    /// Appends a hex of My Hexlist to the inner hexes of `parent`. The hex must not be counted in a previous parent. The caller has to call
    /// `checkBounds(ofTop:)` afterwards.
    func append(_ id: Int64, to parent: Int64) throws {
        try change { try nest(id, into: parent, before: nil, checksBounds: false) }
    }

    /// Adds the additions from an imported hex to a stored hex.
    /// - Returns: the numbers of added hexes and links, at all levels.
    func extend(_ hex: HexDetail, by merge: ImportMerge, of new: HexContent, at now: Int64) throws -> (hexes: Int, links: Int) {
        guard !merge.additions.isEmpty else { return (0, 0) }
        return try change {
            var added = (hexes: 0, links: 0)
            try unindex([hex.summary.id])
            for addition in merge.additions {
                let id = addition.hex.map { hex.childIDs[$0] } ?? hex.summary.id
                try append(addition.links, of: new, to: id, after: hex.content.links(of: addition.hex), of: hex.content)
                added.links += addition.links.count
                for child in addition.children {
                    let tree = new.subtree(child)
                    try nest(insertMine(tree, at: now), into: id, before: nil, checksBounds: false)
                    added.hexes += tree.hexCount
                    added.links += tree.allLinkCount
                }
            }
            try reindex([hex.summary.id])
            return added
        }
    }

    /// Returns the ids of the hexes directly inside a hex of My Hexlist, in their order.
    func childrenOfMine(_ id: Int64) throws -> [Int64] {
        _ = try mineRow(id)
        return try all("SELECT id FROM hex WHERE parent = ? ORDER BY position, id", id) { $0.int64(0) }
    }

    func editMine(_ id: Int64, _ edit: MineEdit) throws {
        try change {
            let row = try mineRow(id)
            guard var content = try hex(id)?.content else { throw HexlistError.noHex(id) }
            for text in [edit.description, edit.color] + (edit.links ?? []).flatMap({ [$0.url, $0.linkDescription, $0.service] }) {
                guard (text?.utf8.count ?? 0) <= ProtocolLimits.stringBytes else {
                    throw HexlistError(.badRequest, "A text of a hex has at most \(ProtocolLimits.stringBytes) bytes.")
                }
            }
            for tags in [edit.tags] + (edit.links ?? []).map(\.tags) { try Self.check(tags: tags ?? []) }
            try unindex([id])
            if let description = edit.description { content.hexDescription = content.add(description) }
            if let color = edit.color { content.hexColor = content.add(color) }
            if let tags = edit.tags { content.extra = content.addExtra(content.extra, settingTags: tags) }
            if let links = edit.links {
                let old = content.links
                content.links = try links.map { try content.link($0, of: old) }
                let difference = Int64(content.links.count - old.count)
                try replaceLinks(of: id, by: content)
                if let parent = row.parent { try countInside(parent, hexes: 0, links: difference) }
            }
            content.children = []  // the column `byteCount` excludes inner hexes
            content.childLinks = []
            try run(
                "UPDATE hex SET description = ?, color = ?, extra = ?, linkCount = ?, byteCount = ? WHERE id = ?",
                content.string(content.hexDescription), content.string(content.hexColor), content.string(content.extra),
                content.links.count, content.byteCount, id)
            try reindex([id])
            try checkBounds(ofTop: id)
        }
    }

    private static func check(tags: [String]) throws {
        guard tags.count <= Annotations.maximumTags else {
            throw HexlistError(.badRequest, "\(tags.count) tags are too many; \(Annotations.maximumTags) fit.")
        }
        guard tags.allSatisfy(Annotations.isTag) else {
            throw HexlistError(.badRequest, "A tag has 1 to \(ProtocolLimits.stringBytes) bytes and is not blank.")
        }
    }

    func moveMine(_ id: Int64, into parent: Int64?, before sibling: Int64?) throws {
        try change {
            let row = try mineRow(id)
            guard let parent else {
                guard sibling == nil else {
                    throw HexlistError(
                        .badRequest, "The top level of My Hexlist is always newest first.", hint: "Use `before` together with `in`.")
                }
                guard let before = row.parent else { return }
                try countInside(before, hexes: -row.hexes, links: -row.links)
                try run("UPDATE hex SET location = 'mine', parent = NULL, position = NULL WHERE id = ?", id)
                counters.mine &+= 1
                return
            }
            _ = try mineRow(parent)
            var next: Int64? = parent
            for _ in 0..<ProtocolLimits.levels where next != nil {
                guard next != id else {
                    throw HexlistError(
                        .badRequest,
                        parent == id
                            ? "Hex \(id) cannot be moved into itself."
                            : "Hex \(id) cannot be moved into hex \(parent), which is inside it.",
                        hint: "`hexlist mine list \(id) --tree` shows what is inside it.")
                }
                next = try self.parent(of: next ?? 0)
            }
            guard sibling != id else { throw HexlistError(.badRequest, "Hex \(id) cannot be moved before itself.") }
            if let before = row.parent { try countInside(before, hexes: -row.hexes, links: -row.links) }
            try nest(id, into: parent, before: sibling)
        }
    }

    // MARK: - Inside `change`

    /// The parent and the size of a hex of My Hexlist.
    private struct MineRow {
        var parent: Int64?
        /// The number of hexes in the subtree, including the hex itself.
        var hexes: Int64
        /// The number of links in the subtree, including those of the hex itself.
        var links: Int64
    }

    private func mineRow(_ id: Int64) throws -> MineRow {
        guard let top = try summary(ofTop: id) else {
            throw HexlistError(.notFound, "There is no hex \(id).", hint: "`hexlist mine --tree` lists your hexes.")
        }
        guard top.location == .mine else {
            throw HexlistError(
                .badRequest, "Hex \(id) is not in My Hexlist (\(top.location.rawValue)).", hint: "To copy it there: `hexlist save \(id)`.")
        }
        let row = try first("SELECT parent, hexesInside + 1, linksInside + linkCount FROM hex WHERE id = ?", id) {
            MineRow(parent: $0.optionalInt64(0), hexes: $0.int64(1), links: $0.int64(2))
        }
        guard let row else { throw HexlistError.noHex(id) }
        return row
    }

    private func parent(of id: Int64) throws -> Int64? {
        try first("SELECT parent FROM hex WHERE id = ?", id) { $0.optionalInt64(0) } ?? nil
    }

    /// Moves a hex of My Hexlist into another hex. It must not be counted in a previous parent.
    /// - Parameter checksBounds: whether to call `checkBounds(ofTop:)` afterwards. If `false`, the caller has to call it.
    private func nest(_ id: Int64, into parent: Int64, before sibling: Int64?, checksBounds: Bool = true) throws {
        _ = try mineRow(parent)
        let row = try mineRow(id)
        var position = try first("SELECT coalesce(max(position), -1) + 1 FROM hex WHERE parent = ?", parent) { $0.int64(0) } ?? 0
        if let sibling {
            let found = try first("SELECT position FROM hex WHERE id = ? AND parent = ?", sibling, parent) { $0.int64(0) }
            guard let found else { throw HexlistError(.badRequest, "Hex \(sibling) is not directly inside hex \(parent).") }
            position = found
            try run("UPDATE hex SET position = position + 1 WHERE parent = ? AND position >= ?", parent, position)
        }
        let wasTop = try first("SELECT location = 'mine' FROM hex WHERE id = ?", id) { $0.bool(0) } ?? false
        try run("UPDATE hex SET location = 'inside', parent = ?, position = ? WHERE id = ?", parent, position, id)
        if wasTop { counters.mine &-= 1 }
        try countInside(parent, hexes: row.hexes, links: row.links)
        if checksBounds { try checkBounds(ofTop: id) }
    }

    /// Checks that the topmost hex that contains a hex does not exceed the bounds of a hex, so that it can be sent. Throws `.badRequest` if
    /// it does.
    func checkBounds(ofTop id: Int64) throws {
        guard let top = try summary(ofTop: id) else { throw HexlistError.tooDeep }  // nested deeper than `summary(ofTop:)` follows
        guard top.parent == nil, try levels(of: top.id) <= ProtocolLimits.levels else { throw HexlistError.tooDeep }
        guard top.hexesInside <= ProtocolLimits.children else {
            throw HexlistError(
                .badRequest, "Hex \(top.id) would have \(top.hexesInside) hexes in it; the maximum is \(ProtocolLimits.children).")
        }
        guard top.linkCount + top.linksInside <= ProtocolLimits.links else {
            throw HexlistError(
                .badRequest,
                "Hex \(top.id) would have \(top.linkCount + top.linksInside) links in all; the maximum is \(ProtocolLimits.links)."
            )
        }
    }

    /// Returns the number of levels of a hex, including the hex itself. Stops counting at one more than the maximum.
    private func levels(of id: Int64) throws -> Int {
        try first(
            """
            WITH RECURSIVE wanted (id, level) AS (
                SELECT ?, 1
                UNION ALL
                SELECT hex.id, level + 1 FROM wanted CROSS JOIN hex ON hex.parent = wanted.id WHERE level <= \(ProtocolLimits.levels)
            )
            SELECT max(level) FROM wanted
            """, id
        ) { $0.int(0) } ?? 1
    }

    /// Appends links to the existing links of a hex. The caller has to remove the hex from the search index first.
    private func append(
        _ links: [LinkContent], of new: HexContent, to id: Int64, after existing: ArraySlice<LinkContent>, of old: HexContent
    ) throws {
        guard !links.isEmpty else { return }
        var content = HexContent(frame: old.frame, arena: old.arena)
        content.links = Array(existing)
        for link in links {
            func copy(_ slice: TextSlice) -> TextSlice { content.add(bytes: new.withBytes(of: slice) { Array($0) }) }
            let (url, description) = (copy(link.url), copy(link.linkDescription))
            let added = LinkContent(url: url, linkDescription: description, service: copy(link.service), extra: copy(link.extra))
            content.links.append(added)
        }
        try replaceLinks(of: id, by: content)
        try run(
            "UPDATE hex SET linkCount = ?, byteCount = byteCount + ? WHERE id = ?", content.links.count,
            links.reduce(0) { $0 + $1.byteCount }, id)
        if let parent = try parent(of: id) { try countInside(parent, hexes: 0, links: Int64(links.count)) }
    }

    /// Call between `unindex` and `reindex`.
    private func replaceLinks(of id: Int64, by content: HexContent) throws {
        guard content.links.count <= ProtocolLimits.links else { throw HexlistError.tooLarge(content) }
        try run("DELETE FROM link WHERE id BETWEEN ?1 << 13 AND (?1 << 13) + 8191", id)
        try inserter().insertLinks(of: content, id)
        try forgetDeadLinks(of: id)
    }
}

extension HexContent {
    fileprivate mutating func link(_ edit: MineEdit.Link, of old: [LinkContent]) throws -> LinkContent {
        var link: LinkContent
        if let from = edit.from {
            guard old.indices.contains(from) else {
                throw HexlistError(.badRequest, "There is no link \(from + 1): the hex has \(old.count).")
            }
            link = old[from]
        } else {
            guard edit.url != nil else { throw HexlistError(.badRequest, "A new link has a `url`.") }
            link = LinkContent(url: .empty, linkDescription: .empty, service: add(Service.unknown.rawValue))
        }
        if let url = edit.url { link.url = add(url) }
        if let description = edit.linkDescription { link.linkDescription = add(description) }
        if let service = edit.service { link.service = add(service.isEmpty ? Service.unknown.rawValue : service) }
        if let tags = edit.tags { link.extra = addExtra(link.extra, settingTags: tags) }
        return link
    }

    fileprivate mutating func addExtra(_ extra: TextSlice, settingTags tags: [String]) -> TextSlice {
        add(bytes: Annotations.extra(withBytes(of: extra) { Array($0) }, settingTags: tags))
    }
}

extension HexlistError {
    fileprivate static var tooDeep: HexlistError {
        HexlistError(.badRequest, "A hex has at most \(ProtocolLimits.levels) levels of hexes, itself the first.")
    }
}
