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
    /// The version of the present links (`MineLinks`) to which `Link.from` refers; `nil` for no check.
    public var version: String?

    public init(
        description: String? = nil, color: String? = nil, tags: [String]? = nil, links: [Link]? = nil, version: String? = nil
    ) {
        self.description = description
        self.color = color
        self.tags = tags
        self.links = links
        self.version = version
    }
}

/// A position among the hexes at the top level of My Hexlist, or directly inside one hex.
public enum SiblingPosition: Sendable, Equatable {
    case before(Int64)
    case after(Int64)

    /// The hex that it names.
    public var hex: Int64 {
        switch self {
        case .before(let hex), .after(let hex): hex
        }
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
                let last = id + Int64(content.hexCount) - 1
                try writer.recordLinksToOffers(in: id...last)
                if wantsTitles { try writer.enqueueTitles(ofLinks: id << 13...((last + 1) << 13) - 1) }
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
            try writer.groupMine(at: now) {
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
    /// - Returns: the number of the change in the change log; `nil` if nothing changed.
    /// - Throws: `.notFound`, `.badRequest` if the hex is not in My Hexlist, or the result would not be a valid hex; `.changed` if the version
    ///   is another one now.
    @discardableResult
    public func editMine(_ id: Int64, _ edit: MineEdit, wantsTitles: Bool = false, at now: Int64) async throws -> Int64? {
        try await write(rows: 1 + (edit.links?.count ?? 0)) { writer in
            try writer.numberOfChange {
                try writer.editMine(id, edit, at: now)
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
    ///   - sibling: the hex beside which it is inserted. If `parent` is given, it has to be directly inside that. `nil` for the end, at the
    ///     top level for the place before the hex with the next lower id.
    /// - Returns: the number of the change in the change log; `nil` if nothing changed.
    /// - Throws: `.notFound`; `.badRequest` if the hex would be inside itself, or the topmost hex would exceed the bounds of a hex.
    @discardableResult
    public func moveMine(_ id: Int64, into parent: Int64?, beside sibling: SiblingPosition? = nil, at now: Int64) async throws -> Int64? {
        try await write { writer in try writer.numberOfChange { try writer.moveMine(id, into: parent, beside: sibling, at: now) } }
    }
}

extension StoreReader {
    /// Throws `.notFound` if there is no such hex, `.badRequest` if it is not in My Hexlist.
    func checkIsMine(_ id: Int64) throws {
        guard let top = try summary(ofTop: id) else {
            throw HexlistError(.notFound, "There is no hex \(id).", hint: "`hexlist mine --tree` lists your hexes.")
        }
        guard top.location == .mine else {
            throw HexlistError(
                .badRequest, "Hex \(id) is not in My Hexlist (\(top.location.rawValue)).", hint: "To copy it there: `hexlist save \(id)`.")
        }
    }

    /// Returns the list that has the values and contents of a hex (`ListRecord.row`): of a shared hex its own list.
    func listOfContents(_ hex: Int64) throws -> Int64 { try node(ofHex: hex)?.list ?? ListRecord.mine }

    /// Returns the list that has the place of a hex (`ListRecord.row`): of a shared hex My Hexlist.
    func listWithPlace(_ hex: Int64) throws -> Int64 {
        try node(ofHex: hex).map { $0.isRoot ? ListRecord.mine : $0.list } ?? ListRecord.mine
    }

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
            if let parent { try checkIsMine(parent) }  // before the insert: the new hex may get the id given for the parent
            let id = try insertMine(content, into: parent, at: now)
            if parent != nil { try checkBounds(ofTop: id) }
            return id
        }
    }

    /// Adds the additions from an imported hex to a stored hex.
    /// - Returns: the numbers of added hexes and links, at all levels.
    func extend(_ hex: HexDetail, by merge: ImportMerge, of new: HexContent, at now: Int64) throws -> (hexes: Int, links: Int) {
        guard !merge.additions.isEmpty else { return (0, 0) }
        return try change {
            var added = (hexes: 0, links: 0)
            for addition in merge.additions {
                let id = addition.hex.map { hex.childIDs[$0] } ?? hex.summary.id
                try changeMine(at: now, in: listOfContents(id)) { try $0.append(addition.links, of: new, to: id) }
                added.links += addition.links.count
                for child in addition.children {
                    let tree = new.subtree(child)
                    _ = try insertMine(tree, into: id, at: now)
                    added.hexes += tree.hexCount
                    added.links += tree.allLinkCount
                }
            }
            return added
        }
    }

    /// Returns the ids of the hexes directly inside a hex of My Hexlist, in their order.
    func childrenOfMine(_ id: Int64) throws -> [Int64] {
        try checkIsMine(id)
        return try all("SELECT id FROM hex WHERE parent = ? ORDER BY position, id", id) { $0.int64(0) }
    }

    func editMine(_ id: Int64, _ edit: MineEdit, at now: Int64) throws {
        try change {
            try checkIsMine(id)
            guard var content = try hex(id)?.content else { throw HexlistError.noHex(id) }
            try checkVersion(edit.version, ofLinksOf: id)
            try Self.check(
                texts: [edit.description, edit.color] + (edit.links ?? []).flatMap { [$0.url, $0.linkDescription, $0.service] })
            for tags in [edit.tags] + (edit.links ?? []).map(\.tags) { try Self.check(tags: tags ?? []) }
            if let description = edit.description { content.hexDescription = content.add(description) }
            if let color = edit.color { content.hexColor = content.add(color) }
            if let tags = edit.tags { content.extra = content.addExtra(content.extra, settingTags: tags) }
            let old = content.links
            var origins = old.indices.map(Int?.init)
            if let links = edit.links {
                content.links = try links.map { try content.link($0, of: old) }
                origins = links.map(\.from)
            }
            content.children = []
            content.childLinks = []
            guard content.fitsBounds else { throw HexlistError.tooLarge(content) }
            try changeMine(at: now, in: listOfContents(id)) { [content, origins] in
                try $0.edit(id, to: content, from: old, linksFrom: origins)
            }
            try checkBounds(ofTop: id)
        }
    }

    /// Throws `.changed` if links of a hex were added, removed or moved since it had a version (`MineLinks`).
    /// - Parameter version: `nil` for no check.
    func checkVersion(_ version: String?, ofLinksOf id: Int64) throws {
        guard let version, try mineLinkIDs(of: id).map({ !$0.version.utf8.elementsEqual(version.utf8) }) ?? true else { return }
        throw HexlistError(
            .changed, "Links of hex \(id) were added, removed or moved in the meantime. Nothing was changed.",
            hint: "Read the hex again, then repeat the change.")
    }

    /// Makes a change of My Hexlist.
    /// - Returns: its number in the change log; `nil` if nothing changed.
    func numberOfChange(_ body: () throws -> Void) throws -> Int64? {
        try change {
            let before = try ListRecord(on: self).changes
            try body()
            let after = try ListRecord(on: self).changes
            return after > before ? after : nil
        }
    }

    static func check(texts: [String?]) throws {
        guard texts.allSatisfy({ ($0?.utf8.count ?? 0) <= ProtocolLimits.stringBytes }) else {
            throw HexlistError(.badRequest, "A text of a hex has at most \(ProtocolLimits.stringBytes) bytes.")
        }
    }

    static func check(tags: [String]) throws {
        guard tags.count <= Annotations.maximumTags else {
            throw HexlistError(.badRequest, "\(tags.count) tags are too many; \(Annotations.maximumTags) fit.")
        }
        guard tags.allSatisfy(Annotations.isTag) else {
            throw HexlistError(.badRequest, "A tag has 1 to \(ProtocolLimits.stringBytes) bytes and is not blank.")
        }
    }

    func moveMine(_ id: Int64, into parent: Int64?, beside sibling: SiblingPosition?, at now: Int64) throws {
        try change {
            try checkIsMine(id)
            if let parent { try checkIsMine(parent) }
            var parent = parent
            if let sibling {
                try checkIsMine(sibling.hex)
                guard sibling.hex != id else {
                    let place = sibling == .before(id) ? "before" : "after"
                    throw HexlistError(.badRequest, "Hex \(id) cannot be moved \(place) itself.")
                }
                let outer = try self.parent(of: sibling.hex)
                if let parent, parent != outer {
                    throw HexlistError(.badRequest, "Hex \(sibling.hex) is not directly inside hex \(parent).")
                }
                parent = outer
            }
            let list = try listWithPlace(id)
            try checkCanMove(id, from: list, into: parent)
            guard let parent else {
                if let sibling { return try changeMine(at: now) { try $0.move(id, into: nil, beside: sibling) } }
                guard try self.parent(of: id) != nil else { return }
                return try changeMine(at: now) { try $0.moveToTop($0.node(id)) }
            }
            var next: Int64? = parent
            var levelsAbove = 0
            while let hex = next, levelsAbove < ProtocolLimits.levels {
                guard hex != id else {
                    throw HexlistError(
                        .badRequest,
                        parent == id
                            ? "Hex \(id) cannot be moved into itself."
                            : "Hex \(id) cannot be moved into hex \(parent), which is inside it.",
                        hint: "`hexlist mine list \(id) --tree` shows what is inside it.")
                }
                levelsAbove += 1
                next = try self.parent(of: hex)
            }
            guard try levels(of: id) + levelsAbove <= ProtocolLimits.levels else { throw HexlistError.tooDeep }
            try changeMine(at: now, in: list) { try $0.move(id, into: parent, beside: sibling) }
            try checkBounds(ofTop: id)
        }
    }

    /// Throws `.badRequest` if a hex would leave its list: a shared hex is at the top level, and its contents stay in it.
    /// - Parameters:
    ///   - list: `listWithPlace` of the hex.
    ///   - parent: the hex that will contain it; `nil` for the top level.
    private func checkCanMove(_ id: Int64, from list: Int64, into parent: Int64?) throws {
        let target = try parent.map(listOfContents) ?? ListRecord.mine
        if try node(ofHex: id)?.isRoot ?? false, parent != nil {
            throw HexlistError(
                .badRequest, "Hex \(id) is, or was, shared. Such hexes stay at the top level of My Hexlist, because others have them too.",
                hint: try list == target ? nil : copyHint(id, into: parent, deletes: false))
        }
        guard list != target else { return }
        throw HexlistError(
            .badRequest,
            "Hex \(id) cannot be moved \(list == ListRecord.mine ? "into" : "out of") a shared hex, because others have it too.",
            hint: try copyHint(id, into: parent, deletes: isWritable(list)))
    }

    /// Returns the commands that copy a hex instead of moving it; `nil` if its destination is read-only.
    private func copyHint(_ id: Int64, into parent: Int64?, deletes: Bool) throws -> String? {
        guard try isWritable(parent.map(listOfContents) ?? ListRecord.mine) else { return nil }
        let copy = parent.map { "hexlist save \(id) --in \($0)" } ?? "hexlist save \(id)"
        return deletes ? "Copy it, then delete it: `\(copy)`, then `hexlist mine rm \(id)`." : "To copy it: `\(copy)`."
    }

    // MARK: - Inside `change`

    private func parent(of id: Int64) throws -> Int64? {
        try first("SELECT parent FROM hex WHERE id = ?", id) { $0.optionalInt64(0) } ?? nil
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
    static var tooDeep: HexlistError {
        HexlistError(.badRequest, "A hex has at most \(ProtocolLimits.levels) levels of hexes, itself the first.")
    }
}
